INSERT INTO changes (created_at, data)
VALUES ($1::timestamptz, $2::bytea);
