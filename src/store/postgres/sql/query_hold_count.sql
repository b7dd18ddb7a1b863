-- Counted, not taken from the statistics: this is what the other tiers are compared with.
SELECT count(*)
FROM seats AS s
JOIN seat_holds AS h ON h.organization_id = s.organization_id AND h.seat_id = s.id AND h.status = 'active'
WHERE s.organization_id = $1::uuid AND s.event_id = $2::uuid;
