INSERT INTO seat_holds (
    organization_id, id, event_id, seat_id, user_id, checkout_id, cart_token, status, source, price_cents,
    created_at, held_until, expired_at, converted_at, cancelled_at, cancellation_reason, notes)
SELECT *
FROM unnest(
    $1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::uuid[], $6::uuid[], $7::text[], $8::text[], $9::text[],
    $10::bigint[], $11::timestamptz[], $12::timestamptz[], $13::timestamptz[], $14::timestamptz[],
    $15::timestamptz[], $16::text[], $17::text[]);
