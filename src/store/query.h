/* SPDX-License-Identifier: Apache-2.0
 * What the lists of store_query() look like: per kind its columns, in the order
 * every store selects them, and one renderer that makes a row of values a JSON
 * object. A store that selects more columns than these uses them itself. */
#ifndef HOLDFAST_STORE_QUERY_H
#define HOLDFAST_STORE_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/jsonw.h"
#include "store/store.h"

enum query_type {
    QUERY_UUID, /* 16 bytes */
    QUERY_TEXT, /* UTF-8 */
    QUERY_JSON, /* text that is JSON already */
    QUERY_INT,
    QUERY_BOOL,
    QUERY_TIME,    /* milliseconds, shown as ISO 8601 */
    QUERY_RATIO,   /* 0 … 1, four decimals */
    QUERY_DECIMAL, /* one decimal */
};

/* X(name, type): the columns of each kind, in order. */
/* clang-format off */
#define QUERY_AUDIT_COLUMNS(X)                                                                      \
    X("id", INT) X("organization_id", UUID) X("actor_id", UUID) X("role", TEXT) X("action", TEXT)   \
    X("entity_type", TEXT) X("entity_id", UUID) X("seat_id", UUID) X("event_id", UUID)              \
    X("checkout_id", UUID) X("user_id", UUID) X("scenario", TEXT) X("reason", TEXT)                 \
    X("before", JSON) X("after", JSON) X("held_duration_seconds", INT) X("ip", TEXT)                \
    X("user_agent", TEXT) X("request_id", TEXT) X("created_at", TIME)
#define QUERY_CHECKOUTS_COLUMNS(X)                                                                  \
    X("checkout_id", UUID) X("event_id", UUID) X("user_id", UUID) X("status", TEXT)                 \
    X("refund", TEXT) X("reason", TEXT) X("currency", TEXT) X("total_cents", INT) X("seats", INT)   \
    X("created_at", TIME) X("expires_at", TIME) X("ended_at", TIME)
#define QUERY_OCCUPANCY_HISTORY_COLUMNS(X)                                                          \
    X("snapshot_at", TIME) X("available", INT) X("held", INT) X("sold", INT) X("blocked", INT)      \
    X("total", INT) X("occupancy_percent", DECIMAL)
#define QUERY_ANALYTICS_COLUMNS(X) /* of the holds made in that hour */                             \
    X("block", TEXT) X("block_name", TEXT) X("hour", TIME) X("holds", INT) X("converted", INT)      \
    X("expired", INT) X("cancelled", INT) X("active", INT) X("conversion", RATIO)                   \
    X("abandonment", RATIO) X("average_hold_seconds", DECIMAL)
#define QUERY_HOLD_COUNT_COLUMNS(X) X("count", INT)
#define QUERY_USERS_COLUMNS(X) X("user_id", UUID) X("disabled", BOOL) X("created_at", TIME)
#define QUERY_DEAD_LETTERS_COLUMNS(X)                                                               \
    X("id", UUID) X("organization_id", UUID) X("delivery", TEXT) X("type", TEXT) X("reason", TEXT)  \
    X("tries", INT) X("created_at", TIME) X("event", JSON)

/* clang-format on */

enum { QUERY_COLUMN_COUNT_MAX = 24 };

struct query_column {
    const char *name;
    enum query_type type;
};

struct query_value { /* which member is used follows from the column's type */
    bool is_null;
    int64_t integer;
    double real;
    const void *data; /* borrows */
    size_t size;
};

const struct query_column *query_columns(enum query_kind kind, int *count);
const char *query_name(enum query_kind kind);

/* False for what only an integer column can hold, so that a store knows how to read a cell. */
bool query_type_is_bytes(enum query_type type);
bool query_type_is_real(enum query_type type);

/* One object; values are those of query_columns(), in order. */
void query_write_row(struct jsonw *json, enum query_kind kind, const struct query_value *values);

#endif
