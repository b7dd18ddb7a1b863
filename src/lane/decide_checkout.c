/* SPDX-License-Identifier: Apache-2.0
 * Checkouts: starting one (extends its holds, never shortens), paying, cancelling.
 * What the gateway answers is payment.c's. */
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "hold/rules.h"
#include "lane/lane_int.h"

static bool is_open(const struct hot_checkout *checkout)
{
    return checkout != NULL &&
           (checkout->row.state == CHECKOUT_PENDING_PAYMENT || checkout->row.state == CHECKOUT_PROCESSING);
}

/* ---- Start ---- */

struct start {
    struct lane *lane;
    struct command *command;
    struct hot_event *event;
    struct uuid user_id; /* whose checkout it is */
    struct hot_hold **holds;
    int32_t count;
    int32_t lapsed_count;
    int32_t paying_count;
};

static void start_add(struct start *start, struct hot_hold *hold)
{
    if (hot_hold_paying(hold))
        start->paying_count++;
    else if (hold_is_lapsed(hold->held_until_ms, false, start->lane->now_ms))
        start->lapsed_count++;
    else
        start->holds[start->count++] = hold;
}

/* A named hold that is not active: has it run out, or was there never such a one? */
static enum err start_ended(struct start *start, const struct uuid *hold_id, bool *looking_up)
{
    struct store_lookup *lookup = lane_lookup(start->lane, start->command, LOOKUP_HOLD, hold_id);
    *looking_up = lookup == NULL;
    if (lookup == NULL)
        return ERR_OK;
    if (lookup->err != ERR_OK)
        return ERR_STORE_UNAVAILABLE;
    bool expired = lookup->found && lookup->holds[0].state == HOLD_EXPIRED &&
                   lane_may_act_for(start->command, &lookup->holds[0].user_id);
    return expired ? ERR_HOLDS_EXPIRED : ERR_HOLD_NOT_FOUND;
}

static enum err start_named(struct start *start, bool *looking_up)
{
    struct command *command = start->command;
    bool for_whom_is_said = !uuid_equal(&command->actor.user_id, &command->actor.for_user_id);
    for (int32_t i = 0; i < command->checkout_start.hold_count; i++) {
        const struct uuid *id = &command->checkout_start.hold_ids[i];
        struct hot_hold *hold = hot_hold(start->lane->hot, &command->actor.org_id, id);
        if (hold == NULL)
            return start_ended(start, id, looking_up);
        if (i == 0 && command->actor.role != ROLE_BUYER && !for_whom_is_said)
            start->user_id = hold->user->user_id; /* an agent names a buyer's holds */
        if (!uuid_equal(&hold->user->user_id, &start->user_id))
            return ERR_NOT_HOLD_OWNER;
        if (hold->event != start->event)
            return ERR_MIXED_EVENTS;
        start_add(start, hold);
    }
    return ERR_OK;
}

static void start_all(struct start *start)
{
    struct hot_user *user = hot_user(start->lane->hot, start->event, &start->user_id);
    if (user == NULL)
        return;
    const char *cart_token = start->command->checkout_start.cart_token;
    LIST_FOR_EACH(node, &user->holds) {
        struct hot_hold *hold = CONTAINER_OF(node, struct hot_hold, user_node);
        if (cart_token == NULL || strcmp(cart_token, hold->cart_token) == 0)
            start_add(start, hold);
    }
}

static enum err start_check(const struct start *start, bool named)
{
    if (start->lapsed_count > 0 && (named || start->count == 0)) {
        counter_add(COUNTER_HOLD_EXPIRED_BEFORE_CHECKOUT, 1);
        return ERR_HOLDS_EXPIRED;
    }
    if (start->paying_count > 0 && (named || start->count == 0))
        return ERR_PAYMENT_IN_PROGRESS;
    return start->count == 0 ? ERR_NO_ACTIVE_HOLDS : ERR_OK;
}

/* The checkout that has exactly these holds already, or NULL. */
static struct hot_checkout *start_same(const struct start *start)
{
    struct hot_checkout *checkout = start->holds[0]->checkout;
    if (checkout == NULL)
        return NULL;
    int32_t count = 0;
    LIST_FOR_EACH(node, &checkout->holds)
        count++;
    if (count != start->count)
        return NULL;
    for (int32_t i = 0; i < start->count; i++) {
        if (start->holds[i]->checkout != checkout)
            return NULL;
    }
    return checkout;
}

/* True if no single seat is stranded that another place would not strand. Our own seats count
 * as free: it is the choice of these that is judged. */
