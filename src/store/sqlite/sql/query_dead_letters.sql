-- A page walks back over a bounded number of letters, ?2 … ?1.
SELECT id, organization_id, delivery, type, reason, try_count, created_at, body, number
FROM dead_letters NOT INDEXED
WHERE number < ?1 AND number >= ?2
  AND (?3 IS NULL OR organization_id = ?3)
  AND (?5 IS NULL OR created_at >= ?5)
ORDER BY number DESC
LIMIT ?4;
