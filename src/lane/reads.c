/* SPDX-License-Identifier: Apache-2.0
 * Reads that need the lane's own state: holds and open checkouts are in memory;
 * ended checkouts come from the store. */
#include <stdlib.h>

#include "lane/lane_int.h"

static void add_hold(struct command *command, const struct hot_hold *hold, int32_t count_max)
{
    struct hold_row row;
    hot_hold_row(hold, &row);
    answer_add_hold(command, hold->event, hold->seat_index, &row, count_max);
}

static enum decision answer_read(struct lane *lane, struct command *command, enum err err)
{
    if (follow_must_wait(lane, command, err))
        return DEFERRED;
    command->result.err = err;
    command->result.status = 200;
    command->result.now_ms = lane->now_ms;
    lane_reply(lane, command);
    return DECIDED;
}

/* ---- My holds ---- */

static int compare_holds(const void *a, const void *b)
{
    return uuid_compare(&(*(struct hot_hold *const *)a)->id, &(*(struct hot_hold *const *)b)->id);
}

static void add_user_holds(struct command *command, struct hot_user *user, int32_t count_max)
{
    LIST_FOR_EACH(node, &user->holds)
        add_hold(command, CONTAINER_OF(node, struct hot_hold, user_node), count_max);
}

static void list_mine(struct lane *lane, struct command *command)
{
    const struct actor *actor = &command->actor;
    int32_t count = 0;
    size_t position = 0;
    struct hot_event *event;
    while ((event = map_next(&lane->hot->events, &position)) != NULL) {
        struct hot_user *user = hot_user(lane->hot, event, &actor->for_user_id);
        if (user != NULL && uuid_equal(&event->row.org_id, &actor->org_id))
            count += user->hold_count;
    }
    position = 0;
    while ((event = map_next(&lane->hot->events, &position)) != NULL) {
        struct hot_user *user = hot_user(lane->hot, event, &actor->for_user_id);
        bool wanted = uuid_is_nil(&command->holds_list.event_id) ||
                      uuid_equal(&command->holds_list.event_id, &event->row.id);
        if (user != NULL && wanted && uuid_equal(&event->row.org_id, &actor->org_id))
            add_user_holds(command, user, count);
    }
}

/* ---- An admin's list: by id, after the cursor ---- */

static bool is_wanted(const struct command *command, const struct hot_hold *hold)
{
    const struct uuid *user_id = &command->holds_list.user_id;
    const struct uuid *block_id = &command->holds_list.block_id;
    const struct seatmap *map = hold->event->map;
    if (uuid_compare(&hold->id, &command->holds_list.after) <= 0)
        return false;
    if (!uuid_is_nil(user_id) && !uuid_equal(user_id, &hold->user->user_id))
        return false;
    return uuid_is_nil(block_id) ||
           uuid_equal(block_id, &map->blocks[seatmap_row(map, hold->seat_index)->block].id);
}

static enum err list_everybody(struct lane *lane, struct command *command)
{
    struct hot_event *event = hot_event(lane->hot, &command->actor.org_id, &command->holds_list.event_id);
    if (event == NULL)
        return ERR_EVENT_NOT_FOUND;
    if (event->map == NULL)
        return ERR_OK;
    int32_t seat_count = event->map->layout->seat_count, count = 0;
    struct hot_hold **wanted = malloc(sizeof(struct hot_hold *) * ((size_t)seat_count + 1));
    if (wanted == NULL)
        return ERR_INTERNAL;
    for (int32_t i = 0; i < seat_count; i++) {
        struct hot_hold *hold = event->seats[i].hold;
        if (hold != NULL && is_wanted(command, hold))
            wanted[count++] = hold;
    }
    qsort(wanted, (size_t)count, sizeof(struct hot_hold *), compare_holds);
    int32_t limit = count < command->holds_list.limit ? count : command->holds_list.limit;
    for (int32_t i = 0; i < limit; i++)
        add_hold(command, wanted[i], limit);
    if (limit > 0 && limit < count)
        command->result.id = wanted[limit - 1]->id; /* there is more: the cursor */
    command->result.counts[0] = count;
    free(wanted);
    return ERR_OK;
}

enum decision decide_holds_list(struct lane *lane, struct command *command)
{
    command->result = (struct result){0};
    enum err err = ERR_OK;
    if (!follow_is_fresh(lane, command))
        return DEFERRED;
    if (command->holds_list.everybody)
        err = list_everybody(lane, command);
    else
        list_mine(lane, command);
    return answer_read(lane, command, err);
}

enum decision decide_hold_get(struct lane *lane, struct command *command)
{
    command->result = (struct result){0};
    if (!follow_is_fresh(lane, command))
        return DEFERRED;
    struct hot_hold *hold = hot_hold(lane->hot, &command->actor.org_id, &command->id);
    if (hold == NULL || !lane_may_act_for(command, &hold->user->user_id))
        return answer_read(lane, command, ERR_HOLD_NOT_FOUND);
    add_hold(command, hold, 1);
    return answer_read(lane, command, ERR_OK);
}

enum decision decide_checkout_get(struct lane *lane, struct command *command)
{
    command->result = (struct result){0};
    if (!follow_is_fresh(lane, command))
        return DEFERRED;
    struct hot_checkout *checkout = hot_checkout(lane->hot, &command->actor.org_id, &command->id);
    bool open = checkout != NULL && (checkout->row.state == CHECKOUT_PENDING_PAYMENT ||
                                     checkout->row.state == CHECKOUT_PROCESSING);
    if (open) {
        if (!lane_may_act_for(command, &checkout->row.user_id))
            return answer_read(lane, command, ERR_CHECKOUT_NOT_FOUND);
        answer_hot_checkout(lane, command, checkout);
        return answer_read(lane, command, ERR_OK);
    }
    struct store_lookup *lookup = lane_lookup(lane, command, LOOKUP_CHECKOUT, &command->id);
    if (lookup == NULL)
        return LOOKING_UP;
    if (lookup->err != ERR_OK)
        return answer_read(lane, command, ERR_STORE_UNAVAILABLE);
    if (!lookup->found || !lane_may_act_for(command, &lookup->checkout.user_id))
        return answer_read(lane, command, ERR_CHECKOUT_NOT_FOUND);
    answer_checkout(lane, command, &lookup->checkout, lookup->holds, lookup->hold_count, lookup->tickets,
                    lookup->ticket_count);
    return answer_read(lane, command, ERR_OK);
}

enum decision decide_sync(struct lane *lane, struct command *command)
{
    command->result = (struct result){0};
    return follow_is_fresh(lane, command) ? answer_read(lane, command, ERR_OK) : DEFERRED;
}
