/* SPDX-License-Identifier: Apache-2.0
 * A step is what one command (or timer, or chunk of a job) writes: a unit of
 * the batch that gathers, and what it touches in memory meanwhile.
 *
 * Invariants:
 *  1. From step_submit() to step_unmark() every seat and checkout it writes is
 *     busy, its users' and blocks' pending counts include it, and its events
 *     count it.
 *  2. What changes has the next version of what memory has; what it merely rests
 *     on (the event, room in a block) is compared by the store too, if other
 *     nodes write to it. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
    struct step_checkout *own = ARENA_NEW(step_arena(step), struct step_checkout);
    own->before = row->state;
    own->refund_before = row->refund;
    struct checkout_write *write = &own->write;
    write->insert = insert;
    write->row = *row;
    write->row.version = insert ? 1 : row->version + 1;
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

static struct user_write *step_user(struct step *step, const struct uuid *org_id, const struct uuid *user_id)
{
    struct user_write *write = ARENA_NEW(step_arena(step), struct user_write);
    write->row =
        (struct user_row){.org_id = *org_id, .id = *user_id, .created_ms = step->batch->lane->now_ms};
    write->next = step->unit.users;
    step->unit.users = write;
    return write;
}

void step_user_seen(struct step *step, const struct uuid *org_id, const struct uuid *user_id)
{
    step_user(step, org_id, user_id)->seen = true;
}

void step_user_change(struct step *step, const struct uuid *org_id, const struct uuid *user_id, bool disabled)
{
    step_user(step, org_id, user_id)->row.disabled = disabled;
}

struct event_row *step_event(struct step *step, const struct event_row *row, bool insert)
{
    struct event_write *write = ARENA_NEW(step_arena(step), struct event_write);
    write->insert = insert;
    write->row = *row;
    write->row.name = arena_text(step_arena(step), row->name);
    write->row.version = insert ? 1 : row->version + 1;
    write->row.updated_ms = step->batch->lane->now_ms;
    step->unit.events = write;
    return &write->row;
}

void step_check_event(struct step *step, const struct hot_event *event)
{
    if (!step->batch->lane->shared)
        return; /* nobody else could have changed it */
    struct event_check *check = ARENA_NEW(step_arena(step), struct event_check);
    check->org_id = event->row.org_id;
    check->event_id = event->row.id;
    check->version = event->row.version;
    check->next = step->unit.checks;
    step->unit.checks = check;
}

void step_claim_block(struct step *step, const struct hot_event *event, int32_t block, int32_t count)
{
    const struct uuid *block_id = &event->map->blocks[block].id;
    for (struct block_claim *claim = step->unit.claims; claim != NULL; claim = claim->next) {
        if (uuid_equal(&claim->block_id, block_id)) {
            claim->count += count;
            return;
        }
    }
    struct block_claim *claim = ARENA_NEW(step_arena(step), struct block_claim);
    claim->org_id = event->row.org_id;
    claim->event_id = event->row.id;
    claim->block_id = *block_id;
    claim->count = count;
    claim->next = step->unit.claims;
    step->unit.claims = claim;
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
    bool is_limited =
        seatmap_block_info(event->map, block)->capacity < event->map->layout->blocks[block].seat_count;
    if (step->batch->lane->shared && is_limited && count > 0)
        step_claim_block(step, event, block, count);
}

/* ---- Best available: what somebody else is at ---- */

/* After so many it is not a seat that somebody is at, but many: the row is left to them. */
enum { AVOID_ALONE_COUNT = 2 };

bool step_avoid_seat(struct step *step, const struct uuid *seat_id)
{
    struct command *command = step->command;
    if (command == NULL || command->kind != COMMAND_HOLD_BEST || !command_avoid_seat(command, seat_id))
        return false;
    if (command->avoid_count++ < AVOID_ALONE_COUNT)
        return true;
    const struct seatmap *map = CONTAINER_OF(step->unit.seats, struct step_seat, write)->event->map;
    int32_t index = seatmap_find(map, seat_id);
    if (index < 0)
        return true; /* another layout by now */
    const struct layout_row *row = seatmap_row(map, index);
    for (int32_t i = row->seat_first; i < row->seat_first + row->seat_count; i++)
        (void)command_avoid_seat(command, &map->seat_ids[i]);
    return true;
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
        /* It may have come into memory since, by the feed. */
        if (!busy && map_get(&lane->settling, &write->row.id) == step) {
            map_remove(&lane->settling, &write->row.id);
            lane->settled_count++;
        }
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
        /* Not the command's: it may be answered and gone before. */
        step->exclusive->gate = busy ? step : NULL;
    }
}

/* Only the node that decides for its partition may write what it asks for. How far the partition is done is written
 * with it now and then: not with every one, for that would make batches wait for each other. */
static void step_fence(struct step *step)
{
    struct command *command = step->command;
    struct order_fence *fence = command != NULL && step->job == NULL ? command->sent.fence : NULL;
    if (fence == NULL)
        return;
    struct order_check *check = ARENA_NEW(step_arena(step), struct order_check);
    *check =
        (struct order_check){.topic = fence->topic, .partition = fence->partition, .epoch = fence->epoch};
    int64_t now_ms = step->batch->lane->now_ms;
    if (now_ms >= fence->note_at_ms) {
        fence->note_at_ms = now_ms + ORDER_NOTE_MS;
        check->next_offset = fence->next_offset;
    }
    step->unit.order_checks = check;
}

bool step_names_its_hold(const struct step *step)
{
    const struct hold_write *hold = step->unit.holds;
    while (hold != NULL && !hold->insert)
        hold = hold->next;
    return hold != NULL && command_names_its_hold(step->command);
}

void step_submit(struct step *step)
{
    step_fence(step);
    if (step->command != NULL)
        line_leave(step->batch->lane, step->command);
    if (step->command != NULL && step->command->has_key && !step->waits_for_payment && step->job == NULL &&
        !step_names_its_hold(step))
        step->unit.key = key_write(step, step->command);
    for (struct checkout_write *write = step->unit.checkouts; write != NULL; write = write->next) {
        const struct step_checkout *own = CONTAINER_OF(write, struct step_checkout, write);
        write->moved = write->insert || write->row.state != own->before;
    }
    step_mark(step, true);
    list_append(&step->batch->store.units, &step->unit.node);
    list_append(&step->batch->steps, &step->node);
    step->batch->store.unit_count++;
}

void step_unmark(struct step *step)
{
    step_mark(step, false);
}
