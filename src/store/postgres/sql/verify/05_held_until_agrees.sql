-- A held seat and its hold end at the same time.
SELECT count(*), min('hold ' || h.id::text)
FROM seats AS s
JOIN seat_holds AS h ON h.organization_id = s.organization_id AND h.id = s.seat_hold_id
WHERE s.status = 'held' AND s.held_until IS DISTINCT FROM h.held_until;
