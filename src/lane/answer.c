/* SPDX-License-Identifier: Apache-2.0
 * Putting answers together. Results live in the command's arena and hold
 * references to the seat maps they speak of. */
#include <stdlib.h>

#include "lane/lane_int.h"

bool lane_may_act_for(const struct command *command, const struct uuid *owner_id)
{
    return command->actor.role != ROLE_BUYER || uuid_equal(&command->actor.user_id, owner_id);
}

/* Final answers are kept with their key; the others may go better next time. */
static bool is_kept(const struct command *command)
{
    const struct result *result = &command->result;
    return command->has_key && err_http_status(result->err) < 500 && result->status != 202;
}

enum decision lane_answer(struct lane *lane, struct command *command, enum err err)
{
    if (follow_must_wait(lane, command, err))
        return DEFERRED;
    lane_answer_now(lane, command, err);
    return DECIDED;
}

void lane_answer_now(struct lane *lane, struct command *command, enum err err)
{
    command->result.err = err;
    command->result.now_ms = lane->now_ms;
    if (!is_kept(command)) {
        lane_reply(lane, command);
        return;
    }
    /* What was asked for is decided, or done by a long job or payment: only its key is not written. */
    command->arrived_ms = lane->now_ms;
    step_submit(step_begin(lane, command));
}

void answer_add_hold(struct command *command, struct hot_event *event, int32_t index,
                     const struct hold_row *row, int32_t count_max)
{
    struct result *result = &command->result;
    if (result->holds == NULL)
        result->holds = ARENA_ARRAY(command->arena, struct hold_view, count_max);
    CHECK(result->hold_count < count_max);
    struct hold_view *view = &result->holds[result->hold_count++];
    view->map = command_hold_map(command, event->map);
    view->seat_index = index;
    view->row = *row;
    view->row.cart_token = arena_text(command->arena, row->cart_token);
    view->row.notes = arena_text(command->arena, row->notes);
    result->event_id = row->event_id;
}

struct seat_failure *answer_add_failure(struct command *command, const struct uuid *id, enum err err,
                                        int32_t count_max)
{
    struct result *result = &command->result;
    if (result->failures == NULL)
        result->failures = ARENA_ARRAY(command->arena, struct seat_failure, count_max);
    CHECK(result->failure_count < count_max);
    struct seat_failure *failure = &result->failures[result->failure_count++];
    failure->id = *id;
    failure->err = err;
    return failure;
}

static int compare_indexes(const void *a, const void *b)
{
    return *(const int32_t *)a - *(const int32_t *)b;
}

bool answer_stranded(struct command *command, const struct hot_event *event, const uint64_t *bits,
                     int32_t *seats, int32_t count)
{
    qsort(seats, (size_t)count, sizeof(*seats), compare_indexes);
    struct bit_rows rows = {.free = bits, .rows = event->rows, .row_count = event->map->layout->row_count};
    int32_t *stranded = ARENA_ARRAY(command->arena, int32_t, 2 * count);
    struct result *result = &command->result;
    result->stranded_count = best_stranded(&rows, seats, count, stranded);
    result->stranded = ARENA_ARRAY(command->arena, struct uuid, result->stranded_count);
    for (int32_t i = 0; i < result->stranded_count; i++)
        result->stranded[i] = event->map->seat_ids[stranded[i]];
    return result->stranded_count > 0;
}

void answer_checkout(struct lane *lane, struct command *command, const struct checkout_row *row,
                     const struct hold_row *holds, int32_t hold_count, const struct ticket_row *tickets,
                     int32_t ticket_count)
{
    struct result *result = &command->result;
    result->has_checkout = true;
    result->checkout = *row;
    result->checkout.payment_token = NULL; /* nobody's business */
    result->checkout.notes = arena_text(command->arena, row->notes);
    result->event_id = row->event_id;
    result->checkout_holds = ARENA_ARRAY(command->arena, struct hold_view, hold_count + 1);
    result->checkout_hold_count = 0;
    struct hot_event *event = hot_event(lane->hot, &row->org_id, &row->event_id);
    for (int32_t i = 0; i < hold_count && event != NULL && event->map != NULL; i++) {
        /* Seats taken again for late money: the holds that were released before are history. */
        if (row->state == CHECKOUT_COMPLETED && holds[i].state != HOLD_CONVERTED)
            continue;
        int32_t index = seatmap_find(event->map, &holds[i].seat_id);
        if (index < 0)
            continue;
        struct hold_view *view = &result->checkout_holds[result->checkout_hold_count++];
        view->map = command_hold_map(command, event->map);
        view->seat_index = index;
        view->row = holds[i];
        view->row.cart_token = arena_text(command->arena, holds[i].cart_token);
        view->row.notes = arena_text(command->arena, holds[i].notes);
    }
    if (ticket_count > 0)
        result->tickets = arena_copy(command->arena, tickets, sizeof(*tickets) * (size_t)ticket_count);
    result->ticket_count = ticket_count;
}

void answer_hot_checkout(struct lane *lane, struct command *command, struct hot_checkout *checkout)
{
    int32_t count = 0;
    LIST_FOR_EACH(node, &checkout->holds)
        count++;
    struct hold_row *rows = ARENA_ARRAY(command->arena, struct hold_row, count + 1);
    int32_t filled = 0;
    LIST_FOR_EACH(node, &checkout->holds)
        hot_hold_row(CONTAINER_OF(node, struct hot_hold, checkout_node), &rows[filled++]);
    answer_checkout(lane, command, &checkout->row, rows, count, NULL, 0);
    /* Its holds may have been extended, or lost, one by one since it began. */
    for (int32_t i = 0; i < count; i++) {
        if (i == 0 || rows[i].held_until_ms < command->result.checkout.expires_ms)
            command->result.checkout.expires_ms = rows[i].held_until_ms;
    }
}
