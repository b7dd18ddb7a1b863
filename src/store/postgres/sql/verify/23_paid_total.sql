-- The total of every checkout that has tickets is the sum of their prices.
-- Refunded ones may have none: their event was cancelled before the seats were sold.
SELECT count(*), min('checkout ' || c.id::text)
FROM checkouts AS c
WHERE c.status IN ('completed', 'refunded')
  AND c.total_cents <> (
    SELECT sum(t.price_cents)
    FROM tickets AS t
    WHERE t.organization_id = c.organization_id AND t.checkout_id = c.id
  );
