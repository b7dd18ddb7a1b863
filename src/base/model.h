/* SPDX-License-Identifier: Apache-2.0
 * The words of the system as types: states, policy, and the rows that rules
 * decide on, the hot tier keeps and stores write. No behaviour but names.
 *
 * Times are milliseconds since 1970 UTC. `held_until_ms` is always a whole
 * second, so that what a client is shown is exactly what holds.
 * Text is UTF-8, checked at the edge, NUL ended. */
#ifndef HOLDFAST_BASE_MODEL_H
#define HOLDFAST_BASE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/uuid.h"

/* Each enum has `<type>_name(value)` and `<type>_parse(text, &value)`; the
 * names are those on the wire and in the store. */
/* clang-format off */
#define SEAT_STATE_MAP(X) X(AVAILABLE, "available") X(HELD, "held") X(SOLD, "sold") X(BLOCKED, "blocked")
#define HOLD_STATE_MAP(X) X(ACTIVE, "active") X(CONVERTED, "converted") X(EXPIRED, "expired") X(CANCELLED, "cancelled")
#define END_REASON_MAP(X)                                                                          \
    X(NONE, "none") X(TTL_EXPIRED, "ttl_expired") X(USER_CANCELLED, "user_cancelled")              \
    X(PAYMENT_FAILED, "payment_failed") X(ADMIN_OVERRIDE, "admin_override")
#define CHECKOUT_STATE_MAP(X)                                                                      \
    X(PENDING_PAYMENT, "pending_payment") X(PROCESSING, "processing") X(COMPLETED, "completed")    \
    X(FAILED, "failed") X(CANCELLED, "cancelled") X(EXPIRED, "expired") X(REFUNDED, "refunded")
#define EVENT_STATE_MAP(X)                                                                         \
    X(DRAFT, "draft") X(PUBLISHED, "published") X(LIVE, "live") X(ARCHIVED, "archived") X(CANCELLED, "cancelled")
#define ROLE_MAP(X) X(BUYER, "buyer") X(AGENT, "agent") X(ADMIN, "admin") X(OPERATOR, "operator") X(SYSTEM, "system")
#define HOLD_SOURCE_MAP(X) X(WEB, "web") X(SCANNER, "scanner") X(OFFLINE_SYNC, "offline_sync")
#define REFUND_STATE_MAP(X) X(NONE, "none") X(OWED, "owed") X(DONE, "done")
#define AUDIT_ACTION_MAP(X)                                                                        \
    X(SEAT_RESERVED, "seat_reserved") X(SEAT_RESERVE_FAILED, "seat_reserve_failed")                \
    X(SEAT_RELEASED, "seat_released") X(SEAT_HOLD_EXPIRED, "seat_hold_expired")                    \
    X(HOLD_EXTENDED, "hold_extended") X(CHECKOUT_STARTED, "checkout_started")                      \
    X(CHECKOUT_PAYING, "checkout_paying") X(CHECKOUT_COMPLETED, "checkout_completed")              \
    X(CHECKOUT_CANCELLED, "checkout_cancelled") X(CHECKOUT_EXPIRED, "checkout_expired")            \
    X(CHECKOUT_FAILED, "checkout_failed") X(CHECKOUT_REFUNDED, "checkout_refunded")                \
    X(PAYMENT_LATE, "payment_late") X(SEAT_SOLD, "seat_sold") X(SEAT_BLOCKED, "seat_blocked")                                \
    X(SEAT_UNBLOCKED, "seat_unblocked") X(EVENT_CHANGED, "event_changed")                          \
    X(LAYOUT_CHANGED, "layout_changed") X(BLOCK_CHANGED, "block_changed")                          \
    X(ORGANIZATION_CREATED, "organization_created") X(USER_CHANGED, "user_changed")                \
    X(REGISTRY_RECONCILED, "registry_reconciled")
/* clang-format on */

