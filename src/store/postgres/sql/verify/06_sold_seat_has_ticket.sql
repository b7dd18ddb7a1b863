-- Every sold seat has a valid ticket of that seat.
SELECT count(*), min('seat ' || s.id::text)
FROM seats AS s
LEFT JOIN tickets AS t ON t.organization_id = s.organization_id AND t.id = s.ticket_id
WHERE s.status = 'sold'
  AND (t.id IS NULL OR t.seat_id <> s.id OR t.event_id <> s.event_id OR t.refunded_at IS NOT NULL);
