-- New ones, that nobody can have: see hold_insert for the shape.
INSERT INTO idempotency_keys (organization_id, key, body, result, created_at)
SELECT unnest($1::uuid[]), unnest($2::bytea[]), unnest($3::bytea[]), unnest($4::bytea[]), unnest($5::timestamptz[]);
