INSERT INTO occupancy_snapshots (organization_id, event_id, snapshot_at, available, held, sold, blocked)
SELECT *
FROM unnest(
    $1::uuid[], $2::uuid[], $3::timestamptz[], $4::integer[], $5::integer[], $6::integer[], $7::integer[])
    AS w (organization_id, event_id, snapshot_at, available, held, sold, blocked)
ORDER BY w.organization_id, w.event_id, w.snapshot_at
ON CONFLICT (organization_id, event_id, snapshot_at) DO UPDATE
SET available = excluded.available, held = excluded.held, sold = excluded.sold, blocked = excluded.blocked;
