/* SPDX-License-Identifier: Apache-2.0
 * How a hold ends. Every way to end one (time, its owner, a failed payment, an
 * admin) comes through end_hold(), so that hold, seat, checkout and audit row
 * always change together. Timers and the reaper are here too: they are nothing
 * but two more callers.
 *
 * A hold that is due is released in a step of its own, or together with the
 * other due holds of its checkout. If the store does not take it, it is tried
 * again after 10, 20 and 40 s, then alarmed; the reaper goes on asking the store
 * every 30 s for what is overdue. */
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "hold/rules.h"
#include "lane/lane_int.h"

enum { REAPER_LIMIT = 10000, EXPIRY_MISS_RETRY_MS = 1000 };

bool end_hold_must_wait(const struct hot_hold *hold)
{
    if (hot_seat_of(hold)->busy || hold->event->exclusive)
        return true;
    return hold->checkout != NULL && hold->checkout->busy;
}

static void audit_end(struct step *step, const struct hold_row *row)
{
    enum audit_action action = row->reason == END_TTL_EXPIRED ? AUDIT_SEAT_HOLD_EXPIRED : AUDIT_SEAT_RELEASED;
    struct audit_row *audit = audit_hold(step, action, row);
    audit->scenario = end_reason_scenario(row->reason);
    audit->reason = end_reason_name(row->reason);
    audit->before = "{\"status\":\"active\"}";
    audit->after = step_printf(step, "{\"status\":\"%s\"}", hold_state_name(row->state));
    audit->held_duration_seconds = (row->ended_ms - row->created_ms) / 1000;
}

static struct hold_row *end_row(struct step *step, struct hot_hold *hold, enum end_reason reason,
                                const char *notes)
{
    struct hold_row *row = &step_hold(step, hold)->row;
    hold_move(&row->state, rule_hold_ended(reason));
    row->reason = reason;
    row->ended_ms = step->batch->lane->now_ms;
    row->notes = arena_text(step_arena(step), notes);
    return row;
}

/* A pending checkout goes on without the seat and its price; with its last seat it ends. */
void checkout_lose(struct step *step, struct hot_hold *hold, enum end_reason reason)
{
    struct checkout_row *row = step_checkout(step, hold->checkout);
    struct step_checkout *own = CONTAINER_OF(row, struct step_checkout, write.row);
    row->total_cents -= hold->price_cents;
    own->left_count--;
    if (own->left_count > 0)
        return;
    checkout_move(&row->state, rule_checkout_emptied(reason));
    row->reason = reason;
    row->ended_ms = step->batch->lane->now_ms;
    bool expired = row->state == CHECKOUT_EXPIRED;
    struct audit_row *audit =
        audit_checkout(step, expired ? AUDIT_CHECKOUT_EXPIRED : AUDIT_CHECKOUT_CANCELLED, row);
    audit->reason = end_reason_name(reason);
    audit->before = "{\"status\":\"pending_payment\"}";
    audit->after = expired ? "{\"status\":\"expired\"}" : "{\"status\":\"cancelled\"}";
}

void end_hold(struct step *step, struct hot_hold *hold, enum end_reason reason, enum seat_state seat_to,
              const char *notes)
{
    end_hold_keep_seat(step, hold, reason, notes);
    step_seat(step, hold->event, hold->seat_index, seat_to)->reason = reason;
    step->release = reason;
}

void end_hold_keep_seat(struct step *step, struct hot_hold *hold, enum end_reason reason, const char *notes)
{
    CHECK(!hot_hold_paying(hold));
    struct hold_row *row = end_row(step, hold, reason, notes);
    audit_end(step, row);
    if (hold->checkout != NULL) {
        checkout_lose(step, hold, reason);
        row->checkout_id = (struct uuid){{0}};
    }
}

void end_hold_with_checkout(struct step *step, struct hot_hold *hold, enum end_reason reason,
                            const char *notes)
{
    struct hold_row *row = end_row(step, hold, reason, notes);
    audit_end(step, row);
    step_seat(step, hold->event, hold->seat_index, SEAT_AVAILABLE)->reason = reason;
    step->release = reason;
}

/* ---- Time ---- */

static bool is_due(const struct lane *lane, const struct hot_hold *hold)
{
    return hot_hold_release_ms(hold) <= lane->now_ms;
}

static void release_due(struct lane *lane, struct hot_hold *hold)
{
    struct step *step = step_begin(lane, NULL);
    step->by_reaper = hold->reaped;
    if (hold->checkout == NULL) {
        wheel_cancel(&hold->timer);
        end_hold(step, hold, END_TTL_EXPIRED, SEAT_AVAILABLE, NULL);
    } else {
        LIST_FOR_EACH(node, &hold->checkout->holds) {
            struct hot_hold *other = CONTAINER_OF(node, struct hot_hold, checkout_node);
            if (!is_due(lane, other) || hot_seat_of(other)->busy)
                continue;
            wheel_cancel(&other->timer);
            end_hold(step, other, END_TTL_EXPIRED, SEAT_AVAILABLE, NULL);
        }
    }
    step_submit(step);
}

