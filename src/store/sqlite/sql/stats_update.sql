UPDATE subsection_stats
SET available = available + ?4, held = held + ?5, sold = sold + ?6, blocked = blocked + ?7,
    holds_created = holds_created + ?8, holds_converted = holds_converted + ?9,
    holds_expired = holds_expired + ?10, holds_cancelled = holds_cancelled + ?11
WHERE organization_id = ?1 AND event_id = ?2 AND block_id = ?3;
