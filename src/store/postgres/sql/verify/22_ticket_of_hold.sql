-- Every ticket has the user and the price of its hold.
SELECT count(*), min('ticket ' || t.id::text)
FROM tickets AS t
JOIN seat_holds AS h ON h.organization_id = t.organization_id AND h.id = t.seat_hold_id
WHERE t.price_cents <> h.price_cents OR t.user_id <> h.user_id;
