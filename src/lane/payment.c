/* SPDX-License-Identifier: Apache-2.0
 * What the gateway answers, and what becomes of the seats.
 *
 *   processing ─┬─ paid ─────▶ completed: seats sold, tickets made
 *               │              (event cancelled meanwhile: refunded, seats free)
 *               ├─ declined ─▶ failed: seats free (scenario C)
 *               ├─ unknown ──▶ stays; callers get 202; asked again by the gateway's side
 *               └─ too long ─▶ failed, as declined
 *   failed ───── paid ───────▶ late money: completed if every seat is free again,
 *                              otherwise refunded
 *
 * The gateway is asked only after the pin is committed, and a refund is owed
 * durably before it is given: a restart in the middle asks again, with the
 * checkout's id as idempotency key. */
#include <string.h>

#include "base/log.h"
#include "base/metrics.h"
#include "hold/rules.h"
#include "lane/lane_int.h"

enum { PAYMENT_END_RETRY_MS = 1000 };

/* ---- Asking ---- */

static struct lane_charge charge_of(const struct checkout_row *row, int32_t attempt)
{
    return (struct lane_charge){
        .org_id = row->org_id,
        .checkout_id = row->id,
        .amount_cents = row->total_cents,
        .currency = row->currency,
        .token = row->payment_token != NULL ? row->payment_token : "",
        .attempt = attempt,
    };
}

/* We hear of it too late to know that it is still ours: sweep.c asks, whoever is first. */
static bool is_too_late(const struct lane *lane, const struct checkout_row *row)
{
    return lane->shared && row->payer_until_ms <= lane->now_ms;
}

void payment_started(struct lane *lane, struct step *step)
{
    const struct checkout_row *row = &step->unit.checkouts->row;
    struct hot_checkout *checkout = map_get(&lane->hot->checkouts, &row->id);
    CHECK(checkout != NULL);
    if (step->command != NULL) { /* NULL: its caller was told that the outcome is unknown */
        struct payment_waiter *waiter = ARENA_NEW(step->command->arena, struct payment_waiter);
        waiter->command = step->command;
        waiter->until_ms = lane->now_ms + PAYMENT_WAIT_MS_MAX;
        list_append(&checkout->waiters, &waiter->checkout_node);
        list_append(&lane->paying, &waiter->node);
    }
    if (is_too_late(lane, row))
        return;
    struct lane_charge charge = charge_of(&checkout->row, 1);
    lane->config.charge(lane->config.context, &charge);
}

void payment_refund(struct lane *lane, const struct checkout_row *row)
{
    struct lane_charge charge = charge_of(row, 1);
    lane->config.refund(lane->config.context, &charge);
}

void payment_taken_over(struct lane *lane, struct step *step)
{
    struct hot_checkout *checkout = map_get(&lane->hot->checkouts, &step->unit.checkouts->row.id);
    counter_add(COUNTER_PAYMENTS_TAKEN_OVER, 1);
    if (checkout != NULL && !is_too_late(lane, &step->unit.checkouts->row))
        payment_resume(lane, checkout);
    if (step->command != NULL)
        lane_reply(lane, step->command);
}

void payment_resume(struct lane *lane, struct hot_checkout *checkout)
{
    struct lane_charge charge = charge_of(&checkout->row, 2);
    if (checkout->row.state == CHECKOUT_PROCESSING)
        lane->config.charge(lane->config.context, &charge);
    else if (checkout->row.refund == REFUND_OWED)
        lane->config.refund(lane->config.context, &charge);
}

/* ---- Those who wait for the answer ---- */

static struct command *waiter_remove(struct payment_waiter *waiter)
{
    list_remove(&waiter->checkout_node);
    list_remove(&waiter->node);
    return waiter->command;
}

static void answer_processing(struct lane *lane, struct hot_checkout *checkout, struct command *command)
{
    command->result = (struct result){0};
    if (checkout != NULL)
        answer_hot_checkout(lane, command, checkout);
    command->result.status = 202;
    lane_answer_now(lane, command, ERR_OK);
}

void payments_wait_turn(struct lane *lane)
{
    while (!list_empty(&lane->paying)) {
        struct payment_waiter *waiter = CONTAINER_OF(lane->paying.next, struct payment_waiter, node);
        if (waiter->until_ms > lane->now_ms)
            return;
        struct command *command = waiter_remove(waiter);
        answer_processing(lane, hot_checkout(lane->hot, &command->actor.org_id, &command->id), command);
    }
}

