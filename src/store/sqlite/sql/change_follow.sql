SELECT id, created_at, data
FROM changes
WHERE id > ?1
ORDER BY id
LIMIT ?2;
