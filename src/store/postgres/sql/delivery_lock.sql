-- The comparison: positions of the deliveries that are at the expected version, and now locked.
SELECT w.position
FROM unnest($1::text[], $2::integer[], $3::integer[]) AS w (name, version, position)
JOIN deliveries AS d ON d.name = w.name
WHERE d.version = w.version
ORDER BY d.name
FOR NO KEY UPDATE OF d;
