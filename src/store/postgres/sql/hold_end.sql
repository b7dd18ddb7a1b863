-- A hold ends once: one that has ended is not found.
-- The state is a parameter so that no plan can take a partial index for the way to a row.
WITH written AS (
    UPDATE seat_holds AS h
    SET checkout_id = w.checkout_id, cart_token = w.cart_token, price_cents = w.price_cents, held_until = w.held_until,
        notes = w.notes, status = w.status, expired_at = w.expired_at, converted_at = w.converted_at,
        cancelled_at = w.cancelled_at, cancellation_reason = w.reason
    FROM unnest(
        $1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::bigint[], $6::timestamptz[], $7::text[], $8::text[],
        $9::timestamptz[], $10::timestamptz[], $11::timestamptz[], $12::text[])
        AS w (organization_id, id, checkout_id, cart_token, price_cents, held_until, notes, status, expired_at,
              converted_at, cancelled_at, reason)
    WHERE h.organization_id = w.organization_id AND h.id = w.id AND h.status = $13::text
    RETURNING 1
)
SELECT 1 / (count(*) = $14::integer)::integer -- a row that was not there fails the statement
FROM written;
