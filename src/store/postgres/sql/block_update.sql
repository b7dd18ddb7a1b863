WITH written AS (
    UPDATE blocks AS b
    SET name = w.name, capacity = w.capacity, price_cents = w.price_cents
    FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::integer[], $6::bigint[])
        AS w (organization_id, event_id, id, name, capacity, price_cents)
    WHERE b.organization_id = w.organization_id AND b.event_id = w.event_id AND b.id = w.id
    RETURNING 1
)
SELECT 1 / (count(*) = $7::integer)::integer -- a row that was not there fails the statement
FROM written;
