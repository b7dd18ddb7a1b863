-- From the oldest on, without a gap, some at a time; what no delivery may still want, or is older than $3. Only one
-- transaction purges: the others do not wait for it.
WITH floor AS MATERIALIZED (
    SELECT transaction
    FROM feed_floor
    FOR NO KEY UPDATE SKIP LOCKED
), oldest AS MATERIALIZED (
    SELECT c.id, c.transaction, c.created_at
    FROM changes AS c
    WHERE EXISTS (SELECT 1 FROM floor)
    ORDER BY c.id
    LIMIT $2::integer
), kept AS MATERIALIZED (
    SELECT min(o.id) AS id
    FROM oldest AS o
    WHERE o.created_at >= $1::timestamptz
       OR (o.created_at >= $3::timestamptz
           AND EXISTS (SELECT 1 FROM deliveries AS d WHERE d.position_from::text::xid8 <= o.transaction))
), gone AS (
    DELETE FROM changes AS c
    USING oldest AS o, kept AS k
    WHERE c.id = o.id AND (k.id IS NULL OR o.id < k.id)
    RETURNING c.transaction
)
UPDATE feed_floor AS f
SET transaction = greatest(f.transaction, g.transaction)
FROM (SELECT transaction FROM gone ORDER BY transaction DESC LIMIT 1) AS g;
