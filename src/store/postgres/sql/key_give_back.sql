DELETE FROM idempotency_keys AS k
USING unnest($1::uuid[], $2::bytea[]) AS w (organization_id, key)
WHERE k.organization_id = w.organization_id AND k.key = w.key;
