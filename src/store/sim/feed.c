/* SPDX-License-Identifier: Apache-2.0
 * The change feed of the simulated store, as a database server has it. A commit
 * gets the next number, and may stay invisible for a while; nothing behind it is
 * given out before it. What can be seen is given out in windows of numbers, and
 * inside a window in order of ids, which is the order of commits but for those
 * that have nothing in common.
 *
 * Invariants: (1) a window never grows and nothing turns up in it later: it ends
 * before the first number that cannot be seen. (2) Two changes that meet in what
 * one of them wrote come in the order of their commits: only ids of changes that
 * do not meet are exchanged, and only while neither can be seen. (3) It is purged
 * from its oldest change on. */
#include <stdlib.h>
#include <string.h>

#include "store/changes.h"
#include "store/sim/sim_int.h"

enum { EXCHANGE_THOUSANDTHS = 400 };
#define DELIVERY_WAIT_MS_MAX ((int64_t)7 * 24 * 3600 * 1000)

static void change_deinit(struct sim_change *change)
{
    free(change->data);
    sim_locks_deinit(&change->locks);
}

void sim_feed_deinit(struct sim_feed *feed)
{
    for (size_t i = 0; i < feed->count; i++)
        change_deinit(&feed->changes[i]);
    free(feed->changes);
}

/* The first number that cannot be seen. */
static int64_t feed_end(const struct sim_database *database)
{
    const struct sim_feed *feed = &database->feed;
    for (size_t i = 0; i < feed->count; i++) {
        if (feed->changes[i].visible_ms > database->now_ms)
            return feed->changes[i].number;
    }
    return feed->next;
}

struct feed_position sim_feed_position(const struct sim_database *database)
{
    return (struct feed_position){.from = feed_end(database)};
}

/* ---- Adding ---- */

/* The change whose id comes just before, if it cannot be seen either. */
static struct sim_change *change_before(struct sim_database *database, const struct sim_change *change)
{
    struct sim_feed *feed = &database->feed;
    int64_t end = feed_end(database);
    for (size_t i = 0; i < feed->count; i++) {
        struct sim_change *other = &feed->changes[i];
        if (other->id == change->id - 1)
            return other->number >= end ? other : NULL;
    }
    return NULL;
}

/* It was under way together with others: whose id is taken first is chance, unless they meet. */
static void change_mix(struct sim_store *sim, struct sim_change *change)
{
    struct sim_change *other;
    while (rng_below(&sim->rng, 1000) < EXCHANGE_THOUSANDTHS &&
           (other = change_before(sim->database, change)) != NULL &&
           !sim_locks_meet(&other->locks, &change->locks)) {
        int64_t id = other->id;
        other->id = change->id;
        change->id = id;
    }
}

void sim_feed_add(struct sim_store *sim, const struct store_batch *batch)
{
    struct sim_feed *feed = &sim->database->feed;
    struct changes_packer packer;
    struct buf data;
    buf_init(&data);
    changes_pack_begin(&packer, &data, &batch->node_id);
    LIST_FOR_EACH(node, &batch->units) {
        const struct store_unit *unit = CONTAINER_OF(node, struct store_unit, node);
        if (unit->result == UNIT_OK)
            changes_pack_unit(&packer, unit);
    }
    CHECK(buf_ok(&data));
    if (data.size > 0) {
        if (feed->count == feed->capacity) {
            feed->capacity = feed->capacity == 0 ? 64 : feed->capacity * 2;
            feed->changes = realloc(feed->changes, feed->capacity * sizeof(*feed->changes));
            CHECK(feed->changes != NULL);
        }
        struct sim_change *change = &feed->changes[feed->count++];
        *change = (struct sim_change){.number = feed->next,
                                      .id = feed->next,
                                      .created_ms = batch->now_ms,
                                      .visible_ms = sim->database->now_ms,
                                      .data = malloc(data.size),
                                      .size = data.size};
        CHECK(change->data != NULL);
        memcpy(change->data, data.data, data.size);
        feed->next++;
        if (sim->faults.feed_delay_ms_max > 0) {
            change->visible_ms += (int64_t)rng_below(&sim->rng, (uint64_t)sim->faults.feed_delay_ms_max + 1);
            sim_locks_add_batch(&change->locks, batch);
            change_mix(sim, change);
        }
    }
    buf_deinit(&data);
}

void sim_feed_purge(struct sim_database *database, const struct store_batch *batch)
{
    struct sim_feed *feed = &database->feed;
    int64_t passed = feed_end(database);
    for (const struct sim_delivery *d = database->tables.deliveries; d != NULL; d = d->next)
        passed = d->row.position.from < passed ? d->row.position.from : passed;
    size_t count = 0;
    while (count < feed->count && feed->changes[count].created_ms < batch->purge_before_ms &&
           feed->changes[count].visible_ms <= database->now_ms &&
           (feed->changes[count].number < passed ||
            feed->changes[count].created_ms < batch->now_ms - DELIVERY_WAIT_MS_MAX)) {
        feed->purged = feed->changes[count].number;
        change_deinit(&feed->changes[count++]);
    }
    feed->count -= count;
    memmove(feed->changes, feed->changes + count, feed->count * sizeof(*feed->changes));
}

/* ---- Following ---- */

/* Of the window, the change with the lowest id above `id`. */
static const struct sim_change *change_next(const struct sim_feed *feed, const struct feed_position *window)
{
    const struct sim_change *next = NULL;
    for (size_t i = 0; i < feed->count; i++) {
        const struct sim_change *change = &feed->changes[i];
        if (change->number >= window->from && change->number < window->to && change->id > window->id &&
            (next == NULL || change->id < next->id))
            next = change;
    }
    return next;
}

void sim_feed_follow(struct sim_store *sim, struct store_follow *follow)
{
    struct sim_database *database = sim->database;
    const struct sim_feed *feed = &database->feed;
    struct feed_position window = follow->after;
    follow->err = ERR_OK;
    follow->count = 0;
    follow->changes = ARENA_ARRAY(follow->arena, struct store_change, follow->limit);
    follow->position = follow->after;
    follow->more = false;
    follow->lost = feed->purged > 0 && window.from <= feed->purged;
    follow->horizon = feed->next;
    follow->reached = window.from;
    if (follow->lost)
        return;
    if (window.to == 0)
        window.to = feed_end(database);
    const struct sim_change *change;
    while ((change = change_next(feed, &window)) != NULL && follow->count < follow->limit) {
        follow->changes[follow->count++] =
            (struct store_change){.id = change->id,
                                  .created_ms = change->created_ms,
                                  .data = arena_copy(follow->arena, change->data, change->size),
                                  .size = change->size};
        window.id = change->id;
    }
    follow->more = change != NULL;
    follow->position = follow->more ? window : (struct feed_position){.from = window.to};
    follow->reached = follow->position.from;
}
