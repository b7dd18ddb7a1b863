DELETE FROM blocks
WHERE organization_id = ?1 AND event_id = ?2;
