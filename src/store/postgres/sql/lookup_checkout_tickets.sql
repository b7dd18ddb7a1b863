SELECT
    t.organization_id, t.event_id, t.id, t.seat_id, t.seat_hold_id, t.checkout_id, t.user_id, t.price_cents,
    t.code, t.created_at, t.refunded_at
FROM tickets AS t
WHERE t.organization_id = $1::uuid AND t.checkout_id = $2::uuid
ORDER BY
    (SELECT s.place FROM seats AS s WHERE s.organization_id = t.organization_id AND s.id = t.seat_id), t.id;
