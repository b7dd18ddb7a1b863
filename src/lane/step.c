/* SPDX-License-Identifier: Apache-2.0
 * A step is what one command (or timer, or chunk of a job) writes: a unit of
 * the batch that gathers, and what it touches in memory meanwhile.
 *
 * Invariants:
 *  1. From step_submit() to step_unmark() every seat and checkout it writes is
 *     busy, its users' and blocks' pending counts include it, and its events
 *     count it.
 *  2. step_apply() runs only for what was committed, and leaves the hot tier as
 *     if it had been loaded from the store just now. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/metrics.h"
#include "hold/rules.h"
#include "lane/lane_int.h"

struct arena *step_arena(struct step *step)
{
    return &step->batch->store.arena;
}

struct step *step_begin(struct lane *lane, struct command *command)
{
    struct lane_batch *batch = batch_gathering(lane);
    struct step *step = ARENA_NEW(&batch->store.arena, struct step);
    step->batch = batch;
    step->command = command;
    step->seats_end = &step->unit.seats;
    step->holds_end = &step->unit.holds;
    step->checkouts_end = &step->unit.checkouts;
    step->tickets_end = &step->unit.tickets;
    step->audits_end = &step->unit.audits;
    step->unit.owner = step;
    return step;
}

const char *step_printf(struct step *step, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    CHECK(size >= 0);
    CHECK((size_t)size < sizeof(text));
    return arena_text_n(step_arena(step), text, (size_t)size);
}

void step_touch_event(struct step *step, struct hot_event *event)
{
    for (struct event_touch *touch = step->events; touch != NULL; touch = touch->next) {
        if (touch->event == event)
            return;
    }
    struct event_touch *touch = ARENA_NEW(step_arena(step), struct event_touch);
    touch->event = event;
    touch->next = step->events;
    step->events = touch;
}

struct step_seat *step_seat(struct step *step, struct hot_event *event, int32_t index, enum seat_state to)
{
    struct step_seat *seat = ARENA_NEW(step_arena(step), struct step_seat);
    hot_seat_row(event, index, &seat->write.row);
    seat->write.before = seat->write.row.state;
    seat->write.block_id = event->map->blocks[seatmap_row(event->map, index)->block].id;
    seat->write.row.version++;
    seat_move(&seat->write.row.state, to);
    if (to != SEAT_HELD) {
        seat->write.row.hold_id = (struct uuid){{0}};
        seat->write.row.held_until_ms = 0;
        seat->write.row.locked_ms = 0;
    }
    seat->event = event;
    *step->seats_end = &seat->write;
    step->seats_end = &seat->write.next;
    step_touch_event(step, event);
    return seat;
}

struct hold_write *step_hold_new(struct step *step, const struct hold_row *row, const struct uuid *block_id)
{
    struct hold_write *write = ARENA_NEW(step_arena(step), struct hold_write);
    write->insert = true;
    write->row = *row;
    write->row.cart_token =
        arena_text(step_arena(step), row->cart_token); /* its command may be gone before */
    write->block_id = *block_id;
    *step->holds_end = write;
    step->holds_end = &write->next;
    return write;
}

struct hold_write *step_hold(struct step *step, struct hot_hold *hold)
{
    struct hold_row row;
    hot_hold_row(hold, &row);
    const struct layout_row *place = seatmap_row(hold->event->map, hold->seat_index);
    struct hold_write *write = step_hold_new(step, &row, &hold->event->map->blocks[place->block].id);
    write->insert = false;
    return write;
}

static struct checkout_row *step_add_checkout(struct step *step, const struct checkout_row *row, bool insert)
{
    struct checkout_write *write = &ARENA_NEW(step_arena(step), struct step_checkout)->write;
    write->insert = insert;
    write->row = *row;
    write->row.payment_token = arena_text(step_arena(step), row->payment_token);
    write->row.notes = arena_text(step_arena(step), row->notes);
    *step->checkouts_end = write;
    step->checkouts_end = &write->next;
    return &write->row;
}

struct checkout_row *step_checkout_new(struct step *step, const struct checkout_row *row)
{
    return step_add_checkout(step, row, true);
}

struct checkout_row *step_checkout_ended(struct step *step, const struct checkout_row *row)
{
    return step_add_checkout(step, row, false);
}

struct checkout_row *step_checkout(struct step *step, struct hot_checkout *checkout)
{
    for (struct checkout_write *write = step->unit.checkouts; write != NULL; write = write->next) {
        if (uuid_equal(&write->row.id, &checkout->row.id))
            return &write->row;
    }
    step_touch_event(step, checkout->event);
    struct checkout_row *row = step_add_checkout(step, &checkout->row, false);
    struct step_checkout *own = CONTAINER_OF(row, struct step_checkout, write.row);
    LIST_FOR_EACH(node, &checkout->holds)
        own->left_count++;
    return row;
}

