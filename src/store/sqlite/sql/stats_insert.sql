INSERT INTO subsection_stats (
    organization_id, event_id, block_id, available, held, sold, blocked,
    holds_created, holds_converted, holds_expired, holds_cancelled)
VALUES (?1, ?2, ?3, ?4, 0, 0, 0, 0, 0, 0, 0);
