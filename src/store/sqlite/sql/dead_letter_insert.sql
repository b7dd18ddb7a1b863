INSERT INTO dead_letters (organization_id, id, delivery, type, body, reason, try_count, created_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT (organization_id, id, delivery) DO NOTHING;
