/* SPDX-License-Identifier: Apache-2.0
 * The query thread: lists for people, as JSON rows. Columns and their form are
 * in store/query.h; which rows, in sql/query_*.sql.
 *
 * Invariants: (1) every list is of one organization, but for dead letters, which an operator sees of all. (2) A page costs a bounded
 * amount of work: where no index serves the filters, it walks back over at most
 * SCAN_ROW_COUNT_MAX rows and says with `next` where to go on, even if the page
 * is not full. (3) Pages followed by `next` give each row once, whatever is
 * written meanwhile: cursors are ids that only grow.
 *
 * Callbacks run on this thread. */
#include <string.h>

#include "base/limits.h"
#include "store/query.h"
#include "store/sqlite/cells.h"
#include "store/sqlite/sqlite_int.h"

enum {
    SCAN_ROW_COUNT_MAX = 1000000, /* a fifth of a second, on a thread that nothing else waits for */
    QUERY_MS_MAX = 5000,
};

struct page { /* the rows of one answer, while they are read */
    struct jsonw json;
    struct store_query *query;
    int cursor_column; /* −1: none */
    int64_t last;      /* the cursor of the last row */
};

static void cell_value(sqlite3_stmt *statement, int at, enum query_type type, struct query_value *out)
{
    *out = (struct query_value){.is_null = sqlite3_column_type(statement, at) == SQLITE_NULL};
    if (out->is_null)
        return;
    if (query_type_is_real(type)) {
        out->real = sqlite3_column_double(statement, at);
    } else if (!query_type_is_bytes(type)) {
        out->integer = sqlite3_column_int64(statement, at);
    } else if (type == QUERY_UUID) {
        out->data = sqlite3_column_blob(statement, at);
        out->size = (size_t)sqlite3_column_bytes(statement, at);
    } else {
        out->data = sqlite3_column_text(statement, at);
        out->size = (size_t)sqlite3_column_bytes(statement, at);
    }
}

/* All rows of a bound statement. */
static int page_read(struct page *page, sqlite3_stmt *statement)
{
    struct query_value values[QUERY_COLUMN_COUNT_MAX];
    int count, rc;
    const struct query_column *columns = query_columns(page->query->kind, &count);
    CHECK(sqlite3_column_count(statement) >= count);
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
        for (int i = 0; i < count; i++)
            cell_value(statement, i, columns[i].type, &values[i]);
        query_write_row(&page->json, page->query->kind, values);
        page->query->row_count++;
        if (page->cursor_column >= 0)
            page->last = cell_int(statement, page->cursor_column);
    }
    int reset = sqlite3_reset(statement);
    return rc == SQLITE_DONE ? SQLITE_OK : reset;
}

/* The greatest id of a table, as `*_last.sql` selects it. */
static int last_id(struct connection *connection, enum statement which, int64_t *id)
{
    sqlite3_stmt *statement = connection_statement(connection, which);
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW)
        *id = cell_int(statement, 0);
    int reset = sqlite3_reset(statement);
    return rc == SQLITE_ROW ? SQLITE_OK : reset;
}

/* Newest first: the ids from `before` (not included) down to `floor` (included). */
static int range_choose(struct connection *connection, const struct store_query *query, enum statement last,
                        int64_t *before, int64_t *floor)
{
    int64_t id = 0;
    int rc = SQLITE_OK;
    *before = query->after;
    if (query->after <= 0) {
        rc = last_id(connection, last, &id);
        *before = id + 1;
    }
    *floor = *before > SCAN_ROW_COUNT_MAX ? *before - SCAN_ROW_COUNT_MAX : 1;
    return rc;
}

/* A full page goes on after its last row; one that ended at the floor goes on below it. */
static int64_t range_next(const struct page *page, int64_t floor)
{
    if (page->query->row_count >= page->query->limit)
        return page->last > 1 ? page->last : 0;
    return floor > 1 ? floor : 0;
}

static int query_audit(struct connection *connection, struct page *page)
{
    struct store_query *query = page->query;
    int64_t before, floor;
    int rc = range_choose(connection, query, STATEMENT_QUERY_AUDIT_LAST, &before, &floor);
    if (rc != SQLITE_OK)
        return rc;
    sqlite3_stmt *statement = connection_statement(connection, STATEMENT_QUERY_AUDIT);
    bind_int(statement, 1, before);
    bind_int(statement, 2, floor);
    bind_uuid(statement, 3, &query->org_id);
    bind_int(statement, 4, query->limit);
    bind_uuid(statement, 5, &query->entity_id);
    bind_uuid(statement, 6, &query->seat_id);
    bind_uuid(statement, 7, &query->event_id);
    bind_uuid(statement, 8, &query->checkout_id);
    bind_uuid(statement, 9, &query->user_id);
    bind_text(statement, 10, query->action);
    bind_time(statement, 11, query->since_ms);
    page->cursor_column = 0;
    rc = page_read(page, statement);
    query->next = range_next(page, floor);
    return rc;
}

static int query_checkouts(struct connection *connection, struct page *page)
{
    struct store_query *query = page->query;
    bool of_user = !uuid_is_nil(&query->user_id);
    int64_t before, floor;
    int rc = range_choose(connection, query, STATEMENT_QUERY_CHECKOUTS_LAST, &before, &floor);
    if (rc != SQLITE_OK)
        return rc;
    if (of_user)
        floor = 1;
    sqlite3_stmt *statement = connection_statement(connection, of_user ? STATEMENT_QUERY_CHECKOUTS_OF_USER
                                                                       : STATEMENT_QUERY_CHECKOUTS);
    bind_int(statement, 1, before);
    bind_int(statement, 2, floor);
    bind_uuid(statement, 3, &query->org_id);
    bind_int(statement, 4, query->limit);
    bind_uuid(statement, 5, &query->checkout_id);
    bind_uuid(statement, 6, &query->event_id);
    bind_uuid(statement, 7, &query->user_id);
    bind_text(statement, 8, query->status);
    bind_time(statement, 9, query->since_ms);
    page->cursor_column = sqlite3_column_count(statement) - 1;
    rc = page_read(page, statement);
    query->next = range_next(page, floor);
    return rc;
}

