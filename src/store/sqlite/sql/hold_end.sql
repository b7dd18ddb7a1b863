-- A hold ends once: one that has ended is not found.
UPDATE seat_holds
SET checkout_id = ?3, cart_token = ?4, price_cents = ?5, held_until = ?6, notes = ?7,
    status = ?8, expired_at = ?9, converted_at = ?10, cancelled_at = ?11, cancellation_reason = ?12
WHERE organization_id = ?1 AND id = ?2 AND status = 'active';
