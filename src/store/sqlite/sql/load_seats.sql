SELECT organization_id, event_id, id, version, status, seat_hold_id, ticket_id, held_until, locked_at
FROM seats
WHERE place >= ?1 AND place < ?1 + ?2
ORDER BY place;
