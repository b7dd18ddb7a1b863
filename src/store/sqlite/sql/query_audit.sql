-- No index serves these filters: a page walks back over a bounded number of ids, ?2 … ?1.
SELECT
    id, organization_id, actor_id, role, action, entity_type, entity_id, seat_id, event_id, checkout_id, user_id,
    scenario, reason, before, after, held_duration_seconds, ip, user_agent, request_id, created_at
FROM audit_log
WHERE id < ?1 AND id >= ?2 AND organization_id = ?3
  AND (?5 IS NULL OR entity_id = ?5)
  AND (?6 IS NULL OR seat_id = ?6)
  AND (?7 IS NULL OR event_id = ?7)
  AND (?8 IS NULL OR checkout_id = ?8)
  AND (?9 IS NULL OR user_id = ?9)
  AND (?10 IS NULL OR action = ?10)
  AND (?11 IS NULL OR created_at >= ?11)
ORDER BY id DESC
LIMIT ?4;
