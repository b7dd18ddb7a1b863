DELETE FROM idempotency_keys
WHERE organization_id = ?1 AND key = ?2 AND created_at <= ?3;
