/* SPDX-License-Identifier: Apache-2.0
 * The query thread: lists for people, as JSON rows. Columns and their form are
 * in store/query.h; which rows, in sql/query_*.sql.
 *
 * Invariants: (1) every list is of one organization; only that of dead
 * letters may be of all. (2) A page costs a bounded
 * amount of work: where no index serves the filters, it walks back over at most
 * SCAN_ROW_COUNT_MAX rows and says with `next` where to go on, even if the page
 * is not full; the session's time limit bounds the rest. (3) Pages followed by
 * `next` give each row once: cursors are ids that only grow.
 *
 * Callbacks run on this thread. */
#include <libpq-fe.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "store/postgres/postgres_int.h"
#include "store/postgres/rows.h"
#include "store/query.h"

enum {
    SCAN_ROW_COUNT_MAX = 1000000,
    QUERY_MS_MAX = 7000, /* the server gives up after 5 s by itself */
};

struct page { /* the rows of one answer, while they are read */
    struct pg_connection *connection;
    struct pg_params params;
    struct jsonw json;
    struct store_query *query;
    int cursor_column; /* −1: none */
    int64_t last;      /* the cursor of the last row */
};

static struct pg_params *page_params(struct page *page)
{
    pg_params_clear(&page->params);
    return &page->params;
}

static void cell_value(const PGresult *result, int row, int at, enum query_type type, struct query_value *out)
{
    *out = (struct query_value){.is_null = pg_cell_is_null(result, row, at)};
    if (out->is_null)
        return;
    if (query_type_is_real(type))
        out->real = pg_cell_real(result, row, at);
    else if (type == QUERY_TIME)
        out->integer = pg_cell_time(result, row, at);
    else if (!query_type_is_bytes(type))
        out->integer = pg_cell_int(result, row, at);
    else
        out->data = pg_cell_bytes(result, row, at, &out->size);
}

/* Cursors are ids, or times as milliseconds. */
static int64_t cell_cursor(const PGresult *result, int row, int at)
{
    return PQftype(result, at) == PG_TIME ? pg_cell_time(result, row, at) : pg_cell_int(result, row, at);
}

/* Runs the statement with the page's parameters and writes all its rows. */
static enum pg_trouble page_read(struct page *page, enum pg_statement statement)
{
    struct query_value values[QUERY_COLUMN_COUNT_MAX];
    struct pg_reply reply;
    int count;
    const struct query_column *columns = query_columns(page->query->kind, &count);
    int number = pg_send(page->connection, statement, &page->params);
    enum pg_trouble trouble = pg_receive(page->connection, &reply);
    if (trouble == PG_NONE) {
        const PGresult *result = reply.results[number];
        CHECK(PQnfields(result) >= count);
        int cursor = page->cursor_column < PQnfields(result) ? page->cursor_column : PQnfields(result) - 1;
        for (int row = 0; row < PQntuples(result); row++) {
            for (int i = 0; i < count; i++)
                cell_value(result, row, i, columns[i].type, &values[i]);
            query_write_row(&page->json, page->query->kind, values);
            page->query->row_count++;
            if (cursor >= 0)
                page->last = cell_cursor(result, row, cursor);
        }
    }
    pg_reply_clear(&reply);
    return trouble;
}

/* Newest first: the ids from `before` (not included) down to `floor` (included). */
static enum pg_trouble range_choose(struct page *page, enum pg_statement last, int64_t *before,
                                    int64_t *floor)
{
    enum pg_trouble trouble = PG_NONE;
    *before = page->query->after;
    if (page->query->after <= 0) {
        struct pg_reply reply;
        int number = pg_send(page->connection, last, NULL);
        trouble = pg_receive(page->connection, &reply);
        if (trouble == PG_NONE)
            *before = pg_cell_int(reply.results[number], 0, 0) + 1;
        pg_reply_clear(&reply);
    }
    *floor = *before > SCAN_ROW_COUNT_MAX ? *before - SCAN_ROW_COUNT_MAX : 1;
    return trouble;
}

