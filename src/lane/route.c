/* SPDX-License-Identifier: Apache-2.0
 * Commands that another node decides: where they belong, and how they come
 * back. With a router (lane.h) the commands of one block are decided by one node
 * at a time, in the order in which they were sent; a command over several blocks
 * goes with its first one, and compare-and-set guards the rest. What cannot be
 * placed, because what it is about is over or was never there, is decided here:
 * it changes nothing.
 *
 *   edge:   decide ─▶ route_send ─▶ router … answer ─▶ lane_settle ─▶ route_settled ─▶ reply
 *   owner:  lane_take ─▶ decide, like any other ─▶ on_done, which packs the answer */
#include "lane/lane_int.h"

#include "hold/rules.h"

void lane_set_router(struct lane *lane, const struct lane_router *router)
{
    lane->router = *router;
    size_t position = 0;
    const struct hot_event *event;
    while ((event = map_next(&lane->hot->events, &position)) != NULL)
        route_event_seen(lane, &event->row);
}

void route_event_seen(struct lane *lane, const struct event_row *row)
{
    if (lane->router.on_event != NULL && event_is_open(row->state))
        lane->router.on_event(lane->router.context, &row->id);
}

/* ---- Where it belongs ---- */

/* The block's names are the seat map's: they live as long as the command is looked at. */
static bool place_in_block(const struct hot_event *event, int32_t block, struct lane_place *out)
{
    if (block < 0)
        return false;
    const struct layout_block *layout = &event->map->layout->blocks[block];
    *out = (struct lane_place){
        .event_id = event->row.id, .section = layout->section, .subsection = layout->subsection};
    return true;
}

static bool place_of_seat(const struct hot_event *event, int32_t index, struct lane_place *out)
{
    return place_in_block(event, seatmap_row(event->map, index)->block, out);
}

static const struct hot_event *event_with_map(const struct lane *lane, const struct command *command,
                                              const struct uuid *event_id)
{
    const struct hot_event *event = hot_event(lane->hot, &command->actor.org_id, event_id);
    return event != NULL && event->map != NULL ? event : NULL;
}

static bool place_of_seats(const struct lane *lane, const struct command *command, struct lane_place *out)
{
    const struct hot_event *event = event_with_map(lane, command, &command->hold_seats.event_id);
    int32_t index = event != NULL ? seatmap_find(event->map, &command->hold_seats.seat_ids[0]) : -1;
    return index >= 0 && place_of_seat(event, index, out);
}

static bool place_of_best(const struct lane *lane, const struct command *command, struct lane_place *out)
{
    const struct hot_event *event = event_with_map(lane, command, &command->hold_best.event_id);
    int32_t position = 0;
    return event != NULL && place_in_block(event,
                                           seatmap_block_next(event->map, command->hold_best.section,
                                                              command->hold_best.subsection, &position),
                                           out);
}

static bool place_of_hold(const struct lane *lane, const struct command *command, const struct uuid *hold_id,
                          struct lane_place *out)
{
    const struct hot_hold *hold = hot_hold(lane->hot, &command->actor.org_id, hold_id);
    return hold != NULL && place_of_seat(hold->event, hold->seat_index, out);
}

static bool place_of_start(struct lane *lane, const struct command *command, struct lane_place *out)
{
    if (command->checkout_start.hold_count > 0)
        return place_of_hold(lane, command, &command->checkout_start.hold_ids[0], out);
    struct hot_event *event = hot_event(lane->hot, &command->actor.org_id, &command->checkout_start.event_id);
    const struct hot_user *user =
        event != NULL && event->map != NULL ? hot_user(lane->hot, event, &command->actor.for_user_id) : NULL;
    if (user == NULL || list_empty(&user->holds))
        return false;
    const struct hot_hold *hold = CONTAINER_OF(user->holds.next, const struct hot_hold, user_node);
    return place_of_seat(event, hold->seat_index, out);
}

static bool place_of_checkout(const struct lane *lane, const struct command *command, struct lane_place *out)
{
    const struct hot_checkout *checkout = hot_checkout(lane->hot, &command->actor.org_id, &command->id);
    if (checkout == NULL || list_empty(&checkout->holds))
        return false;
    const struct hot_hold *hold = CONTAINER_OF(checkout->holds.next, const struct hot_hold, checkout_node);
    return place_of_seat(hold->event, hold->seat_index, out);
}

