/* SPDX-License-Identifier: Apache-2.0
 * The follow thread: reads the change feed for the lane.
 *
 * A change row bears the number of its transaction. Numbers are given out in
 * order, transactions end in any; but below the oldest that is still open all
 * have ended, so the feed is read up to there and goes on from there (the view
 * `feed` in the migrations says what is counted as open). A window
 * is as many transactions as the caller wants changes, so it is always read
 * whole: `to` and `id` of a position stay 0.
 *
 * Invariants: (1) every change is in exactly one window. (2) A seat's changes
 * come in order: whoever writes a seat must know its version, so their
 * transaction began, and was numbered, after the one before had committed;
 * within a window ids say the same. (3) What was purged, or a position that
 * this server never gave out, is said to be lost, never skipped.
 *
 * A node's transaction that stays open holds the feed back; they are limited to
 * about 2 s. */
#include <libpq-fe.h>
#include <string.h>

#include "base/clock.h"
#include "store/postgres/postgres_int.h"
#include "store/postgres/rows.h"

enum { FOLLOW_MS_MAX = 10000 };

enum { COLUMN_UNTIL, COLUMN_HORIZON, COLUMN_FLOOR, COLUMN_MORE, COLUMN_ID, COLUMN_TIME, COLUMN_DATA };

static void follow_clear(struct store_follow *follow, enum err err)
{
    follow->err = err;
    follow->changes = NULL;
    follow->count = 0;
    follow->position = follow->after;
    follow->more = false;
    follow->lost = false;
    follow->horizon = 0;
    follow->reached = 0;
}

/* There is always a row; if it has no id it only says how things stand. */
static void follow_read(struct store_follow *follow, const PGresult *rows)
{
    int64_t floor = pg_cell_int(rows, 0, COLUMN_FLOOR);
    follow->horizon = pg_cell_int(rows, 0, COLUMN_HORIZON);
    follow->lost = (floor > 0 && follow->after.from <= floor) || follow->after.from > follow->horizon;
    if (follow->lost) {
        follow->position = (struct feed_position){.from = floor + 1}; /* what is left begins here */
        return;
    }
    follow->changes = ARENA_ARRAY(follow->arena, struct store_change, PQntuples(rows));
    for (int i = 0; i < PQntuples(rows); i++) {
        if (pg_cell_is_null(rows, i, COLUMN_ID))
            continue;
        struct store_change *change = &follow->changes[follow->count++];
        change->id = pg_cell_int(rows, i, COLUMN_ID);
        change->created_ms = pg_cell_time(rows, i, COLUMN_TIME);
        if (pg_cell_is_null(rows, i, COLUMN_DATA))
            continue;
        const void *data = pg_cell_bytes(rows, i, COLUMN_DATA, &change->size);
        change->data = arena_copy(follow->arena, data, change->size);
    }
    follow->position = (struct feed_position){.from = pg_cell_int(rows, 0, COLUMN_UNTIL)};
    follow->reached = follow->position.from;
    follow->more = pg_cell_int(rows, 0, COLUMN_MORE) != 0;
}

static enum pg_trouble follow_ask(struct pg_connection *connection, struct pg_params *params,
                                  struct store_follow *follow)
{
    struct pg_reply reply;
    pg_params_clear(params);
    pg_set_bigint(params, 0, follow->after.from);
    pg_set_int(params, 1, follow->limit);
    pg_set_uuid(params, 2, &follow->own_node);
    connection->deadline_us = clock_monotonic_us() + (int64_t)FOLLOW_MS_MAX * 1000;
    int number = pg_send(connection, PG_CHANGE_FOLLOW, params);
    enum pg_trouble trouble = pg_receive(connection, &reply);
    follow_clear(follow, pg_err(trouble));
    if (trouble == PG_NONE)
        follow_read(follow, reply.results[number]);
    pg_reply_clear(&reply);
    return trouble;
}

/* A connection that was cut while nobody looked is opened again, once. */
static void follow_run(struct pg_store *store, struct pg_connection *connection, struct pg_params *params,
                       struct store_follow *follow)
{
    char why[PG_WHY_SIZE];
    enum pg_trouble trouble = PG_LOST;
    follow_clear(follow, ERR_STORE_UNAVAILABLE);
    for (int tries = 0; tries < 2 && trouble == PG_LOST; tries++) {
        if (connection->link == NULL &&
            pg_connection_open(connection, store->url, PG_USE_FOLLOW, NULL, why, sizeof(why)) != ERR_OK)
            return;
        trouble = follow_ask(connection, params, follow);
        if (trouble != PG_NONE)
            pg_connection_close(connection);
    }
}

void *pg_follow_main(void *argument)
{
    struct pg_store *store = argument;
    struct pg_connection connection = {.link = NULL};
    struct pg_params params;
    struct list follows;
    list_init(&follows);
    pg_params_init(&params);
    while (worker_take(&store->follows, &follows, -1)) {
        LIST_FOR_EACH(node, &follows)
            follow_run(store, &connection, &params, CONTAINER_OF(node, struct store_follow, node));
        done_post_follows(&store->done, &follows);
    }
    pg_connection_close(&connection);
    pg_params_deinit(&params);
    return NULL;
}
