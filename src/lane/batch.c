/* SPDX-License-Identifier: Apache-2.0
 * Batches: one gathers while others commit. What a batch's outcome means for
 * each of its steps stands here, in one place.
 *
 *   gathering ──submit──▶ in flight ─┬─ committed ─▶ each step: ok | missed | key taken | bad
 *                                    ├─ failed ────▶ nothing happened: 503, or tried again
 *                                    └─ unknown ───▶ resolved until it is one of the others
 *
 * Batches form by themselves: a new one is submitted when none is in flight, or
 * when it is large enough to be worth a second connection's while. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "lane/lane_int.h"

enum {
    BATCH_UNIT_COUNT_EAGER = 64, /* so many need not wait for the batch before them */
    RESOLVE_INTERVAL_MS = 1000,
    STORE_RETRY_MS = 1000, /* what must not be lost is tried again after this … */
    MISS_RETRY_MS = 20,    /* … or this, if another node was there first */
};

static void batch_done(struct store_batch *store_batch);
static void batch_end(struct lane *lane, struct lane_batch *batch);

static struct lane_batch *batch_make(struct lane *lane)
{
    struct list *node = list_pop(&lane->spare_batches);
    if (node != NULL)
        return CONTAINER_OF(node, struct lane_batch, node);
    struct lane_batch *batch = calloc(1, sizeof(*batch));
    CHECK(batch != NULL);
    arena_init(&batch->store.arena);
    list_init(&batch->node);
    list_init(&batch->store.node);
    batch->lane = lane;
    return batch;
}

struct lane_batch *batch_gathering(struct lane *lane)
{
    if (lane->gathering != NULL)
        return lane->gathering;
    struct lane_batch *batch = batch_make(lane);
    list_init(&batch->store.units);
    list_init(&batch->steps);
    batch->store.unit_count = 0;
    batch->store.purge_before_ms = 0;
    batch->store.on_done = batch_done;
    batch->store.context = batch;
    batch->told = false;
    batch->resolve_at_ms = 0;
    lane->gathering = batch;
    return batch;
}

void batch_free(struct lane_batch *batch)
{
    arena_deinit(&batch->store.arena);
    free(batch);
}

bool batch_has_room(struct lane *lane)
{
    return lane->gathering == NULL || lane->gathering->store.unit_count < TURN_COMMAND_COUNT_MAX;
}

/* However many ask: time runs out too, and an admin's long work goes on. */
bool batch_has_room_for_commands(struct lane *lane)
{
    bool others_wait =
        !list_empty(&lane->due_holds) || !list_empty(&lane->due_checkouts) || !list_empty(&lane->jobs);
    int32_t count_max = others_wait ? TURN_COMMAND_COUNT_MAX / 2 : TURN_COMMAND_COUNT_MAX;
    return lane->gathering == NULL || lane->gathering->store.unit_count < count_max;
}

void batch_withdraw(struct lane *lane, struct step *step)
{
    list_remove(&step->node);
    list_remove(&step->unit.node);
    step->batch->store.unit_count--;
    step_unmark(step);
    seatmap_release(step->new_map);
    step->new_map = NULL;
    lane->progress = true;
}

static void batch_recycle(struct lane *lane, struct lane_batch *batch)
{
    arena_reset(&batch->store.arena);
    list_append(&lane->spare_batches, &batch->node);
}

void batch_submit(struct lane *lane)
{
    struct lane_batch *batch = lane->gathering;
    if (batch == NULL || batch->store.unit_count == 0)
        return;
    if (lane->in_flight >= BATCH_COUNT_IN_FLIGHT_MAX)
        return;
    /* One that is lost may stay so for long: nobody waits for that. */
    bool another_commits = lane->in_flight > lane->unknown_count;
    if (another_commits && batch->store.unit_count < BATCH_UNIT_COUNT_EAGER)
        return;
    batch->store.id = lane_make_id(lane);
    batch->store.node_id = lane->config.node_id;
    batch->store.now_ms = lane->now_ms;
    if (lane->now_ms >= lane->purge_at_ms) {
        batch->store.purge_before_ms = lane->now_ms - IDEMPOTENCY_HOURS * 3600 * 1000ll;
        lane->purge_at_ms = lane->now_ms + 1000;
    }
    histogram_observe(HISTOGRAM_BATCH_SIZE, batch->store.unit_count);
    lane->gathering = NULL;
    lane->in_flight++;
    batch->submitted_us = clock_monotonic_us();
    gauge_set(GAUGE_QUEUE_STORE, lane->in_flight);
    if (!filter_ask(lane, batch))
        batch_to_store(lane, batch);
}

