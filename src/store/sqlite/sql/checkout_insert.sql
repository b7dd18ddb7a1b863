INSERT INTO checkouts (
    organization_id, id, event_id, user_id, status, refund, reason, currency, total_cents, created_at,
    expires_at, paying_since, payment_deadline, ended_at, payment_token, notes, version,
    payer, payer_until)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19);
