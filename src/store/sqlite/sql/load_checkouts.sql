SELECT
    organization_id, event_id, id, user_id, status, refund, reason, currency, total_cents, created_at, expires_at,
    paying_since, payment_deadline, ended_at, payment_token, notes, version, payer, payer_until
FROM checkouts INDEXED BY checkouts_open
WHERE status IN ('pending_payment', 'processing') OR refund = 'owed';