struct ticket_row *step_ticket(struct step *step, const struct hold_row *hold)
{
    struct ticket_write *write = ARENA_NEW(step_arena(step), struct ticket_write);
    write->insert = true;
    write->row = (struct ticket_row){
        .org_id = hold->org_id,
        .event_id = hold->event_id,
        .id = lane_make_id(step->batch->lane),
        .seat_id = hold->seat_id,
        .hold_id = hold->id,
        .checkout_id = hold->checkout_id,
        .user_id = hold->user_id,
        .price_cents = hold->price_cents,
        .created_ms = step->batch->lane->now_ms,
    };
    uint8_t secret[16];
    random_secret(secret, sizeof(secret));
    for (size_t i = 0; i < sizeof(secret); i++)
        snprintf(write->row.code + 2 * i, 3, "%02x", secret[i]);
    *step->tickets_end = write;
    step->tickets_end = &write->next;
    return &write->row;
}

void step_user_seen(struct step *step, const struct uuid *org_id, const struct uuid *user_id, bool disabled)
{
    struct user_write *write = ARENA_NEW(step_arena(step), struct user_write);
    write->row = (struct user_row){
        .org_id = *org_id, .id = *user_id, .disabled = disabled, .created_ms = step->batch->lane->now_ms};
    write->next = step->unit.users;
    step->unit.users = write;
}

void step_pend_user(struct step *step, struct hot_user *user, int32_t count, int32_t more)
{
    struct user_pending *pending = ARENA_NEW(step_arena(step), struct user_pending);
    *pending = (struct user_pending){.next = step->users, .user = user, .count = count, .more = more};
    step->users = pending;
}

void step_pend_block(struct step *step, struct hot_event *event, int32_t block, int32_t count)
{
    struct block_pending *pending = ARENA_NEW(step_arena(step), struct block_pending);
    *pending = (struct block_pending){.next = step->blocks, .event = event, .block = block, .count = count};
    step->blocks = pending;
}

/* ---- What it touches while it is under way ---- */

static void step_mark(struct step *step, bool busy)
{
    struct lane *lane = step->batch->lane;
    int32_t sign = busy ? 1 : -1;
    for (struct seat_write *write = step->unit.seats; write != NULL; write = write->next) {
        struct step_seat *seat = CONTAINER_OF(write, struct step_seat, write);
        hot_seat_set_busy(seat->event, write->row.index, busy);
    }
    for (struct checkout_write *write = step->unit.checkouts; write != NULL; write = write->next) {
        struct hot_checkout *checkout = map_get(&lane->hot->checkouts, &write->row.id);
        if (checkout != NULL)
            checkout->busy = busy;
        else if (!write->insert && busy)
            map_put(&lane->settling, &write->row.id, step);
        else if (!write->insert && map_remove(&lane->settling, &write->row.id) != NULL)
            lane->settled_count++;
    }
    for (struct user_write *write = step->unit.users; write != NULL; write = write->next) {
        if (busy)
            map_put(&lane->registering, &write->row.id, step);
        else if (map_get(&lane->registering, &write->row.id) == step)
            map_remove(&lane->registering, &write->row.id);
    }
    for (struct user_pending *pending = step->users; pending != NULL; pending = pending->next) {
        pending->user->pending_count += sign * pending->count;
        pending->user->pending_more += sign * pending->more;
    }
    for (struct block_pending *pending = step->blocks; pending != NULL; pending = pending->next)
        pending->event->pending_by_block[pending->block] += sign * pending->count;
    for (struct event_touch *touch = step->events; touch != NULL; touch = touch->next)
        touch->event->unit_count += sign;
    if (step->exclusive != NULL) {
        step->exclusive->exclusive = busy;
        step->exclusive->gate = busy ? step->command : NULL;
    }
}

void step_submit(struct step *step)
{
    if (step->command != NULL && step->command->has_key && !step->waits_for_payment && step->job == NULL)
        step->unit.key = key_write(step, step->command);
    step_mark(step, true);
    list_append(&step->batch->store.units, &step->unit.node);
    list_append(&step->batch->steps, &step->node);
    step->batch->store.unit_count++;
}

void step_unmark(struct step *step)
{
    step_mark(step, false);
}

/* ---- Committed ---- */

