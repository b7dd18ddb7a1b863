/* SPDX-License-Identifier: Apache-2.0
 * The turn, and the thread that turns. See lane.h for the flow and what must
 * hold; lane_turn() is the order of work, line by line. */
#include "lane/lane.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "lane/lane_int.h"

enum {
    TURN_INTERVAL_MS = 1000, /* a turn at least this often: timers have a second's grain */
    GATHER_MS = 2,           /* while a batch commits, the next one gathers for this long at a time */
};

struct uuid lane_make_id(struct lane *lane)
{
    return uuid_make(&lane->rng, lane->now_ms);
}

enum err lane_create(const struct lane_config *config, int64_t now_ms, struct lane **out, char *why,
                     size_t why_size)
{
    struct lane *lane = calloc(1, sizeof(*lane));
    if (lane == NULL)
        return ERR_INTERNAL;
    lane->config = *config;
    lane->now_ms = now_ms;
    lane->shared = store_is_shared(config->store);
    lane->sweep_at_ms = now_ms + SWEEP_INTERVAL_MS;
    lane->registry_at_ms = now_ms + REAPER_INTERVAL_MS;
    follow_init(lane);
    if (config->seed != 0)
        rng_init_seed(&lane->rng, config->seed);
    else
        rng_init_system(&lane->rng);
    struct list *lists[] = {&lane->ready,     &lane->waiting,       &lane->retrying,      &lane->paying,
                            &lane->unknown,   &lane->spare_batches, &lane->jobs,          &lane->failures,
                            &lane->due_holds, &lane->due_checkouts, &lane->registry_runs, &lane->at_store};
    for (size_t i = 0; i < COUNT_OF(lists); i++)
        list_init(lists[i]);
    map_init(&lane->keys);
    map_init(&lane->settling);
    map_init(&lane->registering);
    arena_init(&lane->reaper_arena);
    lane->reaper_at_ms = now_ms + REAPER_INTERVAL_MS;
    lane->snapshot_at_ms = now_ms;
    enum err err = queue_init(&lane->inbox, INBOX_COUNT_MAX);
    if (err != ERR_OK)
        goto queue_failed;
    err = queue_init(&lane->calls, INBOX_COUNT_MAX);
    if (err != ERR_OK)
        goto calls_failed;
    err = hot_create(config->directory, now_ms, &lane->hot);
    if (err != ERR_OK)
        goto hot_failed;
    err = lane_load(lane, why, why_size);
    if (err != ERR_OK)
        goto load_failed;
    *out = lane;
    return ERR_OK;

load_failed:
    hot_destroy(lane->hot);
hot_failed:
    queue_deinit(&lane->calls);
calls_failed:
    queue_deinit(&lane->inbox);
queue_failed:
    follow_deinit(lane);
    arena_deinit(&lane->reaper_arena);
    map_deinit(&lane->keys);
    map_deinit(&lane->settling);
    map_deinit(&lane->registering);
    free(lane);
    return err;
}

/* Whatever still has a command gives it up: nobody may wait for a lane that is gone. */
static void abandon(struct lane *lane, struct list *commands)
{
    struct list *node;
    while ((node = list_pop(commands)) != NULL)
        lane_refuse(lane, CONTAINER_OF(node, struct command, node), ERR_OVERLOADED);
}

static void abandon_batch(struct lane *lane, struct lane_batch *batch)
{
    struct list *node;
    while ((node = list_pop(&batch->steps)) != NULL) {
        struct step *step = CONTAINER_OF(node, struct step, node);
        seatmap_release(step->new_map);
        if (step->command != NULL && step->job == NULL) {
            step->command->result = (struct result){.err = ERR_OUTCOME_UNKNOWN, .now_ms = lane->now_ms};
            lane_reply(lane, step->command);
        }
    }
    batch_free(batch);
}