/* A full page goes on after its last row; one that ended at the floor goes on below it. */
static int64_t range_next(const struct page *page, int64_t floor)
{
    if (page->query->row_count >= page->query->limit)
        return page->last > 1 ? page->last : 0;
    return floor > 1 ? floor : 0;
}

static enum pg_trouble query_audit(struct page *page)
{
    struct store_query *query = page->query;
    int64_t before, floor;
    enum pg_trouble trouble = range_choose(page, PG_QUERY_AUDIT_LAST, &before, &floor);
    if (trouble != PG_NONE)
        return trouble;
    struct pg_params *p = page_params(page);
    pg_set_bigint(p, 0, before);
    pg_set_bigint(p, 1, floor);
    pg_set_uuid(p, 2, &query->org_id);
    pg_set_int(p, 3, query->limit);
    pg_set_uuid(p, 4, &query->entity_id);
    pg_set_uuid(p, 5, &query->seat_id);
    pg_set_uuid(p, 6, &query->event_id);
    pg_set_uuid(p, 7, &query->checkout_id);
    pg_set_uuid(p, 8, &query->user_id);
    pg_set_text(p, 9, query->action);
    pg_set_time_or_null(p, 10, query->since_ms);
    page->cursor_column = 0;
    trouble = page_read(page, PG_QUERY_AUDIT);
    query->next = range_next(page, floor);
    return trouble;
}

static enum pg_trouble query_checkouts(struct page *page)
{
    struct store_query *query = page->query;
    bool of_user = !uuid_is_nil(&query->user_id);
    int64_t before, floor;
    enum pg_trouble trouble = range_choose(page, PG_QUERY_CHECKOUTS_LAST, &before, &floor);
    if (trouble != PG_NONE)
        return trouble;
    if (of_user)
        floor = 1;
    struct pg_params *p = page_params(page);
    pg_set_bigint(p, 0, before);
    pg_set_bigint(p, 1, floor);
    pg_set_uuid(p, 2, &query->org_id);
    pg_set_int(p, 3, query->limit);
    pg_set_uuid(p, 4, &query->checkout_id);
    pg_set_uuid(p, 5, &query->event_id);
    pg_set_uuid(p, 6, &query->user_id);
    pg_set_text(p, 7, query->status);
    pg_set_time_or_null(p, 8, query->since_ms);
    page->cursor_column = QUERY_COLUMN_COUNT_MAX; /* the last one */
    trouble = page_read(page, of_user ? PG_QUERY_CHECKOUTS_OF_USER : PG_QUERY_CHECKOUTS);
    query->next = range_next(page, floor);
    return trouble;
}

static enum pg_trouble query_dead_letters(struct page *page)
{
    struct store_query *query = page->query;
    int64_t before, floor;
    enum pg_trouble trouble = range_choose(page, PG_QUERY_DEAD_LETTERS_LAST, &before, &floor);
    if (trouble != PG_NONE)
        return trouble;
    struct pg_params *p = page_params(page);
    pg_set_bigint(p, 0, before);
    pg_set_bigint(p, 1, floor);
    pg_set_uuid(p, 2, &query->org_id);
    pg_set_int(p, 3, query->limit);
    pg_set_time_or_null(p, 4, query->since_ms);
    page->cursor_column = QUERY_COLUMN_COUNT_MAX; /* the last one */
    trouble = page_read(page, PG_QUERY_DEAD_LETTERS);
    query->next = range_next(page, floor);
    return trouble;
}

static enum pg_trouble query_occupancy_history(struct page *page)
{
    struct store_query *query = page->query;
    struct pg_params *p = page_params(page);
    pg_set_uuid(p, 0, &query->org_id);
    pg_set_uuid(p, 1, &query->event_id);
    pg_set_time(p, 2, query->since_ms);
    pg_set_time(p, 3, query->after);
    pg_set_int(p, 4, query->limit);
    page->cursor_column = 0;
    enum pg_trouble trouble = page_read(page, PG_QUERY_OCCUPANCY_HISTORY);
    query->next = query->row_count >= query->limit ? page->last : 0;
    return trouble;
}

