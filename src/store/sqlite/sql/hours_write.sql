INSERT INTO subsection_hours (
    organization_id, event_id, block_id, hour,
    holds_created, holds_converted, holds_expired, holds_cancelled, held_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT (organization_id, event_id, block_id, hour) DO UPDATE
SET holds_created = holds_created + excluded.holds_created,
    holds_converted = holds_converted + excluded.holds_converted,
    holds_expired = holds_expired + excluded.holds_expired,
    holds_cancelled = holds_cancelled + excluded.holds_cancelled,
    held_ms = held_ms + excluded.held_ms;