void payments_abandon(struct lane *lane)
{
    while (!list_empty(&lane->paying)) {
        struct command *command = waiter_remove(CONTAINER_OF(lane->paying.next, struct payment_waiter, node));
        struct hot_checkout *checkout = hot_checkout(lane->hot, &command->actor.org_id, &command->id);
        command->result = (struct result){.status = 202, .now_ms = lane->now_ms};
        if (checkout != NULL) /* it goes on after the next start */
            answer_hot_checkout(lane, command, checkout);
        lane_reply(lane, command);
    }
}

/* The answer of a `complete`, from what the step that settles it writes. */
static void fill_settled(struct lane *lane, struct command *command, const struct step *step)
{
    const struct checkout_row *row = &step->unit.checkouts->row;
    command->result = (struct result){.now_ms = lane->now_ms};
    if (row->state != CHECKOUT_COMPLETED) {
        command->result.err = row->state == CHECKOUT_FAILED ? ERR_PAYMENT_FAILED : ERR_CHECKOUT_NOT_PAYABLE;
        if (row->refund == REFUND_OWED)
            command->result.message = "The event was cancelled; the payment is refunded.";
        return;
    }
    int32_t hold_count = 0, ticket_count = 0;
    for (const struct hold_write *write = step->unit.holds; write != NULL; write = write->next)
        hold_count++;
    for (const struct ticket_write *write = step->unit.tickets; write != NULL; write = write->next)
        ticket_count++;
    struct hold_row *holds = ARENA_ARRAY(command->arena, struct hold_row, hold_count + 1);
    struct ticket_row *tickets = ARENA_ARRAY(command->arena, struct ticket_row, ticket_count + 1);
    int32_t i = 0;
    for (const struct hold_write *write = step->unit.holds; write != NULL; write = write->next)
        holds[i++] = write->row;
    i = 0;
    for (const struct ticket_write *write = step->unit.tickets; write != NULL; write = write->next)
        tickets[i++] = write->row;
    answer_checkout(lane, command, row, holds, hold_count, tickets, ticket_count);
    command->result.status = 200;
}

/* The first waiter's key is written with the outcome itself; any other's right after. */
static void settle_submit(struct lane *lane, struct step *step, struct hot_checkout *checkout)
{
    if (checkout != NULL) {
        LIST_FOR_EACH(node, &checkout->waiters) {
            struct command *command = CONTAINER_OF(node, struct payment_waiter, checkout_node)->command;
            if (!command->has_key)
                continue;
            fill_settled(lane, command, step);
            step->keyed = command;
            step->unit.key = key_write(step, command);
            break;
        }
    }
    step_submit(step);
}

/* The key that was to be written with the outcome is used up: that `complete` is answered by the
 * outcome alone. It may have stopped waiting since. */
void payment_key_taken(struct lane *lane, const struct step *step)
{
    struct hot_checkout *checkout =
        step->keyed != NULL ? map_get(&lane->hot->checkouts, &step->unit.checkouts->row.id) : NULL;
    if (checkout == NULL)
        return;
    LIST_FOR_EACH(node, &checkout->waiters) {
        struct command *command = CONTAINER_OF(node, struct payment_waiter, checkout_node)->command;
        if (command == step->keyed) {
            key_done(lane, command);
            command->has_key = false;
        }
    }
}

void payment_waiters_answer(struct lane *lane, struct list *waiters, const struct step *step)
{
    while (!list_empty(waiters)) {
        struct command *command =
            waiter_remove(CONTAINER_OF(waiters->next, struct payment_waiter, checkout_node));
        fill_settled(lane, command, step);
        if (command == step->keyed)
            lane_reply(lane, command);
        else
            lane_answer_now(lane, command, command->result.err);
    }
}

/* What the other node wrote has no tickets in it: completed ones are read from the store. */
void payment_waiters_decide_again(struct lane *lane, struct list *waiters, const struct checkout_row *row)
{
    while (!list_empty(waiters)) {
        struct command *command =
            waiter_remove(CONTAINER_OF(waiters->next, struct payment_waiter, checkout_node));
        command->result = (struct result){0};
        lane_lookups_forget(command);
        command->arrived_ms = lane->now_ms; /* it waited for the gateway, not for us */
        if (row->state == CHECKOUT_FAILED)
            lane_answer_now(lane, command, ERR_PAYMENT_FAILED);
        else
            lane_make_ready(lane, command);
    }
}