static bool start_check_gaps(struct start *start)
{
    struct hot_event *event = start->event;
    struct command *command = start->command;
    if (!event->row.policy.forbid_single_seat_gaps)
        return true;
    size_t words = (size_t)event->map->layout->seat_count / 64 + 1;
    uint64_t *bits = arena_copy(command->arena, event->vacant, words * sizeof(*bits));
    int32_t *seats = ARENA_ARRAY(command->arena, int32_t, start->count);
    for (int32_t i = 0; i < start->count; i++) {
        seats[i] = start->holds[i]->seat_index;
        bit_set(bits, seats[i], true);
    }
    return !answer_stranded(command, event, bits, seats, start->count);
}

static enum decision start_write(struct start *start)
{
    struct lane *lane = start->lane;
    struct command *command = start->command;
    struct hot_event *event = start->event;
    struct step *step = step_begin(lane, command);
    step_check_event(step, event);
    struct checkout_row row = {
        .org_id = event->row.org_id,
        .event_id = event->row.id,
        .id = lane_make_id(lane),
        .user_id = start->user_id,
        .state = CHECKOUT_PENDING_PAYMENT,
        .created_ms = lane->now_ms,
    };
    memcpy(row.currency, event->row.currency, sizeof(row.currency));
    struct hold_row *rows = ARENA_ARRAY(command->arena, struct hold_row, start->count);
    for (int32_t i = 0; i < start->count; i++) {
        struct hot_hold *hold = start->holds[i];
        int64_t until_ms = rule_checkout_until(hold->created_ms, hold->held_until_ms, &event->row.policy);
        if (hold->checkout != NULL)
            checkout_lose(step, hold, END_USER_CANCELLED);
        struct hold_row *write = extend_hold(step, hold, until_ms);
        write->checkout_id = row.id;
        rows[i] = *write;
        row.total_cents += hold->price_cents;
        if (i == 0 || until_ms < row.expires_ms)
            row.expires_ms = until_ms;
    }
    step_checkout_new(step, &row);
    struct audit_row *audit = audit_checkout(step, AUDIT_CHECKOUT_STARTED, &row);
    audit->after = step_printf(step, "{\"status\":\"pending_payment\",\"seats\":%d,\"total_cents\":%lld}",
                               start->count, (long long)row.total_cents);
    answer_checkout(lane, command, &row, rows, start->count, NULL, 0);
    command->result.status = 201;
    command->result.now_ms = lane->now_ms;
    step_submit(step);
    return DECIDED;
}

enum decision decide_checkout_start(struct lane *lane, struct command *command)
{
    command->result = (struct result){0};
    struct start start = {.lane = lane, .command = command, .user_id = command->actor.for_user_id};
    start.event = hot_event(lane->hot, &command->actor.org_id, &command->checkout_start.event_id);
    if (start.event == NULL)
        return lane_answer(lane, command, ERR_EVENT_NOT_FOUND);
    if (start.event->exclusive)
        return DEFERRED;
    enum err err = event_check_open(&start.event->row);
    if (err != ERR_OK)
        return lane_answer(lane, command, err);
    bool named = command->checkout_start.hold_ids != NULL, looking_up = false;
    if (!named && !follow_is_fresh(lane, command))
        return DEFERRED; /* all of them: those made elsewhere a moment ago too */
    struct hot_user *user = hot_user(lane->hot, start.event, &start.user_id);
    int32_t count_max = named ? command->checkout_start.hold_count : user != NULL ? user->hold_count : 0;
    start.holds = ARENA_ARRAY(command->arena, struct hot_hold *, count_max + 1);
    if (named)
        err = start_named(&start, &looking_up);
    else
        start_all(&start);
    if (looking_up)
        return LOOKING_UP;
    if (err == ERR_OK)
        err = start_check(&start, named);
    if (err == ERR_OK && start.count > CHECKOUT_HOLD_COUNT_MAX) {
        err = ERR_INVALID_REQUEST; /* one transaction must stay short, whatever the policy allows */
        command->result.message = "hold_ids: these are more holds than one checkout takes; name some of them";
    }
    if (err != ERR_OK)
        return lane_answer(lane, command, err);
    for (int32_t i = 0; i < start.count; i++) {
        if (end_hold_must_wait(start.holds[i]))
            return DEFERRED;
    }
    struct hot_checkout *same = start_same(&start);
    if (same != NULL) {
        if (!follow_is_fresh(lane, command))
            return DEFERRED;
        answer_hot_checkout(lane, command, same);
        command->result.status = 200;
        return lane_answer(lane, command, ERR_OK);
    }
    if (!start_check_gaps(&start))
        return lane_answer(lane, command, ERR_WOULD_LEAVE_SINGLE_SEAT);
    return start_write(&start);
}

