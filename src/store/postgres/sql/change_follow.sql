-- The changes of the transactions from $1 on, $2 of them at most: `until` is where to go on. Only transactions below
-- the oldest that is still open count, because from there on more may come. All of it is one statement, so that it is
-- one snapshot.
WITH feed AS MATERIALIZED (
    SELECT pg_snapshot_xmin(s.now) AS oldest_open, pg_snapshot_xmax(s.now) AS horizon, f.transaction AS floor
    FROM pg_current_snapshot() AS s (now)
    CROSS JOIN feed_floor AS f
), page AS MATERIALIZED (
    SELECT
        f.oldest_open, f.horizon, f.floor,
        coalesce((
            SELECT c.transaction
            FROM changes AS c
            WHERE c.transaction >= $1::xid8 AND c.transaction < f.oldest_open
            ORDER BY c.transaction
            OFFSET $2::integer
            LIMIT 1), f.oldest_open) AS until
    FROM feed AS f
)
SELECT p.until, p.horizon, p.floor, p.until < p.oldest_open, c.id, c.created_at, c.data
FROM page AS p
LEFT JOIN changes AS c ON c.transaction >= $1::xid8 AND c.transaction < p.until
ORDER BY c.id;
