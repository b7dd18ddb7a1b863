-- The setting, of deliveries that delivery_lock has locked.
WITH written AS (
    UPDATE deliveries AS d
    SET position_from = w.position_from, position_to = w.position_to, position_id = w.position_id, node = w.node,
        lease_until = w.lease_until, version = w.version
    FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::uuid[], $6::timestamptz[], $7::integer[])
        AS w (name, position_from, position_to, position_id, node, lease_until, version)
    WHERE d.name = w.name AND d.version = w.version - 1
    RETURNING 1
)
SELECT 1 / (count(*) = $8::integer)::integer -- a row that was not there fails the statement
FROM written;
