-- Positions of the events of which no seat was ever held. A statement of its own, after event_lock: it must see what
-- those wrote who were waited for.
SELECT w.position
FROM unnest($1::uuid[], $2::uuid[], $3::integer[]) AS w (organization_id, event_id, position)
WHERE NOT EXISTS (
    SELECT 1
    FROM subsection_stats AS t
    WHERE t.organization_id = w.organization_id AND t.event_id = w.event_id AND t.holds_created > 0);
