INSERT INTO tickets (
    organization_id, id, event_id, seat_id, seat_hold_id, checkout_id, user_id, price_cents, code, created_at,
    refunded_at)
SELECT *
FROM unnest(
    $1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::uuid[], $6::uuid[], $7::uuid[], $8::bigint[], $9::text[],
    $10::timestamptz[], $11::timestamptz[]);
