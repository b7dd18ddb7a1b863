-- At which epochs partitions are, and nobody claims them before this transaction ends.
SELECT o.topic, o.partition, o.epoch
FROM unnest($1::text[], $2::integer[]) AS w (topic, partition)
JOIN order_partitions AS o ON o.topic = w.topic AND o.partition = w.partition
ORDER BY o.topic, o.partition
FOR KEY SHARE OF o;
