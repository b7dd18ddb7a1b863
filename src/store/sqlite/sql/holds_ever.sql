SELECT coalesce(sum(holds_created), 0)
FROM subsection_stats
WHERE organization_id = ?1 AND event_id = ?2;
