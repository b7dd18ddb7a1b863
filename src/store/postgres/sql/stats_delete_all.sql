DELETE FROM subsection_stats
WHERE organization_id = $1::uuid AND event_id = $2::uuid;
