SELECT
    h.organization_id, h.event_id, h.id, h.seat_id, h.user_id, h.checkout_id, h.cart_token, h.status,
    h.cancellation_reason, h.source, h.price_cents, h.created_at, h.held_until,
    coalesce(h.expired_at, h.converted_at, h.cancelled_at), h.notes
FROM seat_holds AS h
WHERE h.organization_id = $1::uuid AND h.checkout_id = $2::uuid
ORDER BY
    (SELECT s.place FROM seats AS s WHERE s.organization_id = h.organization_id AND s.id = h.seat_id), h.id;
