/* SPDX-License-Identifier: Apache-2.0
 * What a batch of the simulated store has locked while it is under way: what
 * its units write, and what they rely on. Two batches that meet in what one of
 * them writes cannot both be under way; those that do not may commit, and come
 * out of the change feed, in any order. */
#include <stdlib.h>

#include "store/sim/sim_int.h"

static void lock_add(struct sim_locks *locks, const struct uuid *id, bool written)
{
    if (locks->count == locks->capacity) {
        locks->capacity = locks->capacity == 0 ? 16 : locks->capacity * 2;
        locks->items = realloc(locks->items, locks->capacity * sizeof(*locks->items));
        CHECK(locks->items != NULL);
    }
    locks->items[locks->count++] = (struct sim_lock){.id = *id, .written = written};
}

static void locks_add_unit(struct sim_locks *locks, const struct store_unit *unit)
{
    for (const struct seat_write *w = unit->seats; w != NULL; w = w->next)
        lock_add(locks, &w->row.id, true);
    for (const struct hold_write *w = unit->holds; w != NULL; w = w->next)
        lock_add(locks, &w->row.id, true);
    for (const struct checkout_write *w = unit->checkouts; w != NULL; w = w->next)
        lock_add(locks, &w->row.id, true);
    for (const struct user_write *w = unit->users; w != NULL; w = w->next)
        lock_add(locks, &w->row.id, true);
    for (const struct event_write *w = unit->events; w != NULL; w = w->next)
        lock_add(locks, &w->row.id, true);
    for (const struct block_write *w = unit->blocks; w != NULL; w = w->next) {
        lock_add(locks, &w->row.id, true);
        lock_add(locks, &w->row.event_id, true);
    }
    for (const struct layout_write *w = unit->layouts; w != NULL; w = w->next)
        lock_add(locks, &w->event_id, true);
    for (const struct event_check *w = unit->checks; w != NULL; w = w->next)
        lock_add(locks, &w->event_id, false);
    for (const struct block_claim *w = unit->claims; w != NULL; w = w->next)
        lock_add(locks, &w->block_id, true);
    for (const struct order_claim *w = unit->order_claims; w != NULL; w = w->next) {
        struct uuid id = sim_key_of_order(w->row.topic, w->row.partition);
        lock_add(locks, &id, true);
    }
    for (const struct order_check *w = unit->order_checks; w != NULL; w = w->next) {
        struct uuid id = sim_key_of_order(w->topic, w->partition);
        lock_add(locks, &id, false);
    }
}

void sim_locks_add_batch(struct sim_locks *locks, const struct store_batch *batch)
{
    LIST_FOR_EACH(node, &batch->units) {
        locks_add_unit(locks, CONTAINER_OF(node, struct store_unit, node));
    }
}

bool sim_locks_exclude(const struct sim_locks *locks, const struct uuid *id, bool to_write)
{
    for (size_t i = 0; i < locks->count; i++) {
        if ((to_write || locks->items[i].written) && uuid_equal(&locks->items[i].id, id))
            return true;
    }
    return false;
}

bool sim_locks_meet(const struct sim_locks *a, const struct sim_locks *b)
{
    for (size_t i = 0; i < a->count; i++) {
        if (sim_locks_exclude(b, &a->items[i].id, a->items[i].written))
            return true;
    }
    return false;
}

void sim_locks_deinit(struct sim_locks *locks)
{
    free(locks->items);
    *locks = (struct sim_locks){.items = NULL};
}
