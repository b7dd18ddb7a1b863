INSERT INTO changes (created_at, data, node)
VALUES ($1::timestamptz, $2::bytea, $3::uuid);
