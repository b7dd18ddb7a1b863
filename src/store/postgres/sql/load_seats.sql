SELECT organization_id, event_id, id, version, status, seat_hold_id, ticket_id, held_until, locked_at, place
FROM seats
WHERE organization_id = $1::uuid AND event_id = $2::uuid
ORDER BY place;
