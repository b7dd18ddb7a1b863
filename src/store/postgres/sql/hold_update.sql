-- Holds that stay active. One that has ended is not found.
-- The state is a parameter so that no plan can take a partial index for the way to a row.
WITH written AS (
    UPDATE seat_holds AS h
    SET checkout_id = w.checkout_id, cart_token = w.cart_token, price_cents = w.price_cents, held_until = w.held_until,
        notes = w.notes
    FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::bigint[], $6::timestamptz[], $7::text[])
        AS w (organization_id, id, checkout_id, cart_token, price_cents, held_until, notes)
    WHERE h.organization_id = w.organization_id AND h.id = w.id AND h.status = $8::text
    RETURNING 1
)
SELECT 1 / (count(*) = $9::integer)::integer -- a row that was not there fails the statement
FROM written;
