-- How many seats a block may have taken, and has. A statement of its own, after block_lock: it must see what those
-- wrote who were waited for.
SELECT w.organization_id, w.event_id, w.id, b.capacity, t.held + t.sold
FROM unnest($1::uuid[], $2::uuid[], $3::uuid[]) AS w (organization_id, event_id, id)
JOIN blocks AS b ON b.organization_id = w.organization_id AND b.event_id = w.event_id AND b.id = w.id
JOIN subsection_stats AS t
    ON t.organization_id = w.organization_id AND t.event_id = w.event_id AND t.block_id = w.id;