static bool place_of(struct lane *lane, const struct command *command, struct lane_place *out)
{
    switch (command->kind) {
    case COMMAND_HOLD_SEATS:
        return place_of_seats(lane, command, out);
    case COMMAND_HOLD_BEST:
        return place_of_best(lane, command, out);
    case COMMAND_HOLD_EXTEND:
    case COMMAND_HOLD_RELEASE:
        return place_of_hold(lane, command, &command->id, out);
    case COMMAND_CHECKOUT_START:
        return place_of_start(lane, command, out);
    case COMMAND_CHECKOUT_COMPLETE:
    case COMMAND_CHECKOUT_CANCEL:
        return place_of_checkout(lane, command, out);
    default:
        return false;
    }
}

/* ---- There ---- */

bool route_is_elsewhere(const struct lane *lane, const struct command *command)
{
    return lane->router.send != NULL && !command->sent.is_taken && command_can_be_sent(command->kind);
}

enum decision route_send(struct lane *lane, struct command *command, bool *is_here)
{
    struct lane_place place;
    *is_here = false;
    if (!place_of(lane, command, &place)) {
        /* It may have been made a moment ago, by the node that decides it. */
        if (!follow_is_fresh(lane, command))
            return DEFERRED;
        *is_here = true;
        return DECIDED;
    }
    /* If it could not be placed before, it has its key already: it would be in its own way. */
    if (command->has_key)
        key_done(lane, command);
    enum err err = lane->router.send(lane->router.context, command, &place);
    if (err != ERR_OK)
        lane_refuse(lane, command, err);
    return DECIDED;
}

void lane_take(struct lane *lane, struct command *command)
{
    command_arrives(command);
    command->arrived_ms = lane->now_ms;
    lane_make_ready(lane, command);
}

/* ---- And back ---- */

void lane_settle(struct lane *lane, struct command *command, const void *answer, size_t size)
{
    command->sent.answer = arena_copy(command->arena, answer, size);
    command->sent.answer_size = size;
    command->arrived_ms = lane->now_ms; /* it is done: whatever is still to be read is not late */
    command->fresh_needed = 0;
    lane_lookups_forget(command);
    lane_look_at(lane, command); /* at once: it needs no room in a batch */
}

void lane_return(struct lane *lane, struct command *command)
{
    command->result.now_ms = lane->now_ms;
    lane_reply(lane, command);
}

const void *lane_pack_answer(const struct command *command, size_t *size)
{
    return result_pack(command, command->arena, size);
}

void lane_tell_settled(struct lane *lane, const struct command *command)
{
    news_command(lane, command);
}

enum decision route_settled(struct lane *lane, struct command *command)
{
    return answer_packed(lane, command, command->sent.answer, command->sent.answer_size);
}

void route_leave_pending(struct command *command)
{
    command->result = (struct result){.status = 202, .is_pending = true};
}

/* ---- What became of it ---- */

/* One that was sent a moment ago may not have been decided yet, wherever it is. */
static bool is_young(const struct lane *lane, const struct uuid *id)
{
    int64_t made_ms = 0;
    for (int i = 0; i < 6; i++)
        made_ms = made_ms << 8 | id->bytes[i];
    int64_t age_ms = lane->now_ms - made_ms;
    return age_ms > -ORDER_DEADLINE_MS && age_ms < 2 * ORDER_DEADLINE_MS;
}

enum decision decide_answer_get(struct lane *lane, struct command *command)
{
    const void *answer = NULL;
    size_t size = 0;
    if (command->sent.answer != NULL)
        return route_settled(lane, command);
    bool is_known =
        lane->router.find != NULL &&
        lane->router.find(lane->router.context, &command->actor.org_id, &command->sent.id, &answer, &size);
    if (is_known && answer != NULL) {
        command->sent.answer = arena_copy(command->arena, answer, size);
        command->sent.answer_size = size;
        return route_settled(lane, command);
    }
    enum decision decision;
    bool may_be_a_hold = lane->router.find != NULL && command->sent.is_key_made;
    if (may_be_a_hold && answer_by_hold(lane, command, &decision))
        return decision;
    struct store_lookup *lookup = lane_lookup(lane, command, LOOKUP_KEY, NULL);
    if (lookup == NULL)
        return LOOKING_UP;
    if (lookup->err == ERR_OK && lookup->found)
        return answer_packed(lane, command, lookup->result, lookup->result_size);
    if (lookup->err != ERR_OK)
        command->result = (struct result){.err = ERR_STORE_UNAVAILABLE, .retry_after_seconds = 1};
    else if (is_known || (lane->router.find != NULL && is_young(lane, &command->sent.id)))
        route_leave_pending(command);
    else
        command->result = (struct result){.err = ERR_COMMAND_NOT_FOUND};
    command->result.now_ms = lane->now_ms;
    lane_reply(lane, command);
    return DECIDED;
}