void batch_to_store(struct lane *lane, struct lane_batch *batch)
{
    if (batch->store.unit_count == 0) { /* the filter refused all of it */
        batch_end(lane, batch);
        return;
    }
    batch->number = ++lane->batch_number;
    list_append(&lane->at_store, &batch->node);
    enum err err = store_submit(lane->config.store, &batch->store);
    if (err != ERR_OK) {
        batch->store.outcome = STORE_FAILED;
        batch->store.err = err;
        batch_done(&batch->store);
    }
}

/* ---- Outcomes of a step ---- */

static void step_committed(struct lane *lane, struct step *step)
{
    bool makes_holds = step->unit.holds != NULL && step->unit.holds->insert;
    if (step->command != NULL && step->unit.order_checks != NULL) {
        step->command->sent.noted_offset = step->unit.order_checks->next_offset;
        step->command->sent.is_written = !step->waits_for_payment;
    }
    apply_unit(lane, &step->unit, step);
    seatmap_release(step->new_map); /* still here: a newer layout is in place already */
    step->new_map = NULL;
    for (const struct checkout_write *write = step->unit.checkouts; write != NULL; write = write->next) {
        const struct step_checkout *own = CONTAINER_OF(write, const struct step_checkout, write);
        if (write->row.refund == REFUND_OWED && own->refund_before != REFUND_OWED)
            payment_refund(lane, &write->row);
    }
    if (step->job != NULL) {
        job_step_done(lane, step, true);
    } else if (step->empties_event) {
        /* Its caller is answered when nothing of it is held any more. */
        struct seat_job *job = job_create(lane, step->command, JOB_RELEASE);
        job_over_event(job, map_get(&lane->hot->events, &step->unit.events->row.id));
        job->empties_event = true;
    } else if (step->waits_for_payment) {
        payment_started(lane, step);
    } else if (step->takes_over) {
        payment_taken_over(lane, step);
    } else if (step->command != NULL) {
        lane_reply(lane, step->command);
    }
    if (step->by_reaper)
        counter_add(COUNTER_REAPER_RELEASED, 1);
    if (makes_holds)
        counter_add(COUNTER_DECIDED_STORE, 1);
}

/* Settlements come from the gateway, which does not ask twice: never dropped. */
static bool must_not_be_lost(const struct command *command)
{
    return command->kind == COMMAND_PAYMENT_SETTLED || command->kind == COMMAND_REFUND_SETTLED ||
           command->kind == COMMAND_USER_SEEN;
}

static void step_not_written(struct lane *lane, struct step *step, enum err err)
{
    seatmap_release(step->new_map);
    step->new_map = NULL;
    static const enum counter failures[END_REASON_COUNT] = {
        [END_TTL_EXPIRED] = COUNTER_RELEASE_FAILURES_A,
        [END_USER_CANCELLED] = COUNTER_RELEASE_FAILURES_B,
        [END_PAYMENT_FAILED] = COUNTER_RELEASE_FAILURES_C,
        [END_ADMIN_OVERRIDE] = COUNTER_RELEASE_FAILURES_D,
    };
    if (step->release != END_NONE)
        counter_add(failures[step->release], 1);
    if (step->job != NULL) {
        job_step_done(lane, step, false);
        return;
    }
    struct command *command = step->command;
    if (command == NULL) {
        if (step->release == END_TTL_EXPIRED)
            due_hold_failed(lane, step);
        if (step->release == END_PAYMENT_FAILED)
            due_checkout_failed(lane, step);
        bool only_audits = step->unit.seats == NULL && step->unit.snapshots == NULL;
        for (struct audit_write *write = step->unit.audits; only_audits && write != NULL; write = write->next)
            counter_add(COUNTER_AUDIT_DROPPED, 1);
        return;
    }
    if (must_not_be_lost(command)) {
        lane_retry(lane, command, STORE_RETRY_MS);
        return;
    }
    if (command->kind == COMMAND_HOLD_SEATS || command->kind == COMMAND_HOLD_BEST)
        counter_add(COUNTER_HOLD_ERRORS, 1);
    if (command->kind == COMMAND_HOLD_EXTEND || command->kind == COMMAND_CHECKOUT_START)
        counter_add(COUNTER_HOLD_EXTENSION_FAILED, 1);
    command->result = (struct result){.err = err, .retry_after_seconds = 1, .now_ms = lane->now_ms};
    lane_reply(lane, command);
}

