INSERT INTO dead_letters (organization_id, id, delivery, type, body, reason, try_count, created_at)
SELECT w.organization_id, w.id, w.delivery, w.type, w.body, w.reason, w.try_count, w.created_at
FROM unnest(
    $1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::integer[], $8::timestamptz[])
    AS w (organization_id, id, delivery, type, body, reason, try_count, created_at)
ORDER BY w.organization_id, w.id, w.delivery
ON CONFLICT (organization_id, id, delivery) DO NOTHING;
