-- A conflict means that the batch committed; the row, once it is committed, that it never can.
INSERT INTO batches (id, created_at)
VALUES ($1::uuid, $2::timestamptz)
ON CONFLICT (id) DO NOTHING;
