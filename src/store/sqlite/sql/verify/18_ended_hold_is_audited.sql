-- Every ended hold has an audit row of its end, or its checkout has.
WITH completed AS MATERIALIZED (
    SELECT DISTINCT organization_id, checkout_id
    FROM audit_log
    WHERE action IN ('checkout_completed', 'payment_late') AND checkout_id IS NOT NULL
)
SELECT count(*), min('hold ' || lower(hex(h.id)))
FROM seat_holds AS h
LEFT JOIN completed AS c
    ON h.status = 'converted' AND c.organization_id = h.organization_id AND c.checkout_id = h.checkout_id
WHERE h.status <> 'active' AND c.checkout_id IS NULL
  AND NOT EXISTS (
    SELECT 1
    FROM audit_log AS a
    WHERE a.organization_id = h.organization_id AND a.seat_id = h.seat_id AND a.entity_id = h.id
      AND a.action IN ('seat_released', 'seat_hold_expired')
  );
