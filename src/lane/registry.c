/* SPDX-License-Identifier: Apache-2.0
 * The registry in Redis put right: what is missing there is written, what is
 * of no active hold goes. A run goes over one event, a page at a time, between
 * other work:
 *
 *   members ─▶ holds ─▶ locks ─▶ bits ─▶ done        (each: read, compare with memory, write)
 *
 * There are runs over all events before Redis filters again after it was away,
 * and every SWEEP_REGISTRY_MS; they leave the locks alone, which die by
 * themselves, and of which a wrong one is overruled (filter.c). A run that an
 * admin asked for looks at every seat's lock too.
 *
 * Neither direction may be wrong for a moment. What is written carries the
 * seat's version, and Redis takes it only if it has seen nothing newer: an ended
 * hold is not brought back. What looks like nobody's may be of a hold that
 * another node made just now: it is looked at again when everything that was
 * committed before it was read is in memory, and goes only then. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/metrics.h"
#include "lane/lane_int.h"

enum {
    SWEEP_REGISTRY_MS = 30000,
    RUN_RETRY_MS = 500,
    RUN_TRY_COUNT_MAX = 5,
};

enum stage { STAGE_MEMBERS, STAGE_HOLDS, STAGE_LOCKS, STAGE_BITS, STAGE_DONE };

struct registry_run {
    struct list node;
    struct lane *lane;
    struct hot_event *event;
    struct seatmap *map;     /* as it was when the run began; a reference */
    struct command *command; /* answered at the end; or NULL */
    bool only_looks;         /* counts, and writes nothing */
    enum stage stage;
    struct warm_read read;
    struct arena arena;   /* of the page at hand */
    bool asked;           /* Redis has the reading */
    bool answered;        /* the page is to be compared … */
    int64_t fresh_needed; /* … when this question to the change feed is answered */
    uint64_t cursor;      /* STAGE_MEMBERS */
    int32_t at;           /* STAGE_HOLDS, STAGE_LOCKS: seat; STAGE_BITS: block */
    int32_t *places;      /* STAGE_HOLDS: the seats of the page … */
    int32_t next;         /* … and where the page after it begins */
    uint64_t *seen;       /* bit per seat: its hold is a member, and has its keys */
    int64_t member_count;
    int64_t missing_count;
    int64_t orphaned_count;
    int32_t try_count;
    int64_t retry_at_ms;
};

/* ---- What is found, and put right unless the run only looks ---- */

static void put_right(struct registry_run *run, const struct warm_write *write)
{
    bool is_missing = write->kind != WARM_UNLOCKED;
    run->missing_count += is_missing;
    run->orphaned_count += !is_missing;
    if (run->only_looks)
        return;
    counter_add(is_missing ? COUNTER_DRIFT_MISSING : COUNTER_DRIFT_ORPHANED, 1);
    warm_write(run->lane->config.warm, write, 1);
}

static struct warm_write write_of(const struct registry_run *run, const struct hot_hold *hold)
{
    struct hold_row row;
    hot_hold_row(hold, &row);
    struct warm_write write = {
        .kind = WARM_HELD, .state = SEAT_HELD, .version = hot_seat_of(hold)->version, .repair = true};
    filter_place(&write, run->event, hold->seat_index);
    filter_hold(&write, &row);
    return write;
}

static void write_hold(struct registry_run *run, const struct hot_hold *hold)
{
    struct warm_write write = write_of(run, hold);
    put_right(run, &write);
}

/* ---- Members ---- */

static struct hot_hold *hold_of_member(const struct registry_run *run, const struct warm_member *member)
{
    struct hot_hold *hold =
        member->readable ? hot_hold(run->lane->hot, &run->event->row.org_id, &member->hold_id) : NULL;
    bool is_it = hold != NULL && hold->event == run->event && hold->held_until_ms == member->held_until_ms &&
                 uuid_equal(&run->map->seat_ids[hold->seat_index], &member->seat_id);
    return is_it ? hold : NULL;
}