void lane_destroy(struct lane *lane)
{
    if (lane == NULL)
        return;
    CHECK(!lane->started);
    queue_take(&lane->inbox, &lane->ready);
    abandon(lane, &lane->waiting);
    abandon(lane, &lane->retrying);
    abandon(lane, &lane->ready); /* at last: those who stood in line behind the others are there by now */
    payments_abandon(lane);
    registry_abandon(lane);
    struct list *node;
    while ((node = list_pop(&lane->jobs)) != NULL) {
        struct seat_job *job = CONTAINER_OF(node, struct seat_job, node);
        if (job->command != NULL) {
            job->command->result = (struct result){.err = ERR_OVERLOADED, .now_ms = lane->now_ms};
            lane_reply(lane, job->command);
        }
        job_free(job);
    }
    if (lane->gathering != NULL)
        abandon_batch(lane, lane->gathering);
    while ((node = list_pop(&lane->unknown)) != NULL)
        abandon_batch(lane, CONTAINER_OF(node, struct store_batch, node)->context);
    while ((node = list_pop(&lane->spare_batches)) != NULL)
        batch_free(CONTAINER_OF(node, struct lane_batch, node));
    while ((node = list_pop(&lane->failures)) != NULL)
        free(node);
    hot_destroy(lane->hot);
    follow_deinit(lane);
    queue_deinit(&lane->calls);
    queue_deinit(&lane->inbox);
    map_deinit(&lane->keys);
    map_deinit(&lane->settling);
    map_deinit(&lane->registering);
    arena_deinit(&lane->reaper_arena);
    free(lane);
}

/* ---- In and out ---- */

/* Giving something back must always be possible. */
static bool has_room_of_its_own(enum command_kind kind)
{
    switch (kind) {
    case COMMAND_HOLD_RELEASE:
    case COMMAND_CHECKOUT_CANCEL:
    case COMMAND_ADMIN_RELEASE:
    case COMMAND_PAYMENT_SETTLED:
    case COMMAND_REFUND_SETTLED:
    case COMMAND_USER_SEEN:
    case COMMAND_PAYMENT_TAKE_OVER:
        return true;
    default:
        return false;
    }
}

enum err lane_post(struct lane *lane, struct command *command)
{
    command_arrives(command);
    if (has_room_of_its_own(command->kind)) {
        queue_push_always(&lane->inbox, &command->node);
        return ERR_OK;
    }
    /* What was taken from the inbox and could not be looked at yet counts too. */
    bool full = atomic_load_explicit(&lane->backlog, memory_order_relaxed) >= INBOX_COUNT_MAX;
    if (!full && queue_push(&lane->inbox, &command->node))
        return ERR_OK;
    counter_add(COUNTER_OVERLOADED, 1);
    return ERR_OVERLOADED;
}

void lane_call(struct lane *lane, struct lane_call *call)
{
    queue_push_always(&lane->calls, &call->node);
}

void lane_nudge(struct lane *lane)
{
    follow_nudge(lane);
}

int lane_method(const struct lane *lane)
{
    if (!lane->shared)
        return 0;
    bool filters = lane->config.warm != NULL && warm_state(lane->config.warm) == WARM_CLOSED;
    return filters ? 2 : 1;
}

void lane_reply(struct lane *lane, struct command *command)
{
    if (command->has_key)
        key_done(lane, command);
    line_leave(lane, command);
    histogram_observe(HISTOGRAM_COMMAND_SECONDS, (double)(clock_monotonic_us() - command->arrived_us) / 1e6);
    list_init(&command->node);
    command->on_done(command);
}

void lane_refuse(struct lane *lane, struct command *command, enum err err)
{
    command->result = (struct result){.err = err, .retry_after_seconds = 1, .now_ms = lane->now_ms};
    lane_reply(lane, command);
}

void lane_make_ready(struct lane *lane, struct command *command)
{
    list_append(&lane->ready, &command->node);
    lane->ready_count++;
}

void lane_retry(struct lane *lane, struct command *command, int64_t delay_ms)
{
    command->retry_at_ms = lane->now_ms + delay_ms;
    list_append(&lane->retrying, &command->node);
}

/* ---- The turn ---- */

/* A release is not refused for being late, unless it is not even known what is to be released: the store is away. */
static bool waited_too_long(const struct lane *lane, const struct command *command)
{
    if (lane->now_ms - command->arrived_ms <= COMMAND_WAIT_MS_MAX)
        return false;
    if (!has_room_of_its_own(command->kind))
        return true;
    return command->actor.role != ROLE_SYSTEM && !follow_has_reached(lane, command);
}

