SELECT
    b.section || '-' || b.subsection, b.name, t.hour, t.holds_created, t.holds_converted, t.holds_expired,
    t.holds_cancelled,
    t.holds_created - t.holds_converted - t.holds_expired - t.holds_cancelled,
    t.holds_converted::double precision / t.holds_created,
    (t.holds_expired + t.holds_cancelled)::double precision / t.holds_created,
    t.held_ms / 1000.0::double precision / nullif(t.holds_converted + t.holds_expired + t.holds_cancelled, 0)
FROM blocks AS b
JOIN subsection_hours AS t
    ON t.organization_id = b.organization_id AND t.event_id = b.event_id AND t.block_id = b.id
WHERE b.organization_id = $1::uuid AND b.event_id = $2::uuid AND t.hour >= $3::timestamptz AND t.holds_created > 0
ORDER BY b.ordinal, t.hour
LIMIT $5::integer OFFSET $4::bigint;
