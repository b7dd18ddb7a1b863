-- The setting, of partitions that order_lock has locked. Who takes one over goes on where the last one was.
WITH written AS (
    UPDATE order_partitions AS o
    SET epoch = w.epoch, node = w.node, claimed_at = w.claimed_at
    FROM unnest($1::text[], $2::integer[], $3::bigint[], $4::uuid[], $5::timestamptz[])
        AS w (topic, partition, epoch, node, claimed_at)
    WHERE o.topic = w.topic AND o.partition = w.partition AND o.epoch = w.epoch - 1
    RETURNING 1
)
SELECT 1 / (count(*) = $6::integer)::integer -- a row that was not there fails the statement
FROM written;
