-- How far the commands of partitions are done: never less far than before. Rows are locked in order, so that two
-- transactions never wait for each other; the lock lets those pass who rely on the partition.
WITH locked AS MATERIALIZED (
    SELECT o.topic, o.partition, w.next_offset
    FROM unnest($1::text[], $2::integer[], $3::bigint[]) AS w (topic, partition, next_offset)
    JOIN order_partitions AS o ON o.topic = w.topic AND o.partition = w.partition
    WHERE o.next_offset < w.next_offset
    ORDER BY o.topic, o.partition
    FOR NO KEY UPDATE OF o
)
UPDATE order_partitions AS o
SET next_offset = l.next_offset
FROM locked AS l
WHERE o.topic = l.topic AND o.partition = l.partition AND o.next_offset < l.next_offset;
