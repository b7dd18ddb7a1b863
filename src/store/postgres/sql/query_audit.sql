-- No index serves these filters: a page walks back over a bounded number of ids, $2 … $1.
SELECT
    id, organization_id, actor_id, role, action, entity_type, entity_id, seat_id, event_id, checkout_id, user_id,
    scenario, reason, before, after, held_duration_seconds, ip, user_agent, request_id, created_at
FROM audit_log
WHERE id < $1::bigint AND id >= $2::bigint AND organization_id = $3::uuid
  AND ($5::uuid IS NULL OR entity_id = $5::uuid)
  AND ($6::uuid IS NULL OR seat_id = $6::uuid)
  AND ($7::uuid IS NULL OR event_id = $7::uuid)
  AND ($8::uuid IS NULL OR checkout_id = $8::uuid)
  AND ($9::uuid IS NULL OR user_id = $9::uuid)
  AND ($10::text IS NULL OR action = $10::text)
  AND ($11::timestamptz IS NULL OR created_at >= $11::timestamptz)
ORDER BY id DESC
LIMIT $4::integer;
