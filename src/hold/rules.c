/* SPDX-License-Identifier: Apache-2.0
 * The state machines as tables, and the decisions on single holds. See rules.h. */
#include "hold/rules.h"

#include "base/clock.h"

/* Rows: from; bits: to. Each is the diagram of rules.h as data. */
static const uint32_t seat_moves[SEAT_STATE_COUNT] = {
    /* Held seats may go to a new hold of the same user, be extended or pinned: held → held.
     * available → sold is a seat taken for late money: held and sold in one transaction. */
    [SEAT_AVAILABLE] = BIT(SEAT_HELD) | BIT(SEAT_BLOCKED) | BIT(SEAT_SOLD),
    [SEAT_HELD] = BIT(SEAT_HELD) | BIT(SEAT_SOLD) | BIT(SEAT_AVAILABLE) | BIT(SEAT_BLOCKED),
    [SEAT_SOLD] = BIT(SEAT_AVAILABLE),
    [SEAT_BLOCKED] = BIT(SEAT_AVAILABLE),
};

static const uint32_t hold_moves[HOLD_STATE_COUNT] = {
    [HOLD_ACTIVE] = BIT(HOLD_ACTIVE) | BIT(HOLD_CONVERTED) | BIT(HOLD_EXPIRED) | BIT(HOLD_CANCELLED),
};

static const uint32_t checkout_moves[CHECKOUT_STATE_COUNT] = {
    [CHECKOUT_PENDING_PAYMENT] = BIT(CHECKOUT_PENDING_PAYMENT) | BIT(CHECKOUT_PROCESSING) |
                                 BIT(CHECKOUT_CANCELLED) | BIT(CHECKOUT_EXPIRED),
    [CHECKOUT_PROCESSING] = BIT(CHECKOUT_PROCESSING) | BIT(CHECKOUT_COMPLETED) | BIT(CHECKOUT_FAILED),
    [CHECKOUT_COMPLETED] = BIT(CHECKOUT_REFUNDED),
    [CHECKOUT_FAILED] = BIT(CHECKOUT_FAILED) | BIT(CHECKOUT_COMPLETED), /* completed: late money */
    [CHECKOUT_REFUNDED] = BIT(CHECKOUT_REFUNDED), /* the refund itself is settled later */
};

static const uint32_t event_moves[EVENT_STATE_COUNT] = {
    [EVENT_DRAFT] = BIT(EVENT_DRAFT) | BIT(EVENT_PUBLISHED) | BIT(EVENT_CANCELLED),
    [EVENT_PUBLISHED] = BIT(EVENT_PUBLISHED) | BIT(EVENT_LIVE) | BIT(EVENT_CANCELLED),
    [EVENT_LIVE] = BIT(EVENT_LIVE) | BIT(EVENT_ARCHIVED) | BIT(EVENT_CANCELLED),
    [EVENT_ARCHIVED] = BIT(EVENT_ARCHIVED),
    [EVENT_CANCELLED] = BIT(EVENT_CANCELLED),
};

void seat_move(enum seat_state *state, enum seat_state to)
{
    CHECK(to < SEAT_STATE_COUNT);
    CHECK(seat_moves[*state] & BIT(to));
    *state = to;
}

void hold_move(enum hold_state *state, enum hold_state to)
{
    CHECK(to < HOLD_STATE_COUNT);
    CHECK(hold_moves[*state] & BIT(to));
    *state = to;
}

void checkout_move(enum checkout_state *state, enum checkout_state to)
{
    CHECK(to < CHECKOUT_STATE_COUNT);
    CHECK(checkout_moves[*state] & BIT(to));
    *state = to;
}

enum err event_move(enum event_state from, enum event_state to)
{
    CHECK(from < EVENT_STATE_COUNT);
    CHECK(to < EVENT_STATE_COUNT);
    return event_moves[from] & BIT(to) ? ERR_OK : ERR_INVALID_TRANSITION;
}

bool event_is_open(enum event_state state)
{
    return state == EVENT_PUBLISHED || state == EVENT_LIVE;
}

enum err event_check_open(const struct event_row *event)
{
    return event_is_open(event->state) ? ERR_OK : ERR_EVENT_NOT_AVAILABLE;
}

enum err event_check_window(const struct event_row *event, int64_t now_ms)
{
    if (now_ms < event->sale_start_ms || now_ms > event->sale_end_ms)
        return ERR_EVENT_SALES_CLOSED;
    return ERR_OK;
}

