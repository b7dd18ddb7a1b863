SELECT seat_count, document
FROM layouts
WHERE organization_id = $1::uuid AND event_id = $2::uuid;
