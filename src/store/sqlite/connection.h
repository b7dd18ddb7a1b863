/* SPDX-License-Identifier: Apache-2.0
 * One connection to the file, its prepared statements, and what its errors mean. */
#ifndef HOLDFAST_STORE_SQLITE_CONNECTION_H
#define HOLDFAST_STORE_SQLITE_CONNECTION_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Which statements a connection prepares. */
enum {
    USE_WRITE = 1 << 0,
    USE_LOOKUP = 1 << 1,
    USE_QUERY = 1 << 2,
    USE_LOAD = 1 << 3,
    USE_FOLLOW = 1 << 4,
};
#define USE_READ (USE_LOOKUP | USE_QUERY | USE_LOAD | USE_FOLLOW)

/* X(identifier, file under sql/ without .sql, used by). */
/* clang-format off */
#define STATEMENT_MAP(X)                                            \
    X(BEGIN_WRITE, "begin_write", USE_WRITE)                        \
    X(BEGIN_READ, "begin_read", USE_READ)                           \
    X(COMMIT, "commit", USE_WRITE | USE_READ)                       \
    X(ROLLBACK, "rollback", USE_WRITE | USE_READ)                   \
    X(SAVEPOINT, "savepoint", USE_WRITE)                            \
    X(SAVEPOINT_RELEASE, "savepoint_release", USE_WRITE)            \
    X(SAVEPOINT_ROLLBACK, "savepoint_rollback", USE_WRITE)          \
    X(BATCH_INSERT, "batch_insert", USE_WRITE)                      \
    X(BATCH_PROBE, "batch_probe", USE_WRITE)                        \
    X(BATCH_PURGE, "batch_purge", USE_WRITE)                        \
    X(KEY_PURGE, "key_purge", USE_WRITE)                            \
    X(CHANGE_PURGE, "change_purge", USE_WRITE)                      \
    X(KEY_INSERT, "key_insert", USE_WRITE)                          \
    X(KEY_DELETE_OLD, "key_delete_old", USE_WRITE)                  \
    X(SEAT_UPDATE, "seat_update", USE_WRITE)                        \
    X(SEAT_AT, "seat_at", USE_WRITE)                                \
    X(CHECKOUT_VERSION, "checkout_version", USE_WRITE)              \
    X(EVENT_VERSION, "event_version", USE_WRITE)                    \
    X(DELIVERY_VERSION, "delivery_version", USE_WRITE)              \
    X(BLOCK_ROOM, "block_room", USE_WRITE)                          \
    X(ORDER_EPOCH, "order_epoch", USE_WRITE)                        \
    X(ORDER_CLAIM, "order_claim", USE_WRITE)                        \
    X(ORDER_NOTE, "order_note", USE_WRITE)                          \
    X(HOLD_INSERT, "hold_insert", USE_WRITE)                        \
    X(HOLD_UPDATE, "hold_update", USE_WRITE)                        \
    X(HOLD_END, "hold_end", USE_WRITE)                              \
    X(CHECKOUT_INSERT, "checkout_insert", USE_WRITE)                \
    X(CHECKOUT_UPDATE, "checkout_update", USE_WRITE)                \
    X(TICKET_INSERT, "ticket_insert", USE_WRITE)                    \
    X(TICKET_UPDATE, "ticket_update", USE_WRITE)                    \
    X(AUDIT_INSERT, "audit_insert", USE_WRITE)                      \
    X(USER_WRITE, "user_write", USE_WRITE)                          \
    X(USER_SEEN, "user_seen", USE_WRITE)                            \
    X(ORGANIZATION_INSERT, "organization_insert", USE_WRITE)        \
    X(EVENT_INSERT, "event_insert", USE_WRITE)                      \
    X(EVENT_UPDATE, "event_update", USE_WRITE)                      \
    X(BLOCK_UPDATE, "block_update", USE_WRITE)                      \
    X(BLOCK_INSERT, "block_insert", USE_WRITE)                      \
    X(BLOCK_DELETE_ALL, "block_delete_all", USE_WRITE)              \
    X(SEAT_INSERT, "seat_insert", USE_WRITE)                        \
    X(SEAT_DELETE_ALL, "seat_delete_all", USE_WRITE)                \
    X(SEAT_PLACE_NEXT, "seat_place_next", USE_WRITE)                \
    X(LAYOUT_AT, "layout_at", USE_WRITE | USE_LOOKUP | USE_LOAD)    \
    X(LAYOUT_WRITE, "layout_write", USE_WRITE)                      \
    X(SNAPSHOT_WRITE, "snapshot_write", USE_WRITE)                  \
    X(DELIVERY_WRITE, "delivery_write", USE_WRITE)                  \
    X(DEAD_LETTER_INSERT, "dead_letter_insert", USE_WRITE)          \
    X(CHANGE_INSERT, "change_insert", USE_WRITE)                    \
    X(STATS_INSERT, "stats_insert", USE_WRITE)                      \
    X(STATS_DELETE_ALL, "stats_delete_all", USE_WRITE)              \
    X(STATS_UPDATE, "stats_update", USE_WRITE)                      \
    X(HOURS_WRITE, "hours_write", USE_WRITE)                        \
    X(LOOKUP_KEY, "lookup_key", USE_LOOKUP)                         \
    X(LOOKUP_HOLD, "lookup_hold", USE_LOOKUP)                       \
    X(LOOKUP_DUE_HOLDS, "lookup_due_holds", USE_LOOKUP)             \
    X(LOOKUP_CHECKOUT, "lookup_checkout", USE_LOOKUP)               \
    X(LOOKUP_CHECKOUT_HOLDS, "lookup_checkout_holds", USE_LOOKUP)   \
    X(LOOKUP_CHECKOUT_TICKETS, "lookup_checkout_tickets", USE_LOOKUP) \
    X(LOOKUP_EVENT, "lookup_event", USE_LOOKUP)                     \
    X(LOOKUP_EVENT_SEATS, "lookup_event_seats", USE_LOOKUP)         \
    X(LOOKUP_USER, "lookup_user", USE_LOOKUP)                       \
    X(LOOKUP_DELIVERY, "lookup_delivery", USE_LOOKUP)               \
    X(LOOKUP_ORDER, "lookup_order", USE_LOOKUP)                     \
    X(CHANGE_ENDS, "change_ends", USE_FOLLOW | USE_LOAD)            \
    X(CHANGE_FOLLOW, "change_follow", USE_FOLLOW)                   \
    X(QUERY_AUDIT, "query_audit", USE_QUERY)                        \
    X(QUERY_AUDIT_LAST, "query_audit_last", USE_QUERY)              \
    X(QUERY_CHECKOUTS, "query_checkouts", USE_QUERY)                \
    X(QUERY_CHECKOUTS_LAST, "query_checkouts_last", USE_QUERY)      \
    X(QUERY_CHECKOUTS_OF_USER, "query_checkouts_of_user", USE_QUERY) \
    X(QUERY_OCCUPANCY_HISTORY, "query_occupancy_history", USE_QUERY) \
    X(QUERY_ANALYTICS, "query_analytics", USE_QUERY)                \
    X(QUERY_HOLD_COUNT, "query_hold_count", USE_QUERY)              \
    X(QUERY_USERS, "query_users", USE_QUERY)                        \
    X(QUERY_DEAD_LETTERS, "query_dead_letters", USE_QUERY)          \
    X(QUERY_DEAD_LETTERS_LAST, "query_dead_letters_last", USE_QUERY)\
    X(LOAD_ORGANIZATIONS, "load_organizations", USE_LOAD)           \
    X(LOAD_USERS, "load_users", USE_LOAD)                           \
    X(LOAD_EVENTS, "load_events", USE_LOAD)                         \
    X(LOAD_BLOCKS, "load_blocks", USE_LOOKUP | USE_LOAD)            \
    X(HOLDS_EVER, "holds_ever", USE_WRITE | USE_LOOKUP | USE_LOAD)  \
    X(LOAD_SEATS, "load_seats", USE_LOAD)                           \
    X(LOAD_HOLDS, "load_holds", USE_LOAD)                           \
    X(LOAD_CHECKOUTS, "load_checkouts", USE_LOAD)