static enum pg_trouble query_analytics(struct page *page)
{
    struct store_query *query = page->query;
    struct pg_params *p = page_params(page);
    pg_set_uuid(p, 0, &query->org_id);
    pg_set_uuid(p, 1, &query->event_id);
    pg_set_time(p, 2, query->since_ms);
    pg_set_bigint(p, 3, query->after);
    pg_set_int(p, 4, query->limit);
    enum pg_trouble trouble = page_read(page, PG_QUERY_ANALYTICS);
    query->next = query->row_count >= query->limit ? query->after + query->row_count : 0;
    return trouble;
}

static enum pg_trouble query_answer(struct page *page)
{
    struct store_query *query = page->query;
    struct pg_params *p = page_params(page);
    switch (query->kind) {
    case QUERY_AUDIT:
        return query_audit(page);
    case QUERY_CHECKOUTS:
        return query_checkouts(page);
    case QUERY_DEAD_LETTERS:
        return query_dead_letters(page);
    case QUERY_OCCUPANCY_HISTORY:
        return query_occupancy_history(page);
    case QUERY_ANALYTICS:
        return query_analytics(page);
    case QUERY_HOLD_COUNT:
        pg_set_uuid(p, 0, &query->org_id);
        pg_set_uuid(p, 1, &query->event_id);
        return page_read(page, PG_QUERY_HOLD_COUNT);
    case QUERY_USERS:
        pg_set_uuid(p, 0, &query->org_id);
        pg_set_uuid(p, 1, &query->user_id);
        return page_read(page, PG_QUERY_USERS);
    case QUERY_KIND_COUNT:
        break;
    }
    CHECK(false && "a kind of query that does not exist");
    return PG_OURS;
}

static void query_reset(struct store_query *query)
{
    query->err = ERR_OK;
    query->row_count = 0;
    query->next = 0;
    buf_clear(&query->rows);
}

static enum pg_trouble query_try(struct page *page)
{
    struct store_query *query = page->query;
    query_reset(query);
    page->cursor_column = -1;
    jsonw_begin(&page->json, &query->rows);
    jsonw_array_open(&page->json);
    page->connection->deadline_us = clock_monotonic_us() + (int64_t)QUERY_MS_MAX * 1000;
    enum pg_trouble trouble = query_answer(page);
    jsonw_array_close(&page->json);
    return trouble;
}

/* A connection that was cut while nobody looked is opened again, once. */
static void query_run(struct pg_store *store, struct page *page, struct store_query *query)
{
    char why[PG_WHY_SIZE];
    enum pg_trouble trouble = PG_LOST;
    page->query = query;
    buf_init(&query->rows);
    if (query->limit <= 0)
        query->limit = PAGE_COUNT_DEFAULT;
    for (int tries = 0; tries < 2 && trouble == PG_LOST; tries++) {
        if (page->connection->link == NULL &&
            pg_connection_open(page->connection, store->url, PG_USE_QUERY, NULL, why, sizeof(why)) != ERR_OK)
            break;
        trouble = query_try(page);
        if (trouble == PG_LOST)
            pg_connection_close(page->connection);
    }
    enum err err = pg_err(trouble);
    if (err == ERR_OK && !buf_ok(&query->rows))
        err = ERR_INTERNAL;
    if (err != ERR_OK)
        query_reset(query);
    query->err = err;
}

void *pg_query_main(void *argument)
{
    struct pg_store *store = argument;
    struct pg_connection connection = {.link = NULL};
    struct page page = {.connection = &connection};
    struct list queries;
    list_init(&queries);
    pg_params_init(&page.params);
    while (worker_take(&store->queries, &queries, -1)) {
        struct list *node;
        while ((node = list_pop(&queries)) != NULL) {
            struct store_query *query = CONTAINER_OF(node, struct store_query, node);
            query_run(store, &page, query);
            query->on_done(query);
        }
    }
    pg_connection_close(&connection);
    pg_params_deinit(&page.params);
    return NULL;
}
