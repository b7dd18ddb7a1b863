-- From the oldest on, without a gap, and never the newest: ids go on from it. At most ?2 rows and about ?4 bytes.
-- ?3: what is older makes no delivery wait any longer.
WITH oldest AS MATERIALIZED (
    SELECT id, created_at, sum(size) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) - size AS size_before
    FROM (SELECT id, created_at, length(data) AS size FROM changes ORDER BY id LIMIT ?2)
)
DELETE FROM changes
WHERE id <= (SELECT max(id) FROM oldest WHERE size_before < ?4)
  AND id < (SELECT max(id) FROM changes)
  AND id < coalesce((
    SELECT min(id)
    FROM oldest
    WHERE created_at >= ?1
       OR (created_at >= ?3 AND id > (SELECT min(position_id) FROM deliveries))), 9223372036854775807);