/* ---- Settling ---- */

static void audit_outcome(struct step *step, enum audit_action action, const struct checkout_row *row,
                          const char *reason, const char *after)
{
    struct audit_row *audit = audit_checkout(step, action, row);
    audit->reason = reason;
    audit->after = after;
}

static void checkout_end(struct step *step, struct checkout_row *row, enum checkout_state to,
                         enum end_reason reason)
{
    checkout_move(&row->state, to);
    row->reason = reason;
    row->ended_ms = step->batch->lane->now_ms;
    row->paying_since_ms = 0;
    row->payment_deadline_ms = 0;
    row->payer = (struct uuid){{0}};
    row->payer_until_ms = 0;
}

static void sell(struct step *step, const struct hold_row *hold, struct step_seat *seat)
{
    const struct ticket_row *ticket = step_ticket(step, hold);
    seat->write.row.ticket_id = ticket->id;
    struct audit_row *audit = audit_hold(step, AUDIT_SEAT_SOLD, hold);
    audit->entity_type = "Ticket";
    audit->entity_id = ticket->id;
    audit->before = "{\"status\":\"held\"}";
    audit->after = "{\"status\":\"sold\"}";
    audit->held_duration_seconds = (hold->ended_ms - hold->created_ms) / 1000;
}

static void settle_paid(struct lane *lane, struct command *command, struct hot_checkout *checkout)
{
    struct step *step = step_begin(lane, command);
    step_check_event(step, checkout->event); /* not cancelled by another node meanwhile */
    struct checkout_row *row = step_checkout(step, checkout);
    checkout_end(step, row, CHECKOUT_COMPLETED, END_NONE);
    LIST_FOR_EACH(node, &checkout->holds) {
        struct hot_hold *hold = CONTAINER_OF(node, struct hot_hold, checkout_node);
        struct hold_row *hold_row = &step_hold(step, hold)->row;
        hold_move(&hold_row->state, HOLD_CONVERTED);
        hold_row->ended_ms = lane->now_ms;
        sell(step, hold_row, step_seat(step, hold->event, hold->seat_index, SEAT_SOLD));
    }
    audit_outcome(step, AUDIT_CHECKOUT_COMPLETED, row, NULL, "{\"status\":\"completed\"}");
    settle_submit(lane, step, checkout);
}

/* The event was cancelled while the payment was under way: the money goes back. */
static void settle_cancelled_event(struct lane *lane, struct command *command, struct hot_checkout *checkout)
{
    struct step *step = step_begin(lane, command);
    struct checkout_row *row = step_checkout(step, checkout);
    checkout_end(step, row, CHECKOUT_COMPLETED, END_ADMIN_OVERRIDE);
    checkout_move(&row->state, CHECKOUT_REFUNDED);
    row->refund = REFUND_OWED;
    payer_take(lane, row);
    LIST_FOR_EACH(node, &checkout->holds)
        end_hold_with_checkout(step, CONTAINER_OF(node, struct hot_hold, checkout_node), END_ADMIN_OVERRIDE,
                               NULL);
    audit_outcome(step, AUDIT_CHECKOUT_REFUNDED, row, "event_cancelled",
                  "{\"status\":\"refunded\",\"refund\":\"owed\"}");
    settle_submit(lane, step, checkout);
}

static void settle_failed(struct lane *lane, struct command *command, struct hot_checkout *checkout,
                          const char *reason)
{
    struct step *step = step_begin(lane, command);
    struct checkout_row *row = step_checkout(step, checkout);
    checkout_end(step, row, CHECKOUT_FAILED, END_PAYMENT_FAILED);
    LIST_FOR_EACH(node, &checkout->holds)
        end_hold_with_checkout(step, CONTAINER_OF(node, struct hot_hold, checkout_node), END_PAYMENT_FAILED,
                               NULL);
    audit_outcome(step, AUDIT_CHECKOUT_FAILED, row, reason, "{\"status\":\"failed\"}");
    settle_submit(lane, step, checkout);
}

static bool any_seat_busy(const struct hot_checkout *checkout)
{
    LIST_FOR_EACH(node, &checkout->holds) {
        if (hot_seat_of(CONTAINER_OF(node, struct hot_hold, checkout_node))->busy)
            return true;
    }
    return checkout->event->exclusive;
}

/* ---- Late money ---- */

enum late { LATE_TAKE, LATE_REFUND, LATE_WAIT };