/* clang-format on */

enum statement {
#define STATEMENT_ENUM(id, file, use) STATEMENT_##id,
    STATEMENT_MAP(STATEMENT_ENUM)
#undef STATEMENT_ENUM
        STATEMENT_COUNT
};

enum { BUSY_TIMEOUT_MS = 1000 }; /* a person's shell may hold the write lock for a moment */

struct connection {
    sqlite3 *db; /* NULL: closed */
    sqlite3_stmt *statements[STATEMENT_COUNT];
    int64_t deadline_us; /* monotonic; statements are interrupted after it; 0: none */
};

/* Opens without writing to the file, and prepares nothing. A connection that failed to open is closed. */
enum err connection_open(struct connection *connection, const char *path, bool read_only, char *why,
                         size_t why_size) MUST_CHECK;
/* Write-ahead log and full synchronization: before the first write. */
enum err connection_make_durable(struct connection *connection, const char *path, char *why,
                                 size_t why_size) MUST_CHECK;
enum err connection_prepare(struct connection *connection, unsigned use, char *why,
                            size_t why_size) MUST_CHECK;
void connection_close(struct connection *connection); /* may be closed already */

/* A statement ready to be bound. */
sqlite3_stmt *connection_statement(struct connection *connection, enum statement statement);
/* Steps it to its end and resets it: SQLITE_OK or an error. */
int connection_run(struct connection *connection, enum statement statement) MUST_CHECK;
int connection_changes(struct connection *connection);   /* rows changed by the last one */
void connection_rollback(struct connection *connection); /* if a transaction is open */

/* What an SQLite result means for whoever asked. */
enum trouble {
    TROUBLE_NONE,
    TROUBLE_DATA,    /* this row cannot be written; others can */
    TROUBLE_OUTSIDE, /* disk full, read-only, locked, too slow: nothing wrong with the data; it may pass */
    TROUBLE_FSYNC,   /* what was written may or may not be there */
    TROUBLE_CORRUPT,
    TROUBLE_OURS, /* a wrong statement */
};
enum trouble connection_trouble(int result);
enum err connection_err(int result); /* for reads, and for opening */

#endif
