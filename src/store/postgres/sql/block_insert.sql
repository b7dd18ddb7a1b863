INSERT INTO blocks (organization_id, event_id, id, ordinal, section, subsection, name, capacity, price_cents)
SELECT *
FROM unnest(
    $1::uuid[], $2::uuid[], $3::uuid[], $4::integer[], $5::text[], $6::integer[], $7::text[], $8::integer[],
    $9::bigint[]);
