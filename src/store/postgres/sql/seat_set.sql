-- The setting, of seats that seat_lock has locked.
WITH written AS (
    UPDATE seats AS s
    SET status = w.status, held_until = w.held_until, locked_at = w.locked_at, seat_hold_id = w.seat_hold_id,
        ticket_id = w.ticket_id, version = w.version
    FROM (
        SELECT
            unnest($1::uuid[]), unnest($2::uuid[]), unnest($3::integer[]), unnest($4::text[]), unnest($5::timestamptz[]),
            unnest($6::timestamptz[]), unnest($7::uuid[]), unnest($8::uuid[]))
        AS w (organization_id, id, version, status, held_until, locked_at, seat_hold_id, ticket_id)
    WHERE s.organization_id = w.organization_id AND s.id = w.id AND s.version = w.version - 1
    RETURNING 1
)
SELECT 1 / (count(*) = $9::integer)::integer -- a row that was not there fails the statement
FROM written;
