-- The comparison: positions of the partitions that are at the expected epoch, and now locked alone. Waits for those who
-- rely on them. The lock is as strong as one of a row that goes away: order_update alone would not keep sharers out.
SELECT w.position
FROM unnest($1::text[], $2::integer[], $3::bigint[], $4::integer[]) AS w (topic, partition, epoch, position)
JOIN order_partitions AS o ON o.topic = w.topic AND o.partition = w.partition
WHERE o.epoch = w.epoch
ORDER BY o.topic, o.partition
FOR UPDATE OF o;
