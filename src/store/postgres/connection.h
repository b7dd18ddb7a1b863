/* SPDX-License-Identifier: Apache-2.0
 * One connection to the server, its prepared statements, and what its errors
 * mean. Statements are queued with pg_send() and answered together by
 * pg_receive(): one round trip, whatever their number. */
#ifndef HOLDFAST_STORE_POSTGRES_CONNECTION_H
#define HOLDFAST_STORE_POSTGRES_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/postgres/params.h"

struct pg_conn;   /* libpq's PGconn */
struct pg_result; /* libpq's PGresult */

/* What a connection is for: which statements it prepares and how its session is set. */
enum {
    PG_USE_WRITE = 1 << 0,
    PG_USE_LOOKUP = 1 << 1,
    PG_USE_QUERY = 1 << 2,
    PG_USE_LOAD = 1 << 3,
    PG_USE_FOLLOW = 1 << 4,
    PG_USE_BARE = 1 << 5, /* prepares nothing: the tables may not be there yet */
};

/* X(identifier, file under sql/ without .sql, used by). */
/* clang-format off */
#define PG_STATEMENT_MAP(X) \
    X(BEGIN, "begin", PG_USE_WRITE)                                       \
    X(COMMIT, "commit", PG_USE_WRITE)                                     \
    X(ROLLBACK, "rollback", PG_USE_WRITE)                                 \
    X(SAVEPOINT, "savepoint", PG_USE_WRITE)                               \
    X(SAVEPOINT_RELEASE, "savepoint_release", PG_USE_WRITE)               \
    X(SAVEPOINT_ROLLBACK, "savepoint_rollback", PG_USE_WRITE)             \
    X(NO_TIME_LIMIT, "no_time_limit", PG_USE_WRITE)                       \
    X(BATCH_INSERT, "batch_insert", PG_USE_WRITE)                         \
    X(BATCH_RESOLVE, "batch_resolve", PG_USE_WRITE)                       \
    X(BATCH_PROBE, "batch_probe", PG_USE_WRITE)                           \
    X(BATCH_PURGE, "batch_purge", PG_USE_WRITE)                           \
    X(KEY_PURGE, "key_purge", PG_USE_WRITE)                               \
    X(FEED_RESTART, "feed_restart", PG_USE_WRITE)                         \
    X(CHANGE_PURGE, "change_purge", PG_USE_WRITE)                         \
    X(ORDER_GATE, "order_gate", PG_USE_WRITE)                             \
    X(ORDER_SHARE, "order_share", PG_USE_WRITE)                           \
    X(ORDER_LOCK, "order_lock", PG_USE_WRITE)                             \
    X(ORDER_INSERT, "order_insert", PG_USE_WRITE)                         \
    X(ORDER_GIVE_BACK, "order_give_back", PG_USE_WRITE)                   \
    X(ORDER_UPDATE, "order_update", PG_USE_WRITE)                         \
    X(ORDER_NOTE, "order_note", PG_USE_WRITE)                             \
    X(KEY_INSERT, "key_insert", PG_USE_WRITE)                             \
    X(KEY_TAKE, "key_take", PG_USE_WRITE)                                 \
    X(KEY_GIVE_BACK, "key_give_back", PG_USE_WRITE)                       \
    X(USER_SEEN, "user_seen", PG_USE_WRITE)                               \
    X(USER_GIVE_BACK, "user_give_back", PG_USE_WRITE)                     \
    X(EVENT_GATE_SHARE, "event_gate_share", PG_USE_WRITE)                 \
    X(EVENT_GATE_LOCK, "event_gate_lock", PG_USE_WRITE)                   \
    X(EVENT_SHARE, "event_share", PG_USE_WRITE)                           \
    X(EVENT_LOCK, "event_lock", PG_USE_WRITE)                             \
    X(LAYOUT_UNHELD, "layout_unheld", PG_USE_WRITE)                       \
    X(BLOCK_LOCK, "block_lock", PG_USE_WRITE)                             \
    X(BLOCK_ROOM, "block_room", PG_USE_WRITE)                             \
    X(CHECKOUT_LOCK, "checkout_lock", PG_USE_WRITE)                       \
    X(DELIVERY_LOCK, "delivery_lock", PG_USE_WRITE)                       \
    X(DELIVERY_INSERT, "delivery_insert", PG_USE_WRITE)                   \
    X(DELIVERY_GIVE_BACK, "delivery_give_back", PG_USE_WRITE)             \
    X(DELIVERY_UPDATE, "delivery_update", PG_USE_WRITE)                   \
    X(DEAD_LETTER_INSERT, "dead_letter_insert", PG_USE_WRITE)             \
    X(SEAT_LOCK, "seat_lock", PG_USE_WRITE)                               \
    X(SEAT_CURRENT, "seat_current", PG_USE_WRITE)                         \
    X(SEAT_SET, "seat_set", PG_USE_WRITE)                                 \
    X(ORGANIZATION_INSERT, "organization_insert", PG_USE_WRITE)           \
    X(USER_WRITE, "user_write", PG_USE_WRITE)                             \
    X(EVENT_INSERT, "event_insert", PG_USE_WRITE)                         \
    X(EVENT_UPDATE, "event_update", PG_USE_WRITE)                         \
    X(BLOCK_UPDATE, "block_update", PG_USE_WRITE)                         \
    X(BLOCK_INSERT, "block_insert", PG_USE_WRITE)                         \
    X(BLOCK_DELETE_ALL, "block_delete_all", PG_USE_WRITE)                 \
    X(SEAT_DELETE_ALL, "seat_delete_all", PG_USE_WRITE)                   \
    X(STATS_DELETE_ALL, "stats_delete_all", PG_USE_WRITE)                 \
    X(LAYOUT_WRITE, "layout_write", PG_USE_WRITE)                         \
    X(SEAT_INSERT, "seat_insert", PG_USE_WRITE)                           \
    X(STATS_INSERT, "stats_insert", PG_USE_WRITE)                         \
    X(CHECKOUT_INSERT, "checkout_insert", PG_USE_WRITE)                   \
    X(CHECKOUT_UPDATE, "checkout_update", PG_USE_WRITE)                   \
    X(HOLD_INSERT, "hold_insert", PG_USE_WRITE)                           \
    X(HOLD_UPDATE, "hold_update", PG_USE_WRITE)                           \
    X(HOLD_END, "hold_end", PG_USE_WRITE)                                 \
    X(TICKET_INSERT, "ticket_insert", PG_USE_WRITE)                       \
    X(TICKET_UPDATE, "ticket_update", PG_USE_WRITE)                       \
    X(AUDIT_INSERT, "audit_insert", PG_USE_WRITE)                         \
    X(SNAPSHOT_WRITE, "snapshot_write", PG_USE_WRITE)                     \
    X(CHANGE_INSERT, "change_insert", PG_USE_WRITE)                       \
    X(STATS_UPDATE, "stats_update", PG_USE_WRITE)                         \
    X(HOURS_WRITE, "hours_write", PG_USE_WRITE)                           \
    X(LOOKUP_CHECKOUT, "lookup_checkout", PG_USE_LOOKUP)                  \
    X(LOOKUP_CHECKOUT_HOLDS, "lookup_checkout_holds", PG_USE_LOOKUP)      \
    X(LOOKUP_CHECKOUT_TICKETS, "lookup_checkout_tickets", PG_USE_LOOKUP)  \
    X(LOOKUP_DELIVERY, "lookup_delivery", PG_USE_LOOKUP)                  \
    X(LOOKUP_DUE_HOLDS, "lookup_due_holds", PG_USE_LOOKUP)                \
    X(LOOKUP_EVENT, "lookup_event", PG_USE_LOOKUP)                        \
    X(LOOKUP_EVENT_SEATS, "lookup_event_seats", PG_USE_LOOKUP)            \
    X(LOOKUP_HOLD, "lookup_hold", PG_USE_LOOKUP)                          \
    X(LOOKUP_KEY, "lookup_key", PG_USE_LOOKUP)                            \
    X(LOOKUP_ORDER, "lookup_order", PG_USE_LOOKUP)                        \
    X(LOOKUP_USER, "lookup_user", PG_USE_LOOKUP)                          \
    X(CHANGE_FOLLOW, "change_follow", PG_USE_FOLLOW)                      \
    X(QUERY_ANALYTICS, "query_analytics", PG_USE_QUERY)                   \
    X(QUERY_AUDIT, "query_audit", PG_USE_QUERY)                           \
    X(QUERY_AUDIT_LAST, "query_audit_last", PG_USE_QUERY)                 \
    X(QUERY_CHECKOUTS, "query_checkouts", PG_USE_QUERY)                   \
    X(QUERY_CHECKOUTS_LAST, "query_checkouts_last", PG_USE_QUERY)         \
    X(QUERY_CHECKOUTS_OF_USER, "query_checkouts_of_user", PG_USE_QUERY)   \
    X(QUERY_DEAD_LETTERS, "query_dead_letters", PG_USE_QUERY)             \
    X(QUERY_DEAD_LETTERS_LAST, "query_dead_letters_last", PG_USE_QUERY)   \
    X(QUERY_HOLD_COUNT, "query_hold_count", PG_USE_QUERY)                 \
    X(QUERY_OCCUPANCY_HISTORY, "query_occupancy_history", PG_USE_QUERY)   \
    X(QUERY_USERS, "query_users", PG_USE_QUERY)                           \
    X(LOAD_BLOCKS, "load_blocks", PG_USE_LOAD | PG_USE_LOOKUP)            \
    X(LOAD_CHECKOUTS, "load_checkouts", PG_USE_LOAD)                      \
    X(LOAD_EVENTS, "load_events", PG_USE_LOAD)                            \
    X(LOAD_HOLDS, "load_holds", PG_USE_LOAD)                              \
    X(LOAD_HOLDS_EVER, "load_holds_ever", PG_USE_LOAD | PG_USE_LOOKUP)    \
    X(LOAD_LAYOUT, "load_layout", PG_USE_LOAD | PG_USE_LOOKUP)            \
    X(LOAD_ORGANIZATIONS, "load_organizations", PG_USE_LOAD)              \
    X(LOAD_POSITION, "load_position", PG_USE_LOAD)                        \
    X(LOAD_SEATS, "load_seats", PG_USE_LOAD)                              \
    X(LOAD_USERS, "load_users", PG_USE_LOAD)                              \
    X(BEGIN_READ, "begin_read", PG_USE_LOAD)
