SELECT b.capacity, t.held + t.sold
FROM blocks AS b
JOIN subsection_stats AS t
    ON t.organization_id = b.organization_id AND t.event_id = b.event_id AND t.block_id = b.id
WHERE b.organization_id = ?1 AND b.event_id = ?2 AND b.id = ?3;
