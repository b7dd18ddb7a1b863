SELECT place_first, seat_count, document
FROM layouts
WHERE organization_id = ?1 AND event_id = ?2;
