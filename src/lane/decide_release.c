/* SPDX-License-Identifier: Apache-2.0
 * One hold: extending it, giving it back. A hold that is not in memory has
 * ended, or never was: the store knows which. */
#include "base/metrics.h"
#include "hold/rules.h"
#include "lane/lane_int.h"

/* The hold as the store has it, for one that has ended. ERR_OK and *lookup NULL: being looked up. */
static enum err find_ended(struct lane *lane, struct command *command, struct store_lookup **lookup)
{
    *lookup = lane_lookup(lane, command, LOOKUP_HOLD, &command->id);
    if (*lookup == NULL)
        return ERR_OK;
    if ((*lookup)->err != ERR_OK)
        return ERR_STORE_UNAVAILABLE;
    return (*lookup)->found ? ERR_OK : ERR_HOLD_NOT_FOUND;
}

static void answer_ended(struct lane *lane, struct command *command, const struct hold_row *row)
{
    struct hot_event *event = hot_event(lane->hot, &row->org_id, &row->event_id);
    int32_t index = event != NULL && event->map != NULL ? seatmap_find(event->map, &row->seat_id) : -1;
    if (index >= 0)
        answer_add_hold(command, event, index, row, 1);
    command->result.status = 200;
}

/* ---- Extending ---- */

static enum decision extend_ended(struct lane *lane, struct command *command)
{
    struct store_lookup *lookup;
    enum err err = find_ended(lane, command, &lookup);
    if (err == ERR_OK && lookup == NULL)
        return LOOKING_UP;
    if (err == ERR_OK && !lane_may_act_for(command, &lookup->holds[0].user_id))
        err = ERR_NOT_HOLD_OWNER;
    else if (err == ERR_OK)
        err = lookup->holds[0].state == HOLD_EXPIRED ? ERR_HOLDS_EXPIRED : ERR_HOLD_NOT_FOUND;
    if (err == ERR_HOLDS_EXPIRED)
        counter_add(COUNTER_HOLD_EXPIRED_BEFORE_CHECKOUT, 1);
    return lane_answer(lane, command, err);
}

enum decision decide_hold_extend(struct lane *lane, struct command *command)
{
    command->result = (struct result){0};
    struct hot_hold *hold = hot_hold(lane->hot, &command->actor.org_id, &command->id);
    if (hold == NULL)
        return extend_ended(lane, command);
    if (!lane_may_act_for(command, &hold->user->user_id))
        return lane_answer(lane, command, ERR_NOT_HOLD_OWNER);
    if (hot_seat_of(hold)->busy || hold->event->exclusive)
        return DEFERRED;
    int64_t until_ms;
    enum err err = rule_extend(hold->created_ms, hold->held_until_ms, hot_hold_paying(hold),
                               &hold->event->row.policy, lane->now_ms, &until_ms);
    if (err == ERR_HOLDS_EXPIRED)
        counter_add(COUNTER_HOLD_EXPIRED_BEFORE_CHECKOUT, 1);
    if (err != ERR_OK)
        return lane_answer(lane, command, err);
    struct step *step = step_begin(lane, command);
    extend_hold(step, hold, until_ms);
    struct hold_row row = step->unit.holds->row;
    answer_add_hold(command, hold->event, hold->seat_index, &row, 1);
    command->result.status = 200;
    command->result.now_ms = lane->now_ms;
    step_submit(step);
    return DECIDED;
}

struct hold_row *extend_hold(struct step *step, struct hot_hold *hold, int64_t until_ms)
{
    struct hold_row *row = &step_hold(step, hold)->row;
    struct step_seat *seat = step_seat(step, hold->event, hold->seat_index, SEAT_HELD);
    if (until_ms == row->held_until_ms)
        return row; /* at the cap: nothing to tell */
    struct audit_row *audit = audit_hold(step, AUDIT_HOLD_EXTENDED, row);
    audit->before = step_printf(step, "{\"held_until_unix\":%lld}", (long long)(row->held_until_ms / 1000));
    audit->after = step_printf(step, "{\"held_until_unix\":%lld}", (long long)(until_ms / 1000));
    row->held_until_ms = until_ms;
    seat->write.row.held_until_ms = until_ms;
    CONTAINER_OF(row, struct hold_write, row)->extended = true;
    return row;
}

/* ---- Giving back ---- */

/* Again is as good as once: a hold that has ended is released. Only a sold seat is not. */
static enum decision release_ended(struct lane *lane, struct command *command)
{
    struct store_lookup *lookup;
    enum err err = find_ended(lane, command, &lookup);
    if (err != ERR_OK)
        return lane_answer(lane, command, err);
    if (lookup == NULL)
        return LOOKING_UP;
    const struct hold_row *row = &lookup->holds[0];
    if (!lane_may_act_for(command, &row->user_id))
        return lane_answer(lane, command, ERR_NOT_HOLD_OWNER);
    if (row->state == HOLD_CONVERTED) {
        answer_add_failure(command, &row->seat_id, ERR_SEAT_NOT_AVAILABLE, 1)->state = SEAT_SOLD;
        return lane_answer(lane, command, ERR_SEAT_NOT_AVAILABLE);
    }
    /* Another node made it, or a commit whose answer has not come: not in memory yet. */
    if (row->state == HOLD_ACTIVE && (lane->shared || lane->in_flight > 0)) {
        follow_missed(lane, command);
        lane_lookups_forget(command);
        return DEFERRED;
    }
    counter_add(COUNTER_RELEASE_DOUBLE, 1);
    answer_ended(lane, command, row);
    return lane_answer(lane, command, ERR_OK);
}

enum decision decide_hold_release(struct lane *lane, struct command *command)
{
    command->result = (struct result){0};
    struct hot_hold *hold = hot_hold(lane->hot, &command->actor.org_id, &command->id);
    if (hold == NULL)
        return release_ended(lane, command);
    if (!lane_may_act_for(command, &hold->user->user_id))
        return lane_answer(lane, command, ERR_NOT_HOLD_OWNER);
    if (end_hold_must_wait(hold))
        return DEFERRED;
    if (hot_hold_paying(hold))
        return lane_answer(lane, command, ERR_PAYMENT_IN_PROGRESS);
    struct step *step = step_begin(lane, command);
    end_hold(step, hold, END_USER_CANCELLED, SEAT_AVAILABLE, NULL);
    answer_add_hold(command, hold->event, hold->seat_index, &step->unit.holds->row, 1);
    command->result.status = 200;
    command->result.now_ms = lane->now_ms;
    step_submit(step);
    return DECIDED;
}
