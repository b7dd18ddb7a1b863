WITH written AS (
    UPDATE tickets AS t
    SET refunded_at = w.refunded_at
    FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) AS w (organization_id, id, refunded_at)
    WHERE t.organization_id = w.organization_id AND t.id = w.id
    RETURNING 1
)
SELECT 1 / (count(*) = $4::integer)::integer -- a row that was not there fails the statement
FROM written;
