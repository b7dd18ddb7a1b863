INSERT INTO layouts (organization_id, event_id, seat_count, document)
VALUES ($1::uuid, $2::uuid, $3::integer, $4::text)
ON CONFLICT (organization_id, event_id) DO UPDATE
SET seat_count = excluded.seat_count, document = excluded.document;
