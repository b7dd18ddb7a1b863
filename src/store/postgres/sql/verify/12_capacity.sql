-- No block has more seats held and sold than its capacity.
SELECT count(*), min('block ' || b.id::text)
FROM blocks AS b
JOIN (
    SELECT organization_id, event_id, block_id, count(*) AS taken
    FROM seats
    WHERE status IN ('held', 'sold')
    GROUP BY organization_id, event_id, block_id
) AS s ON s.organization_id = b.organization_id AND s.event_id = b.event_id AND s.block_id = b.id
WHERE s.taken > b.capacity;
