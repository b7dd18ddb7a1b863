SELECT
    h.organization_id, h.event_id, h.id, h.seat_id, h.user_id, h.checkout_id, h.cart_token, h.status,
    h.cancellation_reason, h.source, h.price_cents, h.created_at, h.held_until,
    coalesce(h.expired_at, h.converted_at, h.cancelled_at), h.notes
FROM seat_holds AS h INDEXED BY seat_holds_by_checkout
LEFT JOIN seats AS s ON s.organization_id = h.organization_id AND s.id = h.seat_id
WHERE h.organization_id = ?1 AND h.checkout_id = ?2
ORDER BY s.place, h.id;
