-- Seed transaction, one seat at a time: the event, the seat locked, nobody's hold on it, the hold, the seat, the audit row.
-- Each client has seats of its own, so that nothing is refused.
\set i :i + 1
\set place :client_id * :seats_per_client + :i
\set user random(1, 1000000)
BEGIN;
SELECT status, sale_start, sale_end, hold_ttl_seconds FROM events WHERE organization_id = :org::uuid AND id = :event::uuid;
SELECT id, status FROM seats WHERE organization_id = :org::uuid AND id = lpad(to_hex(:place::int), 32, '0')::uuid FOR UPDATE NOWAIT;
SELECT id FROM seat_holds WHERE organization_id = :org::uuid AND seat_id = lpad(to_hex(:place::int), 32, '0')::uuid AND status = 'active';
INSERT INTO seat_holds (organization_id, id, event_id, seat_id, user_id, price_cents, created_at, held_until, status, source, cart_token)
    VALUES (:org::uuid, gen_random_uuid(), :event::uuid, lpad(to_hex(:place::int), 32, '0')::uuid, lpad(to_hex(:user::int), 32, '0')::uuid, 1000, now(), now() + interval '5 minutes', 'active', 'web', 'bench');
UPDATE seats SET status = 'held', held_until = now() + interval '5 minutes', version = version + 1 WHERE organization_id = :org::uuid AND id = lpad(to_hex(:place::int), 32, '0')::uuid;
INSERT INTO audit_log (organization_id, actor_id, entity_id, seat_id, event_id, created_at, role, action, entity_type)
    VALUES (:org::uuid, lpad(to_hex(:user::int), 32, '0')::uuid, gen_random_uuid(), lpad(to_hex(:place::int), 32, '0')::uuid, :event::uuid, now(), 'buyer', 'seat_reserved', 'SeatHold');
COMMIT;