/* clang-format on */

enum pg_statement {
#define PG_STATEMENT_ENUM(id, file, use) PG_##id,
    PG_STATEMENT_MAP(PG_STATEMENT_ENUM)
#undef PG_STATEMENT_ENUM
        PG_STATEMENT_COUNT
};

enum {
    PG_PIPELINE_COUNT_MAX = 96, /* statements in one round trip */
    PG_WHY_SIZE = 512,
};

/* What an error means for whoever asked. */
enum pg_trouble {
    PG_NONE,
    PG_BAD_DATA, /* this row cannot be written; others can */
    PG_AGAIN,    /* rolled back to let somebody else go on: the same may succeed now */
    PG_BUSY,     /* somebody has a lock for too long; nothing is wrong with the server */
    PG_OUTSIDE,  /* disk full, read-only, too slow: nothing wrong with the data; it may pass */
    PG_LOST,     /* the connection is gone, or an answer did not come in time */
    PG_OURS,     /* a wrong statement, a missing right */
};

struct pg_connection {
    struct pg_conn *link; /* NULL: closed */
    int64_t deadline_us;  /* monotonic; an answer that is not there by then counts as lost; 0: none */
    int queue_count;
    bool broken;           /* sending failed */
    char why[PG_WHY_SIZE]; /* the last trouble, in one line */
};

