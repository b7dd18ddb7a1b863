-- How far a partition's commands are done: never less far than before.
UPDATE order_partitions
SET next_offset = ?3
WHERE topic = ?1 AND partition = ?2 AND next_offset < ?3;
