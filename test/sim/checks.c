/* SPDX-License-Identifier: Apache-2.0
 * The promises, checked against what is committed. The model is plain: walk all
 * rows, count, compare.
 *
 *  1. A seat has at most one active hold, and is what that hold says it is.
 *  2. A seat is sold at most once: one ticket per sold seat, none without.
 *  3. What was acknowledged is there until its time, unless its owner, an admin
 *     or a payment ended it.
 *  4. A block never holds and sells more than its capacity; a user never holds
 *     more than the policy allows, of each node.
 *  5. Memory is what the store is, but for what is under way; at rest nothing is,
 *     and nothing is overdue.
 *  6. Whatever happened is audited, once. */
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "hold/rules.h"
#include "lane/lane_int.h"
#include "world.h"

enum {
    EMPTY_MS_MAX = 20000, /* whoever closed an event empties it; after a head start, anybody */
    CLEAR_MS = 45000,     /* so long after bad weather nothing waits for another try */
    LEAP_MS_MAX = 20000,  /* a node alone may have no turn for so long */
    /* A timer's grain, a slow node, another node's delay, clocks that differ. */
    FREE_MS_MAX = 4000 + FOREIGN_RELEASE_DELAY_MS + 2 * WORLD_SKEW_MS_MAX,
};

void world_fail(struct world *world, const char *what)
{
    printf("FAILED: %s\nseed %llu, step %lld, simulated time %lld ms\n", what,
           (unsigned long long)world->seed, (long long)world->step,
           (long long)(world->now_ms - 1700000000000));
    /* A build with sanitizers has longer limits (base/limits.h), so its runs are others. */
    printf("replay: make sim SEED=%llu STEPS=%lld%s\n", (unsigned long long)world->seed,
           (long long)world->step + 1, PATIENCE > 1 ? " BUILD=asan" : "");
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
            const struct sim_hold *hold = map_get(&world->tables->holds, &seat->row.hold_id);
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
    const struct sim_tables *tables = world->tables;
    for (int which = 0; which < WORLD_EVENT_COUNT; which++) {
        const struct sim_event *event = map_get(&tables->events, &world->events[which]);
        int32_t active[WORLD_SEAT_COUNT_MAX] = {0}, sold[WORLD_SEAT_COUNT_MAX] = {0};
        int32_t per_user[WORLD_USER_COUNT] = {0};
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
            if (per_user[user] > world->max_seats[which] * world->node_count)
                world_fail(world, "a user holds more than the policy allows");
        }
        check_event(world, event, active);
    }
}

/* New holds of the last window, as far as this lane can remember them. A seat that is sold for late
 * money was not asked for. */
static void check_rates(struct world *world)
{
    const struct sim_tables *tables = world->tables;
    int32_t per_user[WORLD_USER_COUNT] = {0};
    int64_t since_ms = world->now_ms - WORLD_RATE_SECONDS * 1000ll;
    for (int32_t i = 0; i < world->node_count; i++) {
        if (since_ms < world->nodes[i].started_ms + world->nodes[i].skew_ms)
            since_ms = world->nodes[i].started_ms + world->nodes[i].skew_ms;
    }
    size_t position = 0;
    const struct sim_hold *hold;
    while ((hold = map_next(&tables->holds, &position)) != NULL) {
        bool late = hold->row.state == HOLD_CONVERTED && hold->row.created_ms == hold->row.ended_ms;
        if (late || hold->row.created_ms <= since_ms || world_event_index(world, &hold->row.event_id) != 1)
            continue;
        for (int user = 0; user < WORLD_USER_COUNT; user++)
            per_user[user] += uuid_equal(&hold->row.user_id, &world->users[user]);
    }
    for (int user = 0; user < WORLD_USER_COUNT; user++) {
        if (per_user[user] > WORLD_RATE_HOLDS * world->node_count)
            world_fail(world, "a user got more new holds than the rate allows");
    }
}

/* Nobody is let in after an event was closed, and it comes to be empty. */
static void check_closed_events(struct world *world)
{
    for (int which = 0; which < WORLD_EVENT_COUNT; which++) {
        const struct sim_event *event = world_event(world, &world->events[which]);
        if (world->seen[which].closed && event->holds_ever != world->seen[which].holds_ever)
            world_fail(world, "a seat was held after its event was closed");
    }
    size_t position = 0;
    const struct sim_hold *hold;
    while ((hold = map_next(&world->tables->holds, &position)) != NULL) {
        int which = world_event_index(world, &hold->row.event_id);
        if (hold->row.state != HOLD_ACTIVE || which < 0 || !world->seen[which].closed)
            continue;
        const struct sim_checkout *checkout = world_checkout(world, &hold->row.checkout_id);
        bool paying = checkout != NULL && checkout->row.state == CHECKOUT_PROCESSING;
        int64_t since_ms = world->seen[which].closed_ms;
        if (since_ms < world->fine_ms)
            since_ms = world->fine_ms;
        if (world->fine && world->now_ms - since_ms > EMPTY_MS_MAX && !paying)
            world_fail(world, "a closed event does not come to be empty");
    }
}

