-- The comparison: positions of the seats that are at the expected version, and now locked. A seat that somebody else is
-- changing is not waited for.
SELECT w.position
FROM (
    SELECT
        unnest($1::uuid[]), unnest($2::uuid[]), unnest($3::uuid[]), unnest($4::integer[]), unnest($5::integer[]),
        unnest($6::integer[]))
    AS w (organization_id, event_id, id, place, version, position)
JOIN seats AS s ON s.organization_id = w.organization_id AND s.id = w.id
WHERE (s.event_id, s.place) IS NOT DISTINCT FROM (w.event_id, w.place) AND s.version = w.version
ORDER BY s.organization_id, s.id
FOR NO KEY UPDATE OF s SKIP LOCKED;
