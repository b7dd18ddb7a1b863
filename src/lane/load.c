/* SPDX-License-Identifier: Apache-2.0
 * Start: everything that is open comes from the store into memory, and what was
 * under way goes on: payments are asked again, refunds owed are given, events
 * that are no longer open are emptied, holds that ran out are released by the
 * first turn. Where other nodes share the store, what is under way may be
 * theirs: then sweep.c finds out, and follow.c catches up with what they wrote
 * since. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "hold/rules.h"
#include "lane/lane_int.h"

/* A hold whose checkout comes later in the load. */
struct link {
    struct uuid hold_id;
    struct uuid checkout_id;
};

struct loading {
    struct lane *lane;
    struct hot_event *event; /* whose seats come next */
    struct seatmap *map;     /* built up; in place when its last seat came */
    int32_t seat_count;
    struct seat_row *rows;
    struct link *links;
    size_t link_count;
    size_t link_capacity;
    char *why;
    size_t why_size;
};

static enum err load_position(void *context, const struct feed_position *position)
{
    struct loading *loading = context;
    loading->lane->follow.position = *position;
    return ERR_OK;
}

static enum err load_org(void *context, const struct org_row *org)
{
    struct loading *loading = context;
    directory_put_org(loading->lane->hot->directory, &org->id);
    return ERR_OK;
}

static enum err load_user(void *context, const struct user_row *user)
{
    struct loading *loading = context;
    directory_put_user(loading->lane->hot->directory, user);
    return ERR_OK;
}

static enum err load_event(void *context, const struct event_row *event)
{
    struct loading *loading = context;
    hot_put_event(loading->lane->hot, event);
    return ERR_OK;
}

static enum err load_layout(void *context, const struct uuid *event_id, const char *document,
                            const struct block_row *blocks, int32_t block_count, int64_t holds_ever)
{
    struct loading *loading = context;
    loading->event = map_get(&loading->lane->hot->events, event_id);
    if (loading->event == NULL) {
        snprintf(loading->why, loading->why_size, "the store has a layout of an event that does not exist");
        return ERR_STORE_CORRUPT;
    }
    loading->event->holds_ever = holds_ever;
    char why[256];
    enum err err = seatmap_create(&loading->event->row.org_id, event_id, document, blocks, block_count,
                                  &loading->map, why, sizeof(why));
    if (err != ERR_OK) {
        snprintf(loading->why, loading->why_size, "the store has a layout that cannot be read: %s", why);
        return ERR_STORE_CORRUPT;
    }
    loading->seat_count = 0;
    loading->rows = malloc(sizeof(struct seat_row) * ((size_t)loading->map->layout->seat_count + 1));
    return loading->rows != NULL ? ERR_OK : ERR_INTERNAL;
}

/* All seats of the event are here: put the map in place, then their versions. */
static enum err layout_complete(struct loading *loading)
{
    enum err err = hot_put_layout(loading->lane->hot, loading->event, loading->map);
    if (err == ERR_OK) {
        loading->map = NULL;
        for (int32_t i = 0; i < loading->seat_count; i++)
            hot_put_seat(loading->lane->hot, loading->event, &loading->rows[i]);
    }
    free(loading->rows);
    loading->rows = NULL;
    return err;
}

static enum err load_seat(void *context, const struct seat_row *seat)
{
    struct loading *loading = context;
    if (loading->map == NULL || seat->index != loading->seat_count ||
        seat->index >= loading->map->layout->seat_count) {
        snprintf(loading->why, loading->why_size, "the store's seats do not fit their layout");
        return ERR_STORE_CORRUPT;
    }
    seatmap_set_seat(loading->map, seat->index, &seat->id, seat->state);
    loading->rows[loading->seat_count++] = *seat;
    return loading->seat_count == loading->map->layout->seat_count ? layout_complete(loading) : ERR_OK;
}

static enum err load_hold(void *context, const struct hold_row *hold)
{
    struct loading *loading = context;
    struct hot *hot = loading->lane->hot;
    hot_put_hold(hot, hold, loading->lane->shared, loading->lane->now_ms);
    if (uuid_is_nil(&hold->checkout_id) || hot_checkout(hot, &hold->org_id, &hold->checkout_id) != NULL)
        return ERR_OK;
    if (loading->link_count == loading->link_capacity) {
        loading->link_capacity = loading->link_capacity ? loading->link_capacity * 2 : 1024;
        loading->links = realloc(loading->links, sizeof(struct link) * loading->link_capacity);
        CHECK(loading->links != NULL);
    }
    loading->links[loading->link_count++] =
        (struct link){.hold_id = hold->id, .checkout_id = hold->checkout_id};
    return ERR_OK;
}

static enum err load_checkout(void *context, const struct checkout_row *checkout)
{
    struct loading *loading = context;
    if (map_get(&loading->lane->hot->events, &checkout->event_id) == NULL) {
        snprintf(loading->why, loading->why_size, "the store has a checkout of an event that does not exist");
        return ERR_STORE_CORRUPT;
    }
    hot_put_checkout(loading->lane->hot, checkout);
    return ERR_OK;
}

static void link_holds(struct loading *loading)
{
    struct hot *hot = loading->lane->hot;
    for (size_t i = 0; i < loading->link_count; i++) {
        struct hot_hold *hold = map_get(&hot->holds, &loading->links[i].hold_id);
        if (hold == NULL)
            continue;
        struct hold_row row;
        hot_hold_row(hold, &row);
        row.checkout_id = loading->links[i].checkout_id;
        hot_put_hold(hot, &row, loading->lane->shared, loading->lane->now_ms);
    }
}

static void go_on(struct lane *lane)
{
    if (lane->shared)
        return; /* it may be going on elsewhere: sweep.c */
    size_t position = 0;
    struct hot_checkout *checkout;
    while ((checkout = map_next(&lane->hot->checkouts, &position)) != NULL)
        payment_resume(lane, checkout);
    position = 0;
    struct hot_event *event;
    while ((event = map_next(&lane->hot->events, &position)) != NULL) {
        if (event_is_open(event->row.state) || event->map == NULL)
            continue;
        struct seat_job *job = job_create(lane, NULL, JOB_RELEASE);
        job_over_event(job, event);
        job->empties_event = true;
        if (job->count == 0) {
            list_remove(&job->node);
            job_free(job);
        }
    }
}

enum err lane_load(struct lane *lane, char *why, size_t why_size)
{
    static const struct store_loader loader = {
        .on_position = load_position,
        .on_org = load_org,
        .on_user = load_user,
        .on_event = load_event,
        .on_layout = load_layout,
        .on_seat = load_seat,
        .on_hold = load_hold,
        .on_checkout = load_checkout,
    };
    struct loading loading = {.lane = lane, .why = why, .why_size = why_size};
    snprintf(why, why_size, "the store cannot be read");
    enum err err = store_load(lane->config.store, &loader, &loading);
    if (err == ERR_OK && loading.map != NULL) {
        snprintf(why, why_size, "the store has fewer seats than their layout");
        err = ERR_STORE_CORRUPT;
    }
    if (err == ERR_OK) {
        link_holds(&loading);
        go_on(lane);
    }
    seatmap_release(loading.map);
    free(loading.rows);
    free(loading.links);
    return err;
}