static struct reserve_decision refuse(enum err err, int64_t expires_ms)
{
    return (struct reserve_decision){.verdict = RESERVE_REFUSE, .err = err, .expires_ms = expires_ms};
}

struct reserve_decision rule_reserve(enum seat_state seat, const struct holder *holder,
                                     const struct uuid *user_id, const struct policy *policy, int64_t now_ms)
{
    if (seat == SEAT_AVAILABLE)
        return (struct reserve_decision){.verdict = RESERVE_GRANT};
    if (seat != SEAT_HELD)
        return refuse(ERR_SEAT_NOT_AVAILABLE, 0);
    if (holder == NULL)
        return refuse(ERR_SEAT_NO_LONGER_AVAILABLE, 0); /* taken elsewhere, by a hold we do not know yet */
    bool lapsed = hold_is_lapsed(holder->held_until_ms, holder->paying, now_ms);
    if (uuid_equal(&holder->user_id, user_id))
        return (struct reserve_decision){.verdict = lapsed ? RESERVE_RENEW : RESERVE_MINE};
    /* Once the time is up it is the release that others wait for. */
    bool past = now_ms >= holder->held_until_ms;
    return refuse(ERR_SEAT_HELD,
                  past ? hold_release_ms(holder->held_until_ms, policy) : holder->held_until_ms);
}

int64_t rule_hold_until(const struct policy *policy, int64_t now_ms)
{
    return time_ceil_second(now_ms) + policy->hold_ttl_seconds * 1000ll;
}

int64_t rule_checkout_until(int64_t created_ms, int64_t held_until_ms, const struct policy *policy)
{
    int64_t extended = held_until_ms + policy->checkout_extension_seconds * 1000ll;
    int64_t cap = time_ceil_second(created_ms) + policy->hold_max_seconds * 1000ll;
    int64_t until = extended < cap ? extended : cap;
    return until > held_until_ms ? until : held_until_ms;
}

enum err rule_extend(int64_t created_ms, int64_t held_until_ms, bool paying, const struct policy *policy,
                     int64_t now_ms, int64_t *new_until_ms)
{
    if (paying)
        return ERR_PAYMENT_IN_PROGRESS;
    if (hold_is_lapsed(held_until_ms, false, now_ms))
        return ERR_HOLDS_EXPIRED;
    int64_t until = rule_checkout_until(created_ms, held_until_ms, policy);
    if (until == held_until_ms)
        return ERR_EXTENSION_LIMIT_REACHED;
    *new_until_ms = until;
    return ERR_OK;
}

enum err rule_checkout_pay(enum checkout_state state)
{
    switch (state) {
    case CHECKOUT_PENDING_PAYMENT:
    case CHECKOUT_PROCESSING:
    case CHECKOUT_COMPLETED:
        return ERR_OK; /* starts, is under way, or is done: the answer is 200 or 202 */
    default:
        return ERR_CHECKOUT_NOT_PAYABLE;
    }
}

enum err rule_checkout_cancel(enum checkout_state state)
{
    switch (state) {
    case CHECKOUT_PENDING_PAYMENT:
    case CHECKOUT_CANCELLED:
        return ERR_OK;
    case CHECKOUT_PROCESSING:
        return ERR_PAYMENT_IN_PROGRESS;
    default:
        return ERR_CHECKOUT_NOT_CANCELLABLE;
    }
}

enum checkout_state rule_checkout_emptied(enum end_reason reason)
{
    return reason == END_TTL_EXPIRED ? CHECKOUT_EXPIRED : CHECKOUT_CANCELLED;
}

enum hold_state rule_hold_ended(enum end_reason reason)
{
    CHECK(reason != END_NONE);
    return reason == END_TTL_EXPIRED ? HOLD_EXPIRED : HOLD_CANCELLED;
}

const char *end_reason_scenario(enum end_reason reason)
{
    switch (reason) {
    case END_TTL_EXPIRED:
        return "A";
    case END_USER_CANCELLED:
        return "B";
    case END_PAYMENT_FAILED:
        return "C";
    case END_ADMIN_OVERRIDE:
        return "D";
    default:
        return NULL;
    }
}

bool rule_hold_limit_allows(const struct policy *policy, int32_t held_count, int32_t adding)
{
    return policy->max_seats_per_user == 0 || held_count + adding <= policy->max_seats_per_user;
}
