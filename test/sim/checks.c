/* SPDX-License-Identifier: Apache-2.0
 * The promises, checked against what is committed. The model is plain: walk all
 * rows, count, compare.
 *
 *  1. A seat has at most one active hold, and is what that hold says it is.
 *  2. A seat is sold at most once: one ticket per sold seat, none without.
 *  3. What was acknowledged is there until its time, unless its owner, an admin
 *     or a payment ended it.
 *  4. A block never holds and sells more than its capacity; a user never holds
 *     more than the policy allows.
 *  5. At rest, memory is what the store is, and nothing is overdue. */
#include <stdio.h>
#include <stdlib.h>

#include "hold/rules.h"
#include "lane/lane_int.h"
#include "world.h"

void world_fail(struct world *world, const char *what)
{
    printf("FAILED: %s\nseed %llu, step %lld, simulated time %lld ms\n", what,
           (unsigned long long)world->seed, (long long)world->step,
           (long long)(world->now_ms - 1700000000000));
    printf("replay: make sim SEED=%llu STEPS=%lld\n", (unsigned long long)world->seed,
           (long long)world->step + 1);
    fflush(stdout);
    abort();
}

static void check_event(struct world *world, const struct sim_event *event, const int32_t *active)
{
    int32_t taken[16] = {0};
    for (int32_t i = 0; i < event->seat_count; i++) {
        const struct sim_seat *seat = &event->seats[i];
        if (active[i] > 1)
            world_fail(world, "a seat has two active holds");
        if ((seat->row.state == SEAT_HELD) != (active[i] == 1))
            world_fail(world, "a seat is held without an active hold, or the reverse");
        if (seat->row.state == SEAT_HELD) {
            const struct sim_hold *hold = map_get(&sim_store_tables(world->store)->holds, &seat->row.hold_id);
            if (hold == NULL || hold->row.state != HOLD_ACTIVE ||
                !uuid_equal(&hold->row.seat_id, &seat->row.id))
                world_fail(world, "a held seat points to another hold");
            if (hold->row.held_until_ms != seat->row.held_until_ms)
                world_fail(world, "seat and hold end at different times");
        }
        for (int32_t block = 0; block < event->block_count; block++) {
            if (uuid_equal(&event->blocks[block].id, &seat->block_id))
                taken[block] += seat->row.state == SEAT_HELD || seat->row.state == SEAT_SOLD;
        }
    }
    for (int32_t block = 0; block < event->block_count; block++) {
        if (taken[block] > event->blocks[block].capacity)
            world_fail(world, "a block is over its capacity");
    }
}

/* Index of a seat, by looking at all of them: this is the plain model. */
static int32_t find_seat(const struct sim_event *event, const struct uuid *seat_id)
{
    for (int32_t i = 0; i < event->seat_count; i++) {
        if (uuid_equal(&event->seats[i].row.id, seat_id))
            return i;
    }
    return -1;
}

static void check_seats(struct world *world)
{
    const struct sim_tables *tables = sim_store_tables(world->store);
    for (int which = 0; which < WORLD_EVENT_COUNT; which++) {
        const struct sim_event *event = map_get(&tables->events, &world->events[which]);
        int32_t active[64] = {0}, sold[64] = {0}, per_user[WORLD_USER_COUNT] = {0};
        size_t position = 0;
        const struct sim_hold *hold;
        while ((hold = map_next(&tables->holds, &position)) != NULL) {
            if (hold->row.state != HOLD_ACTIVE || !uuid_equal(&hold->row.event_id, &event->row.id))
                continue;
            active[find_seat(event, &hold->row.seat_id)]++;
            for (int user = 0; user < WORLD_USER_COUNT; user++)
                per_user[user] += uuid_equal(&hold->row.user_id, &world->users[user]);
        }
        position = 0;
        const struct ticket_row *ticket;
        while ((ticket = map_next(&tables->tickets, &position)) != NULL) {
            if (uuid_equal(&ticket->event_id, &event->row.id) && ticket->refunded_ms == 0)
                sold[find_seat(event, &ticket->seat_id)]++;
        }
        for (int32_t i = 0; i < event->seat_count; i++) {
            if (sold[i] != (event->seats[i].row.state == SEAT_SOLD))
                world_fail(world, "a seat is sold twice, or without a ticket");
        }
        for (int user = 0; user < WORLD_USER_COUNT; user++) {
            if (per_user[user] > event->row.policy.max_seats_per_user)
                world_fail(world, "a user holds more than the policy allows");
        }
        check_event(world, event, active);
    }
}

