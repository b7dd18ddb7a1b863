-- A page walks back over a bounded number of letters, $2 … $1.
SELECT id, organization_id, delivery, type, reason, try_count, created_at, body, number
FROM dead_letters
WHERE number < $1::bigint AND number >= $2::bigint
  AND ($3::uuid IS NULL OR organization_id = $3::uuid)
  AND ($5::timestamptz IS NULL OR created_at >= $5::timestamptz)
ORDER BY number DESC
LIMIT $4::integer;
