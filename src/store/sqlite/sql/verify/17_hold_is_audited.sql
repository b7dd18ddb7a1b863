-- Every hold has the audit row of its making.
SELECT count(*), min('hold ' || lower(hex(h.id)))
FROM seat_holds AS h
WHERE NOT EXISTS (
    SELECT 1
    FROM audit_log AS a
    WHERE a.organization_id = h.organization_id AND a.seat_id = h.seat_id AND a.action = 'seat_reserved'
      AND a.entity_id = h.id
);
