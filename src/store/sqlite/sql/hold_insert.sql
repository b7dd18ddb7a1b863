INSERT INTO seat_holds (
    organization_id, id, event_id, seat_id, user_id, checkout_id, cart_token, status, source, price_cents,
    created_at, held_until, expired_at, converted_at, cancelled_at, cancellation_reason, notes)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17);
