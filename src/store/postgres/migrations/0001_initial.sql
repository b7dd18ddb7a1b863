-- The whole model, as in the embedded store. Ids are made by Holdfast, states are the words of SPEC, times are UTC.
-- Keys begin with organization_id. There are no foreign keys: they would halve the speed of batches, and
-- `holdfast verify` proves what they would.

CREATE TABLE organizations (
    id         uuid        NOT NULL PRIMARY KEY,
    name       text        NOT NULL,
    created_at timestamptz NOT NULL
);

CREATE TABLE users (
    organization_id uuid        NOT NULL,
    id              uuid        NOT NULL,
    disabled        boolean     NOT NULL,
    created_at      timestamptz NOT NULL,
    PRIMARY KEY (organization_id, id)
);

-- Half-empty pages: every batch that makes holds locks its event's row, which writes to it.
CREATE TABLE events (
    organization_id            uuid        NOT NULL,
    id                         uuid        NOT NULL,
    name                       text        NOT NULL,
    status                     text        NOT NULL,
    sale_start                 timestamptz, -- NULL: always open
    sale_end                   timestamptz, -- NULL: never closes
    currency                   text        NOT NULL,
    hold_ttl_seconds           integer     NOT NULL,
    checkout_extension_seconds integer     NOT NULL,
    hold_max_seconds           integer     NOT NULL,
    release_grace_seconds      integer     NOT NULL,
    payment_max_seconds        integer     NOT NULL,
    max_seats_per_user         integer     NOT NULL,
    rate_limit_holds           integer     NOT NULL,
    rate_limit_window_seconds  integer     NOT NULL,
    forbid_single_seat_gaps    integer     NOT NULL,
    created_at                 timestamptz NOT NULL,
    updated_at                 timestamptz NOT NULL,
    PRIMARY KEY (organization_id, id)
) WITH (fillfactor = 50);

-- The document an event's blocks and seats were made from.
CREATE TABLE layouts (
    organization_id uuid    NOT NULL,
    event_id        uuid    NOT NULL,
    seat_count      integer NOT NULL,
    document        text    NOT NULL,
    PRIMARY KEY (organization_id, event_id)
);

CREATE TABLE blocks (
    organization_id uuid    NOT NULL,
    event_id        uuid    NOT NULL,
    id              uuid    NOT NULL,
    ordinal         integer NOT NULL, -- in layout order, from 0
    section         text    NOT NULL,
    subsection      integer NOT NULL,
    name            text    NOT NULL,
    capacity        integer NOT NULL,
    price_cents     bigint  NOT NULL,
    PRIMARY KEY (organization_id, event_id, id),
    UNIQUE (organization_id, event_id, section, subsection)
);

-- No index on a column that changes, and room on every page: updates stay heap-only.
CREATE TABLE seats (
    organization_id uuid    NOT NULL,
    id              uuid    NOT NULL,
    event_id        uuid    NOT NULL,
    block_id        uuid    NOT NULL,
    place           integer NOT NULL, -- in the event's layout order, from 0
    row             integer NOT NULL, -- ordinals, from 1
    seat            integer NOT NULL,
    version         integer NOT NULL,
    held_until      timestamptz,
    locked_at       timestamptz,
    seat_hold_id    uuid,
    ticket_id       uuid,
    status          text    NOT NULL,
    row_letter      text    NOT NULL, -- labels, to show
    seat_number     text    NOT NULL,
    PRIMARY KEY (organization_id, id)
) WITH (fillfactor = 60);
CREATE UNIQUE INDEX seats_by_position ON seats (organization_id, event_id, block_id, row, seat);

CREATE TABLE seat_holds (
    organization_id     uuid        NOT NULL,
    id                  uuid        NOT NULL,
    event_id            uuid        NOT NULL,
    seat_id             uuid        NOT NULL,
    user_id             uuid        NOT NULL,
    checkout_id         uuid,
    price_cents         bigint      NOT NULL,
    created_at          timestamptz NOT NULL,
    held_until          timestamptz NOT NULL,
    expired_at          timestamptz,
    converted_at        timestamptz,
    cancelled_at        timestamptz,
    status              text        NOT NULL,
    source              text        NOT NULL,
    cart_token          text        NOT NULL,
    cancellation_reason text,
    notes               text,
    PRIMARY KEY (organization_id, id)
) WITH (fillfactor = 80);
-- The promise: a seat has at most one active hold.
CREATE UNIQUE INDEX seat_holds_active ON seat_holds (organization_id, seat_id) WHERE status = 'active';
-- For the reaper, and to load active holds nearly in the order they lie in.
CREATE INDEX seat_holds_expiry ON seat_holds (held_until) WHERE status = 'active';
CREATE INDEX seat_holds_by_checkout ON seat_holds (organization_id, checkout_id) WHERE checkout_id IS NOT NULL;

