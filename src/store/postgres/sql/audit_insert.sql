INSERT INTO audit_log (
    organization_id, actor_id, role, action, entity_type, entity_id, seat_id, event_id, checkout_id, user_id,
    scenario, reason, before, after, held_duration_seconds, ip, user_agent, request_id, created_at)
SELECT
    w.organization_id, w.actor_id, w.role, w.action, w.entity_type, w.entity_id, w.seat_id, w.event_id,
    w.checkout_id, w.user_id, w.scenario, w.reason, w.before::json, w.after::json, w.held_duration_seconds, w.ip,
    w.user_agent, w.request_id, w.created_at
FROM unnest(
    $1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::uuid[], $7::uuid[], $8::uuid[], $9::uuid[],
    $10::uuid[], $11::text[], $12::text[], $13::text[], $14::text[], $15::bigint[], $16::text[], $17::text[],
    $18::text[], $19::timestamptz[])
    AS w (organization_id, actor_id, role, action, entity_type, entity_id, seat_id, event_id, checkout_id, user_id,
          scenario, reason, before, after, held_duration_seconds, ip, user_agent, request_id, created_at);
