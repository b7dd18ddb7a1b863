/* SPDX-License-Identifier: Apache-2.0
 * Hands everything the hot tier keeps to a loader, at start, in the order that
 * store.h promises. On the caller's thread, over a connection of its own.
 *
 * Invariants: (1) one snapshot: what is handed over was all true at one moment.
 * (2) An event's seats come in layout order and are as many as its layout says;
 * if not, the file is corrupted. (3) What is passed to the loader lives for the
 * call only.
 *
 * Holds are read in order of expiry, which is nearly the order they lie in:
 * a million of them come in about a second. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "store/sqlite/cells.h"
#include "store/sqlite/layout_read.h"
#include "store/sqlite/sqlite_int.h"

struct load {
    struct connection connection;
    const struct store_loader *loader;
    void *context;
    struct arena arena; /* the layout at hand */
};

/* How a loop over a statement ended: by the end of its rows, by the loader, or by trouble. */
static enum err load_end(sqlite3_stmt *statement, int rc, enum err err)
{
    int reset = sqlite3_reset(statement);
    if (err != ERR_OK || rc == SQLITE_DONE)
        return err;
    return connection_err(reset != SQLITE_OK ? reset : rc);
}

/* Whoever follows the change feed from here misses nothing: it is of the same snapshot. */
static enum err load_position(struct load *load)
{
    struct feed_position position = {.id = 0};
    sqlite3_stmt *statement = connection_statement(&load->connection, STATEMENT_CHANGE_ENDS);
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW)
        position.id = cell_int(statement, 1);
    enum err err = load_end(statement, rc == SQLITE_ROW ? SQLITE_DONE : rc, ERR_OK);
    if (err != ERR_OK || load->loader->on_position == NULL) /* whoever does not follow need not know */
        return err;
    return load->loader->on_position(load->context, &position);
}

static enum err load_organizations(struct load *load)
{
    sqlite3_stmt *statement = connection_statement(&load->connection, STATEMENT_LOAD_ORGANIZATIONS);
    enum err err = ERR_OK;
    int rc = SQLITE_DONE;
    while (err == ERR_OK && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
        struct org_row row = {.id = cell_uuid(statement, 0),
                              .name = cell_text(statement, 1),
                              .created_ms = cell_int(statement, 2)};
        err = load->loader->on_org(load->context, &row);
    }
    return load_end(statement, rc, err);
}

static enum err load_users(struct load *load)
{
    sqlite3_stmt *statement = connection_statement(&load->connection, STATEMENT_LOAD_USERS);
    enum err err = ERR_OK;
    int rc = SQLITE_DONE;
    while (err == ERR_OK && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
        struct user_row row = {.org_id = cell_uuid(statement, 0),
                               .id = cell_uuid(statement, 1),
                               .disabled = cell_int(statement, 2) != 0,
                               .created_ms = cell_int(statement, 3)};
        err = load->loader->on_user(load->context, &row);
    }
    return load_end(statement, rc, err);
}

static enum err load_seats(struct load *load, int64_t first, int64_t count)
{
    sqlite3_stmt *statement = connection_statement(&load->connection, STATEMENT_LOAD_SEATS);
    bind_int(statement, 1, first);
    bind_int(statement, 2, count);
    enum err err = ERR_OK;
    int rc = SQLITE_DONE;
    int32_t index = 0;
    while (err == ERR_OK && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
        struct seat_row row;
        err = row_read_seat(statement, index++, &row) ? load->loader->on_seat(load->context, &row)
                                                      : ERR_STORE_CORRUPT;
    }
    err = load_end(statement, rc, err);
    return err == ERR_OK && index != count ? ERR_STORE_CORRUPT : err;
}

/* Blocks, document and seats of one event, if it has them. */
static enum err load_layout(struct load *load, const struct event_row *event)
{
    struct layout_read layout;
    arena_reset(&load->arena);
    enum err err = layout_read(&load->connection, &event->org_id, &event->id, &load->arena, &layout);
    if (err != ERR_OK || layout.document == NULL)
        return err;
    err = load->loader->on_layout(load->context, &event->id, layout.document, layout.blocks,
                                  layout.block_count, layout.holds_ever);
    return err == ERR_OK ? load_seats(load, layout.place_first, layout.seat_count) : err;
}

static enum err load_events(struct load *load)
{
    sqlite3_stmt *statement = connection_statement(&load->connection, STATEMENT_LOAD_EVENTS);
    enum err err = ERR_OK;
    int rc = SQLITE_DONE;
    while (err == ERR_OK && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
        struct event_row row;
        if (!row_read_event(statement, NULL, &row)) {
            err = ERR_STORE_CORRUPT;
            break;
        }
        err = load->loader->on_event(load->context, &row);
        if (err == ERR_OK)
            err = load_layout(load, &row);
    }
    return load_end(statement, rc, err);
}

static enum err load_holds(struct load *load)
{
    sqlite3_stmt *statement = connection_statement(&load->connection, STATEMENT_LOAD_HOLDS);
    enum err err = ERR_OK;
    int rc = SQLITE_DONE;
    while (err == ERR_OK && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
        struct hold_row row;
        err = row_read_hold(statement, NULL, &row) ? load->loader->on_hold(load->context, &row)
                                                   : ERR_STORE_CORRUPT;
    }
    return load_end(statement, rc, err);
}

static enum err load_checkouts(struct load *load)
{
    sqlite3_stmt *statement = connection_statement(&load->connection, STATEMENT_LOAD_CHECKOUTS);
    enum err err = ERR_OK;
    int rc = SQLITE_DONE;
    while (err == ERR_OK && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
        struct checkout_row row;
        err = row_read_checkout(statement, NULL, &row) ? load->loader->on_checkout(load->context, &row)
                                                       : ERR_STORE_CORRUPT;
    }
    return load_end(statement, rc, err);
}

enum err sqlite_load(struct store *store, const struct store_loader *loader, void *context)
{
    struct sqlite_store *sqlite = CONTAINER_OF(store, struct sqlite_store, store);
    struct load load = {.loader = loader, .context = context};
    char why[SQLITE_WHY_SIZE] = "";
    arena_init(&load.arena);
    enum err err = connection_open(&load.connection, sqlite->file.path, true, why, sizeof(why));
    if (err == ERR_OK)
        err = connection_prepare(&load.connection, USE_LOAD, why, sizeof(why));
    if (err == ERR_OK)
        err = connection_err(connection_run(&load.connection, STATEMENT_BEGIN_READ));
    if (err == ERR_OK)
        err = load_position(&load);
    if (err == ERR_OK)
        err = load_organizations(&load);
    if (err == ERR_OK)
        err = load_users(&load);
    if (err == ERR_OK)
        err = load_events(&load);
    if (err == ERR_OK)
        err = load_holds(&load);
    if (err == ERR_OK)
        err = load_checkouts(&load);
    if (err == ERR_STORE_CORRUPT)
        log_write(LOG_ERROR, "the database is corrupted", NULL);
    connection_rollback(&load.connection);
    connection_close(&load.connection);
    arena_deinit(&load.arena);
    malloc_trim(0); /* what was read through lies between what is kept */
    return err;
}
