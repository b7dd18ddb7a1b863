-- Waits for those who are making holds of it, and makes later ones wait.
SELECT e.id
FROM unnest($1::uuid[], $2::uuid[]) AS w (organization_id, id)
JOIN events AS e ON e.organization_id = w.organization_id AND e.id = w.id
ORDER BY e.organization_id, e.id
FOR UPDATE OF e;
