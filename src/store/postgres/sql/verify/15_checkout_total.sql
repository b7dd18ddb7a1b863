-- The total of every open checkout is the sum of its active holds.
SELECT count(*), min('checkout ' || c.id::text)
FROM checkouts AS c
WHERE (c.status IN ('pending_payment', 'processing') OR c.refund = 'owed')
  AND c.status IN ('pending_payment', 'processing')
  AND c.total_cents <> (
    SELECT coalesce(sum(h.price_cents), 0)
    FROM seat_holds AS h
    WHERE h.organization_id = c.organization_id AND h.checkout_id = c.id AND h.status = 'active'
  );
