DELETE FROM users AS u
USING unnest($1::uuid[], $2::uuid[]) AS w (organization_id, id)
WHERE u.organization_id = w.organization_id AND u.id = w.id;
