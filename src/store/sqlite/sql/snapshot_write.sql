INSERT OR REPLACE INTO occupancy_snapshots (
    organization_id, event_id, snapshot_at, available, held, sold, blocked)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7);
