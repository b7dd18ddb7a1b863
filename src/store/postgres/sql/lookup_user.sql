SELECT organization_id, id, disabled, created_at
FROM users
WHERE organization_id = $1::uuid AND id = $2::uuid;
