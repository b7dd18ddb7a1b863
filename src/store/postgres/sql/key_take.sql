-- Returns the keys that are ours now. One older than its life makes way.
INSERT INTO idempotency_keys (organization_id, key, body, result, created_at)
SELECT w.organization_id, w.key, w.body, w.result, w.created_at
FROM unnest($1::uuid[], $2::bytea[], $3::bytea[], $4::bytea[], $5::timestamptz[])
    AS w (organization_id, key, body, result, created_at)
ORDER BY w.organization_id, w.key
ON CONFLICT (organization_id, key) DO UPDATE
SET body = excluded.body, result = excluded.result, created_at = excluded.created_at
WHERE idempotency_keys.created_at <= excluded.created_at - $6::integer * interval '1 hour'
RETURNING organization_id, key;
