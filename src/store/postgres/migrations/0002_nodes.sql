-- Several nodes: versions to compare and set, who asks the payment gateway, and what was delivered of the change feed.

ALTER TABLE events ADD COLUMN version integer NOT NULL DEFAULT 1;

ALTER TABLE checkouts ADD COLUMN version integer NOT NULL DEFAULT 1;
ALTER TABLE checkouts ADD COLUMN payer uuid; -- the node that asks the gateway; NULL: none does …
ALTER TABLE checkouts ADD COLUMN payer_until timestamptz; -- … and how long the others leave it alone

-- Nodes follow the feed by windows of transactions.
CREATE INDEX changes_by_transaction ON changes (transaction);

-- One row: the highest transaction whose change row was purged. Whoever has not come past it has lost something.
CREATE TABLE feed_floor (
    one         boolean NOT NULL PRIMARY KEY CHECK (one),
    transaction xid8    NOT NULL
);
INSERT INTO feed_floor (one, transaction)
VALUES (true, '0');

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