static int query_dead_letters(struct connection *connection, struct page *page)
{
    struct store_query *query = page->query;
    int64_t before, floor;
    int rc = range_choose(connection, query, STATEMENT_QUERY_DEAD_LETTERS_LAST, &before, &floor);
    if (rc != SQLITE_OK)
        return rc;
    sqlite3_stmt *statement = connection_statement(connection, STATEMENT_QUERY_DEAD_LETTERS);
    bind_int(statement, 1, before);
    bind_int(statement, 2, floor);
    bind_uuid(statement, 3, &query->org_id);
    bind_int(statement, 4, query->limit);
    bind_time(statement, 5, query->since_ms);
    page->cursor_column = sqlite3_column_count(statement) - 1;
    rc = page_read(page, statement);
    query->next = range_next(page, floor);
    return rc;
}

static int query_occupancy_history(struct connection *connection, struct page *page)
{
    struct store_query *query = page->query;
    sqlite3_stmt *statement = connection_statement(connection, STATEMENT_QUERY_OCCUPANCY_HISTORY);
    bind_uuid(statement, 1, &query->org_id);
    bind_uuid(statement, 2, &query->event_id);
    bind_int(statement, 3, query->since_ms);
    bind_int(statement, 4, query->after);
    bind_int(statement, 5, query->limit);
    page->cursor_column = 0;
    int rc = page_read(page, statement);
    query->next = query->row_count >= query->limit ? page->last : 0;
    return rc;
}

static int query_analytics(struct connection *connection, struct page *page)
{
    struct store_query *query = page->query;
    sqlite3_stmt *statement = connection_statement(connection, STATEMENT_QUERY_ANALYTICS);
    bind_uuid(statement, 1, &query->org_id);
    bind_uuid(statement, 2, &query->event_id);
    bind_int(statement, 3, query->since_ms);
    bind_int(statement, 4, query->after);
    bind_int(statement, 5, query->limit);
    int rc = page_read(page, statement);
    query->next = query->row_count >= query->limit ? query->after + query->row_count : 0;
    return rc;
}

static int query_answer(struct connection *connection, struct page *page)
{
    struct store_query *query = page->query;
    sqlite3_stmt *statement;
    switch (query->kind) {
    case QUERY_AUDIT:
        return query_audit(connection, page);
    case QUERY_CHECKOUTS:
        return query_checkouts(connection, page);
    case QUERY_OCCUPANCY_HISTORY:
        return query_occupancy_history(connection, page);
    case QUERY_ANALYTICS:
        return query_analytics(connection, page);
    case QUERY_HOLD_COUNT:
        statement = connection_statement(connection, STATEMENT_QUERY_HOLD_COUNT);
        bind_uuid(statement, 1, &query->org_id);
        bind_uuid(statement, 2, &query->event_id);
        return page_read(page, statement);
    case QUERY_USERS:
        statement = connection_statement(connection, STATEMENT_QUERY_USERS);
        bind_uuid(statement, 1, &query->org_id);
        bind_uuid(statement, 2, &query->user_id);
        return page_read(page, statement);
    case QUERY_DEAD_LETTERS:
        return query_dead_letters(connection, page);
    case QUERY_KIND_COUNT:
        break;
    }
    CHECK(false && "a kind of query that does not exist");
    return SQLITE_MISUSE;
}

static void query_run(struct sqlite_store *sqlite, struct connection *connection, struct store_query *query)
{
    char why[SQLITE_WHY_SIZE];
    query->err = ERR_OK;
    query->row_count = 0;
    query->next = 0;
    buf_init(&query->rows);
    if (query->limit <= 0)
        query->limit = PAGE_COUNT_DEFAULT;
    if (connection->db == NULL) {
        query->err = connection_open(connection, sqlite->file.path, true, why, sizeof(why));
        if (query->err == ERR_OK)
            query->err = connection_prepare(connection, USE_QUERY, why, sizeof(why));
    }
    if (query->err == ERR_OK) {
        struct page page = {.query = query, .cursor_column = -1};
        jsonw_begin(&page.json, &query->rows);
        jsonw_array_open(&page.json);
        connection->deadline_us = clock_monotonic_us() + (int64_t)QUERY_MS_MAX * 1000;
        int rc = query_answer(connection, &page);
        jsonw_array_close(&page.json);
        query->err = connection_err(rc);
        if (query->err == ERR_OK && !buf_ok(&query->rows))
            query->err = ERR_INTERNAL;
    }
    if (query->err != ERR_OK) {
        connection_close(connection);
        if (query->err != ERR_INTERNAL)
            query->err = ERR_STORE_UNAVAILABLE;
        query->next = 0;
        query->row_count = 0;
        buf_clear(&query->rows);
    }
}

void *query_main(void *argument)
{
    struct sqlite_store *sqlite = argument;
    struct connection connection = {.db = NULL};
    struct list queries;
    list_init(&queries);
    while (worker_take(&sqlite->queries, &queries, -1)) {
        struct list *node;
        while ((node = list_pop(&queries)) != NULL) {
            struct store_query *query = CONTAINER_OF(node, struct store_query, node);
            query_run(sqlite, &connection, query);
            query->on_done(query);
        }
    }
    connection_close(&connection);
    return NULL;
}
