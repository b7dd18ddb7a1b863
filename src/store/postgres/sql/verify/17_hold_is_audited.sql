-- Every hold has the audit row of its making.
WITH made AS MATERIALIZED (
    SELECT DISTINCT organization_id, entity_id
    FROM audit_log
    WHERE action = 'seat_reserved' AND entity_id IS NOT NULL
)
SELECT count(*), min('hold ' || h.id::text)
FROM seat_holds AS h
LEFT JOIN made AS m ON m.organization_id = h.organization_id AND m.entity_id = h.id
WHERE m.entity_id IS NULL;
