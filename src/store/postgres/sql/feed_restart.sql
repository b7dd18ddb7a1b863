-- Transactions are counted by the server, not by the database: one that was restored into another server may have
-- changes of a future that never comes. Nobody can be following those.
WITH gone AS (
    DELETE FROM changes
    WHERE transaction >= pg_snapshot_xmax(pg_current_snapshot())
)
UPDATE feed_floor
SET transaction = '0'
WHERE transaction >= pg_snapshot_xmax(pg_current_snapshot());
