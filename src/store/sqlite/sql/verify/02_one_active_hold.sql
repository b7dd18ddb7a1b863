-- A seat has at most one active hold.
SELECT count(*), min('seat ' || lower(hex(seat_id)))
FROM (
    SELECT seat_id
    FROM seat_holds
    WHERE status = 'active'
    GROUP BY organization_id, seat_id
    HAVING count(*) > 1
);