static void count_ended_hold(const struct hold_row *row)
{
    static const enum counter releases[END_REASON_COUNT] = {
        [END_TTL_EXPIRED] = COUNTER_RELEASES_A,
        [END_USER_CANCELLED] = COUNTER_RELEASES_B,
        [END_PAYMENT_FAILED] = COUNTER_RELEASES_C,
        [END_ADMIN_OVERRIDE] = COUNTER_RELEASES_D,
    };
    if (row->state == HOLD_CONVERTED) {
        counter_add(COUNTER_HOLD_CONVERTED, 1);
        return;
    }
    counter_add(releases[row->reason], 1);
    if (row->state == HOLD_EXPIRED)
        counter_add(COUNTER_HOLD_EXPIRED, 1);
    histogram_observe(HISTOGRAM_HOLD_TO_RELEASE_SECONDS, (double)(row->ended_ms - row->created_ms) / 1000.0);
}

static void apply_hold(struct lane *lane, const struct hold_write *write)
{
    const struct hold_row *row = &write->row;
    if (row->state != HOLD_ACTIVE) {
        count_ended_hold(row);
        if (row->state != HOLD_CONVERTED)
            news_hold_ended(lane, row);
    } else if (write->insert) {
        counter_add(COUNTER_HOLD_SUCCESSES, 1);
    } else {
        struct hot_hold *hold = map_get(&lane->hot->holds, &row->id);
        if (hold != NULL && hold->held_until_ms != row->held_until_ms)
            counter_add(COUNTER_HOLD_EXTENDED, 1);
    }
    hot_put_hold(lane->hot, row, lane->now_ms);
}

static void count_checkout(const struct checkout_write *write)
{
    static const enum counter outcomes[CHECKOUT_STATE_COUNT] = {
        [CHECKOUT_COMPLETED] = COUNTER_CHECKOUTS_COMPLETED, [CHECKOUT_FAILED] = COUNTER_CHECKOUTS_FAILED,
        [CHECKOUT_CANCELLED] = COUNTER_CHECKOUTS_CANCELLED, [CHECKOUT_EXPIRED] = COUNTER_CHECKOUTS_EXPIRED,
        [CHECKOUT_REFUNDED] = COUNTER_CHECKOUTS_REFUNDED,
    };
    if (write->insert)
        counter_add(COUNTER_CHECKOUTS_STARTED, 1);
    else if (write->row.ended_ms != 0 && write->row.refund != REFUND_DONE)
        counter_add(outcomes[write->row.state], 1);
}

static void apply_checkout(struct lane *lane, struct step *step, const struct checkout_write *write)
{
    struct hot_checkout *checkout = map_get(&lane->hot->checkouts, &write->row.id);
    struct list waiters;
    list_init(&waiters);
    if (checkout != NULL && write->row.state != CHECKOUT_PROCESSING)
        list_splice(&waiters, &checkout->waiters);
    count_checkout(write);
    hot_put_checkout(lane->hot, &write->row);
    news_checkout(lane, &write->row);
    payment_waiters_answer(lane, &waiters, step);
}

static void apply_layout(struct lane *lane, struct step *step, const struct layout_write *write)
{
    struct hot_event *event = map_get(&lane->hot->events, &write->event_id);
    CHECK(event != NULL);
    CHECK(step->new_map != NULL);
    enum err err = hot_put_layout(lane->hot, event, step->new_map);
    CHECK(err == ERR_OK); /* only memory can end here, and the layout is committed */
    step->new_map = NULL;
    if (lane->config.feed != NULL)
        feed_event_reset(lane->config.feed, &write->event_id);
}

/* Things before what points to them: events, checkouts, holds, seats. */
void step_apply(struct lane *lane, struct step *step)
{
    const struct store_unit *unit = &step->unit;
    for (const struct org_write *write = unit->orgs; write != NULL; write = write->next)
        directory_put_org(lane->hot->directory, &write->row.id);
    for (const struct user_write *write = unit->users; write != NULL; write = write->next)
        directory_put_user(lane->hot->directory, &write->row);
    for (const struct event_write *write = unit->events; write != NULL; write = write->next)
        hot_put_event(lane->hot, &write->row);
    for (const struct layout_write *write = unit->layouts; write != NULL; write = write->next)
        apply_layout(lane, step, write);
    for (const struct block_write *write = unit->blocks; write != NULL; write = write->next) {
        struct hot_event *event = map_get(&lane->hot->events, &write->row.event_id);
        CHECK(event != NULL);
        seatmap_set_block_info(event->map, seatmap_block_find(event->map, &write->row.id), write->row.name,
                               write->row.capacity, write->row.price_cents);
    }
    for (const struct checkout_write *write = unit->checkouts; write != NULL; write = write->next)
        apply_checkout(lane, step, write);
    for (const struct hold_write *write = unit->holds; write != NULL; write = write->next)
        apply_hold(lane, write);
    for (const struct seat_write *write = unit->seats; write != NULL; write = write->next) {
        const struct step_seat *seat = CONTAINER_OF(write, struct step_seat, write);
        hot_put_seat(lane->hot, seat->event, &write->row);
        if (write->row.state != write->before)
            news_seat(lane, seat);
    }
}
