INSERT INTO seats (
    place, id, organization_id, event_id, block_id, row, seat, row_letter, seat_number, status, version)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'available', 1);
