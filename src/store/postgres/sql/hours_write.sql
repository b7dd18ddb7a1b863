INSERT INTO subsection_hours (
    organization_id, event_id, block_id, hour,
    holds_created, holds_converted, holds_expired, holds_cancelled, held_ms)
SELECT w.*
FROM unnest(
    $1::uuid[], $2::uuid[], $3::uuid[], $4::timestamptz[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
    $9::bigint[]) AS w (organization_id, event_id, block_id, hour, created, converted, expired, cancelled, held_ms)
ORDER BY w.organization_id, w.event_id, w.block_id, w.hour
ON CONFLICT (organization_id, event_id, block_id, hour) DO UPDATE
SET holds_created = subsection_hours.holds_created + excluded.holds_created,
    holds_converted = subsection_hours.holds_converted + excluded.holds_converted,
    holds_expired = subsection_hours.holds_expired + excluded.holds_expired,
    holds_cancelled = subsection_hours.holds_cancelled + excluded.holds_cancelled,
    held_ms = subsection_hours.held_ms + excluded.held_ms;
