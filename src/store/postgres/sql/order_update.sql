-- The setting, of partitions that order_lock has locked. Who takes one over goes on where the last one was.
WITH written AS (
    UPDATE order_partitions AS o
    SET epoch = w.epoch, node = w.node, claimed_at = w.claimed_at,
        next_offset = CASE WHEN w.resets THEN w.next_offset ELSE o.next_offset END
    FROM unnest($1::text[], $2::integer[], $3::bigint[], $4::uuid[], $5::timestamptz[], $7::boolean[], $8::bigint[])
        AS w (topic, partition, epoch, node, claimed_at, resets, next_offset)
    WHERE o.topic = w.topic AND o.partition = w.partition AND o.epoch = w.epoch - 1
    RETURNING 1
)
SELECT 1 / (count(*) = $6::integer)::integer -- a row that was not there fails the statement
FROM written;
