-- Every valid ticket has its seat, sold.
SELECT count(*), min('ticket ' || t.id::text)
FROM tickets AS t
LEFT JOIN seats AS s ON s.organization_id = t.organization_id AND s.id = t.seat_id
WHERE t.refunded_at IS NULL AND (s.status IS DISTINCT FROM 'sold' OR s.ticket_id IS DISTINCT FROM t.id);
