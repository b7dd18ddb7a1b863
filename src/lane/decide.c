/* SPDX-License-Identifier: Apache-2.0
 * Which rule decides which command. */
#include "base/metrics.h"
#include "lane/lane_int.h"

typedef enum decision (*decide_function)(struct lane *lane, struct command *command);

static const decide_function functions[COMMAND_KIND_COUNT] = {
    [COMMAND_HOLD_SEATS] = decide_hold_seats,
    [COMMAND_HOLD_BEST] = decide_hold_best,
    [COMMAND_HOLD_EXTEND] = decide_hold_extend,
    [COMMAND_HOLD_RELEASE] = decide_hold_release,
    [COMMAND_CHECKOUT_START] = decide_checkout_start,
    [COMMAND_CHECKOUT_COMPLETE] = decide_checkout_complete,
    [COMMAND_CHECKOUT_CANCEL] = decide_checkout_cancel,
    [COMMAND_ORG_CREATE] = decide_org_create,
    [COMMAND_USER_PATCH] = decide_user_patch,
    [COMMAND_EVENT_CREATE] = decide_event_create,
    [COMMAND_EVENT_PATCH] = decide_event_patch,
    [COMMAND_LAYOUT_PUT] = decide_layout_put,
    [COMMAND_BLOCK_PATCH] = decide_block_patch,
    [COMMAND_SEATS_BLOCK] = decide_seats_block,
    [COMMAND_SEATS_UNBLOCK] = decide_seats_block,
    [COMMAND_ADMIN_RELEASE] = decide_admin_release,
    [COMMAND_RECONCILE] = decide_registry,
    [COMMAND_REGISTRY] = decide_registry,
    [COMMAND_HOLDS_LIST] = decide_holds_list,
    [COMMAND_HOLD_GET] = decide_hold_get,
    [COMMAND_CHECKOUT_GET] = decide_checkout_get,
    [COMMAND_ANSWER_GET] = decide_answer_get,
    [COMMAND_SYNC] = decide_sync,
    [COMMAND_USER_SEEN] = decide_user_seen,
    [COMMAND_PAYMENT_SETTLED] = decide_payment_settled,
    [COMMAND_REFUND_SETTLED] = decide_refund_settled,
    [COMMAND_PAYMENT_TAKE_OVER] = decide_payment_take_over,
};

/* Nobody waits any more for a reserve that was not begun in time: a hold would be held for nobody. What gives back is
 * never late. */
static bool is_past_its_deadline(const struct lane *lane, const struct command *command)
{
    return command->sent.deadline_ms != 0 && lane->now_ms > command->sent.deadline_ms;
}

static enum decision refuse_past_deadline(struct lane *lane, struct command *command)
{
    counter_add(COUNTER_ORDER_LATE, 1);
    command->result = (struct result){.err = ERR_OVERLOADED,
                                      .retry_after_seconds = 1,
                                      .message = "It came too late to be begun; nothing was done.",
                                      .now_ms = lane->now_ms};
    /* Written, though nothing was done: who does not have the partition any more may not say so, and who has it next,
     * with another clock, does not begin after all. Under a key of the caller's own it may go better next time. */
    if (!command->sent.is_key_made) {
        key_done(lane, command);
        command->has_key = false;
    }
    command->arrived_ms = lane->now_ms;
    step_submit(step_begin(lane, command));
    return DECIDED;
}

/* One of its partition, that came before it, is to be tried again: so is this one, behind it. */
static bool is_behind_a_failure(const struct command *command)
{
    return command->sent.fence != NULL && command->sent.fence->is_stalled && !command->has_begun;
}

static enum decision decide_here(struct lane *lane, struct command *command)
{
    if (command->has_key) {
        bool fresh;
        enum decision decision = key_check(lane, command, &fresh);
        if (decision == LOOKING_UP)
            line_join(command);
        else if (decision == DEFERRED)
            line_leave(lane, command); /* it was answered before, or is being answered */
        if (!fresh)
            return decision;
    }
    if (line_must_wait(lane, command))
        return IN_LINE;
    if (is_past_its_deadline(lane, command))
        return refuse_past_deadline(lane, command);
    enum decision decision = functions[command->kind](lane, command);
    if (decision != DECIDED)
        line_wait_for_seats(lane, command);
    return decision;
}

enum decision decide(struct lane *lane, struct command *command)
{
    CHECK(command->kind < COMMAND_KIND_COUNT);
    if (command->sent.answer != NULL)
        return route_settled(lane, command);
    if (route_is_elsewhere(lane, command)) {
        bool is_here;
        enum decision decision = route_send(lane, command, &is_here);
        if (!is_here)
            return decision;
    }
    if (is_behind_a_failure(command)) {
        lane_refuse(lane, command, ERR_OVERLOADED);
        return DECIDED;
    }
    return decide_here(lane, command);
}
