SELECT body, result
FROM idempotency_keys
WHERE organization_id = $1::uuid AND key = $2::bytea AND created_at > $3::timestamptz;