static void compare_members(struct registry_run *run)
{
    struct lane *lane = run->lane;
    for (int32_t i = 0; i < run->read.member_count; i++) {
        const struct warm_member *member = &run->read.members[i];
        const struct hot_hold *hold = hold_of_member(run, member);
        if (hold != NULL) {
            bit_set(run->seen, hold->seat_index, true);
            continue;
        }
        if (!run->only_looks)
            warm_remove_members(lane->config.warm, &run->event->row.org_id, &run->event->row.id, member, 1);
        bool has_ended =
            member->readable && hot_hold(lane->hot, &run->event->row.org_id, &member->hold_id) == NULL;
        if (!has_ended) { /* not ours, or of another time: the member alone goes */
            run->orphaned_count++;
            continue;
        }
        struct warm_write write = {.kind = WARM_UNLOCKED,
                                   .org_id = run->event->row.org_id,
                                   .event_id = run->event->row.id,
                                   .seat_id = member->seat_id,
                                   .hold_id = member->hold_id,
                                   .user_id = member->user_id,
                                   .held_until_ms = member->held_until_ms};
        put_right(run, &write);
    }
    run->member_count += run->read.member_count;
}

/* ---- Holds ---- */

/* The next seats that have one. */
static void ask_for_holds(struct registry_run *run)
{
    struct uuid *seat_ids = ARENA_ARRAY(&run->arena, struct uuid, WARM_READ_COUNT_MAX);
    struct uuid *hold_ids = ARENA_ARRAY(&run->arena, struct uuid, WARM_READ_COUNT_MAX);
    int32_t count = 0;
    run->places = ARENA_ARRAY(&run->arena, int32_t, WARM_READ_COUNT_MAX);
    int32_t at = run->at; /* which stays until the page was compared: it may have to be asked again */
    for (; at < run->map->layout->seat_count && count < WARM_READ_COUNT_MAX; at++) {
        const struct hot_hold *hold = run->event->seats[at].hold;
        if (hold == NULL)
            continue;
        seat_ids[count] = run->map->seat_ids[at];
        hold_ids[count] = hold->id;
        run->places[count++] = at;
    }
    run->next = at;
    run->read.kind = count > 0 ? WARM_HOLDS : WARM_COUNT; /* nothing to ask: only to hear from it */
    run->read.seat_ids = seat_ids;
    run->read.hold_ids = hold_ids;
    run->read.seat_count = count;
}

/* What lacks its member or one of its keys is missing. An admin's run writes the others again, too: they may have other
 * values than they should, and the same once more does no harm. */
static void compare_holds(struct registry_run *run)
{
    for (int32_t i = 0; i < run->read.seat_count; i++) {
        const struct hot_seat *seat = &run->event->seats[run->places[i]];
        if (seat->hold == NULL || seat->busy || !uuid_equal(&seat->hold->id, &run->read.hold_ids[i]))
            continue; /* it is changing just now, and its keys with it */
        if (!bit_get(run->seen, run->places[i]) || !run->read.whole[i]) {
            bit_set(run->seen, run->places[i], false);
            write_hold(run, seat->hold);
        } else if (run->command != NULL && !run->only_looks) {
            struct warm_write write = write_of(run, seat->hold);
            warm_write(run->lane->config.warm, &write, 1);
        }
    }
}

/* ---- Locks ---- */

/* It has no hold in memory, and is too old to be of a commit under way. */
static bool lock_is_nobodys(const struct registry_run *run, const struct warm_lock *lock, int32_t index)
{
    bool is_there = lock->result == WARM_LOCK_FOUND && lock->readable;
    return is_there && run->event->seats[index].hold == NULL && filter_lock_is_old(run->lane, lock);
}

