-- Several nodes: versions to compare and set, who asks the payment gateway, and what was delivered of the change feed.

ALTER TABLE events ADD COLUMN version integer NOT NULL DEFAULT 1;

ALTER TABLE checkouts ADD COLUMN version integer NOT NULL DEFAULT 1;
ALTER TABLE checkouts ADD COLUMN payer uuid; -- the node that asks the gateway; NULL: none does …
ALTER TABLE checkouts ADD COLUMN payer_until timestamptz; -- … and how long the others leave it alone

-- For a buyer's own orders.
CREATE INDEX checkouts_by_user ON checkouts (organization_id, user_id, number);

-- Who wrote it: nobody reads their own.
ALTER TABLE changes ADD COLUMN node uuid;

-- Nodes follow the feed by windows of transactions.
CREATE INDEX changes_by_transaction ON changes (transaction);

-- One row: the highest transaction whose change row was purged. Whoever has not come past it has lost something.
CREATE TABLE feed_floor (
    one         boolean NOT NULL PRIMARY KEY CHECK (one),
    transaction xid8    NOT NULL
);
INSERT INTO feed_floor (one, transaction)
VALUES (true, '0');

-- How far the feed can be read in the snapshot of whoever asks. Transactions end in any order, so what comes after one
-- that is still open must wait for it; unless it is surely a stranger's, in another database or in a session that is not
-- a node's (nodes see to it that their sessions are named so): a stranger writes no change rows.
CREATE VIEW feed AS
SELECT
    coalesce((
        SELECT x.open
        FROM pg_snapshot_xip(s.now) AS x (open)
        WHERE NOT EXISTS (
            SELECT 1
            FROM pg_stat_activity AS a
            WHERE a.backend_xid = x.open::xid
              AND (a.datname <> current_database() OR a.application_name NOT LIKE 'holdfast%'))
        ORDER BY x.open
        LIMIT 1), pg_snapshot_xmax(s.now)) AS oldest_open,
    pg_snapshot_xmax(s.now) AS horizon, -- all that was committed is below it
    f.transaction AS floor
FROM pg_current_snapshot() AS s (now)
CROSS JOIN feed_floor AS f;

-- Whoever delivers the change feed to others, and how far that got. The position is struct feed_position.
CREATE TABLE deliveries (
    name          text    NOT NULL PRIMARY KEY,
    position_from bigint  NOT NULL,
    position_to   bigint  NOT NULL,
    position_id   bigint  NOT NULL,
    node          uuid, -- who delivers now …
    lease_until   timestamptz, -- … and how long the others leave it alone
    version       integer NOT NULL
) WITH (fillfactor = 20);

-- Domain events that were given up.
CREATE TABLE dead_letters (
    number          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- the cursor of lists
    organization_id uuid        NOT NULL,
    id              uuid        NOT NULL, -- the event's
    delivery        text        NOT NULL,
    type            text        NOT NULL,
    body            text        NOT NULL,
    reason          text        NOT NULL,
    try_count       integer     NOT NULL,
    created_at      timestamptz NOT NULL
);
CREATE UNIQUE INDEX dead_letters_by_id ON dead_letters (organization_id, id, delivery);

-- Room beside every seat for what it becomes: a batch may take all seats of a page, and what stays on its page costs
-- neither index an entry.
ALTER TABLE seats SET (fillfactor = 45);