/* Not due: its owner is told that it runs out, or it was extended meanwhile. */
static void set_again(struct lane *lane, struct hot_hold *hold)
{
    int64_t notice_ms = hold->held_until_ms - lane->hot->notice_ms;
    if (!hold->noticed && notice_ms <= lane->now_ms) {
        hold->noticed = true;
        news_hold_expiring(lane, hold);
    }
    wheel_set(&lane->hot->wheel, &hold->timer, hold->noticed ? hot_hold_release_ms(hold) : notice_ms);
}

void due_holds_release(struct lane *lane)
{
    int32_t count = 0;
    struct list busy;
    list_init(&busy);
    while (count < EXPIRY_COUNT_PER_TURN_MAX && batch_has_room(lane) && !list_empty(&lane->due_holds)) {
        struct list *node = lane->due_holds.next;
        struct hot_hold *hold =
            CONTAINER_OF(CONTAINER_OF(node, struct wheel_timer, node), struct hot_hold, timer);
        if (hot_hold_paying(hold)) {
            wheel_cancel(&hold->timer);
        } else if (!is_due(lane, hold)) {
            set_again(lane, hold);
        } else if (end_hold_must_wait(hold)) {
            list_remove(node);
            list_append(&busy, node);
        } else {
            release_due(lane, hold);
            count++;
        }
    }
    list_splice(&lane->due_holds, &busy);
}

void due_hold_failed(struct lane *lane, struct step *step)
{
    for (struct hold_write *write = step->unit.holds; write != NULL; write = write->next) {
        struct hot_hold *hold = map_get(&lane->hot->holds, &write->row.id);
        if (hold == NULL)
            continue;
        if (hold->reaped)
            counter_add(COUNTER_REAPER_FAILED, 1);
        if (hold->try_count >= EXPIRY_TRY_COUNT_MAX) {
            counter_add(COUNTER_RELEASE_EXHAUSTED, 1);
            continue; /* the reaper finds it again */
        }
        wheel_set(&lane->hot->wheel, &hold->timer, lane->now_ms + (10000ll << hold->try_count));
        hold->try_count++;
    }
}

void due_step_missed(struct lane *lane, struct step *step)
{
    for (struct hold_write *write = step->unit.holds; write != NULL; write = write->next) {
        struct hot_hold *hold = map_get(&lane->hot->holds, &write->row.id);
        if (hold != NULL && !hot_hold_paying(hold))
            wheel_set(&lane->hot->wheel, &hold->timer, lane->now_ms + EXPIRY_MISS_RETRY_MS);
    }
    due_checkout_failed(lane, step);
}

/* ---- The reaper ---- */

/* The store says it is overdue: its own timer does the rest, now. One that memory does not have
 * ended after the store was read, and its seat may be somebody else's already. */
static void reap(struct lane *lane, const struct hold_row *row)
{
    struct hot_hold *hold = map_get(&lane->hot->holds, &row->id);
    if (hold == NULL || hot_hold_paying(hold) || !is_due(lane, hold) || end_hold_must_wait(hold))
        return;
    counter_add(COUNTER_REAPER_FOUND, 1);
    hold->reaped = true;
    wheel_set(&lane->hot->wheel, &hold->timer, lane->now_ms);
}

static void reaper_done(struct store_lookup *lookup)
{
    struct lane *lane = lookup->context;
    lane->reaping = false;
    histogram_observe(HISTOGRAM_REAPER_SECONDS,
                      (double)(clock_monotonic_us() - lane->reaper_started_us) / 1e6);
    counter_add(COUNTER_REAPER_RUNS, 1);
    if (lookup->err != ERR_OK) {
        counter_add(COUNTER_REAPER_FAILED, 1);
        log_write(LOG_WARN, "the reaper could not read the store", NULL);
        return;
    }
    gauge_set(GAUGE_REAPER_LAST_RUN, lane->now_ms / 1000);
    gauge_set(GAUGE_HOLDS_OVERDUE, lookup->hold_count);
    for (int32_t i = 0; i < lookup->hold_count; i++)
        reap(lane, &lookup->holds[i]);
}

void reaper_turn(struct lane *lane)
{
    if (lane->reaping || lane->now_ms < lane->reaper_at_ms)
        return;
    lane->reaper_at_ms = lane->now_ms + REAPER_INTERVAL_MS;
    hot_users_sweep(lane->hot, lane->now_ms);
    arena_reset(&lane->reaper_arena);
    lane->reaper_started_us = clock_monotonic_us();
    lane->reaper_lookup = (struct store_lookup){
        .kind = LOOKUP_DUE_HOLDS,
        .now_ms = lane->now_ms,
        .limit = REAPER_LIMIT,
        .arena = &lane->reaper_arena,
        .on_done = reaper_done,
        .context = lane,
    };
    list_init(&lane->reaper_lookup.node);
    if (store_lookup(lane->config.store, &lane->reaper_lookup) == ERR_OK)
        lane->reaping = true;
    else
        counter_add(COUNTER_REAPER_FAILED, 1);
}
