-- Before the rows of events are shared. PostgreSQL lets new sharers of a row pass whoever waits to have it alone, for as
-- long as there are any: with a few busy nodes, for ever. This lock is given in the order in which it was asked for.
SELECT pg_advisory_xact_lock_shared(gate.key)
FROM (
    SELECT DISTINCT hashtextextended(w.organization_id::text || w.id::text, 0) AS key
    FROM unnest($1::uuid[], $2::uuid[]) AS w (organization_id, id)
    ORDER BY key)
    AS gate;
