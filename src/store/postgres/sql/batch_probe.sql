-- The nil id is nobody's batch: writing it shows that the store can be written to.
INSERT INTO batches (id, created_at)
VALUES ('00000000-0000-0000-0000-000000000000', clock_timestamp())
ON CONFLICT (id) DO UPDATE SET created_at = excluded.created_at;
