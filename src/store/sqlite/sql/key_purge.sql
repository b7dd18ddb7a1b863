DELETE FROM idempotency_keys
WHERE number IN (SELECT number FROM idempotency_keys ORDER BY number LIMIT ?2)
  AND created_at < ?1;
