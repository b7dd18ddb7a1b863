SELECT version
FROM deliveries
WHERE name = ?1;
