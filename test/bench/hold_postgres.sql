-- Holds :count free seats of the organization until :until_ms, made at :now_ms by users of :per_user holds each, as the
-- server would have written them: `holdfast verify` finds nothing.
BEGIN;

CREATE TEMP TABLE taken ON COMMIT DROP AS
SELECT id AS seat_id, event_id, block_id,
    (lpad(to_hex(:now_ms::bigint), 12, '0') || substr(replace(gen_random_uuid()::text, '-', ''), 13))::uuid AS hold_id,
    md5(:'seed' || (row_number() OVER (ORDER BY event_id, place) - 1) / :per_user)::uuid AS user_id
FROM seats
WHERE organization_id = :'org' AND status = 'available' AND (:'event' = '' OR event_id::text = :'event')
ORDER BY event_id, place
LIMIT :count;

INSERT INTO users (organization_id, id, disabled, created_at)
SELECT DISTINCT :'org'::uuid, user_id, false, to_timestamp(:now_ms / 1000.0)
FROM taken
ON CONFLICT DO NOTHING;

INSERT INTO seat_holds (
    organization_id, id, event_id, seat_id, user_id, cart_token, status, source, price_cents, created_at, held_until)
SELECT :'org', hold_id, event_id, seat_id, user_id, 'cart-' || replace(user_id::text, '-', ''), 'active', 'web', 1000,
    to_timestamp(:now_ms / 1000.0), to_timestamp(:until_ms / 1000.0)
FROM taken;

UPDATE seats AS s
SET status = 'held', held_until = to_timestamp(:until_ms / 1000.0), seat_hold_id = t.hold_id, version = s.version + 1
FROM taken AS t
WHERE s.organization_id = :'org' AND s.id = t.seat_id;

INSERT INTO audit_log (
    organization_id, actor_id, role, action, entity_type, entity_id, seat_id, event_id, user_id, created_at)
SELECT :'org', user_id, 'buyer', 'seat_reserved', 'SeatHold', hold_id, seat_id, event_id, user_id,
    to_timestamp(:now_ms / 1000.0)
FROM taken;

UPDATE subsection_stats AS s
SET available = s.available - t.count, held = s.held + t.count, holds_created = s.holds_created + t.count
FROM (SELECT event_id, block_id, count(*) AS count FROM taken GROUP BY event_id, block_id) AS t
WHERE s.organization_id = :'org' AND s.event_id = t.event_id AND s.block_id = t.block_id;

INSERT INTO subsection_hours (
    organization_id, event_id, block_id, hour, holds_created, holds_converted, holds_expired, holds_cancelled, held_ms)
SELECT :'org', event_id, block_id, date_trunc('hour', to_timestamp(:now_ms / 1000.0), 'UTC'), count(*), 0, 0, 0, 0
FROM taken
GROUP BY event_id, block_id;

COMMIT;
VACUUM ANALYZE;