static void refuse_late(struct lane *lane, struct command *command)
{
    if (command->sent.answer != NULL) { /* it was done: only its answer cannot be read yet */
        route_leave_pending(command);
        lane_return(lane, command);
        return;
    }
    counter_add(COUNTER_OVERLOADED, 1);
    gate_abandon(lane, command);
    lane_refuse(lane, command, ERR_OVERLOADED);
}

void lane_look_at(struct lane *lane, struct command *command)
{
    if (waited_too_long(lane, command)) {
        refuse_late(lane, command);
        return;
    }
    if (!follow_has_reached(lane, command) || decide(lane, command) == DEFERRED) {
        list_append(&lane->waiting, &command->node);
        lane->waiting_count++;
    }
}

/* Those who waited for a commit go before those who came later. */
static void look_at_waiting(struct lane *lane)
{
    if (!lane->progress)
        return;
    lane->progress = false;
    struct list again;
    list_init(&again);
    list_splice(&again, &lane->waiting);
    lane->waiting_count = 0;
    while (!list_empty(&again) && batch_has_room_for_commands(lane))
        lane_look_at(lane, CONTAINER_OF(list_pop(&again), struct command, node));
    if (!list_empty(&again)) {
        /* The batch is full: the rest keeps its place at the head of the line. */
        lane->progress = true;
        LIST_FOR_EACH(node, &again)
            lane->waiting_count++;
        list_splice(&again, &lane->waiting);
        list_splice(&lane->waiting, &again);
    }
}

static void take_inbox(struct lane *lane)
{
    struct list arrived;
    list_init(&arrived);
    queue_take(&lane->inbox, &arrived);
    LIST_FOR_EACH(node, &arrived) {
        CONTAINER_OF(node, struct command, node)->arrived_ms = lane->now_ms;
        lane->ready_count++;
    }
    list_splice(&lane->ready, &arrived);
    LIST_FOR_EACH_SAFE(node, &lane->retrying) {
        struct command *command = CONTAINER_OF(node, struct command, node);
        if (command->retry_at_ms > lane->now_ms)
            continue;
        list_remove(node);
        lane_make_ready(lane, command);
    }
}

static void look_at_ready(struct lane *lane)
{
    while (!list_empty(&lane->ready) && batch_has_room_for_commands(lane) &&
           lane->waiting_count < WAITING_COUNT_MAX) {
        lane->ready_count--;
        lane_look_at(lane, CONTAINER_OF(list_pop(&lane->ready), struct command, node));
    }
}

/* Decided, but in a batch that the store does not take. */
static void withdraw_overdue(struct lane *lane)
{
    if (lane->gathering == NULL)
        return;
    LIST_FOR_EACH_SAFE(node, &lane->gathering->steps) {
        struct step *step = CONTAINER_OF(node, struct step, node);
        struct command *command = step->command;
        if (command == NULL || step->job != NULL || !waited_too_long(lane, command))
            continue;
        batch_withdraw(lane, step);
        refuse_late(lane, command);
    }
}

/* Commands whose time is over, while the store takes nothing. */
static void refuse_overdue(struct lane *lane)
{
    withdraw_overdue(lane);
    struct list *lines[] = {&lane->waiting, &lane->ready};
    int32_t *counts[] = {&lane->waiting_count, &lane->ready_count};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        LIST_FOR_EACH_SAFE(node, lines[i]) {
            struct command *command = CONTAINER_OF(node, struct command, node);
            if (lane->now_ms - command->arrived_ms <= COMMAND_WAIT_MS_MAX)
                break; /* lines are in order of arrival, or nearly: the rest came later */
            if (!waited_too_long(lane, command))
                continue;
            list_remove(node);
            *counts[i] -= 1;
            refuse_late(lane, command);
        }
    }
}

static void look_at_timers(struct lane *lane)
{
    wheel_advance(&lane->hot->wheel, lane->now_ms, &lane->due_holds);
    wheel_advance(&lane->hot->checkout_wheel, lane->now_ms, &lane->due_checkouts);
    due_checkouts_fail(lane);
    due_holds_release(lane);
    payments_wait_turn(lane);
}

