-- Every ended hold has the audit row of its end; that of a sold one is its checkout's.
WITH ended AS MATERIALIZED (
    SELECT DISTINCT organization_id, CASE action WHEN 'checkout_completed' THEN checkout_id ELSE entity_id END AS id
    FROM audit_log
    WHERE action IN ('seat_released', 'seat_hold_expired', 'checkout_completed')
)
SELECT count(*), min('hold ' || h.id::text)
FROM seat_holds AS h
LEFT JOIN ended AS e
    ON e.organization_id = h.organization_id
    AND e.id = CASE h.status WHEN 'converted' THEN h.checkout_id ELSE h.id END
WHERE h.status <> 'active' AND e.id IS NULL;
