INSERT INTO tickets (
    organization_id, id, event_id, seat_id, seat_hold_id, checkout_id, user_id, price_cents, code, created_at,
    refunded_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11);
