/* SPDX-License-Identifier: Apache-2.0
 * What the nodes remember, compared with what is committed. A node alone
 * remembers exactly that, but for what is under way. One of several may be
 * behind, never ahead, and what it has at the same version is the same; when
 * nothing is under way it has caught up. */
#include <string.h>

#include "hold/rules.h"
#include "lane/lane_int.h"
#include "world.h"

/* ---- Seats and their holds ---- */

static void check_seat(struct world *world, const struct hot_event *event, const struct seat_row *row)
{
    int32_t i = row->index;
    const struct hot_seat *seat = &event->seats[i];
    if (seatmap_state(event->map, i) != row->state)
        world_fail(world, "memory and store disagree on a seat");
    if ((seat->hold != NULL) != (row->state == SEAT_HELD))
        world_fail(world, "memory has no hold for a held seat, or the reverse");
    if (bit_get(event->free, i) != (row->state == SEAT_AVAILABLE))
        world_fail(world, "a free seat is not offered, or the reverse");
    if (seat->hold == NULL)
        return;
    const struct hold_row *hold = &world_hold(world, &row->hold_id)->row;
    if (!uuid_equal(&seat->hold->id, &row->hold_id) || seat->hold->held_until_ms != row->held_until_ms ||
        !uuid_equal(&seat->hold->user->user_id, &hold->user_id) ||
        seat->hold->price_cents != hold->price_cents)
        world_fail(world, "memory and store disagree on a hold");
}

static void check_seats(struct node *node, bool settled)
{
    struct world *world = node->world;
    bool exact = settled || !world->shared;
    for (int which = 0; which < WORLD_EVENT_COUNT; which++) {
        const struct sim_event *stored = world_event(world, &world->events[which]);
        const struct hot_event *event = map_get(&node->lane->hot->events, &world->events[which]);
        if (event == NULL || event->map == NULL) {
            if (exact)
                world_fail(world, "memory does not know an event");
            continue;
        }
        for (int32_t i = 0; i < stored->seat_count; i++) {
            const struct seat_row *row = &stored->seats[i].row;
            const struct hot_seat *seat = &event->seats[i];
            if (seat->version > row->version)
                world_fail(world, "memory is ahead of the store");
            if (seat->busy)
                continue;
            if (exact && seat->version != row->version)
                world_fail(world, "memory and store disagree on a seat's version");
            if (seat->version == row->version)
                check_seat(world, event, row);
        }
    }
}

/* ---- Checkouts ---- */

static bool is_open(const struct checkout_row *row)
{
    return row->state == CHECKOUT_PENDING_PAYMENT || row->state == CHECKOUT_PROCESSING ||
           row->refund == REFUND_OWED;
}

static void check_checkouts(struct node *node, bool settled)
{
    struct world *world = node->world;
    bool exact = settled || !world->shared;
    size_t position = 0;
    const struct hot_checkout *checkout;
    while ((checkout = map_next(&node->lane->hot->checkouts, &position)) != NULL) {
        const struct sim_checkout *stored = world_checkout(world, &checkout->row.id);
        if (stored == NULL || checkout->row.version > stored->row.version)
            world_fail(world, "memory has a checkout that is not committed");
        if (checkout->busy || (!exact && checkout->row.version != stored->row.version))
            continue;
        if (stored->row.state != checkout->row.state || stored->row.version != checkout->row.version ||
            stored->row.total_cents != checkout->row.total_cents ||
            stored->row.refund != checkout->row.refund ||
            !uuid_equal(&stored->row.payer, &checkout->row.payer))
            world_fail(world, "memory and store disagree on a checkout");
    }
    if (!settled)
        return;
    position = 0;
    const struct sim_checkout *stored;
    while ((stored = map_next(&world->tables->checkouts, &position)) != NULL) {
        if (is_open(&stored->row) && map_get(&node->lane->hot->checkouts, &stored->row.id) == NULL)
            world_fail(world, "memory does not know an open checkout");
    }
}