/* Is every seat of the failed checkout free again, and may it be taken? */
static enum late late_seats(const struct hot_event *event, const struct store_lookup *lookup)
{
    if (event == NULL || event->map == NULL || event->row.state == EVENT_CANCELLED)
        return LATE_REFUND;
    if (event->exclusive)
        return LATE_WAIT;
    int32_t free_count = 0;
    for (int32_t i = 0; i < lookup->hold_count; i++) {
        int32_t index = seatmap_find(event->map, &lookup->holds[i].seat_id);
        if (index < 0)
            return LATE_REFUND;
        if (event->seats[index].busy)
            return LATE_WAIT;
        if (seatmap_state(event->map, index) != SEAT_AVAILABLE)
            return LATE_REFUND;
        int32_t block = seatmap_row(event->map, index)->block;
        int32_t counts[SEAT_STATE_COUNT];
        seatmap_block_counts(event->map, block, counts);
        /* Stricter than needed where the seats are of several blocks: then the money goes back. */
        int32_t taken = counts[SEAT_HELD] + counts[SEAT_SOLD] + event->pending_by_block[block];
        if (taken + lookup->hold_count > seatmap_block_info(event->map, block)->capacity)
            return LATE_REFUND;
        free_count++;
    }
    return free_count > 0 ? LATE_TAKE : LATE_REFUND;
}

static void late_take(struct lane *lane, struct command *command, struct hot_event *event,
                      const struct store_lookup *lookup)
{
    struct step *step = step_begin(lane, command);
    step_check_event(step, event);
    struct checkout_row *row = step_checkout_ended(step, &lookup->checkout);
    checkout_end(step, row, CHECKOUT_COMPLETED, END_NONE);
    for (int32_t i = 0; i < lookup->hold_count; i++) {
        int32_t index = seatmap_find(event->map, &lookup->holds[i].seat_id);
        int32_t block = seatmap_row(event->map, index)->block;
        struct hold_row hold = lookup->holds[i];
        hold.id = lane_make_id(lane);
        hold.state = HOLD_CONVERTED; /* held and converted in one transaction */
        hold.reason = END_NONE;
        hold.created_ms = lane->now_ms;
        hold.ended_ms = lane->now_ms;
        hold.held_until_ms = rule_hold_until(&event->row.policy, lane->now_ms);
        step_hold_new(step, &hold, &event->map->blocks[block].id);
        audit_hold(step, AUDIT_SEAT_RESERVED, &hold);
        sell(step, &hold, step_seat(step, event, index, SEAT_SOLD));
        step_pend_block(step, event, block, 1);
    }
    audit_outcome(step, AUDIT_PAYMENT_LATE, row, "seats_free", "{\"status\":\"completed\"}");
    audit_outcome(step, AUDIT_CHECKOUT_COMPLETED, row, NULL, "{\"status\":\"completed\"}");
    step_submit(step);
}

static enum decision settle_late(struct lane *lane, struct command *command)
{
    if (map_get(&lane->settling, &command->id) != NULL) {
        lane_lookups_forget(command); /* what was read is about to change */
        return DEFERRED;
    }
    struct store_lookup *lookup = lane_lookup(lane, command, LOOKUP_CHECKOUT, &command->id);
    if (lookup == NULL)
        return LOOKING_UP;
    if (lookup->err != ERR_OK || lane_lookup_is_stale(lane, lookup)) {
        int64_t delay_ms = lookup->err != ERR_OK ? PAYMENT_END_RETRY_MS : 0;
        lane_lookups_forget(command);
        lane_retry(lane, command, delay_ms);
        return DECIDED;
    }
    if (lane->shared && lookup->found && lookup->checkout.state == CHECKOUT_PROCESSING) {
        /* Another node pinned it: not in memory yet. */
        follow_missed(lane, command);
        return DEFERRED;
    }
    /* Anything else was settled already: the gateway may tell us twice. */
    if (!lookup->found || lookup->checkout.state != CHECKOUT_FAILED || lookup->checkout.refund != REFUND_NONE)
        return lane_answer(lane, command, ERR_OK);
    struct hot_event *event = hot_event(lane->hot, &lookup->checkout.org_id, &lookup->checkout.event_id);
    enum late late = late_seats(event, lookup);
    if (late == LATE_WAIT) {
        lane_lookups_forget(command);
        return DEFERRED;
    }
    if (!command->counted)
        counter_add(COUNTER_PAYMENTS_LATE, 1);
    command->counted = true;
    if (late == LATE_TAKE) {
        late_take(lane, command, event, lookup);
        return DECIDED;
    }
    struct step *step = step_begin(lane, command);
    struct checkout_row *row = step_checkout_ended(step, &lookup->checkout);
    row->refund = REFUND_OWED;
    payer_take(lane, row);
    audit_outcome(step, AUDIT_PAYMENT_LATE, row, "seats_taken",
                  "{\"status\":\"failed\",\"refund\":\"owed\"}");
    step_submit(step);
    return DECIDED;
}

