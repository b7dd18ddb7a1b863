SELECT organization_id, id, disabled, created_at
FROM users
WHERE organization_id = ?1 AND id = ?2;
