/* SPDX-License-Identifier: Apache-2.0
 * The follow thread: gives out the change feed. There is one writer, so the
 * order of ids is the order of commits and a place in the feed is an id; `from`
 * and `to` of a position stay 0.
 *
 * Invariants: (1) the feed has no gap: it is purged from its oldest row on, and
 * its newest row is never purged, so that an id is never given twice. (2) Rows
 * and ends are read from one snapshot, which has every batch whose on_done has
 * run. (3) A page is bounded by its number of rows; what is read is copied into
 * the caller's arena.
 *
 * It has a connection of its own: a long page makes neither writers nor lookups
 * wait. */
#include "store/sqlite/cells.h"
#include "store/sqlite/reader.h"

static int ends_read(struct connection *connection, int64_t *first, int64_t *last)
{
    sqlite3_stmt *statement = connection_statement(connection, STATEMENT_CHANGE_ENDS);
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) {
        *first = cell_int_or(statement, 0, 1);
        *last = cell_int(statement, 1);
    }
    int reset = sqlite3_reset(statement);
    return rc == SQLITE_ROW ? SQLITE_OK : reset;
}

static int rows_read(struct connection *connection, struct store_follow *follow, int32_t limit)
{
    sqlite3_stmt *statement = connection_statement(connection, STATEMENT_CHANGE_FOLLOW);
    bind_int(statement, 1, follow->after.id);
    bind_int(statement, 2, limit);
    int rc;
    follow->changes = ARENA_ARRAY(follow->arena, struct store_change, limit);
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
        struct store_change *change = &follow->changes[follow->count++];
        change->id = cell_int(statement, 0);
        change->created_ms = cell_int(statement, 1);
        change->size = (size_t)sqlite3_column_bytes(statement, 2);
        change->data = arena_copy(follow->arena, sqlite3_column_blob(statement, 2), change->size);
    }
    int reset = sqlite3_reset(statement);
    return rc == SQLITE_DONE ? SQLITE_OK : reset;
}

static int follow_answer(struct connection *connection, struct store_follow *follow)
{
    int64_t first = 1, last = 0;
    int rc = ends_read(connection, &first, &last);
    if (rc != SQLITE_OK)
        return rc;
    follow->horizon = last + 1;
    follow->lost = follow->after.id < first - 1;
    int64_t left = last - follow->after.id;
    if (follow->lost || left <= 0) {
        follow->reached = follow->lost ? 0 : follow->after.id + 1;
        return SQLITE_OK;
    }
    follow->more = left > follow->limit;
    rc = rows_read(connection, follow, follow->more ? follow->limit : (int32_t)left);
    if (rc == SQLITE_OK && follow->count > 0)
        follow->position.id = follow->changes[follow->count - 1].id;
    follow->reached = follow->position.id + 1;
    return rc;
}

static void follow_clear(struct store_follow *follow)
{
    follow->err = ERR_OK;
    follow->changes = NULL;
    follow->count = 0;
    follow->position = follow->after;
    follow->more = false;
    follow->lost = false;
    follow->horizon = 0;
    follow->reached = 0;
}

static int follow_one(struct connection *connection, struct list *question, int begun)
{
    struct store_follow *follow = CONTAINER_OF(question, struct store_follow, node);
    follow_clear(follow);
    int rc = begun == SQLITE_OK ? follow_answer(connection, follow) : begun;
    follow->err = connection_err(rc);
    return rc;
}

void *follow_main(void *argument)
{
    struct sqlite_store *sqlite = argument;
    reader_run(&(struct reader){.sqlite = sqlite,
                                .worker = &sqlite->follows,
                                .use = USE_FOLLOW,
                                .answer = follow_one,
                                .post = done_post_follows});
    return NULL;
}