/* ---- Ended checkouts come from the store ---- */

/* ERR_OK: *lookup has it, or is NULL: being looked up. */
static enum err find_ended(struct lane *lane, struct command *command, struct store_lookup **lookup)
{
    *lookup = lane_lookup(lane, command, LOOKUP_CHECKOUT, &command->id);
    if (*lookup == NULL)
        return ERR_OK;
    if ((*lookup)->err != ERR_OK)
        return ERR_STORE_UNAVAILABLE;
    if (!(*lookup)->found || !lane_may_act_for(command, &(*lookup)->checkout.user_id))
        return ERR_CHECKOUT_NOT_FOUND;
    return ERR_OK;
}

/* The store has it as open: another node changed it, and memory does not know that yet. */
static bool must_follow(struct lane *lane, struct command *command, const struct store_lookup *lookup)
{
    enum checkout_state state = lookup->checkout.state;
    if (!lane->shared || (state != CHECKOUT_PENDING_PAYMENT && state != CHECKOUT_PROCESSING))
        return false;
    follow_missed(lane, command);
    return true;
}

static void answer_lookup(struct lane *lane, struct command *command, const struct store_lookup *lookup)
{
    answer_checkout(lane, command, &lookup->checkout, lookup->holds, lookup->hold_count, lookup->tickets,
                    lookup->ticket_count);
    command->result.status = 200;
}

/* ---- Pay ---- */

static bool any_hold_must_wait(const struct hot_checkout *checkout)
{
    LIST_FOR_EACH(node, &checkout->holds) {
        if (end_hold_must_wait(CONTAINER_OF(node, struct hot_hold, checkout_node)))
            return true;
    }
    return false;
}

static bool any_hold_lapsed(const struct lane *lane, const struct hot_checkout *checkout)
{
    LIST_FOR_EACH(node, &checkout->holds) {
        const struct hot_hold *hold = CONTAINER_OF(node, struct hot_hold, checkout_node);
        if (hold_is_lapsed(hold->held_until_ms, false, lane->now_ms))
            return true;
    }
    return false;
}

/* A hold has run out: nothing is charged, the checkout is over, the other holds stay. */
static enum decision complete_expired(struct lane *lane, struct command *command,
                                      struct hot_checkout *checkout)
{
    struct step *step = step_begin(lane, command);
    struct checkout_row *row = step_checkout(step, checkout);
    checkout_move(&row->state, CHECKOUT_EXPIRED);
    row->reason = END_TTL_EXPIRED;
    row->ended_ms = lane->now_ms;
    LIST_FOR_EACH(node, &checkout->holds) {
        struct hot_hold *hold = CONTAINER_OF(node, struct hot_hold, checkout_node);
        extend_hold(step, hold, hold->held_until_ms)->checkout_id = (struct uuid){{0}};
    }
    struct audit_row *audit = audit_checkout(step, AUDIT_CHECKOUT_EXPIRED, row);
    audit->reason = end_reason_name(END_TTL_EXPIRED);
    audit->after = "{\"status\":\"expired\"}";
    counter_add(COUNTER_HOLD_EXPIRED_BEFORE_CHECKOUT, 1);
    command->result.err = ERR_HOLDS_EXPIRED;
    command->result.now_ms = lane->now_ms;
    step_submit(step);
    return DECIDED;
}

/* Pinning is a transition like any other: it cannot race the release. The gateway is asked when
 * it is committed. */
static enum decision complete_pin(struct lane *lane, struct command *command, struct hot_checkout *checkout)
{
    struct step *step = step_begin(lane, command);
    step->waits_for_payment = true;
    step_check_event(step, checkout->event);
    struct checkout_row *row = step_checkout(step, checkout);
    checkout_move(&row->state, CHECKOUT_PROCESSING);
    payer_take(lane, row);
    row->paying_since_ms = lane->now_ms;
    row->payment_deadline_ms = lane->now_ms + checkout->event->row.policy.payment_max_seconds * 1000ll;
    row->payment_token = arena_text(step_arena(step), command->checkout.payment_token);
    LIST_FOR_EACH(node, &checkout->holds) {
        struct hot_hold *hold = CONTAINER_OF(node, struct hot_hold, checkout_node);
        step_seat(step, hold->event, hold->seat_index, SEAT_HELD);
    }
    struct audit_row *audit = audit_checkout(step, AUDIT_CHECKOUT_PAYING, row);
    audit->before = "{\"status\":\"pending_payment\"}";
    audit->after = "{\"status\":\"processing\"}";
    step_submit(step);
    return DECIDED;
}

