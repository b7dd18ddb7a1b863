-- The compare-and-set: no row is changed unless it is at the expected version.
UPDATE checkouts
SET status = ?3, refund = ?4, reason = ?5, total_cents = ?6, expires_at = ?7, paying_since = ?8,
    payment_deadline = ?9, ended_at = ?10, payment_token = ?11, notes = ?12, version = ?13, payer = ?14,
    payer_until = ?15
WHERE organization_id = ?1 AND id = ?2 AND version = ?13 - 1;
