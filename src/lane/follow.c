/* SPDX-License-Identifier: Apache-2.0
 * When the change feed is asked, and who waits for it; follow.h says how. What
 * a change means for memory is follow_apply.c's.
 *
 * Invariants: (1) changes are applied in the feed's order, each once it was
 * given out and what it may rest on of our own is in memory; `position` moves
 * only when all of an answer are applied.
 * (2) `fresh` never names a question before everything that was committed when
 * it was asked is in memory. */
#include "lane/follow.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "lane/lane_int.h"

enum { FOLLOW_RETRY_MS = 200 };

void follow_init(struct lane *lane)
{
    arena_init(&lane->follow.arena);
    arena_init(&lane->follow.reload.arena);
}

void follow_deinit(struct lane *lane)
{
    arena_deinit(&lane->follow.arena);
    arena_deinit(&lane->follow.reload.arena);
}

/* ---- Asking ---- */

static void answered(struct store_follow *request)
{
    struct lane *lane = request->context;
    struct follow *follow = &lane->follow;
    follow->asked = false;
    if (request->err != ERR_OK) {
        follow->next_at_ms = lane->now_ms + FOLLOW_RETRY_MS;
        return;
    }
    if (request->lost) {
        /* What is in memory can no longer be put right piece by piece. */
        log_write(LOG_ERROR, "this node fell behind the change feed; it must be started again", NULL);
        lane->config.on_lost(lane->config.context);
        follow->next_at_ms = lane->now_ms + FOLLOW_INTERVAL_NUDGED_MS;
        return;
    }
    follow->answered = true;
    follow->own_number = lane->batch_number;
    follow->at = 0;
}

static void ask(struct lane *lane)
{
    struct follow *follow = &lane->follow;
    follow->nudged = false;
    follow->number++;
    arena_reset(&follow->arena);
    follow->request = (struct store_follow){
        .after = follow->position,
        .own_node = lane->config.node_id,
        .limit = FOLLOW_COUNT_MAX,
        .arena = &follow->arena,
        .on_done = answered,
        .context = lane,
    };
    list_init(&follow->request.node);
    if (store_follow(lane->config.store, &follow->request) == ERR_OK)
        follow->asked = true;
    else
        follow->next_at_ms = lane->now_ms + FOLLOW_RETRY_MS;
}

/* ---- Applying ---- */

/* False: something must be read first. */
static bool apply_next(struct lane *lane)
{
    struct follow *follow = &lane->follow;
    const struct store_change *from = &follow->request.changes[follow->at];
    if (follow->change == NULL)
        follow->change = follow_unpack(lane, from);
    struct follow_change *change = follow->change;
    if (change != NULL) {
        while (change->mark_at < change->mark_count) {
            if (!follow_reload(lane, &change->marks[change->mark_at]))
                return false;
            change->mark_at++;
        }
        follow_apply(lane, change);
        double age = (double)(lane->now_ms - from->created_ms) / 1000.0;
        histogram_observe(HISTOGRAM_INVALIDATION_SECONDS, age > 0 ? age : 0);
        counter_add(COUNTER_FEED_CHANGES, 1);
        lane->progress = true;
    }
    follow->change = NULL;
    follow->at++;
    return true;
}

/* With Redis another node says when there is something; without, it must be asked for. */
static int64_t interval_ms(const struct lane *lane)
{
    bool is_told = lane->config.warm != NULL && warm_state(lane->config.warm) == WARM_CLOSED;
    return is_told ? FOLLOW_INTERVAL_NUDGED_MS : FOLLOW_INTERVAL_MS;
}

static void finish(struct lane *lane)
{
    struct follow *follow = &lane->follow;
    const struct store_follow *request = &follow->request;
    follow->answered = false;
    follow->position = request->position;
    if (follow->goal == 0) {
        follow->goal = follow->number;
        follow->horizon = request->horizon;
    }
    if (!request->more && request->reached >= follow->horizon) {
        follow->fresh = follow->goal;
        follow->goal = 0;
        lane->progress = true;
    }
    if (request->more)
        follow->next_at_ms = lane->now_ms;
    else if (follow->fresh < follow->needed || follow->fresh == 0)
        follow->next_at_ms = lane->now_ms + FOLLOW_GAP_MS;
    else
        follow->next_at_ms = lane->now_ms + interval_ms(lane);
}

