-- A hold that stays active. Its status is not written, so the index of active holds is left alone.
UPDATE seat_holds
SET checkout_id = ?3, cart_token = ?4, price_cents = ?5, held_until = ?6, notes = ?7
WHERE organization_id = ?1 AND id = ?2 AND status = 'active';
