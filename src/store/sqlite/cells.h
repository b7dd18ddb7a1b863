/* SPDX-License-Identifier: Apache-2.0
 * Values between our rows and SQLite's: nil ids, NULL text and absent times
 * are NULL in the file. Text and blobs are bound without a copy: they must live
 * until the statement was run. */
#ifndef HOLDFAST_STORE_SQLITE_CELLS_H
#define HOLDFAST_STORE_SQLITE_CELLS_H

#include <sqlite3.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/model.h"

/* Binding can fail only for a wrong index, which every test of the statement would show. */

static inline void bind_int(sqlite3_stmt *statement, int at, int64_t value)
{
    (void)sqlite3_bind_int64(statement, at, value);
}

static inline void bind_null(sqlite3_stmt *statement, int at)
{
    (void)sqlite3_bind_null(statement, at);
}

static inline void bind_int_unless(sqlite3_stmt *statement, int at, int64_t value, int64_t none)
{
    if (value == none)
        bind_null(statement, at);
    else
        bind_int(statement, at, value);
}

static inline void bind_time(sqlite3_stmt *statement, int at, int64_t time_ms) /* 0 is NULL */
{
    bind_int_unless(statement, at, time_ms, 0);
}

static inline void bind_blob(sqlite3_stmt *statement, int at, const void *data, size_t size)
{
    (void)sqlite3_bind_blob64(statement, at, data, size, SQLITE_STATIC);
}

static inline void bind_uuid(sqlite3_stmt *statement, int at, const struct uuid *uuid) /* nil is NULL */
{
    if (uuid_is_nil(uuid))
        bind_null(statement, at);
    else
        bind_blob(statement, at, uuid->bytes, sizeof(uuid->bytes));
}

static inline void bind_text(sqlite3_stmt *statement, int at, const char *text) /* NULL is NULL */
{
    (void)sqlite3_bind_text(statement, at, text, -1, SQLITE_STATIC);
}

static inline int64_t cell_int(sqlite3_stmt *statement, int at) /* NULL is 0 */
{
    return sqlite3_column_int64(statement, at);
}

static inline int64_t cell_int_or(sqlite3_stmt *statement, int at, int64_t none)
{
    return sqlite3_column_type(statement, at) == SQLITE_NULL ? none : sqlite3_column_int64(statement, at);
}

static inline struct uuid cell_uuid(sqlite3_stmt *statement, int at) /* NULL, or not an id: nil */
{
    struct uuid uuid = {{0}};
    const void *data = sqlite3_column_blob(statement, at);
    if (data != NULL && sqlite3_column_bytes(statement, at) == (int)sizeof(uuid.bytes))
        memcpy(uuid.bytes, data, sizeof(uuid.bytes));
    return uuid;
}

static inline const char *cell_text(sqlite3_stmt *statement, int at) /* borrows until the next step */
{
    return (const char *)sqlite3_column_text(statement, at);
}

/* Copies text of at most 3 characters. */
static inline void cell_code(sqlite3_stmt *statement, int at, char out[4])
{
    const char *text = cell_text(statement, at);
    memset(out, 0, 4);
    if (text != NULL)
        strncpy(out, text, 3);
}

/* Rows out of the statements that select them. False: a state that does not exist. Text is
 * copied into the arena, or borrowed until the next step if it is NULL. */
bool row_read_seat(sqlite3_stmt *statement, int32_t index, struct seat_row *out);
bool row_read_hold(sqlite3_stmt *statement, struct arena *arena, struct hold_row *out);
bool row_read_checkout(sqlite3_stmt *statement, struct arena *arena, struct checkout_row *out);
bool row_read_ticket(sqlite3_stmt *statement, struct ticket_row *out);
bool row_read_event(sqlite3_stmt *statement, struct arena *arena, struct event_row *out);

#endif
