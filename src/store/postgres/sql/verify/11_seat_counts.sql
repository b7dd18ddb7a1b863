-- The statistics of every block count its seats as they are.
SELECT count(*), min('block ' || b.id::text)
FROM blocks AS b
LEFT JOIN subsection_stats AS t
    ON t.organization_id = b.organization_id AND t.event_id = b.event_id AND t.block_id = b.id
LEFT JOIN (
    SELECT organization_id, event_id, block_id,
        count(*) FILTER (WHERE status = 'available') AS available, count(*) FILTER (WHERE status = 'held') AS held, count(*) FILTER (WHERE status = 'sold') AS sold,
        count(*) FILTER (WHERE status = 'blocked') AS blocked
    FROM seats
    GROUP BY organization_id, event_id, block_id
) AS s ON s.organization_id = b.organization_id AND s.event_id = b.event_id AND s.block_id = b.id
WHERE t.available IS DISTINCT FROM coalesce(s.available, 0)
   OR t.held IS DISTINCT FROM coalesce(s.held, 0)
   OR t.sold IS DISTINCT FROM coalesce(s.sold, 0)
   OR t.blocked IS DISTINCT FROM coalesce(s.blocked, 0);