struct pg_reply {
    int count;
    int failed; /* number of the first statement that failed, or −1 */
    struct pg_result *results[PG_PIPELINE_COUNT_MAX];
};

struct pg_server {
    int64_t utc_minus_monotonic_ms; /* the server's clock */
};

/* A connection that failed to open is closed. A server that may lose what it has confirmed is refused. */
enum err pg_connection_open(struct pg_connection *connection, const char *url, unsigned use,
                            struct pg_server *server, char *why, size_t why_size) MUST_CHECK;
void pg_connection_close(struct pg_connection *connection); /* may be closed already */

/* Queues a statement; its number in the reply. params may be NULL. */
int pg_send(struct pg_connection *connection, enum pg_statement statement, struct pg_params *params);
/* Waits for the answers to all that was queued. Statements after one that fails are not run. */
enum pg_trouble pg_receive(struct pg_connection *connection, struct pg_reply *reply) MUST_CHECK;
void pg_reply_clear(struct pg_reply *reply);

/* Runs one statement and calls back per row as it arrives; an error of the callback ends it. */
enum err pg_each(struct pg_connection *connection, enum pg_statement statement, struct pg_params *params,
                 enum err (*on_row)(void *context, struct pg_result *result), void *context) MUST_CHECK;

/* Text of any kind, outside of the pipeline: migrations, claims. The result is the caller's, NULL on error. */
struct pg_result *pg_execute(struct pg_connection *connection, const char *text);

enum err pg_err(enum pg_trouble trouble); /* for reads */

#endif