static void compare_lock(struct registry_run *run, const struct warm_lock *lock, int32_t index)
{
    const struct hot_hold *hold = run->event->seats[index].hold;
    bool is_there = lock->result == WARM_LOCK_FOUND && lock->readable;
    if (run->event->seats[index].busy)
        return; /* it is changing just now, and its keys with it */
    if (hold != NULL) {
        /* Of one that lacked something, all was written. */
        bool is_wrong = !is_there || !uuid_equal(&lock->found_hold_id, &hold->id);
        if (is_wrong && bit_get(run->seen, index))
            write_hold(run, hold);
        return;
    }
    if (!lock_is_nobodys(run, lock, index))
        return;
    struct warm_write write = {.kind = WARM_UNLOCKED,
                               .org_id = run->event->row.org_id,
                               .event_id = run->event->row.id,
                               .seat_id = run->map->seat_ids[index],
                               .hold_id = lock->found_hold_id,
                               .user_id = lock->found_user_id};
    put_right(run, &write);
}

static int32_t lock_count_of_page(const struct registry_run *run)
{
    int32_t left = run->map->layout->seat_count - run->at;
    return left < WARM_READ_COUNT_MAX ? left : WARM_READ_COUNT_MAX;
}

/* ---- Bits ---- */

static bool bit_in_redis(const struct warm_read *read, int32_t bit)
{
    size_t byte = (size_t)bit / 8;
    return byte < read->bits_size && (read->bits[byte] >> (7 - bit % 8) & 1) != 0;
}

static void compare_bits(struct registry_run *run)
{
    const struct layout_block *block = &run->map->layout->blocks[run->at];
    for (int32_t i = block->seat_first; i < block->seat_first + block->seat_count; i++) {
        enum seat_state state = seatmap_state(run->map, i);
        struct warm_write write = {
            .kind = WARM_SEAT, .state = state, .version = run->event->seats[i].version, .repair = true};
        filter_place(&write, run->event, i);
        if (!run->event->seats[i].busy && bit_in_redis(&run->read, write.bit) != (state != SEAT_AVAILABLE))
            put_right(run, &write);
    }
}

/* ---- A page: asked, answered, compared ---- */

/* Is there something that looks like nobody's? Only then must memory be up to date. */
static bool page_has_orphans(const struct registry_run *run)
{
    for (int32_t i = 0; run->stage == STAGE_MEMBERS && i < run->read.member_count; i++) {
        if (hold_of_member(run, &run->read.members[i]) == NULL)
            return true;
    }
    for (int32_t i = 0; run->stage == STAGE_LOCKS && i < run->read.seat_count; i++) {
        if (lock_is_nobodys(run, &run->read.locks[i], run->at + i))
            return true;
    }
    return false;
}

static void read_done(struct warm_read *read)
{
    struct registry_run *run = read->context;
    run->asked = false;
    if (read->outcome != WARM_ANSWERED) {
        run->retry_at_ms = run->lane->now_ms + RUN_RETRY_MS;
        run->try_count++;
        return;
    }
    run->answered = true;
    run->fresh_needed = 0;
}

static void page_ask(struct registry_run *run)
{
    arena_reset(&run->arena);
    run->read = (struct warm_read){
        .org_id = run->event->row.org_id,
        .event_id = run->event->row.id,
        .arena = &run->arena,
        .on_done = read_done,
        .context = run,
    };
    list_init(&run->read.node);
    if (run->stage == STAGE_MEMBERS) {
        run->read.kind = WARM_MEMBERS;
        run->read.cursor = run->cursor;
    } else if (run->stage == STAGE_HOLDS) {
        ask_for_holds(run);
    } else if (run->stage == STAGE_LOCKS) {
        run->read.kind = WARM_LOCKS;
        run->read.seat_ids = &run->map->seat_ids[run->at];
        run->read.seat_count = lock_count_of_page(run);
    } else {
        const struct layout_block *block = &run->map->layout->blocks[run->at];
        run->read.kind = WARM_BITS;
        memcpy(run->read.section, block->section, sizeof(run->read.section));
        run->read.subsection = block->subsection;
        run->read.bit_count = block->row_count * block->column_count;
    }
    if (warm_read(run->lane->config.warm, &run->read) == ERR_OK) {
        run->asked = true;
    } else {
        run->retry_at_ms = run->lane->now_ms + RUN_RETRY_MS;
        run->try_count++;
    }
}

static void stage_begin(struct registry_run *run, enum stage stage)
{
    run->stage = stage;
    run->at = 0;
    run->cursor = 0;
}

