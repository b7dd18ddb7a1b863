INSERT INTO users (organization_id, id, disabled, created_at)
VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (organization_id, id) DO NOTHING;
