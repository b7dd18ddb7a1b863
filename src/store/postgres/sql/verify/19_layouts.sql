-- Every event has as many seats as its layout says, numbered from 0 without a gap.
SELECT count(*), min('event ' || l.event_id)
FROM layouts AS l
LEFT JOIN (
    SELECT organization_id, event_id, count(*) AS seats, count(DISTINCT place) AS places, min(place) AS first,
        max(place) AS last
    FROM seats
    GROUP BY organization_id, event_id
) AS s ON s.organization_id = l.organization_id AND s.event_id = l.event_id
WHERE l.seat_count <> coalesce(s.seats, 0)
   OR (l.seat_count > 0 AND (s.places <> l.seat_count OR s.first <> 0 OR s.last <> l.seat_count - 1));