static void page_compare(struct registry_run *run)
{
    run->answered = false;
    run->try_count = 0;
    switch (run->stage) {
    case STAGE_MEMBERS:
        compare_members(run);
        run->cursor = run->read.cursor;
        if (run->cursor == 0)
            stage_begin(run, STAGE_HOLDS);
        break;
    case STAGE_HOLDS:
        compare_holds(run);
        run->at = run->next;
        if (run->at >= run->map->layout->seat_count)
            stage_begin(run, run->command != NULL ? STAGE_LOCKS : STAGE_BITS);
        break;
    case STAGE_LOCKS:
        for (int32_t i = 0; i < run->read.seat_count; i++)
            compare_lock(run, &run->read.locks[i], run->at + i);
        run->at += run->read.seat_count;
        if (run->at >= run->map->layout->seat_count)
            stage_begin(run, STAGE_BITS);
        break;
    case STAGE_BITS:
        compare_bits(run);
        run->at++;
        if (run->at >= run->map->layout->block_count)
            run->stage = STAGE_DONE;
        break;
    case STAGE_DONE:
        break;
    }
}

/* ---- Runs ---- */

static void registry_answer(struct lane *lane, struct command *command);

static struct registry_run *run_add(struct lane *lane, struct hot_event *event, struct command *command)
{
    struct registry_run *run = calloc(1, sizeof(*run));
    CHECK(run != NULL);
    run->lane = lane;
    run->event = event;
    run->command = command;
    run->map = seatmap_acquire(event->map);
    run->seen = calloc((size_t)run->map->layout->seat_count / 64 + 1, sizeof(uint64_t));
    CHECK(run->seen != NULL);
    arena_init(&run->arena);
    list_append(&lane->registry_runs, &run->node);
    return run;
}

static void run_free(struct registry_run *run)
{
    list_remove(&run->node);
    seatmap_release(run->map);
    free(run->seen);
    arena_deinit(&run->arena);
    free(run);
}

static void run_end(struct lane *lane, struct registry_run *run, bool done)
{
    struct command *command = run->command;
    if (run->missing_count + run->orphaned_count > 0 && !run->only_looks)
        log_write(LOG_INFO, "the registry was put right", "\"missing\":%lld,\"orphaned\":%lld",
                  (long long)run->missing_count, (long long)run->orphaned_count);
    lane->registry_failed = lane->registry_failed || !done;
    if (command != NULL) {
        command->result.counts[1] = done ? run->member_count : -1;
        command->result.missing_count = run->missing_count;
        command->result.orphaned_count = run->orphaned_count;
        registry_answer(lane, command);
    }
    run_free(run);
}

/* Judged in the very turn in which it is compared: a node may have stood still since the page was read. */
static bool page_is_ready(struct registry_run *run)
{
    struct lane *lane = run->lane;
    if (!lane->shared || !page_has_orphans(run))
        return true;
    if (run->fresh_needed == 0)
        run->fresh_needed = follow_next_number(lane);
    return lane->follow.fresh >= run->fresh_needed;
}

static void run_turn(struct lane *lane, struct registry_run *run)
{
    if (run->asked)
        return;
    bool gone = run->event->map != run->map || warm_state(lane->config.warm) == WARM_OPEN;
    if (gone || run->try_count >= RUN_TRY_COUNT_MAX) {
        run_end(lane, run, false);
        return;
    }
    if (run->answered && !page_is_ready(run))
        return;
    if (run->answered)
        page_compare(run);
    if (run->stage == STAGE_DONE)
        run_end(lane, run, true);
    else if (lane->now_ms >= run->retry_at_ms)
        page_ask(run);
}

static void add_all(struct lane *lane)
{
    size_t position = 0;
    struct hot_event *event;
    while ((event = map_next(&lane->hot->events, &position)) != NULL) {
        if (event->map != NULL && event->row.state != EVENT_ARCHIVED)
            (void)run_add(lane, event, NULL);
    }
}

