SELECT
    snapshot_at, available, held, sold, blocked, available + held + sold + blocked,
    100.0::double precision * (held + sold) / greatest(available + held + sold + blocked, 1)
FROM occupancy_snapshots
WHERE organization_id = $1::uuid AND event_id = $2::uuid AND snapshot_at >= $3::timestamptz
  AND snapshot_at > $4::timestamptz
ORDER BY snapshot_at
LIMIT $5::integer;
