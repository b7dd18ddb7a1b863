-- Every held seat points to an active hold of that seat.
SELECT count(*), min('seat ' || lower(hex(s.id)))
FROM seats AS s
LEFT JOIN seat_holds AS h ON h.organization_id = s.organization_id AND h.id = s.seat_hold_id
WHERE s.status = 'held' AND (h.status IS NOT 'active' OR h.seat_id IS NOT s.id OR h.event_id IS NOT s.event_id);
