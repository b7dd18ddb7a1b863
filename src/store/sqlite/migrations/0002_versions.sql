-- Versions to compare and set where several nodes may write, who asks the payment gateway, and what was delivered of
-- the change feed.

ALTER TABLE events ADD COLUMN version INTEGER NOT NULL DEFAULT 1;

ALTER TABLE checkouts ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
ALTER TABLE checkouts ADD COLUMN payer BLOB;          -- the node that asks the gateway; NULL: none does
ALTER TABLE checkouts ADD COLUMN payer_until INTEGER; -- how long the others leave it alone

-- For a buyer's own orders.
CREATE INDEX checkouts_by_user ON checkouts (organization_id, user_id, number);

-- Whoever delivers the change feed to others, and how far that got.
CREATE TABLE deliveries (
    name          TEXT    NOT NULL PRIMARY KEY,
    position_from INTEGER NOT NULL,
    position_to   INTEGER NOT NULL,
    position_id   INTEGER NOT NULL,
    node          BLOB, -- who delivers now
    lease_until   INTEGER NOT NULL,
    version       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Domain events that were given up.
CREATE TABLE dead_letters (
    number          INTEGER PRIMARY KEY, -- the cursor of lists
    organization_id BLOB    NOT NULL,
    id              BLOB    NOT NULL, -- the event's
    delivery        TEXT    NOT NULL,
    type            TEXT    NOT NULL,
    body            TEXT    NOT NULL,
    reason          TEXT    NOT NULL,
    try_count       INTEGER NOT NULL,
    created_at      INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX dead_letters_by_id ON dead_letters (organization_id, id, delivery);
