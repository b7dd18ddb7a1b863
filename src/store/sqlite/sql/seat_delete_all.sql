DELETE FROM seats
WHERE place >= ?3 AND place < ?3 + ?4 AND organization_id = ?1 AND event_id = ?2;
