INSERT INTO seats (
    organization_id, event_id, id, block_id, place, row, seat, row_letter, seat_number, status, version)
SELECT $1::uuid, $2::uuid, w.*, 'available', 1
FROM unnest($3::uuid[], $4::uuid[], $5::integer[], $6::integer[], $7::integer[], $8::text[], $9::text[]) AS w;