/* ---- Commands from the gateway's side ---- */

enum decision decide_payment_settled(struct lane *lane, struct command *command)
{
    command->result = (struct result){0};
    struct hot_checkout *checkout = hot_checkout(lane->hot, &command->actor.org_id, &command->id);
    if (checkout != NULL && checkout->busy)
        return DEFERRED;
    bool paid = command->payment.outcome == PAYMENT_PAID;
    if (checkout == NULL || checkout->row.state != CHECKOUT_PROCESSING)
        return paid ? settle_late(lane, command) : lane_answer(lane, command, ERR_OK);
    if (command->payment.outcome == PAYMENT_UNKNOWN) {
        while (!list_empty(&checkout->waiters)) {
            struct payment_waiter *waiter =
                CONTAINER_OF(checkout->waiters.next, struct payment_waiter, checkout_node);
            answer_processing(lane, checkout, waiter_remove(waiter));
        }
        return lane_answer(lane, command, ERR_OK);
    }
    if (any_seat_busy(checkout))
        return DEFERRED;
    if (!paid)
        settle_failed(lane, command, checkout, "declined");
    else if (checkout->event->row.state == EVENT_CANCELLED)
        settle_cancelled_event(lane, command, checkout);
    else
        settle_paid(lane, command, checkout);
    return DECIDED;
}

enum decision decide_refund_settled(struct lane *lane, struct command *command)
{
    command->result = (struct result){0};
    struct hot_checkout *checkout = hot_checkout(lane->hot, &command->actor.org_id, &command->id);
    if (checkout == NULL || checkout->row.refund != REFUND_OWED)
        return lane_answer(lane, command, ERR_OK);
    if (checkout->busy)
        return DEFERRED;
    if (command->payment.outcome != PAYMENT_PAID) {
        log_write(LOG_WARN, "a refund is still owed", NULL);
        return lane_answer(lane, command, ERR_OK);
    }
    struct step *step = step_begin(lane, command);
    struct checkout_row *row = step_checkout(step, checkout);
    row->refund = REFUND_DONE;
    audit_outcome(step, AUDIT_CHECKOUT_REFUNDED, row, NULL, "{\"refund\":\"done\"}");
    step_submit(step);
    return DECIDED;
}

/* ---- Payments that took too long ---- */

void due_checkouts_fail(struct lane *lane)
{
    struct list busy;
    list_init(&busy);
    while (!list_empty(&lane->due_checkouts) && batch_has_room(lane)) {
        struct list *node = lane->due_checkouts.next;
        struct wheel_timer *timer = CONTAINER_OF(node, struct wheel_timer, node);
        struct hot_checkout *checkout = CONTAINER_OF(timer, struct hot_checkout, timer);
        list_remove(node);
        if (checkout->row.payment_deadline_ms > lane->now_ms) /* only a failed write set it early */
            wheel_set(&lane->hot->checkout_wheel, timer, checkout->row.payment_deadline_ms);
        else if (checkout->busy || any_seat_busy(checkout))
            list_append(&busy, node);
        else if (payer_is_elsewhere(lane, &checkout->row)) /* which sees to it */
            wheel_set(&lane->hot->checkout_wheel, timer, checkout->row.payer_until_ms);
        else
            settle_failed(lane, NULL, checkout, "payment_timeout");
    }
    list_splice(&lane->due_checkouts, &busy);
}

void due_checkout_failed(struct lane *lane, struct step *step)
{
    for (struct checkout_write *write = step->unit.checkouts; write != NULL; write = write->next) {
        struct hot_checkout *checkout = map_get(&lane->hot->checkouts, &write->row.id);
        if (checkout != NULL && checkout->row.state == CHECKOUT_PROCESSING)
            wheel_set(&lane->hot->checkout_wheel, &checkout->timer, lane->now_ms + PAYMENT_END_RETRY_MS);
    }
}