static bool write_snapshots(struct lane *lane)
{
    if (lane->now_ms < lane->snapshot_at_ms || !batch_has_room(lane))
        return false;
    lane->snapshot_at_ms = lane->now_ms + SNAPSHOT_INTERVAL_MS;
    struct step *step = NULL;
    size_t position = 0;
    struct hot_event *event;
    while ((event = map_next(&lane->hot->events, &position)) != NULL) {
        if (event->map == NULL || !event->snapshot_due)
            continue;
        event->snapshot_due = false;
        if (step == NULL)
            step = step_begin(lane, NULL);
        struct snapshot_write *write = ARENA_NEW(step_arena(step), struct snapshot_write);
        write->org_id = event->row.org_id;
        write->event_id = event->row.id;
        write->at_ms = lane->now_ms;
        seatmap_counts(event->map, write->counts);
        write->next = step->unit.snapshots;
        step->unit.snapshots = write;
    }
    if (step != NULL)
        step_submit(step);
    return step != NULL;
}

static int64_t next_turn_ms(const struct lane *lane)
{
    int64_t next = lane->now_ms + TURN_INTERVAL_MS;
    LIST_FOR_EACH(node, &lane->retrying) {
        int64_t at = CONTAINER_OF(node, struct command, node)->retry_at_ms;
        next = at < next ? at : next;
    }
    int64_t follow_ms = follow_next_ms(lane);
    next = follow_ms < next ? follow_ms : next;
    next = lane->router_next_ms < next ? lane->router_next_ms : next;
    int64_t registry_ms = registry_next_ms(lane);
    next = registry_ms < next ? registry_ms : next;
    bool store_takes_more = lane->in_flight < BATCH_COUNT_IN_FLIGHT_MAX;
    bool more = !list_empty(&lane->ready) || (lane->progress && !list_empty(&lane->waiting)) ||
                !list_empty(&lane->due_holds);
    if (more && store_takes_more && lane->in_flight == 0)
        next = lane->now_ms; /* the batch was full: there is more to do at once */
    if (!list_empty(&lane->jobs) && lane->in_flight == 0 && next > lane->now_ms + 10)
        next = lane->now_ms + 10;
    return next;
}

static void run_calls(struct lane *lane)
{
    struct list calls, *node;
    list_init(&calls);
    queue_take(&lane->calls, &calls);
    while ((node = list_pop(&calls)) != NULL) {
        struct lane_call *call = CONTAINER_OF(node, struct lane_call, node);
        call->run(call, lane->config.store);
    }
}

int64_t lane_turn(struct lane *lane, int64_t now_ms)
{
    lane->now_ms = now_ms;
    /* 1. What the store finished: memory is changed, commands are answered, news goes out. */
    run_calls(lane);
    store_poll(lane->config.store);
    if (lane->config.warm != NULL)
        lane->warm_next_us = warm_turn(lane->config.warm, clock_monotonic_us());
    batch_resolve_due(lane);
    follow_turn(lane);
    lane->router_next_ms =
        lane->router.turn != NULL ? lane->router.turn(lane->router.context, now_ms) : INT64_MAX;
    /* 2. What came in, behind what already waits. */
    take_inbox(lane);
    if (follow_has_caught_up(lane)) {
        /* 3. Decide: first those who waited for a commit, then the others, in order. */
        look_at_waiting(lane);
        look_at_ready(lane);
        /* 4. What nobody asked for: times that ran out, admins' long work, the reaper, snapshots. */
        look_at_timers(lane);
        jobs_turn(lane);
        reaper_turn(lane);
        sweep_turn(lane);
        registry_turn(lane);
        filter_turn(lane);
        write_snapshots(lane);
        audit_failures_write(lane);
    }
    /* 5. Give the batch away; nothing of it leaves before it is committed. */
    int32_t filtering_count = lane->filtering_count;
    batch_submit(lane);
    /* Redis is asked now, not when something else wakes us. */
    if (lane->filtering_count > filtering_count || !list_empty(&lane->registry_runs))
        lane->warm_next_us = warm_turn(lane->config.warm, clock_monotonic_us());
    /* 6. Nobody waits longer than the limit. */
    refuse_overdue(lane);
    atomic_store_explicit(&lane->backlog, lane->ready_count, memory_order_relaxed);
    gauge_set(GAUGE_QUEUE_DEPTH, (int64_t)queue_depth(&lane->inbox) + lane->ready_count);
    gauge_set(GAUGE_QUEUE_WAITING, lane->waiting_count);
    return next_turn_ms(lane);
}

