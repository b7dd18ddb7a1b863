SELECT organization_id, id, disabled, created_at
FROM users;
