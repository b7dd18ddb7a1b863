SELECT
    id, organization_id, actor_id, role, action, entity_type, entity_id, seat_id, event_id, checkout_id, user_id,
    scenario, reason, before, after, held_duration_seconds, ip, user_agent, request_id, created_at
FROM audit_log
WHERE organization_id = ?3 AND user_id = ?11 AND id < ?1 AND id >= ?2
  AND (?5 IS NULL OR entity_id = ?5)
  AND (?6 IS NULL OR event_id = ?6)
  AND (?7 IS NULL OR checkout_id = ?7)
  AND (?8 IS NULL OR action = ?8)
  AND (?9 IS NULL OR created_at >= ?9)
ORDER BY id DESC
LIMIT ?4;
