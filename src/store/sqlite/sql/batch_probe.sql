-- The nil id is nobody's batch: writing it shows that the store can be written to.
INSERT INTO batches (id, created_at)
VALUES (zeroblob(16), ?1)
ON CONFLICT (id) DO UPDATE SET created_at = excluded.created_at;
