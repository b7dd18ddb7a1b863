-- Every active hold has its seat, in its organization and event.
SELECT count(*), min('hold ' || h.id::text)
FROM seat_holds AS h
LEFT JOIN seats AS s ON s.organization_id = h.organization_id AND s.id = h.seat_id
WHERE h.status = 'active'
  AND (s.status IS DISTINCT FROM 'held' OR s.seat_hold_id IS DISTINCT FROM h.id OR s.event_id IS DISTINCT FROM h.event_id);
