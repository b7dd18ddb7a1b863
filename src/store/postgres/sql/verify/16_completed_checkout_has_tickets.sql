-- Every completed checkout has tickets, one for each of its converted holds.
SELECT count(*), min('checkout ' || c.id::text)
FROM checkouts AS c
WHERE (
    c.status = 'completed' AND NOT EXISTS (
        SELECT 1
        FROM tickets AS t
        WHERE t.organization_id = c.organization_id AND t.checkout_id = c.id)
) OR EXISTS (
    SELECT 1
    FROM seat_holds AS h
    WHERE h.organization_id = c.organization_id AND h.checkout_id = c.id AND h.status = 'converted'
      AND 1 <> (
        SELECT count(*)
        FROM tickets AS t
        WHERE t.organization_id = c.organization_id AND t.checkout_id = c.id AND t.seat_hold_id = h.id
          AND t.seat_id = h.seat_id)
);
