-- Who decides the commands of each partition of the log, and how far they are done.
CREATE TABLE order_partitions (
    topic       TEXT    NOT NULL,
    partition   INTEGER NOT NULL,
    epoch       INTEGER NOT NULL, -- every change of hands adds one
    next_offset INTEGER NOT NULL, -- everything before it is done
    node        BLOB, -- whose it is
    claimed_at  INTEGER NOT NULL,
    PRIMARY KEY (topic, partition)
) STRICT, WITHOUT ROWID;