static enum decision complete_ended(struct lane *lane, struct command *command)
{
    struct store_lookup *lookup;
    enum err err = find_ended(lane, command, &lookup);
    if (err == ERR_OK && lookup == NULL)
        return LOOKING_UP;
    if (err == ERR_OK && must_follow(lane, command, lookup))
        return DEFERRED;
    if (err == ERR_OK)
        err = rule_checkout_pay(lookup->checkout.state);
    if (err != ERR_OK)
        return lane_answer(lane, command, err);
    answer_lookup(lane, command, lookup);
    return lane_answer(lane, command, ERR_OK);
}

enum decision decide_checkout_complete(struct lane *lane, struct command *command)
{
    command->result = (struct result){0};
    struct hot_checkout *checkout = hot_checkout(lane->hot, &command->actor.org_id, &command->id);
    if (!is_open(checkout))
        return complete_ended(lane, command);
    if (!lane_may_act_for(command, &checkout->row.user_id))
        return lane_answer(lane, command, ERR_CHECKOUT_NOT_FOUND);
    if (checkout->busy)
        return DEFERRED;
    if (checkout->row.state == CHECKOUT_PROCESSING) {
        answer_hot_checkout(lane, command, checkout);
        command->result.status = 202;
        return lane_answer(lane, command, ERR_OK);
    }
    if (any_hold_must_wait(checkout))
        return DEFERRED;
    if (!event_is_open(checkout->event->row.state)) /* it is being emptied, and this checkout with it */
        return lane_answer(lane, command, ERR_CHECKOUT_NOT_PAYABLE);
    if (any_hold_lapsed(lane, checkout))
        return complete_expired(lane, command, checkout);
    return complete_pin(lane, command, checkout);
}

/* ---- Cancel ---- */

/* Again: the same answer, and whoever missed the news hears it once more. */
static enum decision cancel_ended(struct lane *lane, struct command *command)
{
    struct store_lookup *lookup;
    enum err err = find_ended(lane, command, &lookup);
    if (err == ERR_OK && lookup == NULL)
        return LOOKING_UP;
    if (err == ERR_OK && must_follow(lane, command, lookup))
        return DEFERRED;
    if (err == ERR_OK)
        err = rule_checkout_cancel(lookup->checkout.state);
    if (err != ERR_OK)
        return lane_answer(lane, command, err);
    answer_lookup(lane, command, lookup);
    struct result *result = &command->result;
    for (int32_t i = 0; i < result->checkout_hold_count && lane->config.feed != NULL; i++) {
        const struct hold_view *view = &result->checkout_holds[i];
        feed_seat(lane->config.feed, &view->row.event_id, view->seat_index,
                  seatmap_state(view->map, view->seat_index), END_NONE);
    }
    news_checkout(lane, &lookup->checkout);
    return lane_answer(lane, command, ERR_OK);
}

enum decision decide_checkout_cancel(struct lane *lane, struct command *command)
{
    command->result = (struct result){0};
    struct hot_checkout *checkout = hot_checkout(lane->hot, &command->actor.org_id, &command->id);
    if (!is_open(checkout))
        return cancel_ended(lane, command);
    if (!lane_may_act_for(command, &checkout->row.user_id))
        return lane_answer(lane, command, ERR_CHECKOUT_NOT_FOUND);
    if (checkout->busy || any_hold_must_wait(checkout))
        return DEFERRED;
    enum err err = rule_checkout_cancel(checkout->row.state);
    if (err != ERR_OK)
        return lane_answer(lane, command, err);
    struct step *step = step_begin(lane, command);
    struct checkout_row *row = step_checkout(step, checkout);
    checkout_move(&row->state, CHECKOUT_CANCELLED);
    row->reason = END_USER_CANCELLED;
    row->ended_ms = lane->now_ms;
    row->notes = arena_text(step_arena(step), command->checkout.notes);
    answer_hot_checkout(lane, command, checkout);
    LIST_FOR_EACH(node, &checkout->holds)
        end_hold_with_checkout(step, CONTAINER_OF(node, struct hot_hold, checkout_node), END_USER_CANCELLED,
                               row->notes);
    struct audit_row *audit = audit_checkout(step, AUDIT_CHECKOUT_CANCELLED, row);
    audit->reason = end_reason_name(END_USER_CANCELLED);
    audit->before = "{\"status\":\"pending_payment\"}";
    audit->after = "{\"status\":\"cancelled\"}";
    command->result.checkout.state = CHECKOUT_CANCELLED;
    command->result.status = 200;
    command->result.now_ms = lane->now_ms;
    step_submit(step);
    return DECIDED;
}
