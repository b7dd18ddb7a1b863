-- Before the rows of partitions are shared by those who rely on them, or locked alone by who claims them. PostgreSQL lets
-- new sharers of a row pass whoever waits to have it alone; this lock is given in the order in which it was asked for.
-- The keys come in order; 1869767781 is the name of these locks: "orde" as a number.
SELECT
    CASE
        WHEN gate.alone THEN pg_advisory_xact_lock(1869767781, gate.key)::text
        ELSE pg_advisory_xact_lock_shared(1869767781, gate.key)::text
    END
FROM unnest($1::integer[], $2::boolean[]) AS gate (key, alone);