/* Redis is back: everything is written before it filters. */
static void rebuild_turn(struct lane *lane)
{
    if (warm_state(lane->config.warm) != WARM_REBUILDING) {
        lane->rebuilding = false;
        return;
    }
    if (!lane->rebuilding) {
        lane->rebuilding = true;
        lane->registry_failed = false;
        add_all(lane);
    } else if (list_empty(&lane->registry_runs)) {
        lane->rebuilding = false; /* and once more, if it did not work out */
        if (!lane->registry_failed)
            warm_rebuilt(lane->config.warm);
    }
}

void registry_turn(struct lane *lane)
{
    if (lane->config.warm == NULL)
        return;
    if (!list_empty(&lane->registry_runs))
        run_turn(lane, CONTAINER_OF(lane->registry_runs.next, struct registry_run, node));
    rebuild_turn(lane);
    if (lane->now_ms >= lane->registry_at_ms && list_empty(&lane->registry_runs)) {
        lane->registry_at_ms = lane->now_ms + SWEEP_REGISTRY_MS;
        add_all(lane);
    }
}

int64_t registry_next_ms(const struct lane *lane)
{
    if (lane->config.warm == NULL)
        return INT64_MAX;
    if (list_empty(&lane->registry_runs))
        return lane->rebuilding ? lane->now_ms : lane->registry_at_ms;
    const struct registry_run *run = CONTAINER_OF(lane->registry_runs.next, const struct registry_run, node);
    if (run->asked)
        return INT64_MAX;
    if (run->answered)
        return lane->follow.fresh >= run->fresh_needed ? lane->now_ms : INT64_MAX;
    return run->retry_at_ms > lane->now_ms ? run->retry_at_ms : lane->now_ms;
}

void registry_abandon(struct lane *lane)
{
    while (!list_empty(&lane->registry_runs)) {
        struct registry_run *run = CONTAINER_OF(lane->registry_runs.next, struct registry_run, node);
        if (run->command != NULL) {
            run->command->result = (struct result){.err = ERR_OVERLOADED, .now_ms = lane->now_ms};
            lane_reply(lane, run->command);
        }
        run_free(run);
    }
}

/* ---- When an admin asks ---- */

static void registry_answer(struct lane *lane, struct command *command)
{
    command->result.status = 200;
    if (command->kind == COMMAND_REGISTRY) {
        lane_answer_now(lane, command, ERR_OK);
        return;
    }
    struct step *step = step_begin(lane, command);
    struct audit_row *audit = step_audit(step, AUDIT_REGISTRY_RECONCILED, "Event", &command->id);
    audit->event_id = command->id;
    audit->after =
        step_printf(step, "{\"missing\":%lld,\"orphaned\":%lld}", (long long)command->result.missing_count,
                    (long long)command->result.orphaned_count);
    apply_tell_watchers(lane, &command->id); /* whoever watches starts from a snapshot */
    command->result.now_ms = lane->now_ms;
    command->arrived_ms = lane->now_ms; /* a long run is no reason to call it late */
    step_submit(step);
}

/* COMMAND_REGISTRY looks, COMMAND_RECONCILE puts right. Memory itself follows the store; what it has is counted
 * beside it, and the store's own count is read by the caller. */
enum decision decide_registry(struct lane *lane, struct command *command)
{
    command->result = (struct result){.id = command->id, .event_id = command->id};
    if (!follow_is_fresh(lane, command))
        return DEFERRED;
    struct hot_event *event = hot_event(lane->hot, &command->actor.org_id, &command->id);
    if (event == NULL)
        return lane_answer(lane, command, ERR_EVENT_NOT_FOUND);
    int32_t seat_count = event->map != NULL ? event->map->layout->seat_count : 0;
    for (int32_t i = 0; i < seat_count; i++)
        command->result.counts[0] += event->seats[i].hold != NULL;
    command->result.counts[1] = -1;
    bool is_there = lane->config.warm != NULL && warm_state(lane->config.warm) != WARM_OPEN;
    if (is_there && event->map != NULL)
        run_add(lane, event, command)->only_looks = command->kind == COMMAND_REGISTRY;
    else
        registry_answer(lane, command);
    return DECIDED;
}
