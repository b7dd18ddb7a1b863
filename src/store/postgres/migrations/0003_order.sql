-- Who decides the commands of each partition of the log, and how far they are done. Its rows are changed many times a
-- second: there is room beside each for what it becomes, and no other index.
CREATE TABLE order_partitions (
    topic       text        NOT NULL,
    partition   integer     NOT NULL,
    epoch       bigint      NOT NULL, -- every change of hands adds one
    next_offset bigint      NOT NULL, -- everything before it is done
    node        uuid, -- whose it is
    claimed_at  timestamptz NOT NULL,
    PRIMARY KEY (topic, partition)
) WITH (fillfactor = 20);
