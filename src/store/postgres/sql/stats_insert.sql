INSERT INTO subsection_stats (
    organization_id, event_id, block_id, available, held, sold, blocked,
    holds_created, holds_converted, holds_expired, holds_cancelled)
SELECT w.organization_id, w.event_id, w.block_id, w.available, 0, 0, 0, 0, 0, 0, 0
FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::bigint[]) AS w (organization_id, event_id, block_id, available);
