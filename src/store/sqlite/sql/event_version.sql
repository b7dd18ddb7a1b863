SELECT version
FROM events
WHERE organization_id = ?1 AND id = ?2;
