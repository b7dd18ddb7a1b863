/* SPDX-License-Identifier: Apache-2.0
 * The lookup thread: answers the lane's questions about things that are not in
 * memory — keys, holds and checkouts that have ended, holds that are overdue,
 * and whatever another node may have changed.
 * The answers go back through store_poll().
 *
 * Invariants: (1) a lookup sees every batch whose on_done has run. (2) A
 * lookup of what an organization owns names it; only LOOKUP_DUE_HOLDS goes over all. (3) What
 * is found is copied into the lookup's arena. (4) It never waits for lists for
 * people: those have a thread of their own. */
#include <string.h>

#include "base/limits.h"
#include "store/sqlite/cells.h"
#include "store/sqlite/layout_read.h"
#include "store/sqlite/reader.h"

#define KEY_LIFE_MS ((int64_t)IDEMPOTENCY_HOURS * 3600 * 1000)

enum { ROW_COUNT_FIRST = 16 };

static int lookup_key(struct connection *connection, struct store_lookup *lookup)
{
    sqlite3_stmt *statement = connection_statement(connection, STATEMENT_LOOKUP_KEY);
    bind_uuid(statement, 1, &lookup->org_id);
    bind_blob(statement, 2, lookup->key, sizeof(lookup->key));
    bind_int(statement, 3, lookup->now_ms - KEY_LIFE_MS);
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW && sqlite3_column_bytes(statement, 0) == (int)sizeof(lookup->body)) {
        lookup->found = true;
        memcpy(lookup->body, sqlite3_column_blob(statement, 0), sizeof(lookup->body));
        const void *result = sqlite3_column_blob(statement, 1);
        lookup->result_size = (size_t)sqlite3_column_bytes(statement, 1);
        lookup->result = result != NULL ? arena_copy(lookup->arena, result, lookup->result_size) : NULL;
    }
    int reset = sqlite3_reset(statement);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : reset;
}

/* Doubles an array in the arena when it is full. */
static void *rows_grow(struct arena *arena, void *rows, int32_t count, size_t size, int32_t *capacity)
{
    if (count < *capacity)
        return rows;
    *capacity = *capacity == 0 ? ROW_COUNT_FIRST : *capacity * 2;
    void *grown = arena_alloc(arena, size * (size_t)*capacity);
    if (count > 0)
        memcpy(grown, rows, size * (size_t)count);
    return grown;
}

/* All holds that a bound statement selects. */
static int lookup_read_holds(sqlite3_stmt *statement, struct store_lookup *lookup)
{
    int32_t capacity = 0;
    int rc;
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
        lookup->holds =
            rows_grow(lookup->arena, lookup->holds, lookup->hold_count, sizeof(*lookup->holds), &capacity);
        if (!row_read_hold(statement, lookup->arena, &lookup->holds[lookup->hold_count])) {
            (void)sqlite3_reset(statement);
            return SQLITE_CORRUPT;
        }
        lookup->hold_count++;
    }
    int reset = sqlite3_reset(statement);
    return rc == SQLITE_DONE ? SQLITE_OK : reset;
}

static int lookup_read_tickets(sqlite3_stmt *statement, struct store_lookup *lookup)
{
    int32_t capacity = 0;
    int rc;
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
        lookup->tickets = rows_grow(lookup->arena, lookup->tickets, lookup->ticket_count,
                                    sizeof(*lookup->tickets), &capacity);
        if (!row_read_ticket(statement, &lookup->tickets[lookup->ticket_count])) {
            (void)sqlite3_reset(statement);
            return SQLITE_CORRUPT;
        }
        lookup->ticket_count++;
    }
    int reset = sqlite3_reset(statement);
    return rc == SQLITE_DONE ? SQLITE_OK : reset;
}

static int lookup_hold(struct connection *connection, struct store_lookup *lookup)
{
    sqlite3_stmt *statement = connection_statement(connection, STATEMENT_LOOKUP_HOLD);
    bind_uuid(statement, 1, &lookup->org_id);
    bind_uuid(statement, 2, &lookup->id);
    int rc = lookup_read_holds(statement, lookup);
    lookup->found = lookup->hold_count == 1;
    return rc;
}

