-- Returns the partitions that nobody had claimed before.
INSERT INTO order_partitions (topic, partition, epoch, next_offset, node, claimed_at)
SELECT w.topic, w.partition, w.epoch, w.next_offset, w.node, w.claimed_at
FROM unnest($1::text[], $2::integer[], $3::bigint[], $4::bigint[], $5::uuid[], $6::timestamptz[])
    AS w (topic, partition, epoch, next_offset, node, claimed_at)
ORDER BY w.topic, w.partition
ON CONFLICT (topic, partition) DO NOTHING
RETURNING topic, partition;