bool lane_is_idle(const struct lane *lane)
{
    return lane->in_flight == 0 && list_empty(&lane->ready) && list_empty(&lane->waiting) &&
           list_empty(&lane->retrying) && list_empty(&lane->jobs) && list_empty(&lane->due_holds) &&
           list_empty(&lane->unknown) && (lane->gathering == NULL || lane->gathering->store.unit_count == 0);
}

/* ---- The thread ---- */

/* Nothing is left that the store, or anybody else, would still answer. */
static bool lane_is_drained(struct lane *lane)
{
    return lane_is_idle(lane) && lane->lookup_count == 0 && !lane->reaping &&
           queue_depth(&lane->inbox) == 0 &&
           (lane->router.is_idle == NULL || lane->router.is_idle(lane->router.context));
}

static void *lane_run(void *argument)
{
    struct lane *lane = argument;
    struct pollfd fds[] = {
        {.fd = lane->inbox.fd, .events = POLLIN},
        {.fd = lane->calls.fd, .events = POLLIN},
        {.fd = store_fd(lane->config.store), .events = POLLIN},
        {.fd = lane->config.warm != NULL ? warm_fd(lane->config.warm) : -1, .events = POLLIN},
        {.fd = lane->router.turn != NULL ? lane->router.fd : -1, .events = POLLIN}};
    int64_t stop_at_ms = 0;
    for (;;) {
        int64_t now_ms = clock_now_ms();
        int64_t next_ms = lane_turn(lane, now_ms);
        if (atomic_load(&lane->stopping)) {
            if (stop_at_ms == 0) {
                stop_at_ms = now_ms + lane->drain_ms;
                if (lane->router.leave != NULL)
                    lane->router.leave(lane->router.context);
            }
            bool is_over = now_ms >= stop_at_ms && lane->filtering_count == 0; /* no round takes long */
            if (is_over || lane_is_drained(lane))
                return NULL;
            next_ms = next_ms < now_ms + 10 ? next_ms : now_ms + 10;
        }
        int64_t wait_ms = next_ms - clock_now_ms();
        if (lane->config.warm != NULL) {
            int64_t warm_ms = (lane->warm_next_us - clock_monotonic_us() + 999) / 1000;
            wait_ms = warm_ms < wait_ms ? warm_ms : wait_ms;
        }
        /* While a batch commits there is no hurry: being woken for every single command would cost more than all
         * else about it. */
        bool gathers = lane->in_flight > 0;
        fds[0].fd = gathers ? -1 : lane->inbox.fd;
        fds[4].fd = gathers || lane->router.turn == NULL ? -1 : lane->router.fd;
        if (gathers && wait_ms > GATHER_MS)
            wait_ms = GATHER_MS;
        if (wait_ms > 0 && poll(fds, COUNT_OF(fds), (int)wait_ms) < 0 && errno != EINTR)
            log_write(LOG_ERROR, "the lane cannot wait", "\"errno\":%d", errno);
    }
}

enum err lane_start(struct lane *lane)
{
    if (pthread_create(&lane->thread, NULL, lane_run, lane) != 0)
        return ERR_INTERNAL;
    pthread_setname_np(lane->thread, "lane");
    lane->started = true;
    return ERR_OK;
}

void lane_stop(struct lane *lane, int64_t drain_ms)
{
    if (!lane->started)
        return;
    lane->drain_ms = drain_ms;
    atomic_store(&lane->stopping, true);
    uint64_t one = 1;
    ssize_t written = write(lane->inbox.fd, &one, sizeof(one));
    (void)written; /* a full counter is readable too */
    pthread_join(lane->thread, NULL);
    lane->started = false;
}
