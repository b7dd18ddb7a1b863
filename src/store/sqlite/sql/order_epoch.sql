SELECT epoch
FROM order_partitions
WHERE topic = ?1 AND partition = ?2;
