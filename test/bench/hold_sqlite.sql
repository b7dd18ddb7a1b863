-- Holds :count free seats of the organization until :until_ms, made at :now_ms by users of :per_user holds each, as the
-- server would have written them: `holdfast verify` finds nothing. user_of() and hold_id() are the caller's.
CREATE TEMP TABLE taken AS
SELECT place, id AS seat_id, event_id, block_id, hold_id() AS hold_id,
    user_of((row_number() OVER (ORDER BY place) - 1) / :per_user) AS user_id
FROM seats
WHERE organization_id = :org AND status = 'available' AND (:event IS NULL OR event_id = :event)
ORDER BY place
LIMIT :count;

INSERT OR IGNORE INTO users (organization_id, id, disabled, created_at)
SELECT DISTINCT :org, user_id, 0, :now_ms
FROM taken;

INSERT INTO seat_holds (
    organization_id, id, event_id, seat_id, user_id, cart_token, status, source, price_cents, created_at, held_until)
SELECT :org, hold_id, event_id, seat_id, user_id, 'cart-' || lower(hex(user_id)), 'active', 'web', 1000, :now_ms, :until_ms
FROM taken;

UPDATE seats
SET status = 'held', held_until = :until_ms, seat_hold_id = t.hold_id, version = version + 1
FROM taken AS t
WHERE seats.place = t.place;

INSERT INTO audit_log (
    organization_id, actor_id, role, action, entity_type, entity_id, seat_id, event_id, user_id, created_at)
SELECT :org, user_id, 'buyer', 'seat_reserved', 'SeatHold', hold_id, seat_id, event_id, user_id, :now_ms
FROM taken;

UPDATE subsection_stats
SET available = available - t.count, held = held + t.count, holds_created = holds_created + t.count
FROM (SELECT event_id, block_id, count(*) AS count FROM taken GROUP BY event_id, block_id) AS t
WHERE subsection_stats.organization_id = :org
  AND subsection_stats.event_id = t.event_id
  AND subsection_stats.block_id = t.block_id;

INSERT INTO subsection_hours (
    organization_id, event_id, block_id, hour, holds_created, holds_converted, holds_expired, holds_cancelled, held_ms)
SELECT :org, event_id, block_id, :now_ms - :now_ms % 3600000, count(*), 0, 0, 0, 0
FROM taken
GROUP BY event_id, block_id;

DROP TABLE taken;