/* Best available takes the next seat rather than wait for one that somebody has locked. False: there is none that it
 * has not tried. */
static bool avoid_missed(struct step *step)
{
    bool avoids = false;
    for (const struct seat_write *write = step->unit.seats; write != NULL; write = write->next)
        avoids = (write->missed && step_avoid_seat(step, &write->row.id)) || avoids;
    return avoids;
}

/* Nobody else writes to this store, and still it has something else: somebody's hand was in it. There is no feed to
 * wait for. */
static void take_over_seats(struct lane *lane, struct step *step)
{
    for (struct seat_write *write = step->unit.seats; write != NULL; write = write->next) {
        struct step_seat *seat = CONTAINER_OF(write, struct step_seat, write);
        if (write->missed && write->current.version > 0)
            hot_put_seat(lane->hot, seat->event, &write->current);
    }
}

/* Another node was there first. What it wrote comes by the change feed; then the command is decided again, on that. */
static void step_missed(struct lane *lane, struct step *step)
{
    counter_add(COUNTER_STORE_MISSES, 1);
    seatmap_release(step->new_map);
    step->new_map = NULL;
    struct command *command = step->command;
    if (step->unit.order_checks != NULL && step->unit.order_checks->missed) {
        /* Another node decides for its partition by now, and will answer it. */
        if (command == NULL)
            return; /* its outcome was unknown for too long: it was given back before */
        command->sent.is_fenced = true;
        command->result = (struct result){.err = ERR_OUTCOME_UNKNOWN, .now_ms = lane->now_ms};
        lane_reply(lane, command);
        return;
    }
    if (!lane->shared)
        take_over_seats(lane, step);
    follow_missed(lane, step->job == NULL ? command : NULL);
    if (step->job != NULL) {
        job_step_missed(lane, step);
        return;
    }
    if (command == NULL) {
        due_step_missed(lane, step);
        return;
    }
    if (must_not_be_lost(command)) {
        lane_retry(lane, command, MISS_RETRY_MS);
        return;
    }
    /* Others come back until their time is over: what they want is theirs already. */
    bool is_reserve = command->kind == COMMAND_HOLD_SEATS || command->kind == COMMAND_HOLD_BEST;
    if (avoid_missed(step)) {
        counter_add(COUNTER_RETRIES, 1);
        lane_retry(lane, command, 0);
        return;
    }
    if (is_reserve && command->try_count >= RETRY_COUNT_MAX) {
        audit_failed_reserve(lane, command, &step->unit.holds->row.event_id, &step->unit.holds->row.seat_id,
                             ERR_SEAT_RESERVATION_FAILED);
        step_not_written(lane, step, ERR_SEAT_RESERVATION_FAILED);
        return;
    }
    counter_add(COUNTER_RETRIES, 1);
    lane_retry(lane, command, 10ll << command->try_count);
    if (command->try_count < RETRY_COUNT_MAX)
        command->try_count++;
}

/* By another node, or by a try whose outcome was unknown: its answer is ours. */
static void step_key_taken(struct lane *lane, struct step *step)
{
    payment_key_taken(lane, step);
    struct command *command = step->command;
    if (command != NULL)
        command->sent.may_be_again = true;
    if (command == NULL) {
        step_not_written(lane, step, ERR_STORE_UNAVAILABLE);
        return;
    }
    seatmap_release(step->new_map);
    step->new_map = NULL;
    lane_lookups_forget(command);
    lane_make_ready(lane, command);
}

/* Two that make the same id at once: the second is told what it would be told a moment later. */
static bool makes_an_id(const struct command *command)
{
    return command->kind == COMMAND_EVENT_CREATE || command->kind == COMMAND_ORG_CREATE;
}

