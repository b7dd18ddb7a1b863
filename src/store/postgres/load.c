/* SPDX-License-Identifier: Apache-2.0
 * Hands everything the hot tier keeps to a loader, at start, in the order that
 * store.h promises. On the caller's thread, over a connection of its own.
 *
 * Invariants: (1) one snapshot: what is handed over was all true at one moment.
 * (2) An event's seats come in layout order and are as many as its layout says;
 * if not, the database is corrupted. (3) What is passed to the loader lives for
 * the call only. (4) Rows are handed over as they arrive; only the list of
 * events is kept, because each is followed by what belongs to it. */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "store/postgres/postgres_int.h"
#include "store/postgres/rows.h"

struct event_node {
    struct event_node *next;
    struct event_row row;
};

struct load {
    struct pg_connection connection;
    struct pg_params params;
    const struct store_loader *loader;
    void *context;
    struct arena events_arena;
    struct event_node *events; /* in order */
    struct event_node **events_end;
    struct arena arena; /* the layout at hand */
    struct block_row *blocks;
    int32_t block_count;
    int32_t block_capacity;
    int64_t seat_count; /* as the layout says */
    int64_t seat_index; /* as they come */
    int64_t holds_ever;
    const char *document;
};

static enum err on_position(void *context, struct pg_result *result)
{
    struct load *load = context;
    struct feed_position position = {.from = pg_cell_int(result, 0, 0)};
    return load->loader->on_position(load->context, &position);
}

static enum err on_organization(void *context, struct pg_result *result)
{
    struct load *load = context;
    struct org_row row;
    pg_row_read_organization(result, 0, NULL, &row);
    return load->loader->on_org(load->context, &row);
}

static enum err on_user(void *context, struct pg_result *result)
{
    struct load *load = context;
    struct user_row row;
    pg_row_read_user(result, 0, &row);
    return load->loader->on_user(load->context, &row);
}

/* ---- One event ---- */

static enum err on_layout(void *context, struct pg_result *result)
{
    struct load *load = context;
    load->seat_count = pg_cell_int(result, 0, 0);
    load->document = arena_text(&load->arena, pg_cell_text(result, 0, 1));
    return ERR_OK;
}

static enum err on_block(void *context, struct pg_result *result)
{
    struct load *load = context;
    if (load->block_count == load->block_capacity) {
        int32_t capacity = load->block_capacity == 0 ? 64 : load->block_capacity * 2;
        struct block_row *grown = ARENA_ARRAY(&load->arena, struct block_row, capacity);
        for (int32_t i = 0; i < load->block_count; i++)
            grown[i] = load->blocks[i];
        load->blocks = grown;
        load->block_capacity = capacity;
    }
    pg_row_read_block(result, 0, &load->arena, &load->blocks[load->block_count++]);
    return ERR_OK;
}

static enum err on_holds_ever(void *context, struct pg_result *result)
{
    struct load *load = context;
    load->holds_ever = pg_cell_int(result, 0, 0);
    return ERR_OK;
}

static enum err on_seat(void *context, struct pg_result *result)
{
    struct load *load = context;
    struct seat_row row;
    int32_t index = (int32_t)load->seat_index++;
    if (!pg_row_read_seat(result, 0, index, &row) || pg_cell_int(result, 0, 9) != index)
        return ERR_STORE_CORRUPT;
    return load->loader->on_seat(load->context, &row);
}

static enum err load_of_event(struct load *load, enum pg_statement statement, const struct event_row *event,
                              enum err (*on_row)(void *context, struct pg_result *result))
{
    pg_params_clear(&load->params);
    pg_set_uuid(&load->params, 0, &event->org_id);
    pg_set_uuid(&load->params, 1, &event->id);
    return pg_each(&load->connection, statement, &load->params, on_row, load);
}

