INSERT INTO layouts (organization_id, event_id, place_first, seat_count, document)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (organization_id, event_id) DO UPDATE
SET place_first = excluded.place_first, seat_count = excluded.seat_count, document = excluded.document;
