-- Every held seat points to an active hold of that seat.
SELECT count(*), min('seat ' || s.id::text)
FROM seats AS s
LEFT JOIN seat_holds AS h ON h.organization_id = s.organization_id AND h.id = s.seat_hold_id
WHERE s.status = 'held' AND (h.status IS DISTINCT FROM 'active' OR h.seat_id IS DISTINCT FROM s.id OR h.event_id IS DISTINCT FROM s.event_id);
