-- The statistics of every block count its holds and how they ended.
SELECT count(*), min('block ' || t.block_id::text)
FROM subsection_stats AS t
LEFT JOIN (
    SELECT s.organization_id, s.event_id, s.block_id, count(*) AS created,
        count(*) FILTER (WHERE h.status = 'converted') AS converted, count(*) FILTER (WHERE h.status = 'expired') AS expired,
        count(*) FILTER (WHERE h.status = 'cancelled') AS cancelled
    FROM seat_holds AS h
    JOIN seats AS s ON s.organization_id = h.organization_id AND s.id = h.seat_id
    GROUP BY s.organization_id, s.event_id, s.block_id
) AS h ON h.organization_id = t.organization_id AND h.event_id = t.event_id AND h.block_id = t.block_id
WHERE t.holds_created <> coalesce(h.created, 0)
   OR t.holds_converted <> coalesce(h.converted, 0)
   OR t.holds_expired <> coalesce(h.expired, 0)
   OR t.holds_cancelled <> coalesce(h.cancelled, 0);
