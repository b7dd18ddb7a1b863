SELECT
    organization_id, event_id, id, seat_id, user_id, checkout_id, cart_token, status, cancellation_reason, source,
    price_cents, created_at, held_until, coalesce(expired_at, converted_at, cancelled_at), notes
FROM seat_holds
WHERE status = 'active'
ORDER BY held_until;
