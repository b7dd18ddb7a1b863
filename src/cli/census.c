/* SPDX-License-Identifier: Apache-2.0
 * Counts seats by state and active holds per event by walking a store as the
 * lane does at start. Read only: it may run beside a server, and then sees
 * some moment of it. */
#include <stdio.h>

#include "cli/census.h"
#include "store/store.h"

static enum err on_org(void *context, const struct org_row *org)
{
    (void)context;
    (void)org;
    return ERR_OK;
}

static enum err on_user(void *context, const struct user_row *user)
{
    (void)context;
    (void)user;
    return ERR_OK;
}

static enum err on_event(void *context, const struct event_row *row)
{
    struct census *census = context;
    struct census_event *event = ARENA_NEW(&census->arena, struct census_event);

    event->row = *row;
    event->row.name = arena_text(&census->arena, row->name);
    *census->last = event;
    census->last = &event->next;
    map_put(&census->events, &row->id, event);
    return ERR_OK;
}

static enum err on_layout(void *context, const struct uuid *event_id, const char *document,
                          const struct block_row *blocks, int32_t block_count, int64_t holds_ever)
{
    (void)context;
    (void)event_id;
    (void)document;
    (void)blocks;
    (void)block_count;
    (void)holds_ever;
    return ERR_OK;
}

static enum err on_seat(void *context, const struct seat_row *seat)
{
    struct census *census = context;
    struct census_event *event = map_get(&census->events, &seat->event_id);

    if (event != NULL && seat->state < SEAT_STATE_COUNT)
        event->counts[seat->state]++;
    return ERR_OK;
}

static enum err on_hold(void *context, const struct hold_row *hold)
{
    struct census *census = context;
    struct census_event *event = map_get(&census->events, &hold->event_id);

    if (event != NULL)
        event->active_hold_count++;
    return ERR_OK;
}

static enum err on_checkout(void *context, const struct checkout_row *checkout)
{
    (void)context;
    (void)checkout;
    return ERR_OK;
}

bool census_take(struct census *census, const char *url, char *why, size_t why_size)
{
    static const struct store_loader loader = {
        .on_org = on_org,
        .on_user = on_user,
        .on_event = on_event,
        .on_layout = on_layout,
        .on_seat = on_seat,
        .on_hold = on_hold,
        .on_checkout = on_checkout,
    };
    struct store_options options = {.read_only = true};
    struct store *store = NULL;

    *census = (struct census){.first = NULL};
    census->last = &census->first;
    arena_init(&census->arena);
    map_init(&census->events);
    why[0] = '\0';
    enum err err = store_open(url, &options, &store, why, why_size);
    if (err == ERR_OK)
        err = store_load(store, &loader, census);
    if (err != ERR_OK && why[0] == '\0')
        snprintf(why, why_size, "%s", err_text(err));
    store_close(store);
    return err == ERR_OK;
}

void census_deinit(struct census *census)
{
    map_deinit(&census->events);
    arena_deinit(&census->arena);
}
