/* SPDX-License-Identifier: Apache-2.0
 * What another node began and may not finish. Every second this looks at
 *  - payments and refunds: the node that asks the gateway has a lease in the
 *    checkout's row and renews it; when it runs out, another takes the checkout
 *    over, with a write of its own first, and asks again with the same key;
 *  - events that are no longer open and still have holds: whoever finds them
 *    goes on emptying them.
 * A node alone with its store has nothing to look for: load.c goes on with all
 * of it at once. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "hold/rules.h"
#include "lane/lane_int.h"

/* ---- Leases ---- */

void payer_take(const struct lane *lane, struct checkout_row *row)
{
    row->payer = lane->config.node_id;
    row->payer_until_ms = lane->now_ms + PAYER_LEASE_MS;
}

static bool wants_payer(const struct checkout_row *row)
{
    return row->state == CHECKOUT_PROCESSING || row->refund == REFUND_OWED;
}

static bool is_ours(const struct lane *lane, const struct checkout_row *row)
{
    return uuid_equal(&row->payer, &lane->config.node_id);
}

bool payer_is_elsewhere(const struct lane *lane, const struct checkout_row *row)
{
    return lane->shared && !is_ours(lane, row) && row->payer_until_ms > lane->now_ms;
}

static void renew(struct lane *lane, struct hot_checkout *checkout)
{
    struct step *step = step_begin(lane, NULL);
    payer_take(lane, step_checkout(step, checkout));
    step_submit(step);
}

/* ---- Taking over: a command, because it must read the payment's token from the store ---- */

struct take_over {
    struct command command;
    struct arena arena;
    struct lane *lane;
};

static void take_over_done(struct command *command)
{
    struct take_over *own = CONTAINER_OF(command, struct take_over, command);
    struct hot_checkout *checkout = hot_checkout(own->lane->hot, &command->actor.org_id, &command->id);
    if (checkout != NULL)
        checkout->taking_over = false;
    command_deinit(command);
    arena_deinit(&own->arena);
    free(own);
}

static void take_over(struct lane *lane, struct hot_checkout *checkout)
{
    if (checkout->taking_over)
        return; /* the store is slow: one question at a time */
    struct take_over *own = calloc(1, sizeof(*own));
    CHECK(own != NULL);
    checkout->taking_over = true;
    own->lane = lane;
    arena_init(&own->arena);
    command_init(&own->command, COMMAND_PAYMENT_TAKE_OVER, &own->arena);
    own->command.actor.org_id = checkout->row.org_id;
    own->command.actor.role = ROLE_SYSTEM;
    own->command.id = checkout->row.id;
    own->command.on_done = take_over_done;
    own->command.arrived_ms = lane->now_ms;
    own->command.arrived_us = clock_monotonic_us();
    lane_make_ready(lane, &own->command);
}

enum decision decide_payment_take_over(struct lane *lane, struct command *command)
{
    command->result = (struct result){0};
    struct hot_checkout *checkout = hot_checkout(lane->hot, &command->actor.org_id, &command->id);
    bool is_left = checkout != NULL && !checkout->busy && wants_payer(&checkout->row) &&
                   checkout->row.payer_until_ms <= lane->now_ms;
    if (!is_left)
        return lane_answer(lane, command, ERR_OK);
    struct store_lookup *lookup = lane_lookup(lane, command, LOOKUP_CHECKOUT, &command->id);
    if (lookup == NULL)
        return LOOKING_UP;
    if (lookup->err != ERR_OK || !lookup->found || lookup->checkout.version != checkout->row.version)
        return lane_answer(lane, command, ERR_OK); /* the next sweep knows better */
    struct step *step = step_begin(lane, command);
    struct checkout_row *row = step_checkout(step, checkout);
    row->payment_token = arena_text(step_arena(step), lookup->checkout.payment_token);
    payer_take(lane, row);
    step->takes_over = true;
    step_submit(step);
    return DECIDED;
}

static void sweep_payments(struct lane *lane)
{
    size_t position = 0;
    struct hot_checkout *checkout;
    while ((checkout = map_next(&lane->hot->checkouts, &position)) != NULL && batch_has_room(lane)) {
        const struct checkout_row *row = &checkout->row;
        if (checkout->busy || !wants_payer(row))
            continue;
        /* One whose time is over is failed by its timer, not charged once more. */
        bool is_over = row->state == CHECKOUT_PROCESSING && row->payment_deadline_ms <= lane->now_ms;
        bool has_payer = row->payer_until_ms > lane->now_ms;
        if (has_payer && is_ours(lane, row) && row->payer_until_ms - lane->now_ms < PAYER_RENEW_MS)
            renew(lane, checkout);
        else if (!has_payer && !is_over) /* our own, too: we may have been asleep, and somebody else at it */
            take_over(lane, checkout);
    }
}

/* ---- Events that are no longer open ---- */

static bool is_being_emptied(const struct lane *lane, const struct hot_event *event)
{
    LIST_FOR_EACH(node, &lane->jobs) {
        const struct seat_job *job = CONTAINER_OF(node, const struct seat_job, node);
        if (job->event == event && job->empties_event)
            return true;
    }
    return false;
}

static void sweep_events(struct lane *lane)
{
    size_t position = 0;
    struct hot_event *event;
    while ((event = map_next(&lane->hot->events, &position)) != NULL) {
        if (event_is_open(event->row.state) || event->map == NULL)
            continue;
        int32_t counts[SEAT_STATE_COUNT];
        seatmap_counts(event->map, counts);
        /* Whoever closed it is at it: a few seconds' head start. */
        bool is_left = lane->now_ms - event->row.updated_ms > PAYER_RENEW_MS;
        if (counts[SEAT_HELD] == 0 || !is_left || is_being_emptied(lane, event))
            continue;
        struct seat_job *job = job_create(lane, NULL, JOB_RELEASE);
        job_over_event(job, event);
        job->empties_event = true;
    }
}

void sweep_turn(struct lane *lane)
{
    if (!lane->shared || lane->now_ms < lane->sweep_at_ms)
        return;
    lane->sweep_at_ms = lane->now_ms + SWEEP_INTERVAL_MS;
    sweep_payments(lane);
    sweep_events(lane);
}