static int lookup_due_holds(struct connection *connection, struct store_lookup *lookup)
{
    sqlite3_stmt *statement = connection_statement(connection, STATEMENT_LOOKUP_DUE_HOLDS);
    bind_int(statement, 1, lookup->now_ms);
    bind_int(statement, 2, lookup->limit);
    int rc = lookup_read_holds(statement, lookup);
    lookup->found = lookup->hold_count > 0;
    return rc;
}

static int lookup_checkout(struct connection *connection, struct store_lookup *lookup)
{
    sqlite3_stmt *statement = connection_statement(connection, STATEMENT_LOOKUP_CHECKOUT);
    bind_uuid(statement, 1, &lookup->org_id);
    bind_uuid(statement, 2, &lookup->id);
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW)
        lookup->found = row_read_checkout(statement, lookup->arena, &lookup->checkout);
    bool corrupt = rc == SQLITE_ROW && !lookup->found;
    int reset = sqlite3_reset(statement);
    if (corrupt)
        return SQLITE_CORRUPT;
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE ? SQLITE_OK : reset;

    statement = connection_statement(connection, STATEMENT_LOOKUP_CHECKOUT_HOLDS);
    bind_uuid(statement, 1, &lookup->org_id);
    bind_uuid(statement, 2, &lookup->id);
    rc = lookup_read_holds(statement, lookup);
    if (rc != SQLITE_OK)
        return rc;
    statement = connection_statement(connection, STATEMENT_LOOKUP_CHECKOUT_TICKETS);
    bind_uuid(statement, 1, &lookup->org_id);
    bind_uuid(statement, 2, &lookup->id);
    return lookup_read_tickets(statement, lookup);
}

/* Steps a statement to the one row it may have. */
static int lookup_step(sqlite3_stmt *statement, struct store_lookup *lookup)
{
    int rc = sqlite3_step(statement);
    lookup->found = rc == SQLITE_ROW;
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int lookup_seat_ids(struct connection *connection, struct store_lookup *lookup, int64_t first,
                           int64_t count)
{
    lookup->seat_ids = ARENA_ARRAY(lookup->arena, struct uuid, count + 1);
    sqlite3_stmt *statement = connection_statement(connection, STATEMENT_LOOKUP_EVENT_SEATS);
    bind_int(statement, 1, first);
    bind_int(statement, 2, count);
    int rc;
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW && lookup->seat_count < count)
        lookup->seat_ids[lookup->seat_count++] = cell_uuid(statement, 0);
    int reset = sqlite3_reset(statement);
    if (rc != SQLITE_DONE)
        return reset != SQLITE_OK ? reset : SQLITE_CORRUPT;
    return lookup->seat_count == count ? SQLITE_OK : SQLITE_CORRUPT;
}

static int lookup_event(struct connection *connection, struct store_lookup *lookup)
{
    sqlite3_stmt *statement = connection_statement(connection, STATEMENT_LOOKUP_EVENT);
    bind_uuid(statement, 1, &lookup->org_id);
    bind_uuid(statement, 2, &lookup->id);
    int rc = lookup_step(statement, lookup);
    bool known = !lookup->found || row_read_event(statement, lookup->arena, &lookup->event);
    (void)sqlite3_reset(statement);
    if (rc != SQLITE_OK || !lookup->found)
        return rc;
    struct layout_read layout;
    enum err err = layout_read(connection, &lookup->org_id, &lookup->id, lookup->arena, &layout);
    if (!known || err == ERR_STORE_CORRUPT)
        return SQLITE_CORRUPT;
    if (err != ERR_OK)
        return SQLITE_IOERR;
    if (layout.document == NULL)
        return SQLITE_OK;
    lookup->document = layout.document;
    lookup->blocks = layout.blocks;
    lookup->block_count = layout.block_count;
    lookup->holds_ever = layout.holds_ever;
    return lookup_seat_ids(connection, lookup, layout.place_first, layout.seat_count);
}

