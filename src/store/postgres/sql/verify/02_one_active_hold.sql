-- A seat has at most one active hold.
SELECT count(*), min('seat ' || seat_id::text)
FROM (
    SELECT seat_id
    FROM seat_holds
    WHERE status = 'active'
    GROUP BY organization_id, seat_id
    HAVING count(*) > 1
) AS broken;
