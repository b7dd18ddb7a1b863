-- unnest() in the list, not in FROM, where each of them would be copied before the first row: see hold_insert.sql.
INSERT INTO audit_log (
    organization_id, actor_id, role, action, entity_type, entity_id, seat_id, event_id, checkout_id, user_id,
    scenario, reason, before, after, held_duration_seconds, ip, user_agent, request_id, created_at)
SELECT
    unnest($1::uuid[]), unnest($2::uuid[]), unnest($3::text[]), unnest($4::text[]), unnest($5::text[]),
    unnest($6::uuid[]), unnest($7::uuid[]), unnest($8::uuid[]), unnest($9::uuid[]), unnest($10::uuid[]),
    unnest($11::text[]), unnest($12::text[]), unnest($13::text[])::json, unnest($14::text[])::json,
    unnest($15::bigint[]), unnest($16::text[]), unnest($17::text[]), unnest($18::text[]), unnest($19::timestamptz[]);