#define MODEL_ENUM_SEAT_STATE(name, text) SEAT_##name,
enum seat_state { SEAT_STATE_MAP(MODEL_ENUM_SEAT_STATE) SEAT_STATE_COUNT };
#define MODEL_ENUM_HOLD_STATE(name, text) HOLD_##name,
enum hold_state { HOLD_STATE_MAP(MODEL_ENUM_HOLD_STATE) HOLD_STATE_COUNT };
#define MODEL_ENUM_END_REASON(name, text) END_##name,
enum end_reason { END_REASON_MAP(MODEL_ENUM_END_REASON) END_REASON_COUNT };
#define MODEL_ENUM_CHECKOUT_STATE(name, text) CHECKOUT_##name,
enum checkout_state { CHECKOUT_STATE_MAP(MODEL_ENUM_CHECKOUT_STATE) CHECKOUT_STATE_COUNT };
#define MODEL_ENUM_EVENT_STATE(name, text) EVENT_##name,
enum event_state { EVENT_STATE_MAP(MODEL_ENUM_EVENT_STATE) EVENT_STATE_COUNT };
#define MODEL_ENUM_ROLE(name, text) ROLE_##name,
enum role { ROLE_MAP(MODEL_ENUM_ROLE) ROLE_COUNT };
#define MODEL_ENUM_HOLD_SOURCE(name, text) SOURCE_##name,
enum hold_source { HOLD_SOURCE_MAP(MODEL_ENUM_HOLD_SOURCE) HOLD_SOURCE_COUNT };
#define MODEL_ENUM_REFUND_STATE(name, text) REFUND_##name,
enum refund_state { REFUND_STATE_MAP(MODEL_ENUM_REFUND_STATE) REFUND_STATE_COUNT };
#define MODEL_ENUM_AUDIT_ACTION(name, text) AUDIT_##name,
enum audit_action { AUDIT_ACTION_MAP(MODEL_ENUM_AUDIT_ACTION) AUDIT_ACTION_COUNT };

#define MODEL_NAMES(type)                                                                                    \
    const char *type##_name(enum type value);                                                                \
    bool type##_parse(const char *text, enum type *out)
MODEL_NAMES(seat_state);
MODEL_NAMES(hold_state);
MODEL_NAMES(end_reason);
MODEL_NAMES(checkout_state);
MODEL_NAMES(event_state);
MODEL_NAMES(role);
MODEL_NAMES(hold_source);
MODEL_NAMES(refund_state);
MODEL_NAMES(audit_action);
#undef MODEL_NAMES

/* Per event. X: field, default, least, most. */
#define POLICY_MAP(X)                                                                                        \
    X(hold_ttl_seconds, 300, 1, 3600)                                                                        \
    X(checkout_extension_seconds, 300, 0, 3600)                                                              \
    X(hold_max_seconds, 1200, 1, 86400)                                                                      \
    X(release_grace_seconds, 10, 0, 60)                                                                      \
    X(payment_max_seconds, 900, 1, 86400)                                                                    \
    X(max_seats_per_user, 10, 0, 100000)                                                                     \
    X(rate_limit_holds, 10, 0, 100000)                                                                       \
    X(rate_limit_window_seconds, 300, 1, 86400)                                                              \
    X(forbid_single_seat_gaps, 0, 0, 1)

struct policy {
#define POLICY_FIELD(name, initial, least, most) int32_t name;
    POLICY_MAP(POLICY_FIELD)
#undef POLICY_FIELD
};

struct policy policy_default(void);
bool policy_valid(const struct policy *policy); /* each in range, and hold_max ≥ ttl */

struct org_row {
    struct uuid id;
    const char *name;
    int64_t created_ms;
};

struct user_row { /* a user belongs to an organization: the key is both ids */
    struct uuid org_id;
    struct uuid id;
    bool disabled;
    int64_t created_ms;
};

struct event_row {
    struct uuid org_id;
    struct uuid id;
    const char *name;
    enum event_state state;
    int64_t sale_start_ms; /* TIME_NONE: always open */
    int64_t sale_end_ms;   /* TIME_MAX: never closes */
    char currency[4];      /* ISO 4217 */
    struct policy policy;
    int64_t created_ms;
    int64_t updated_ms;
    int32_t version; /* from 1; every change of the event, its blocks or its layout adds one */
};

struct block_row {
    struct uuid org_id;
    struct uuid event_id;
    struct uuid id;
    char section[4]; /* A … ZZZ */
    int32_t subsection;
    int32_t ordinal; /* in layout order, from 0 */
    const char *name;
    int32_t capacity; /* at most the number of its seats */
    int64_t price_cents;
};

