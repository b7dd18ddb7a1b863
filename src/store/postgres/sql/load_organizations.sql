SELECT id, name, created_at
FROM organizations
ORDER BY id;
