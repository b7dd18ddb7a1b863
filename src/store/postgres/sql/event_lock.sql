-- Waits for those who rely on the event, and makes later ones wait; then says which version it has.
SELECT e.organization_id, e.id, e.version
FROM unnest($1::uuid[], $2::uuid[]) AS w (organization_id, id)
JOIN events AS e ON e.organization_id = w.organization_id AND e.id = w.id
ORDER BY e.organization_id, e.id
FOR UPDATE OF e;
