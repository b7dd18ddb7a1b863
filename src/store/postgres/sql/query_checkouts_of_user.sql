-- One user's: few, and found by their index, so that any number of others' costs nothing.
SELECT
    c.id, c.event_id, c.user_id, c.status, c.refund, c.reason, c.currency, c.total_cents,
    (SELECT count(*) FROM seat_holds AS h
     WHERE h.organization_id = c.organization_id AND h.checkout_id = c.id),
    c.created_at, c.expires_at, c.ended_at, c.number
FROM checkouts AS c
WHERE c.number < $1::bigint AND c.number >= $2::bigint AND c.organization_id = $3::uuid
  AND ($5::uuid IS NULL OR c.id = $5::uuid)
  AND ($6::uuid IS NULL OR c.event_id = $6::uuid)
  AND c.user_id = $7::uuid
  AND ($8::text IS NULL OR c.status = $8::text)
  AND ($9::timestamptz IS NULL OR c.created_at >= $9::timestamptz)
ORDER BY c.number DESC
LIMIT $4::integer;
