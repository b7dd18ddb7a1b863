INSERT INTO batches (id, created_at)
VALUES ($1::uuid, $2::timestamptz);
