-- The whole model. UUIDs are 16-byte blobs, times integer milliseconds since 1970 UTC, states the words of SPEC.
-- Keys begin with organization_id. There are no foreign keys: `holdfast verify` proves what they would.

CREATE TABLE organizations (
    id         BLOB    NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE users (
    organization_id BLOB    NOT NULL,
    id              BLOB    NOT NULL,
    disabled        INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    PRIMARY KEY (organization_id, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    organization_id            BLOB    NOT NULL,
    id                         BLOB    NOT NULL,
    name                       TEXT    NOT NULL,
    status                     TEXT    NOT NULL,
    sale_start                 INTEGER, -- NULL: always open
    sale_end                   INTEGER, -- NULL: never closes
    currency                   TEXT    NOT NULL,
    hold_ttl_seconds           INTEGER NOT NULL,
    checkout_extension_seconds INTEGER NOT NULL,
    hold_max_seconds           INTEGER NOT NULL,
    release_grace_seconds      INTEGER NOT NULL,
    payment_max_seconds        INTEGER NOT NULL,
    max_seats_per_user         INTEGER NOT NULL,
    rate_limit_holds           INTEGER NOT NULL,
    rate_limit_window_seconds  INTEGER NOT NULL,
    forbid_single_seat_gaps    INTEGER NOT NULL,
    created_at                 INTEGER NOT NULL,
    updated_at                 INTEGER NOT NULL,
    PRIMARY KEY (organization_id, id)
) STRICT, WITHOUT ROWID;

-- The document an event's blocks and seats were made from. Its seats are seats.place
-- place_first … place_first + seat_count − 1, in layout order. Documents are large: the key is apart from them.
CREATE TABLE layouts (
    organization_id BLOB    NOT NULL,
    event_id        BLOB    NOT NULL,
    place_first     INTEGER NOT NULL,
    seat_count      INTEGER NOT NULL,
    document        TEXT    NOT NULL
) STRICT;
CREATE UNIQUE INDEX layouts_by_event ON layouts (organization_id, event_id);

CREATE TABLE blocks (
    organization_id BLOB    NOT NULL,
    event_id        BLOB    NOT NULL,
    id              BLOB    NOT NULL,
    ordinal         INTEGER NOT NULL, -- in layout order, from 0
    section         TEXT    NOT NULL,
    subsection      INTEGER NOT NULL,
    name            TEXT    NOT NULL,
    capacity        INTEGER NOT NULL,
    price_cents     INTEGER NOT NULL,
    PRIMARY KEY (organization_id, event_id, id),
    UNIQUE (organization_id, event_id, section, subsection)
) STRICT, WITHOUT ROWID;

-- Seats are found by place, so that a compare-and-set is one step down one tree.
-- No index on a column that changes.
CREATE TABLE seats (
    place           INTEGER PRIMARY KEY,
    id              BLOB    NOT NULL,
    organization_id BLOB    NOT NULL,
    event_id        BLOB    NOT NULL,
    block_id        BLOB    NOT NULL,
    row             INTEGER NOT NULL, -- ordinals, from 1
    seat            INTEGER NOT NULL,
    row_letter      TEXT    NOT NULL, -- labels, to show
    seat_number     TEXT    NOT NULL,
    status          TEXT    NOT NULL,
    held_until      INTEGER,
    locked_at       INTEGER,
    seat_hold_id    BLOB,
    ticket_id       BLOB,
    version         INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX seats_by_id ON seats (organization_id, id);
CREATE UNIQUE INDEX seats_by_position ON seats (organization_id, event_id, block_id, row, seat);

CREATE TABLE seat_holds (
    organization_id     BLOB    NOT NULL,
    id                  BLOB    NOT NULL,
    event_id            BLOB    NOT NULL,
    seat_id             BLOB    NOT NULL,
    user_id             BLOB    NOT NULL,
    checkout_id         BLOB,
    cart_token          TEXT    NOT NULL,
    status              TEXT    NOT NULL,
    source              TEXT    NOT NULL,
    price_cents         INTEGER NOT NULL,
    created_at          INTEGER NOT NULL,
    held_until          INTEGER NOT NULL,
    expired_at          INTEGER,
    converted_at        INTEGER,
    cancelled_at        INTEGER,
    cancellation_reason TEXT,
    notes               TEXT,
    PRIMARY KEY (organization_id, id)
) STRICT, WITHOUT ROWID;
-- The promise: a seat has at most one active hold.
CREATE UNIQUE INDEX seat_holds_active ON seat_holds (organization_id, seat_id) WHERE status = 'active';
-- For the reaper, and to load active holds nearly in the order they lie in.
CREATE INDEX seat_holds_expiry ON seat_holds (held_until) WHERE status = 'active';
CREATE INDEX seat_holds_by_checkout ON seat_holds (organization_id, checkout_id) WHERE checkout_id IS NOT NULL;

CREATE TABLE checkouts (
    number           INTEGER PRIMARY KEY, -- the cursor of lists
    organization_id  BLOB    NOT NULL,
    id               BLOB    NOT NULL,
    event_id         BLOB    NOT NULL,
    user_id          BLOB    NOT NULL,
    status           TEXT    NOT NULL,
    refund           TEXT    NOT NULL,
    reason           TEXT,
    currency         TEXT    NOT NULL,
    total_cents      INTEGER NOT NULL,
    created_at       INTEGER NOT NULL,
    expires_at       INTEGER NOT NULL,
    paying_since     INTEGER,
    payment_deadline INTEGER,
    ended_at         INTEGER,
    payment_token    TEXT,
    notes            TEXT
) STRICT;
CREATE UNIQUE INDEX checkouts_by_id ON checkouts (organization_id, id);
CREATE INDEX checkouts_open ON checkouts (organization_id)
    WHERE status IN ('pending_payment', 'processing') OR refund = 'owed';

CREATE TABLE tickets (
    organization_id BLOB    NOT NULL,
    id              BLOB    NOT NULL,
    event_id        BLOB    NOT NULL,
    seat_id         BLOB    NOT NULL,
    seat_hold_id    BLOB    NOT NULL,
    checkout_id     BLOB    NOT NULL,
    user_id         BLOB    NOT NULL,
    price_cents     INTEGER NOT NULL,
    code            TEXT    NOT NULL,
    created_at      INTEGER NOT NULL,
    refunded_at     INTEGER,
    PRIMARY KEY (organization_id, id)
) STRICT, WITHOUT ROWID;
-- The promise: a seat is sold at most once.
CREATE UNIQUE INDEX tickets_valid ON tickets (organization_id, seat_id) WHERE refunded_at IS NULL;
CREATE INDEX tickets_by_checkout ON tickets (organization_id, checkout_id);

-- No index: each would cost every hold a page somewhere at random, and the log is by far the largest table.
-- Lists walk back by id.
CREATE TABLE audit_log (
    id                    INTEGER PRIMARY KEY, -- the cursor of lists
    organization_id       BLOB    NOT NULL,
    actor_id              BLOB, -- NULL: the system
    role                  TEXT    NOT NULL,
    action                TEXT    NOT NULL,
    entity_type           TEXT    NOT NULL,
    entity_id             BLOB,
    seat_id               BLOB,
    event_id              BLOB,
    checkout_id           BLOB,
    user_id               BLOB,
    scenario              TEXT,
    reason                TEXT,
    before                TEXT,
    after                 TEXT,
    held_duration_seconds INTEGER,
    ip                    TEXT,
    user_agent            TEXT,
    request_id            TEXT,
    created_at            INTEGER NOT NULL
) STRICT;

-- The outbox and change feed: one packed row per batch, see store/changes.h.
CREATE TABLE changes (
    id         INTEGER PRIMARY KEY,
    created_at INTEGER NOT NULL,
    data       BLOB    NOT NULL
) STRICT;

-- Every transaction begins by inserting its id here: what became of a batch can be asked.
CREATE TABLE batches (
    id         BLOB    NOT NULL PRIMARY KEY,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency_keys (
    number          INTEGER PRIMARY KEY, -- in order of making, for the purge
    organization_id BLOB    NOT NULL,
    key             BLOB    NOT NULL,
    body            BLOB    NOT NULL,
    result          BLOB,
    created_at      INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX idempotency_keys_by_key ON idempotency_keys (organization_id, key);

CREATE TABLE occupancy_snapshots (
    organization_id BLOB    NOT NULL,
    event_id        BLOB    NOT NULL,
    snapshot_at     INTEGER NOT NULL,
    available       INTEGER NOT NULL,
    held            INTEGER NOT NULL,
    sold            INTEGER NOT NULL,
    blocked         INTEGER NOT NULL,
    PRIMARY KEY (organization_id, event_id, snapshot_at)
) STRICT, WITHOUT ROWID;

-- Per block: seats by state, and holds ever made and how they ended.
CREATE TABLE subsection_stats (
    organization_id BLOB    NOT NULL,
    event_id        BLOB    NOT NULL,
    block_id        BLOB    NOT NULL,
    available       INTEGER NOT NULL,
    held            INTEGER NOT NULL,
    sold            INTEGER NOT NULL,
    blocked         INTEGER NOT NULL,
    holds_created   INTEGER NOT NULL,
    holds_converted INTEGER NOT NULL,
    holds_expired   INTEGER NOT NULL,
    holds_cancelled INTEGER NOT NULL,
    PRIMARY KEY (organization_id, event_id, block_id)
) STRICT, WITHOUT ROWID;

-- The same of holds by the hour they were made in, so that analytics never walks the holds.
CREATE TABLE subsection_hours (
    organization_id BLOB    NOT NULL,
    event_id        BLOB    NOT NULL,
    block_id        BLOB    NOT NULL,
    hour            INTEGER NOT NULL, -- its beginning, in milliseconds
    holds_created   INTEGER NOT NULL,
    holds_converted INTEGER NOT NULL,
    holds_expired   INTEGER NOT NULL,
    holds_cancelled INTEGER NOT NULL,
    held_ms         INTEGER NOT NULL, -- sum over ended holds
    PRIMARY KEY (organization_id, event_id, block_id, hour)
) STRICT, WITHOUT ROWID;
