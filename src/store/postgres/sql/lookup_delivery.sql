SELECT name, position_from, position_to, position_id, node, lease_until, version
FROM deliveries
WHERE name = $1::text;
