DELETE FROM order_partitions AS o
USING unnest($1::text[], $2::integer[]) AS w (topic, partition)
WHERE o.topic = w.topic AND o.partition = w.partition;
