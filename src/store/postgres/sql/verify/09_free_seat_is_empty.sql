-- A seat that is not held has no hold, and one that is not sold no ticket.
SELECT count(*), min('seat ' || id::text)
FROM seats
WHERE (status <> 'held' AND (seat_hold_id IS NOT NULL OR held_until IS NOT NULL))
   OR (status <> 'sold' AND ticket_id IS NOT NULL);