void memory_check(struct world *world)
{
    for (int32_t i = 0; i < world->node_count; i++) {
        check_seats(&world->nodes[i], false);
        check_checkouts(&world->nodes[i], false);
    }
}

/* ---- When nothing is under way ---- */

static void check_event(struct node *node, const struct sim_event *stored)
{
    struct world *world = node->world;
    const struct hot_event *event = map_get(&node->lane->hot->events, &stored->row.id);
    if (event->row.version != stored->row.version || event->row.state != stored->row.state ||
        memcmp(&event->row.policy, &stored->row.policy, sizeof(struct policy)) != 0 ||
        strcmp(event->row.name, stored->row.name) != 0)
        world_fail(world, "memory and store disagree on an event");
    for (int32_t i = 0; i < stored->block_count; i++) {
        const struct block_row *block = &stored->blocks[i];
        const struct block_info *info =
            seatmap_block_info(event->map, seatmap_block_find(event->map, &block->id));
        if (info->capacity != block->capacity || info->price_cents != block->price_cents)
            world_fail(world, "memory and store disagree on a block");
        if (event->pending_by_block[i] != 0)
            world_fail(world, "a block counts something as pending at rest");
    }
    if (event->unit_count != 0 || event->exclusive)
        world_fail(world, "an event is closed for changes at rest");
}

static int32_t count_active(struct world *world, const struct uuid *event_id, const struct uuid *user_id)
{
    int32_t count = 0;
    size_t position = 0;
    const struct sim_hold *hold;
    while ((hold = map_next(&world->tables->holds, &position)) != NULL)
        count += hold->row.state == HOLD_ACTIVE && uuid_equal(&hold->row.event_id, event_id) &&
                 (user_id == NULL || uuid_equal(&hold->row.user_id, user_id));
    return count;
}

static void check_users(struct node *node, const struct uuid *event_id)
{
    struct world *world = node->world;
    struct hot_event *event = map_get(&node->lane->hot->events, event_id);
    int32_t total = 0;
    size_t position = 0;
    const struct hot_user *user;
    while ((user = map_next(&event->users, &position)) != NULL) {
        if (user->hold_count != count_active(world, event_id, &user->user_id))
            world_fail(world, "memory and store disagree on how much a user holds");
        if (user->pending_count != 0 || user->pending_more != 0)
            world_fail(world, "a user counts something as pending at rest");
        total += user->hold_count;
    }
    if (total != count_active(world, event_id, NULL))
        world_fail(world, "memory does not know somebody who holds a seat");
}

static void check_nothing_under_way(struct node *node)
{
    struct world *world = node->world;
    const struct lane *lane = node->lane;
    if (!lane_is_idle(lane) || node->in_flight > 0)
        world_fail(world, "the lane does not come to rest");
    if (lane->keys.count > 0)
        world_fail(world, "a key is under way at rest");
    if (lane->waiting_count != 0 || lane->settling.count != 0)
        world_fail(world, "something waits at rest");
}

void memory_check_settled(struct world *world)
{
    for (int32_t i = 0; i < world->node_count; i++) {
        struct node *node = &world->nodes[i];
        check_nothing_under_way(node);
        check_seats(node, true);
        check_checkouts(node, true);
        for (int which = 0; which < WORLD_EVENT_COUNT; which++) {
            const struct sim_event *stored = world_event(world, &world->events[which]);
            check_event(node, stored);
            check_users(node, &stored->row.id);
            const struct hot_event *event = map_get(&node->lane->hot->events, &stored->row.id);
            for (int32_t seat = 0; seat < stored->seat_count; seat++) {
                if (event->seats[seat].busy)
                    world_fail(world, "a seat is busy at rest");
            }
        }
    }
}

void memory_check_at_rest(struct world *world)
{
    memory_check_settled(world);
    for (int32_t i = 0; i < world->node_count; i++) {
        const struct hot *hot = world->nodes[i].lane->hot;
        if (hot->holds.count != 0 || hot->checkouts.count != 0)
            world_fail(world, "memory keeps what has ended");
    }
}