/* Blocks, document and seats of one event, if it has them. */
static enum err load_layout(struct load *load, const struct event_row *event)
{
    arena_reset(&load->arena);
    load->blocks = NULL;
    load->block_count = 0;
    load->block_capacity = 0;
    load->document = NULL;
    load->seat_index = 0;
    load->holds_ever = 0;
    enum err err = load_of_event(load, PG_LOAD_LAYOUT, event, on_layout);
    if (err != ERR_OK || load->document == NULL)
        return err;
    err = load_of_event(load, PG_LOAD_BLOCKS, event, on_block);
    if (err == ERR_OK)
        err = load_of_event(load, PG_LOAD_HOLDS_EVER, event, on_holds_ever);
    if (err == ERR_OK)
        err = load->loader->on_layout(load->context, &event->id, load->document, load->blocks,
                                      load->block_count, load->holds_ever);
    if (err == ERR_OK)
        err = load_of_event(load, PG_LOAD_SEATS, event, on_seat);
    return err == ERR_OK && load->seat_index != load->seat_count ? ERR_STORE_CORRUPT : err;
}

static enum err on_event(void *context, struct pg_result *result)
{
    struct load *load = context;
    struct event_node *event = ARENA_NEW(&load->events_arena, struct event_node);
    if (!pg_row_read_event(result, 0, &load->events_arena, &event->row))
        return ERR_STORE_CORRUPT;
    *load->events_end = event;
    load->events_end = &event->next;
    return ERR_OK;
}

static enum err load_events(struct load *load)
{
    load->events_end = &load->events;
    enum err err = pg_each(&load->connection, PG_LOAD_EVENTS, NULL, on_event, load);
    for (const struct event_node *event = load->events; event != NULL && err == ERR_OK; event = event->next) {
        err = load->loader->on_event(load->context, &event->row);
        if (err == ERR_OK)
            err = load_layout(load, &event->row);
    }
    return err;
}

/* ---- Holds and checkouts ---- */

static enum err on_hold(void *context, struct pg_result *result)
{
    struct load *load = context;
    struct hold_row row;
    return pg_row_read_hold(result, 0, NULL, &row) ? load->loader->on_hold(load->context, &row)
                                                   : ERR_STORE_CORRUPT;
}

static enum err on_checkout(void *context, struct pg_result *result)
{
    struct load *load = context;
    struct checkout_row row;
    return pg_row_read_checkout(result, 0, NULL, &row) ? load->loader->on_checkout(load->context, &row)
                                                       : ERR_STORE_CORRUPT;
}

/* In BEGIN there are no rows. */
static enum err on_nothing(void *context, struct pg_result *result)
{
    (void)context;
    (void)result;
    return ERR_OK;
}

static enum err load_all(struct load *load)
{
    struct pg_connection *connection = &load->connection;
    enum err err = pg_each(connection, PG_BEGIN_READ, NULL, on_nothing, load);
    if (err == ERR_OK && load->loader->on_position != NULL) /* whoever does not follow need not know */
        err = pg_each(connection, PG_LOAD_POSITION, NULL, on_position, load);
    if (err == ERR_OK)
        err = pg_each(connection, PG_LOAD_ORGANIZATIONS, NULL, on_organization, load);
    if (err == ERR_OK)
        err = pg_each(connection, PG_LOAD_USERS, NULL, on_user, load);
    if (err == ERR_OK)
        err = load_events(load);
    if (err == ERR_OK)
        err = pg_each(connection, PG_LOAD_HOLDS, NULL, on_hold, load);
    if (err == ERR_OK)
        err = pg_each(connection, PG_LOAD_CHECKOUTS, NULL, on_checkout, load);
    return err;
}

enum err pg_load(struct store *store, const struct store_loader *loader, void *context)
{
    struct pg_store *pg = CONTAINER_OF(store, struct pg_store, store);
    struct load load = {.loader = loader, .context = context};
    char why[PG_WHY_SIZE] = "";
    arena_init(&load.arena);
    arena_init(&load.events_arena);
    pg_params_init(&load.params);
    enum err err = pg_connection_open(&load.connection, pg->url, PG_USE_LOAD, NULL, why, sizeof(why));
    if (err == ERR_OK)
        err = load_all(&load);
    if (err == ERR_STORE_CORRUPT)
        log_write(LOG_ERROR, "the database is corrupted", NULL);
    pg_connection_close(&load.connection);
    pg_params_deinit(&load.params);
    arena_deinit(&load.events_arena);
    arena_deinit(&load.arena);
    return err;
}