/* What a seat is now. Its place (block, row, number) never changes. */
struct seat_row {
    struct uuid org_id;
    struct uuid event_id;
    struct uuid id;
    int32_t index;   /* in layout order, from 0: places of an event are contiguous */
    int32_t version; /* from 1; every change adds one */
    enum seat_state state;
    struct uuid hold_id;   /* while held */
    struct uuid ticket_id; /* while sold */
    int64_t held_until_ms; /* while held */
    int64_t locked_ms;     /* while held: when the hold was made */
};

struct hold_row {
    struct uuid org_id;
    struct uuid event_id;
    struct uuid id;
    struct uuid seat_id;
    struct uuid user_id;
    struct uuid checkout_id; /* nil: in none */
    const char *cart_token;
    enum hold_state state;
    enum end_reason reason; /* END_NONE while active or converted */
    enum hold_source source;
    int64_t price_cents;
    int64_t created_ms;
    int64_t held_until_ms;
    int64_t ended_ms;  /* expired_at, converted_at or cancelled_at; 0 while active */
    const char *notes; /* or NULL */
};

struct checkout_row {
    struct uuid org_id;
    struct uuid event_id;
    struct uuid id;
    struct uuid user_id;
    enum checkout_state state;
    enum refund_state refund;
    enum end_reason reason;
    char currency[4];
    int64_t total_cents;
    int64_t created_ms;
    int64_t expires_ms;          /* the earliest held_until of its holds */
    int64_t paying_since_ms;     /* while processing; 0 otherwise */
    int64_t payment_deadline_ms; /* while processing */
    int64_t ended_ms;
    const char *payment_token; /* while processing, and after; or NULL */
    const char *notes;         /* or NULL */
    int32_t version;           /* from 1; every change adds one */
    struct uuid payer;         /* the node that asks the gateway; nil: none does … */
    int64_t payer_until_ms;    /* … and how long the others leave it alone */
};

struct ticket_row {
    struct uuid org_id;
    struct uuid event_id;
    struct uuid id;
    struct uuid seat_id;
    struct uuid hold_id;
    struct uuid checkout_id;
    struct uuid user_id;
    int64_t price_cents;
    char code[33]; /* unguessable, for a QR */
    int64_t created_ms;
    int64_t refunded_ms; /* 0: valid */
};

/* A place in the change feed, as the store counts; all zeros: its beginning. Rows are given out in windows: those whose
 * number is in [from, to) and whose id is above `id`, in order of ids; `to` 0: the next window is not chosen yet. */
struct feed_position {
    int64_t from;
    int64_t to;
    int64_t id;
};

/* Whoever delivers the change feed to others: how far it got, and which node does it. */
struct delivery_row {
    const char *name; /* "webhook", … */
    struct feed_position position;
    struct uuid node; /* who delivers now … */
    int64_t lease_until_ms;
    int32_t version; /* from 1; every change adds one */
};

/* Who decides the commands of one partition of the log, and how far they are done. */
struct order_row {
    const char *topic;
    int32_t partition;
    int64_t epoch;       /* from 1; every change of hands adds one */
    int64_t next_offset; /* everything before it is done */
    struct uuid node;    /* whose it is */
    int64_t claimed_ms;
};

/* A domain event that was given up. */
struct dead_letter_row {
    struct uuid org_id;
    struct uuid id; /* the event's */
    const char *delivery;
    const char *type; /* "SeatReserved", … */
    const char *body; /* the event itself, JSON */
    const char *reason;
    int32_t try_count;
    int64_t created_ms;
};

struct audit_row {
    struct uuid org_id;
    struct uuid actor_id; /* nil for the system */
    enum role role;
    enum audit_action action;
    const char *entity_type; /* "SeatHold", "Seat", "Checkout", "Event", … */
    struct uuid entity_id;
    struct uuid seat_id;
    struct uuid event_id;
    struct uuid checkout_id;
    struct uuid user_id;           /* whose hold or checkout it is */
    const char *scenario;          /* "A" … "D" of a release, or NULL */
    const char *reason;            /* an end_reason or error code, or NULL */
    const char *before;            /* JSON object, or NULL */
    const char *after;             /* JSON object, or NULL */
    int64_t held_duration_seconds; /* −1: not about the end of a hold */
    const char *ip;                /* or NULL */
    const char *user_agent;        /* or NULL */
    const char *request_id;        /* or NULL */
    int64_t created_ms;
};

#endif
