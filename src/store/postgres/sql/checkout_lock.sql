-- The comparison: positions of the checkouts that are at the expected version, and now locked.
SELECT w.position
FROM unnest($1::uuid[], $2::uuid[], $3::integer[], $4::integer[]) AS w (organization_id, id, version, position)
JOIN checkouts AS c ON c.organization_id = w.organization_id AND c.id = w.id
WHERE c.version = w.version
ORDER BY c.organization_id, c.id
FOR NO KEY UPDATE OF c;
