-- What is there instead.
SELECT
    s.organization_id, s.event_id, s.id, s.version, s.status, s.seat_hold_id, s.ticket_id, s.held_until, s.locked_at,
    w.position
FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::integer[], $5::integer[])
    AS w (organization_id, event_id, id, place, position)
JOIN seats AS s ON s.organization_id = w.organization_id AND s.id = w.id
WHERE (s.event_id, s.place) IS NOT DISTINCT FROM (w.event_id, w.place);
