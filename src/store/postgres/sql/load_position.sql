-- All that this snapshot does not show is in transactions from this one on.
SELECT pg_snapshot_xmin(pg_current_snapshot());
