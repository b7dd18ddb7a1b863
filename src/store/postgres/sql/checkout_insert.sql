INSERT INTO checkouts (
    organization_id, id, event_id, user_id, status, refund, reason, currency, total_cents, created_at, expires_at,
    paying_since, payment_deadline, ended_at, payment_token, notes, payer, payer_until, version)
SELECT w.*, 1
FROM unnest(
    $1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[],
    $10::timestamptz[], $11::timestamptz[], $12::timestamptz[], $13::timestamptz[], $14::timestamptz[],
    $15::text[], $16::text[], $17::uuid[], $18::timestamptz[]) AS w;
