-- Whoever takes seats of a limited block, or changes the limit, does so after the others.
SELECT b.id
FROM unnest($1::uuid[], $2::uuid[], $3::uuid[]) AS w (organization_id, event_id, id)
JOIN blocks AS b ON b.organization_id = w.organization_id AND b.event_id = w.event_id AND b.id = w.id
ORDER BY b.organization_id, b.event_id, b.id
FOR NO KEY UPDATE OF b;