/* What another node did may rest on something of ours whose answer is still on its way: that comes first. */
static bool waits_for_own(const struct lane *lane)
{
    if (list_empty(&lane->at_store))
        return false;
    const struct lane_batch *oldest = CONTAINER_OF(lane->at_store.next, const struct lane_batch, node);
    return oldest->number <= lane->follow.own_number;
}

void follow_turn(struct lane *lane)
{
    struct follow *follow = &lane->follow;
    if (!lane->shared || follow->asked)
        return;
    if (follow->answered) {
        if (waits_for_own(lane))
            return;
        while (follow->at < follow->request.count) {
            if (!apply_next(lane))
                return;
        }
        finish(lane);
    }
    if (follow->nudged && follow->next_at_ms > lane->now_ms + FOLLOW_GAP_MS)
        follow->next_at_ms = lane->now_ms + FOLLOW_GAP_MS;
    if (lane->now_ms >= follow->next_at_ms)
        ask(lane);
}

int64_t follow_next_ms(const struct lane *lane)
{
    const struct follow *follow = &lane->follow;
    if (!lane->shared || follow->asked)
        return INT64_MAX;
    if (follow->answered && (waits_for_own(lane) || follow->reload.asked))
        return INT64_MAX;
    if (follow->answered) /* an event is to be put in place */
        return lane->now_ms + FOLLOW_GAP_MS;
    if (follow->nudged && follow->next_at_ms > lane->now_ms + FOLLOW_GAP_MS)
        return lane->now_ms + FOLLOW_GAP_MS; /* a command of this turn wants to know */
    return follow->next_at_ms;
}

void follow_nudge(struct lane *lane)
{
    lane->follow.nudged = true;
}

/* ---- Waiting for it ---- */

int64_t follow_next_number(struct lane *lane)
{
    struct follow *follow = &lane->follow;
    if (!lane->shared)
        return 0;
    follow->needed = follow->number + 1; /* one that is under way was asked too early */
    follow->nudged = true;
    return follow->needed;
}

bool follow_has_reached(const struct lane *lane, const struct command *command)
{
    return lane->follow.fresh >= command->fresh_needed;
}

bool follow_is_fresh(struct lane *lane, struct command *command)
{
    if (!lane->shared)
        return true;
    if (command->fresh_needed == 0 && command->came_number <= lane->follow.number)
        command->fresh_needed = command->came_number; /* it was asked while the command stood in line */
    if (command->fresh_needed == 0)
        command->fresh_needed = follow_next_number(lane);
    if (follow_has_reached(lane, command))
        return true;
    lane_lookups_forget(command); /* what the store said is older than what will be known then */
    return false;
}

bool follow_must_wait(struct lane *lane, struct command *command, enum err err)
{
    switch (err) {
    case ERR_EVENT_NOT_FOUND:
    case ERR_SEAT_NOT_FOUND:
    case ERR_HOLD_NOT_FOUND:
    case ERR_CHECKOUT_NOT_FOUND:
    case ERR_NOT_FOUND:
    case ERR_EVENT_NOT_AVAILABLE:
    case ERR_EVENT_SALES_CLOSED:
    case ERR_NO_ACTIVE_HOLDS:
    case ERR_HOLDS_EXPIRED:
    case ERR_HOLD_LIMIT_REACHED:
    case ERR_RATE_LIMITED: /* it may be theirs already */
    case ERR_BLOCK_AT_CAPACITY:
    case ERR_NOT_ENOUGH_SEATS:
    case ERR_PAYMENT_IN_PROGRESS:
        return !follow_is_fresh(lane, command);
    default:
        return false;
    }
}

void follow_missed(struct lane *lane, struct command *command)
{
    if (!lane->shared)
        return;
    if (command != NULL) {
        command->fresh_needed = follow_next_number(lane);
        lane_lookups_forget(command);
    }
    follow_nudge(lane);
}

bool follow_has_caught_up(const struct lane *lane)
{
    return !lane->shared || lane->follow.fresh > 0;
}
