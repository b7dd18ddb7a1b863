-- Whoever takes a partition over goes on where the last one was.
INSERT INTO order_partitions (topic, partition, epoch, next_offset, node, claimed_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (topic, partition) DO UPDATE
SET epoch = excluded.epoch, node = excluded.node, claimed_at = excluded.claimed_at,
    next_offset = CASE WHEN ?7 THEN excluded.next_offset ELSE next_offset END;
