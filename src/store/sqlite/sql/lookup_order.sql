SELECT topic, partition, epoch, next_offset, node, claimed_at
FROM order_partitions
WHERE topic = ?1 AND partition = ?2;
