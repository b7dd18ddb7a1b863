-- Returns the users who were not there before.
INSERT INTO users (organization_id, id, disabled, created_at)
SELECT w.organization_id, w.id, w.disabled, w.created_at
FROM unnest($1::uuid[], $2::uuid[], $3::boolean[], $4::timestamptz[]) AS w (organization_id, id, disabled, created_at)
ORDER BY w.organization_id, w.id
ON CONFLICT (organization_id, id) DO NOTHING
RETURNING organization_id, id;