/* While nothing fails, a hold whose time is over ends by its timer; after bad weather by the reaper at the latest. */
static void check_overdue(struct world *world)
{
    if (!world->fine)
        return;
    size_t position = 0;
    const struct sim_hold *hold;
    while ((hold = map_next(&world->tables->holds, &position)) != NULL) {
        const struct sim_checkout *checkout = world_checkout(world, &hold->row.checkout_id);
        bool paying = checkout != NULL && checkout->row.state == CHECKOUT_PROCESSING;
        if (hold->row.state != HOLD_ACTIVE || paying)
            continue;
        int64_t due_ms = hold->row.held_until_ms + WORLD_GRACE_SECONDS_MAX * 1000;
        bool since_fine = due_ms > world->fine_ms + CLEAR_MS;
        int64_t late_ms = world->now_ms - (due_ms > world->fine_ms ? due_ms : world->fine_ms);
        late_ms -= world->shared ? 0 : LEAP_MS_MAX;
        if (late_ms > (since_fine ? FREE_MS_MAX : FREE_MS_MAX + REAPER_INTERVAL_MS))
            world_fail(world, "a hold is not released in time");
    }
}

/* Time ends a hold after the grace, unless its owner asks anew. */
static bool was_renewed(struct world *world, const struct hold_row *row)
{
    size_t position = 0;
    const struct sim_hold *other;
    while ((other = map_next(&world->tables->holds, &position)) != NULL) {
        if (uuid_equal(&other->row.seat_id, &row->seat_id) &&
            uuid_equal(&other->row.user_id, &row->user_id) && other->row.created_ms == row->ended_ms)
            return true;
    }
    return false;
}

/* A promise holds until its time: the hold is active, or was ended by somebody who may. */
static void check_promises(struct world *world)
{
    const struct sim_tables *tables = world->tables;
    size_t position = 0;
    struct promise *promise;
    while ((promise = map_next(&world->promises, &position)) != NULL) {
        const struct sim_hold *hold = map_get(&tables->holds, &promise->hold_id);
        if (hold == NULL)
            world_fail(world, "an acknowledged hold is gone");
        if (hold->row.state != HOLD_ACTIVE && promise->ended_ms == 0)
            promise->ended_ms = world->now_ms;
        if (hold->row.state == HOLD_ACTIVE && hold->row.held_until_ms < promise->held_until_ms)
            world_fail(world, "an acknowledged hold got shorter");
        if (hold->row.state == HOLD_EXPIRED && hold->row.ended_ms < promise->held_until_ms)
            world_fail(world, "a hold expired before its time");
        if (hold->row.state == HOLD_EXPIRED &&
            hold->row.ended_ms < hold->row.held_until_ms + WORLD_GRACE_SECONDS_MIN * 1000 &&
            !was_renewed(world, &hold->row))
            world_fail(world, "a hold was released before its grace was over");
        if (promise->given_back && hold->row.state == HOLD_ACTIVE)
            world_fail(world, "a hold that was given back is active again");
    }
}

static void check_checkouts(struct world *world)
{
    const struct sim_tables *tables = world->tables;
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

/* Nobody waits for something that is not under way. */
static void check_waiting(struct world *world)
{
    if (world->shared)
        return; /* there somebody may wait for the change feed */
    const struct lane *lane = world->nodes[0].lane;
    if (lane->in_flight == 0 && lane->lookup_count == 0 && lane->waiting_count > 0 && !lane->progress)
        world_fail(world, "somebody waits for nothing");
    /* Nobody else writes to this store. */
    if (world->tables->miss_count > 0)
        world_fail(world, "a seat was not at the version that the lane expected");
}

void check_step(struct world *world)
{
    check_waiting(world);
    check_seats(world);
    check_promises(world);
    memory_check(world);
    letters_check_step(world);
    if (world->step % 16 != 0)
        return;
    check_checkouts(world);
    check_rates(world);
    check_closed_events(world);
    check_overdue(world);
    registry_check_locks(world);
    gateway_check(world, false);
    letters_check_holds(world);
}

/* ---- At rest ---- */

static void check_audit(struct world *world)
{
    const struct sim_tables *tables = world->tables;
    int64_t holds[HOLD_STATE_COUNT] = {0}, completed = 0;
    size_t position = 0;
    const struct sim_hold *hold;
    while ((hold = map_next(&tables->holds, &position)) != NULL)
        holds[hold->row.state]++;
    position = 0;
    const struct sim_checkout *checkout;
    while ((checkout = map_next(&tables->checkouts, &position)) != NULL)
        completed += checkout->row.state == CHECKOUT_COMPLETED;
    if (tables->audits[AUDIT_SEAT_RESERVED] != (int64_t)tables->holds.count ||
        tables->audits[AUDIT_SEAT_HOLD_EXPIRED] != holds[HOLD_EXPIRED] ||
        tables->audits[AUDIT_SEAT_RELEASED] != holds[HOLD_CANCELLED] ||
        tables->audits[AUDIT_SEAT_SOLD] != holds[HOLD_CONVERTED])
        world_fail(world, "a hold began or ended without being audited once");
    if (holds[HOLD_CONVERTED] != (int64_t)tables->tickets.count)
        world_fail(world, "as many holds are converted as there are tickets: not so");
    if (tables->audits[AUDIT_CHECKOUT_STARTED] != (int64_t)tables->checkouts.count ||
        tables->audits[AUDIT_CHECKOUT_COMPLETED] != completed)
        world_fail(world, "a checkout began or was completed without being audited once");
}

void check_settled(struct world *world)
{
    memory_check_settled(world);
    check_checkouts(world);
}

void check_quiet(struct world *world)
{
    const struct sim_tables *tables = world->tables;
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
    memory_check_at_rest(world);
    check_audit(world);
    gateway_check(world, true);
}
