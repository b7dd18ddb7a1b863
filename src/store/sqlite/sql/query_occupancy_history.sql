SELECT
    snapshot_at, available, held, sold, blocked, available + held + sold + blocked,
    100.0 * (held + sold) / max(available + held + sold + blocked, 1)
FROM occupancy_snapshots
WHERE organization_id = ?1 AND event_id = ?2 AND snapshot_at >= ?3 AND snapshot_at > ?4
ORDER BY snapshot_at
LIMIT ?5;
