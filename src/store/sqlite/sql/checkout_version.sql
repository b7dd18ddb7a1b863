SELECT version
FROM checkouts
WHERE organization_id = ?1 AND id = ?2;
