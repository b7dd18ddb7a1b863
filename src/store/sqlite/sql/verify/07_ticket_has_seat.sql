-- Every valid ticket has its seat, sold.
SELECT count(*), min('ticket ' || lower(hex(t.id)))
FROM tickets AS t
LEFT JOIN seats AS s ON s.organization_id = t.organization_id AND s.id = t.seat_id
WHERE t.refunded_at IS NULL AND (s.status IS NOT 'sold' OR s.ticket_id IS NOT t.id);