static int lookup_user(struct connection *connection, struct store_lookup *lookup)
{
    sqlite3_stmt *statement = connection_statement(connection, STATEMENT_LOOKUP_USER);
    bind_uuid(statement, 1, &lookup->org_id);
    bind_uuid(statement, 2, &lookup->id);
    int rc = lookup_step(statement, lookup);
    if (lookup->found)
        lookup->user = (struct user_row){.org_id = cell_uuid(statement, 0),
                                         .id = cell_uuid(statement, 1),
                                         .disabled = cell_int(statement, 2) != 0,
                                         .created_ms = cell_int(statement, 3)};
    (void)sqlite3_reset(statement);
    return rc;
}

static int lookup_delivery(struct connection *connection, struct store_lookup *lookup)
{
    sqlite3_stmt *statement = connection_statement(connection, STATEMENT_LOOKUP_DELIVERY);
    bind_text(statement, 1, lookup->name);
    int rc = lookup_step(statement, lookup);
    if (lookup->found)
        lookup->delivery = (struct delivery_row){.name = arena_text(lookup->arena, cell_text(statement, 0)),
                                                 .position = {.from = cell_int(statement, 1),
                                                              .to = cell_int(statement, 2),
                                                              .id = cell_int(statement, 3)},
                                                 .node = cell_uuid(statement, 4),
                                                 .lease_until_ms = cell_int(statement, 5),
                                                 .version = (int32_t)cell_int(statement, 6)};
    (void)sqlite3_reset(statement);
    return rc;
}

static int lookup_order(struct connection *connection, struct store_lookup *lookup)
{
    sqlite3_stmt *statement = connection_statement(connection, STATEMENT_LOOKUP_ORDER);
    bind_text(statement, 1, lookup->name);
    bind_int(statement, 2, lookup->partition);
    int rc = lookup_step(statement, lookup);
    if (lookup->found)
        lookup->order = (struct order_row){.topic = arena_text(lookup->arena, cell_text(statement, 0)),
                                           .partition = (int32_t)cell_int(statement, 1),
                                           .epoch = cell_int(statement, 2),
                                           .next_offset = cell_int(statement, 3),
                                           .node = cell_uuid(statement, 4),
                                           .claimed_ms = cell_int(statement, 5)};
    (void)sqlite3_reset(statement);
    return rc;
}

static int lookup_answer(struct connection *connection, struct store_lookup *lookup)
{
    switch (lookup->kind) {
    case LOOKUP_KEY:
        return lookup_key(connection, lookup);
    case LOOKUP_HOLD:
        return lookup_hold(connection, lookup);
    case LOOKUP_CHECKOUT:
        return lookup_checkout(connection, lookup);
    case LOOKUP_DUE_HOLDS:
        return lookup_due_holds(connection, lookup);
    case LOOKUP_EVENT:
        return lookup_event(connection, lookup);
    case LOOKUP_USER:
        return lookup_user(connection, lookup);
    case LOOKUP_DELIVERY:
        return lookup_delivery(connection, lookup);
    case LOOKUP_ORDER:
        return lookup_order(connection, lookup);
    }
    CHECK(false && "a kind of lookup that does not exist");
    return SQLITE_MISUSE;
}

static void lookup_clear(struct store_lookup *lookup)
{
    lookup->err = ERR_OK;
    lookup->found = false;
    lookup->result = NULL;
    lookup->result_size = 0;
    lookup->holds = NULL;
    lookup->hold_count = 0;
    lookup->tickets = NULL;
    lookup->ticket_count = 0;
    lookup->document = NULL;
    lookup->blocks = NULL;
    lookup->block_count = 0;
    lookup->seat_ids = NULL;
    lookup->seat_count = 0;
    lookup->holds_ever = 0;
}

static int lookup_one(struct connection *connection, struct list *question, int begun)
{
    struct store_lookup *lookup = CONTAINER_OF(question, struct store_lookup, node);
    lookup_clear(lookup);
    int rc = begun == SQLITE_OK ? lookup_answer(connection, lookup) : begun;
    lookup->err = connection_err(rc);
    return rc;
}

void *lookup_main(void *argument)
{
    struct sqlite_store *sqlite = argument;
    reader_run(&(struct reader){.sqlite = sqlite,
                                .worker = &sqlite->lookups,
                                .use = USE_LOOKUP,
                                .answer = lookup_one,
                                .post = done_post_lookups});
    return NULL;
}
