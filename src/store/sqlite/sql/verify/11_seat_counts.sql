-- The statistics of every block count its seats as they are.
SELECT count(*), min('block ' || lower(hex(b.id)))
FROM blocks AS b
LEFT JOIN subsection_stats AS t
    ON t.organization_id = b.organization_id AND t.event_id = b.event_id AND t.block_id = b.id
LEFT JOIN (
    SELECT organization_id, event_id, block_id,
        sum(status = 'available') AS available, sum(status = 'held') AS held, sum(status = 'sold') AS sold,
        sum(status = 'blocked') AS blocked
    FROM seats
    GROUP BY organization_id, event_id, block_id
) AS s ON s.organization_id = b.organization_id AND s.event_id = b.event_id AND s.block_id = b.id
WHERE t.available IS NOT coalesce(s.available, 0)
   OR t.held IS NOT coalesce(s.held, 0)
   OR t.sold IS NOT coalesce(s.sold, 0)
   OR t.blocked IS NOT coalesce(s.blocked, 0);
