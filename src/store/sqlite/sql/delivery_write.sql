INSERT INTO deliveries (name, position_from, position_to, position_id, node, lease_until, version)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (name) DO UPDATE
SET position_from = excluded.position_from, position_to = excluded.position_to, position_id = excluded.position_id,
    node = excluded.node, lease_until = excluded.lease_until, version = excluded.version;
