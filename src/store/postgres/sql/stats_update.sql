-- Blocks are locked in order, so that two transactions never wait for each other.
WITH locked AS MATERIALIZED (
    SELECT t.organization_id, t.event_id, t.block_id, w.available, w.held, w.sold, w.blocked, w.created, w.converted,
        w.expired, w.cancelled
    FROM unnest(
        $1::uuid[], $2::uuid[], $3::uuid[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
        $9::bigint[], $10::bigint[], $11::bigint[])
        AS w (organization_id, event_id, block_id, available, held, sold, blocked, created, converted, expired,
              cancelled)
    JOIN subsection_stats AS t
        ON t.organization_id = w.organization_id AND t.event_id = w.event_id AND t.block_id = w.block_id
    ORDER BY t.organization_id, t.event_id, t.block_id
    FOR NO KEY UPDATE OF t
)
UPDATE subsection_stats AS t
SET available = t.available + l.available, held = t.held + l.held, sold = t.sold + l.sold,
    blocked = t.blocked + l.blocked, holds_created = t.holds_created + l.created,
    holds_converted = t.holds_converted + l.converted, holds_expired = t.holds_expired + l.expired,
    holds_cancelled = t.holds_cancelled + l.cancelled
FROM locked AS l
WHERE t.organization_id = l.organization_id AND t.event_id = l.event_id AND t.block_id = l.block_id;
