-- Of all tenants, the longest overdue first.
SELECT
    h.organization_id, h.event_id, h.id, h.seat_id, h.user_id, h.checkout_id, h.cart_token, h.status,
    h.cancellation_reason, h.source, h.price_cents, h.created_at, h.held_until,
    coalesce(h.expired_at, h.converted_at, h.cancelled_at), h.notes
FROM seat_holds AS h
LEFT JOIN events AS e ON e.organization_id = h.organization_id AND e.id = h.event_id
WHERE h.status = 'active' AND h.held_until <= $1::timestamptz
  AND h.held_until + coalesce(e.release_grace_seconds, 0) * interval '1 second' <= $1::timestamptz
ORDER BY h.held_until
LIMIT $2::integer;
