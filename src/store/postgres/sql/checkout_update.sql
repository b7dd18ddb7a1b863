WITH written AS (
    UPDATE checkouts AS c
    SET status = w.status, refund = w.refund, reason = w.reason, total_cents = w.total_cents, expires_at = w.expires_at,
        paying_since = w.paying_since, payment_deadline = w.payment_deadline, ended_at = w.ended_at,
        payment_token = w.payment_token, notes = w.notes
    FROM unnest(
        $1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::timestamptz[], $8::timestamptz[],
        $9::timestamptz[], $10::timestamptz[], $11::text[], $12::text[])
        AS w (organization_id, id, status, refund, reason, total_cents, expires_at, paying_since, payment_deadline,
              ended_at, payment_token, notes)
    WHERE c.organization_id = w.organization_id AND c.id = w.id
    RETURNING 1
)
SELECT 1 / (count(*) = $13::integer)::integer -- a row that was not there fails the statement
FROM written;
