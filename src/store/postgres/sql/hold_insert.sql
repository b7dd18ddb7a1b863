-- Arrays of one length go side by side. A hold costs its row here and one in the audit log, of nearly twenty columns
-- each, so a quarter of the time of these statements was the copying that FROM unnest(...) does.
INSERT INTO seat_holds (
    organization_id, id, event_id, seat_id, user_id, checkout_id, cart_token, status, source, price_cents,
    created_at, held_until, expired_at, converted_at, cancelled_at, cancellation_reason, notes)
SELECT
    unnest($1::uuid[]), unnest($2::uuid[]), unnest($3::uuid[]), unnest($4::uuid[]), unnest($5::uuid[]),
    unnest($6::uuid[]), unnest($7::text[]), unnest($8::text[]), unnest($9::text[]), unnest($10::bigint[]),
    unnest($11::timestamptz[]), unnest($12::timestamptz[]), unnest($13::timestamptz[]), unnest($14::timestamptz[]),
    unnest($15::timestamptz[]), unnest($16::text[]), unnest($17::text[]);
