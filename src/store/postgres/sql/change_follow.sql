-- The changes of the transactions from $1 on, $2 of them at most, without the data of those that node $3 wrote itself:
-- `until` is where to go on. Only transactions below the oldest that is still open count, because from there on more may
-- come. It never goes back: what was below it once had ended, and one that seems open again is another database's, whose
-- session has just gone. All of it is one statement, so that it is one snapshot.
WITH page AS MATERIALIZED (
    SELECT
        f.oldest_open, f.horizon, f.floor,
        coalesce((
            SELECT c.transaction
            FROM changes AS c
            WHERE c.transaction >= $1::xid8 AND c.transaction < f.oldest_open
            ORDER BY c.transaction
            OFFSET $2::integer
            LIMIT 1), greatest(f.oldest_open, $1::xid8)) AS until
    FROM (SELECT * FROM feed LIMIT 1) AS f -- there is one; the limit keeps it from being worked out several times
)
SELECT p.until, p.horizon, p.floor, p.until < p.oldest_open, c.id, c.created_at, c.data
FROM page AS p
LEFT JOIN LATERAL (
    SELECT id, created_at, CASE WHEN node IS DISTINCT FROM $3::uuid THEN data END AS data
    FROM changes
    WHERE transaction >= $1::xid8 AND transaction < p.until
    OFFSET 0) AS c ON true -- so that it is asked for both bounds
ORDER BY c.id;