CREATE TABLE checkouts (
    number           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- the cursor of lists
    organization_id  uuid        NOT NULL,
    id               uuid        NOT NULL,
    event_id         uuid        NOT NULL,
    user_id          uuid        NOT NULL,
    status           text        NOT NULL,
    refund           text        NOT NULL,
    reason           text,
    currency         text        NOT NULL,
    total_cents      bigint      NOT NULL,
    created_at       timestamptz NOT NULL,
    expires_at       timestamptz NOT NULL,
    paying_since     timestamptz,
    payment_deadline timestamptz,
    ended_at         timestamptz,
    payment_token    text,
    notes            text
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX checkouts_by_id ON checkouts (organization_id, id);
CREATE INDEX checkouts_open ON checkouts (organization_id)
    WHERE status IN ('pending_payment', 'processing') OR refund = 'owed';

CREATE TABLE tickets (
    organization_id uuid        NOT NULL,
    id              uuid        NOT NULL,
    event_id        uuid        NOT NULL,
    seat_id         uuid        NOT NULL,
    seat_hold_id    uuid        NOT NULL,
    checkout_id     uuid        NOT NULL,
    user_id         uuid        NOT NULL,
    price_cents     bigint      NOT NULL,
    created_at      timestamptz NOT NULL,
    refunded_at     timestamptz,
    code            text        NOT NULL,
    PRIMARY KEY (organization_id, id)
);
-- The promise: a seat is sold at most once.
CREATE UNIQUE INDEX tickets_valid ON tickets (organization_id, seat_id) WHERE refunded_at IS NULL;
CREATE INDEX tickets_by_checkout ON tickets (organization_id, checkout_id);

-- No index but its number: each would cost every hold a page somewhere at random, and the log is by far the largest
-- table. Lists walk back by number.
CREATE TABLE audit_log (
    id                    bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- the cursor of lists
    organization_id       uuid        NOT NULL,
    actor_id              uuid, -- NULL: the system
    entity_id             uuid,
    seat_id               uuid,
    event_id              uuid,
    checkout_id           uuid,
    user_id               uuid,
    created_at            timestamptz NOT NULL,
    held_duration_seconds bigint,
    role                  text        NOT NULL,
    action                text        NOT NULL,
    entity_type           text        NOT NULL,
    scenario              text,
    reason                text,
    before                json,
    after                 json,
    ip                    text,
    user_agent            text,
    request_id            text
);

-- The outbox and change feed: one packed row per batch, see store/changes.h. Ids may commit out of order: readers take
-- only rows whose transaction is below pg_snapshot_xmin(pg_current_snapshot()).
CREATE TABLE changes (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    transaction xid8        NOT NULL DEFAULT pg_current_xact_id(),
    created_at  timestamptz NOT NULL,
    data        bytea       NOT NULL
);

-- It is packed already: trying to compress it would cost more than all else about it.
ALTER TABLE changes ALTER COLUMN data SET STORAGE EXTERNAL;

-- Every transaction begins by inserting its id here: what became of a batch can be asked.
CREATE TABLE batches (
    id         uuid        NOT NULL PRIMARY KEY,
    created_at timestamptz NOT NULL
);

CREATE TABLE idempotency_keys (
    organization_id uuid        NOT NULL,
    created_at      timestamptz NOT NULL,
    key             bytea       NOT NULL,
    body            bytea       NOT NULL,
    result          bytea,
    PRIMARY KEY (organization_id, key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

CREATE TABLE occupancy_snapshots (
    organization_id uuid        NOT NULL,
    event_id        uuid        NOT NULL,
    snapshot_at     timestamptz NOT NULL,
    available       integer     NOT NULL,
    held            integer     NOT NULL,
    sold            integer     NOT NULL,
    blocked         integer     NOT NULL,
    PRIMARY KEY (organization_id, event_id, snapshot_at)
);

-- Per block: seats by state, and holds ever made and how they ended. Few rows, each changed by every batch that
-- touches its block: much room on the page keeps the updates in it.
CREATE TABLE subsection_stats (
    organization_id uuid   NOT NULL,
    event_id        uuid   NOT NULL,
    block_id        uuid   NOT NULL,
    available       bigint NOT NULL,
    held            bigint NOT NULL,
    sold            bigint NOT NULL,
    blocked         bigint NOT NULL,
    holds_created   bigint NOT NULL,
    holds_converted bigint NOT NULL,
    holds_expired   bigint NOT NULL,
    holds_cancelled bigint NOT NULL,
    PRIMARY KEY (organization_id, event_id, block_id)
) WITH (fillfactor = 20);

-- The same of holds by the hour they were made in, so that analytics never walks the holds.
CREATE TABLE subsection_hours (
    organization_id uuid        NOT NULL,
    event_id        uuid        NOT NULL,
    block_id        uuid        NOT NULL,
    hour            timestamptz NOT NULL, -- its beginning
    holds_created   bigint      NOT NULL,
    holds_converted bigint      NOT NULL,
    holds_expired   bigint      NOT NULL,
    holds_cancelled bigint      NOT NULL,
    held_ms         bigint      NOT NULL, -- sum over ended holds
    PRIMARY KEY (organization_id, event_id, block_id, hour)
) WITH (fillfactor = 20);
