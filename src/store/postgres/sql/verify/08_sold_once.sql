-- A seat has at most one valid ticket.
SELECT count(*), min('seat ' || seat_id::text)
FROM (
    SELECT seat_id
    FROM tickets
    WHERE refunded_at IS NULL
    GROUP BY organization_id, seat_id
    HAVING count(*) > 1
) AS broken;
