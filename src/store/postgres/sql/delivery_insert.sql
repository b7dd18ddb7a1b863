-- Returns the names of those that were not there before.
INSERT INTO deliveries (name, position_from, position_to, position_id, node, lease_until, version)
SELECT w.name, w.position_from, w.position_to, w.position_id, w.node, w.lease_until, w.version
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::uuid[], $6::timestamptz[], $7::integer[])
    AS w (name, position_from, position_to, position_id, node, lease_until, version)
ORDER BY w.name
ON CONFLICT (name) DO NOTHING
RETURNING name;
