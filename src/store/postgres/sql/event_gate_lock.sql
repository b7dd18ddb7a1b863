-- Before the rows of events are locked alone: see event_gate_share.sql.
SELECT pg_advisory_xact_lock(gate.key)
FROM (
    SELECT DISTINCT hashtextextended(w.organization_id::text || w.id::text, 0) AS key
    FROM unnest($1::uuid[], $2::uuid[]) AS w (organization_id, id)
    ORDER BY key)
    AS gate;
