INSERT INTO organizations (id, name, created_at)
SELECT w.id, w.name, w.created_at
FROM unnest($1::uuid[], $2::text[], $3::timestamptz[]) AS w (id, name, created_at);
