-- The statistics by the hour sum to those of the block.
SELECT count(*), min('block ' || t.block_id::text)
FROM subsection_stats AS t
LEFT JOIN (
    SELECT organization_id, event_id, block_id, sum(holds_created) AS created,
        sum(holds_converted) AS converted, sum(holds_expired) AS expired, sum(holds_cancelled) AS cancelled
    FROM subsection_hours
    GROUP BY organization_id, event_id, block_id
) AS u ON u.organization_id = t.organization_id AND u.event_id = t.event_id AND u.block_id = t.block_id
WHERE t.holds_created <> coalesce(u.created, 0)
   OR t.holds_converted <> coalesce(u.converted, 0)
   OR t.holds_expired <> coalesce(u.expired, 0)
   OR t.holds_cancelled <> coalesce(u.cancelled, 0);
