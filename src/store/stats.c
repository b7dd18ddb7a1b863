/* SPDX-License-Identifier: Apache-2.0
 * Sums the differences of a batch per block and per hour of the holds' making.
 * The writing thread adds each unit once it was written, and applies the sums
 * before it commits.
 *
 * Invariants: (1) the seat differences of a block sum to zero: a seat leaves
 * one state and enters another. (2) Holds created − holds ended changes exactly
 * as the number of active holds does. (3) Two batches with the same units give
 * the same list in the same order, so that transactions of several writers
 * lock blocks in one order.
 *
 * It deliberately knows nothing of tables: each store writes the sums itself. */
#include "store/stats.h"

#include <stdlib.h>

void stats_init(struct stats *stats)
{
    arena_init(&stats->arena);
    map_init(&stats->blocks);
    stats->block_count = 0;
}

void stats_deinit(struct stats *stats)
{
    map_deinit(&stats->blocks);
    arena_deinit(&stats->arena);
}

void stats_reset(struct stats *stats)
{
    map_deinit(&stats->blocks);
    map_init(&stats->blocks);
    arena_reset(&stats->arena);
    stats->block_count = 0;
}

static struct stats_block *stats_block_of(struct stats *stats, const struct uuid *org_id,
                                          const struct uuid *event_id, const struct uuid *block_id)
{
    struct stats_block *first = map_get(&stats->blocks, block_id);
    for (struct stats_block *block = first; block != NULL; block = block->same_id) {
        if (uuid_equal(&block->org_id, org_id) && uuid_equal(&block->event_id, event_id))
            return block;
    }
    struct stats_block *block = ARENA_NEW(&stats->arena, struct stats_block);
    block->same_id = first;
    block->org_id = *org_id;
    block->event_id = *event_id;
    block->block_id = *block_id;
    map_put(&stats->blocks, block_id, block);
    stats->block_count++;
    return block;
}

static struct stats_hour *stats_hour_of(struct stats *stats, struct stats_block *block, int64_t created_ms)
{
    int64_t hour_ms = created_ms - ((created_ms % STATS_HOUR_MS) + STATS_HOUR_MS) % STATS_HOUR_MS;
    for (struct stats_hour *hour = block->hours; hour != NULL; hour = hour->next) {
        if (hour->hour_ms == hour_ms)
            return hour;
    }
    struct stats_hour *hour = ARENA_NEW(&stats->arena, struct stats_hour);
    hour->hour_ms = hour_ms;
    hour->next = block->hours;
    block->hours = hour;
    return hour;
}

static void stats_add_hold(struct stats_holds *holds, const struct hold_write *write)
{
    if (write->insert)
        holds->created++;
    if (write->row.state != HOLD_ACTIVE) {
        holds->ended[write->row.state]++;
        if (write->row.ended_ms > write->row.created_ms)
            holds->held_ms += write->row.ended_ms - write->row.created_ms;
    }
}

void stats_add_unit(struct stats *stats, const struct store_unit *unit)
{
    for (const struct seat_write *w = unit->seats; w != NULL; w = w->next) {
        struct stats_block *block = stats_block_of(stats, &w->row.org_id, &w->row.event_id, &w->block_id);
        block->seats[w->before]--;
        block->seats[w->row.state]++;
    }
    for (const struct hold_write *w = unit->holds; w != NULL; w = w->next) {
        if (!w->insert && w->row.state == HOLD_ACTIVE)
            continue;
        struct stats_block *block = stats_block_of(stats, &w->row.org_id, &w->row.event_id, &w->block_id);
        stats_add_hold(&block->holds, w);
        stats_add_hold(&stats_hour_of(stats, block, w->row.created_ms)->holds, w);
    }
}

static int stats_compare(const void *a, const void *b)
{
    const struct stats_block *left = *(struct stats_block *const *)a;
    const struct stats_block *right = *(struct stats_block *const *)b;
    int order = uuid_compare(&left->org_id, &right->org_id);
    if (order == 0)
        order = uuid_compare(&left->event_id, &right->event_id);
    if (order == 0)
        order = uuid_compare(&left->block_id, &right->block_id);
    return order;
}

struct stats_block **stats_sorted(struct stats *stats)
{
    struct stats_block **list = ARENA_ARRAY(&stats->arena, struct stats_block *, stats->block_count + 1);
    size_t count = 0;
    struct stats_block *block;
    for (size_t i = 0; (block = map_next(&stats->blocks, &i)) != NULL;) {
        for (; block != NULL; block = block->same_id)
            list[count++] = block;
    }
    CHECK(count == stats->block_count);
    qsort(list, count, sizeof(list[0]), stats_compare);
    return list;
}
