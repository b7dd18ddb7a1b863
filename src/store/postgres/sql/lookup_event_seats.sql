SELECT id
FROM seats
WHERE organization_id = $1::uuid AND event_id = $2::uuid
ORDER BY place;
