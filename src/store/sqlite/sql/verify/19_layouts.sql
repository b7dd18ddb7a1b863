-- Every event's seats lie together, as many as its layout says.
SELECT count(*), min('event ' || lower(hex(l.event_id)))
FROM layouts AS l
WHERE l.seat_count <> (
    SELECT count(*)
    FROM seats AS s
    WHERE s.place >= l.place_first AND s.place < l.place_first + l.seat_count
      AND s.organization_id = l.organization_id AND s.event_id = l.event_id
);
