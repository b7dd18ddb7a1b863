INSERT INTO idempotency_keys (organization_id, key, body, result, created_at)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (organization_id, key) DO NOTHING;