static void step_finish(struct lane *lane, struct step *step, const struct store_batch *batch)
{
    step_unmark(step);
    if (batch->outcome == STORE_FAILED) {
        step_not_written(lane, step, batch->err == ERR_OK ? ERR_STORE_UNAVAILABLE : batch->err);
        return;
    }
    switch (step->unit.result) {
    case UNIT_OK:
        step_committed(lane, step);
        break;
    case UNIT_MISSED:
        step_missed(lane, step);
        break;
    case UNIT_KEY_TAKEN:
        step_key_taken(lane, step);
        break;
    case UNIT_BAD:
        if (step->command != NULL && step_names_its_hold(step) && !step->command->sent.may_be_again) {
            step_key_taken(lane, step); /* as if its key were there: was it done before after all? */
            break;
        }
        counter_add(COUNTER_STORE_BAD_UNITS, 1);
        log_write(LOG_ERROR, "the store refused a command's data", "\"kind\":%d",
                  step->command != NULL ? (int)step->command->kind : -1);
        if (step->command != NULL && must_not_be_lost(step->command))
            lane_reply(lane, step->command); /* it would be refused for ever */
        else
            step_not_written(lane, step,
                             step->command != NULL && makes_an_id(step->command) ? ERR_INVALID_REQUEST
                                                                                 : ERR_INTERNAL);
        break;
    }
}

static void batch_finish(struct lane *lane, struct lane_batch *batch)
{
    counter_add(
        batch->store.outcome == STORE_COMMITTED ? COUNTER_STORE_BATCHES : COUNTER_STORE_BATCHES_FAILED, 1);
    filter_committed(lane, batch);
    struct list *node;
    while ((node = list_pop(&batch->steps)) != NULL)
        step_finish(lane, CONTAINER_OF(node, struct step, node), &batch->store);
    batch_end(lane, batch);
}

static void batch_end(struct lane *lane, struct lane_batch *batch)
{
    list_remove(&batch->node);
    lane->in_flight--;
    lane->unknown_count -= batch->resolve_at_ms != 0;
    lane->progress = true;
    gauge_set(GAUGE_QUEUE_STORE, lane->in_flight);
    batch_recycle(lane, batch);
}

/* Nobody waits for ever: callers are told that the outcome is unknown; what the batch touches
 * stays busy until it is known, so nothing can be decided against it. */
static void batch_tell_unknown(struct lane *lane, struct lane_batch *batch)
{
    if (batch->told)
        return;
    batch->told = true;
    LIST_FOR_EACH(node, &batch->steps) {
        struct step *step = CONTAINER_OF(node, struct step, node);
        struct command *command = step->command;
        if (command == NULL || step->job != NULL || must_not_be_lost(command))
            continue;
        command->result =
            (struct result){.err = ERR_OUTCOME_UNKNOWN, .retry_after_seconds = 1, .now_ms = lane->now_ms};
        step->command = NULL;
        lane_reply(lane, command);
    }
}

static void batch_done(struct store_batch *store_batch)
{
    struct lane_batch *batch = store_batch->context;
    struct lane *lane = batch->lane;
    histogram_observe(HISTOGRAM_COMMIT_SECONDS, (double)store_batch->commit_us / 1e6);
    if (store_batch->outcome != STORE_UNKNOWN) {
        batch_finish(lane, batch);
        return;
    }
    counter_add(COUNTER_STORE_BATCHES_UNKNOWN, 1);
    if (batch->resolve_at_ms != 0)
        batch_tell_unknown(lane, batch); /* asked once already, and still unknown */
    else
        lane->unknown_count++;
    batch->resolve_at_ms = batch->resolve_at_ms == 0 ? lane->now_ms : lane->now_ms + RESOLVE_INTERVAL_MS;
    list_append(&lane->unknown, &store_batch->node);
}

void batch_resolve_due(struct lane *lane)
{
    LIST_FOR_EACH_SAFE(node, &lane->unknown) {
        struct store_batch *store_batch = CONTAINER_OF(node, struct store_batch, node);
        struct lane_batch *batch = store_batch->context;
        if (batch->resolve_at_ms > lane->now_ms)
            continue;
        list_remove(node);
        if (store_resolve(lane->config.store, store_batch) != ERR_OK) {
            batch->resolve_at_ms = lane->now_ms + RESOLVE_INTERVAL_MS;
            batch_tell_unknown(lane, batch);
            list_append(&lane->unknown, node);
        }
    }
}
