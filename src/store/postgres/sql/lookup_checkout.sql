SELECT
    organization_id, event_id, id, user_id, status, refund, reason, currency, total_cents, created_at, expires_at,
    paying_since, payment_deadline, ended_at, payment_token, notes, version, payer, payer_until
FROM checkouts
WHERE organization_id = $1::uuid AND id = $2::uuid;
