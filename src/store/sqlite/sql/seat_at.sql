SELECT organization_id, event_id, id, version, status, seat_hold_id, ticket_id, held_until, locked_at
FROM seats
WHERE place = ?1 AND id = ?2 AND organization_id = ?3;