/* A promise holds until its time: the hold is active, or was ended by somebody who may. */
static void check_promises(struct world *world)
{
    const struct sim_tables *tables = sim_store_tables(world->store);
    size_t position = 0;
    const struct promise *promise;
    while ((promise = map_next(&world->promises, &position)) != NULL) {
        const struct sim_hold *hold = map_get(&tables->holds, &promise->hold_id);
        if (hold == NULL)
            world_fail(world, "an acknowledged hold is gone");
        if (hold->row.state == HOLD_ACTIVE && hold->row.held_until_ms < promise->held_until_ms)
            world_fail(world, "an acknowledged hold got shorter");
        if (hold->row.state == HOLD_EXPIRED && hold->row.ended_ms < promise->held_until_ms)
            world_fail(world, "a hold expired before its time");
        if (promise->given_back && hold->row.state == HOLD_ACTIVE)
            world_fail(world, "a hold that was given back is active again");
    }
}

static void check_checkouts(struct world *world)
{
    const struct sim_tables *tables = sim_store_tables(world->store);
    size_t position = 0;
    const struct sim_checkout *checkout;
    while ((checkout = map_next(&tables->checkouts, &position)) != NULL) {
        int64_t total = 0;
        int32_t hold_count = 0, ticket_count = 0;
        size_t at = 0;
        const struct sim_hold *hold;
        while ((hold = map_next(&tables->holds, &at)) != NULL) {
            if (!uuid_equal(&hold->row.checkout_id, &checkout->row.id) || hold->row.state != HOLD_ACTIVE)
                continue;
            total += hold->row.price_cents;
            hold_count++;
        }
        at = 0;
        const struct ticket_row *ticket;
        while ((ticket = map_next(&tables->tickets, &at)) != NULL)
            ticket_count += uuid_equal(&ticket->checkout_id, &checkout->row.id);
        bool open =
            checkout->row.state == CHECKOUT_PENDING_PAYMENT || checkout->row.state == CHECKOUT_PROCESSING;
        if (open && (hold_count == 0 || total != checkout->row.total_cents))
            world_fail(world, "an open checkout's total is not that of its holds");
        if (!open && hold_count > 0)
            world_fail(world, "a checkout that ended still has active holds");
        if ((checkout->row.state == CHECKOUT_COMPLETED) != (ticket_count > 0))
            world_fail(world, "tickets without a completed checkout, or the reverse");
    }
}

void check_step(struct world *world)
{
    check_seats(world);
    check_promises(world);
    if (world->step % 16 == 0)
        check_checkouts(world);
}

/* ---- At rest ---- */

static void check_memory(struct world *world)
{
    const struct sim_tables *tables = sim_store_tables(world->store);
    struct hot *hot = world->lane->hot;
    for (int which = 0; which < WORLD_EVENT_COUNT; which++) {
        const struct sim_event *stored = map_get(&tables->events, &world->events[which]);
        struct hot_event *event = map_get(&hot->events, &world->events[which]);
        for (int32_t i = 0; i < stored->seat_count; i++) {
            const struct seat_row *row = &stored->seats[i].row;
            struct hot_seat *seat = &event->seats[i];
            if (seat->busy)
                world_fail(world, "a seat is busy at rest");
            if (seat->version != row->version || seatmap_state(event->map, i) != row->state)
                world_fail(world, "memory and store disagree on a seat");
            if ((seat->hold != NULL) != (row->state == SEAT_HELD))
                world_fail(world, "memory has no hold for a held seat, or the reverse");
            if (bit_get(event->free, i) != (row->state == SEAT_AVAILABLE))
                world_fail(world, "a free seat is not offered, or the reverse");
        }
        for (int32_t block = 0; block < stored->block_count; block++) {
            if (event->pending_by_block[block] != 0)
                world_fail(world, "a block counts something as pending at rest");
        }
        if (event->unit_count != 0 || event->exclusive)
            world_fail(world, "an event is closed for changes at rest");
    }
}

void check_quiet(struct world *world)
{
    const struct sim_tables *tables = sim_store_tables(world->store);
    if (!lane_is_idle(world->lane) || world->in_flight > 0)
        world_fail(world, "the lane does not come to rest");
    if (world->lane->keys.count > 0)
        world_fail(world, "a key is under way at rest");
    size_t position = 0;
    const struct sim_hold *hold;
    while ((hold = map_next(&tables->holds, &position)) != NULL) {
        if (hold->row.state == HOLD_ACTIVE)
            world_fail(world, "a hold outlived its time");
    }
    position = 0;
    const struct sim_checkout *checkout;
    while ((checkout = map_next(&tables->checkouts, &position)) != NULL) {
        if (checkout->row.state == CHECKOUT_PENDING_PAYMENT || checkout->row.state == CHECKOUT_PROCESSING)
            world_fail(world, "a checkout outlived its holds");
        if (checkout->row.refund == REFUND_OWED)
            world_fail(world, "a refund is still owed");
    }
    check_memory(world);
}
