DELETE FROM idempotency_keys
WHERE (organization_id, key) IN (
    SELECT organization_id, key
    FROM idempotency_keys
    WHERE created_at < $1::timestamptz
    ORDER BY created_at
    LIMIT $2::integer
    FOR UPDATE SKIP LOCKED);
