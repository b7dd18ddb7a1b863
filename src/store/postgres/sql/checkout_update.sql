-- The setting, of checkouts that checkout_lock has locked.
WITH written AS (
    UPDATE checkouts AS c
    SET status = w.status, refund = w.refund, reason = w.reason, total_cents = w.total_cents, expires_at = w.expires_at,
        paying_since = w.paying_since, payment_deadline = w.payment_deadline, ended_at = w.ended_at,
        payment_token = w.payment_token, notes = w.notes, payer = w.payer, payer_until = w.payer_until,
        version = w.version
    FROM unnest(
        $1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::timestamptz[], $8::timestamptz[],
        $9::timestamptz[], $10::timestamptz[], $11::text[], $12::text[], $13::uuid[],
        $14::timestamptz[], $15::integer[])
        AS w (organization_id, id, status, refund, reason, total_cents, expires_at, paying_since, payment_deadline,
              ended_at, payment_token, notes, payer, payer_until, version)
    WHERE c.organization_id = w.organization_id AND c.id = w.id AND c.version = w.version - 1
    RETURNING 1
)
SELECT 1 / (count(*) = $16::integer)::integer -- a row that was not there fails the statement
FROM written;
