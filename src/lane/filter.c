/* SPDX-License-Identifier: Apache-2.0
 * Redis around the store. Before a batch goes to the store, a lock is asked for
 * every seat that is to be held; after it was committed, the registry's keys
 * are written. Without Redis, or while it is away, a batch simply goes on.
 *
 * A lock that somebody has refuses only what is sure to fail, or nearly so:
 *
 *   nobody's, unreadable, the user's own ──────────────────────▶ store
 *   of a hold that memory knows ───────────────────────────────▶ decided again, on that
 *   of a hold that nobody knows: 5 s old, or ended in the store ▶ store
 *                                younger ──────────────────────▶ a few tries, then refused
 *
 * Invariants: (1) no batch waits longer than one round. (2) A lock that was
 * taken for nothing is given back, by its own hold alone. (3) Keys are written
 * after the commit, by the node that committed; what is lost on the way is made
 * good by registry.c. */
#include <string.h>

#include "base/metrics.h"
#include "lane/lane_int.h"

enum {
    LATE_MS = 1000, /* a commit that took so long is not news any more: others may have gone on since */
    OCCUPANCY_INTERVAL_MS = 1000,
};

/* ---- Where a seat is, for its keys ---- */

void filter_place(struct warm_write *write, const struct hot_event *event, int32_t index)
{
    const struct layout_row *row = seatmap_row(event->map, index);
    const struct layout_block *block = &event->map->layout->blocks[row->block];
    write->org_id = event->row.org_id;
    write->event_id = event->row.id;
    write->seat_id = event->map->seat_ids[index];
    memcpy(write->section, block->section, sizeof(write->section));
    write->subsection = block->subsection;
    write->bit = (row->ordinal - 1) * block->column_count + (index - row->seat_first);
}

void filter_hold(struct warm_write *write, const struct hold_row *row)
{
    write->hold_id = row->id;
    write->user_id = row->user_id;
    write->cart_token = row->cart_token;
    write->created_ms = row->created_ms;
    write->held_until_ms = row->held_until_ms;
    write->price_cents = row->price_cents;
    write->source = row->source;
    write->reason = row->reason;
}

/* ---- Before the store ---- */

static bool wants_lock(const struct hold_write *write)
{
    return write->insert && write->row.state == HOLD_ACTIVE;
}

static int32_t count_locks(const struct lane_batch *batch)
{
    int32_t count = 0;
    LIST_FOR_EACH(node, &batch->steps) {
        const struct step *step = CONTAINER_OF(node, const struct step, node);
        for (const struct hold_write *write = step->unit.holds; write != NULL; write = write->next)
            count += wants_lock(write);
    }
    return count;
}

static void fill_locks(struct lane_batch *batch)
{
    struct warm_lock *lock = batch->round.locks;
    LIST_FOR_EACH(node, &batch->steps) {
        struct step *step = CONTAINER_OF(node, struct step, node);
        step->locks = lock;
        for (const struct hold_write *write = step->unit.holds; write != NULL; write = write->next) {
            if (!wants_lock(write))
                continue;
            *lock++ = (struct warm_lock){
                .org_id = write->row.org_id,
                .event_id = write->row.event_id,
                .seat_id = write->row.seat_id,
                .hold_id = write->row.id,
                .user_id = write->row.user_id,
                .cart_token = write->row.cart_token,
                .held_at_ms = write->row.created_ms,
                .held_until_ms = write->row.held_until_ms,
            };
            step->lock_count++;
        }
    }
}

/* Too old, by either clock, to be of a commit under way. */
bool filter_lock_is_old(const struct lane *lane, const struct warm_lock *lock)
{
    int64_t age_ms = lane->now_ms - lock->found_held_at_ms;
    return age_ms >= WARM_LOCK_YOUNG_MS || age_ms <= -WARM_LOCK_YOUNG_MS;
}

enum verdict { GO_ON, DECIDE_AGAIN, WAIT };

static enum verdict judge_lock(const struct lane *lane, const struct command *command,
                               const struct warm_lock *lock)
{
    if (lock->result == WARM_LOCK_TAKEN) {
        counter_add(COUNTER_LOCKS_TAKEN, 1);
        return GO_ON;
    }
    if (lock->result == WARM_LOCK_ERROR || !lock->readable)
        return GO_ON;
    if (uuid_equal(&lock->found_user_id, &lock->user_id)) {
        counter_add(COUNTER_LOCKS_OWN, 1);
        return GO_ON;
    }
    if (hot_hold(lane->hot, &lock->org_id, &lock->found_hold_id) != NULL)
        return DECIDE_AGAIN;
    const struct strange_lock *known = command_strange_lock(command, &lock->found_hold_id);
    if (filter_lock_is_old(lane, lock) || (known != NULL && known->has_ended)) {
        counter_add(COUNTER_LOCKS_TAKEN_OVER, 1);
        return GO_ON;
    }
    return WAIT;
}

static void remember_lock(struct command *command, const struct warm_lock *lock)
{
    if (command_strange_lock(command, &lock->found_hold_id) != NULL)
        return;
    struct strange_lock *strange = ARENA_NEW(command->arena, struct strange_lock);
    strange->hold_id = lock->found_hold_id;
    strange->next = command->locks;
    command->locks = strange;
}

/* Are some of its seats somebody's? Locks whose holds are not known are remembered with the command. */
static enum verdict judge(const struct lane *lane, struct step *step)
{
    enum verdict verdict = GO_ON;
    for (int32_t i = 0; i < step->lock_count; i++) {
        struct warm_lock *lock = &step->locks[i];
        enum verdict one = judge_lock(lane, step->command, lock);
        lock->refuses = one != GO_ON;
        if (one == WAIT)
            remember_lock(step->command, lock);
        if (one == DECIDE_AGAIN || verdict == GO_ON)
            verdict = one;
    }
    return verdict;
}

static bool avoid_locked(struct step *step)
{
    bool avoids = false;
    for (int32_t i = 0; i < step->lock_count; i++)
        avoids = (step->locks[i].refuses && step_avoid_seat(step, &step->locks[i].seat_id)) || avoids;
    return avoids;
}

static void refuse(struct lane *lane, struct step *step, int32_t lock_count)
{
    struct command *command = step->command;
    const struct hold_row *hold = &step->unit.holds->row;
    command->result = (struct result){0};
    command->result.failures = ARENA_ARRAY(command->arena, struct seat_failure, lock_count + 1);
    for (int32_t i = 0; i < lock_count; i++) {
        if (step->locks[i].refuses)
            command->result.failures[command->result.failure_count++] =
                (struct seat_failure){.id = step->locks[i].seat_id, .err = ERR_SEAT_NO_LONGER_AVAILABLE};
    }
    audit_failed_reserve(lane, command, &hold->event_id, &hold->seat_id, ERR_SEAT_NO_LONGER_AVAILABLE);
    counter_add(COUNTER_LOCKS_REFUSED, 1);
    counter_add(COUNTER_DECIDED_WARM, 1);
    counter_add(COUNTER_HOLD_CONFLICTS, 1);
    lane_answer_now(lane, command, ERR_SEAT_NO_LONGER_AVAILABLE);
}

static void step_refused(struct lane *lane, struct step *step, enum verdict verdict)
{
    struct command *command = step->command;
    bool takes_others = avoid_locked(step);
    bool waits = verdict == WAIT && !takes_others;
    int32_t lock_count = step->lock_count;
    filter_give_back(lane, step);
    batch_withdraw(lane, step);
    follow_missed(lane, command); /* whoever has the lock may have committed by now */
    if (waits && command->try_count >= RETRY_COUNT_MAX) {
        refuse(lane, step, lock_count);
        return;
    }
    counter_add(COUNTER_RETRIES, 1);
    lane_retry(lane, command, waits ? 10ll << command->try_count : 0);
    command->try_count += waits;
}

static void answered(struct warm_round *round)
{
    struct lane_batch *batch = round->context;
    struct lane *lane = batch->lane;
    batch->filtering = false;
    lane->filtering_count--;
    if (round->outcome == WARM_ANSWERED) {
        LIST_FOR_EACH_SAFE(node, &batch->steps) {
            struct step *step = CONTAINER_OF(node, struct step, node);
            enum verdict verdict = step->lock_count > 0 && step->command != NULL ? judge(lane, step) : GO_ON;
            if (verdict != GO_ON)
                step_refused(lane, step, verdict);
        }
    } else {
        bool timed_out = round->outcome == WARM_TIMED_OUT;
        counter_add(timed_out ? COUNTER_FALLBACK_TIMEOUT : COUNTER_FALLBACK_ERROR, 1);
        counter_add(COUNTER_LOCKS_TIMEOUT, timed_out ? (uint64_t)round->count : 0);
        for (int32_t i = 0; i < round->count; i++)
            round->locks[i].result = WARM_LOCK_ERROR; /* may have been taken, may not */
    }
    batch_to_store(lane, batch);
}

bool filter_ask(struct lane *lane, struct lane_batch *batch)
{
    struct warm *warm = lane->config.warm;
    int32_t count = warm != NULL ? count_locks(batch) : 0;
    if (count == 0)
        return false;
    if (warm_state(warm) != WARM_CLOSED) {
        counter_add(COUNTER_FALLBACK_OPEN, 1);
        return false;
    }
    batch->round = (struct warm_round){
        .arena = &batch->store.arena,
        .locks = ARENA_ARRAY(&batch->store.arena, struct warm_lock, count),
        .count = count,
        .on_done = answered,
        .context = batch,
    };
    list_init(&batch->round.node);
    fill_locks(batch);
    if (warm_lock(warm, &batch->round) != ERR_OK) {
        counter_add(COUNTER_FALLBACK_ERROR, 1);
        LIST_FOR_EACH(node, &batch->steps)
            CONTAINER_OF(node, struct step, node)->lock_count = 0;
        return false;
    }
    batch->filtering = true;
    lane->filtering_count++;
    return true;
}

void filter_give_back(struct lane *lane, struct step *step)
{
    for (int32_t i = 0; i < step->lock_count; i++) {
        const struct warm_lock *lock = &step->locks[i];
        if (lock->result == WARM_LOCK_FOUND)
            continue;
        struct warm_write write = {.kind = WARM_UNLOCKED,
                                   .org_id = lock->org_id,
                                   .event_id = lock->event_id,
                                   .seat_id = lock->seat_id,
                                   .hold_id = lock->hold_id,
                                   .user_id = lock->user_id,
                                   .cart_token = lock->cart_token,
                                   .created_ms = lock->held_at_ms,
                                   .held_until_ms = lock->held_until_ms};
        warm_write(lane->config.warm, &write, 1);
    }
    step->lock_count = 0;
}

/* ---- After the commit ---- */

static bool was_locked(const struct step *step, const struct uuid *hold_id)
{
    for (int32_t i = 0; i < step->lock_count; i++) {
        if (uuid_equal(&step->locks[i].hold_id, hold_id))
            return step->locks[i].result == WARM_LOCK_TAKEN;
    }
    return false;
}

/* What a hold of the seat means for its keys. The seat's own change goes with the last of them. */
static enum warm_write_kind kind_of(const struct hold_write *hold, const struct seat_write *seat)
{
    if (hold->row.state == HOLD_ACTIVE)
        return hold->insert ? WARM_HELD : WARM_EXTENDED;
    if (seat->row.state == SEAT_AVAILABLE)
        return WARM_RELEASED;
    if (hold->row.state == HOLD_CONVERTED && !hold->insert)
        return WARM_SOLD;
    return WARM_UNLOCKED; /* blocked, or somebody's at once: the seat has a write of its own */
}

static struct warm_write *add_hold(struct lane *lane, const struct step *step, const struct seat_write *seat,
                                   const struct hold_write *hold, struct warm_write *write)
{
    filter_hold(write, &hold->row);
    write->kind = kind_of(hold, seat);
    if (write->kind == WARM_HELD)
        write->locked = was_locked(step, &hold->row.id);
    if (write->kind == WARM_EXTENDED) {
        const struct hot_hold *before = map_get(&lane->hot->holds, &hold->row.id);
        write->previous_until_ms = before != NULL ? before->held_until_ms : hold->row.held_until_ms;
        if (write->previous_until_ms == write->held_until_ms)
            return write; /* only its checkout changed: nothing that Redis knows */
    }
    return write + 1;
}

/* One seat's change: of the hold that ended, of the one that began, or of the seat alone. */
static struct warm_write *add_seat(struct lane *lane, const struct step *step, const struct seat_write *seat,
                                   bool late, struct warm_write *write)
{
    const struct step_seat *own = CONTAINER_OF(seat, const struct step_seat, write);
    struct warm_write place = {.state = seat->row.state, .version = seat->row.version, .repair = late};
    filter_place(&place, own->event, seat->row.index);
    own->event->occupancy_due = true;
    bool told = false;
    for (const struct hold_write *hold = step->unit.holds; hold != NULL; hold = hold->next) {
        if (!uuid_equal(&hold->row.seat_id, &seat->row.id))
            continue;
        *write = place;
        struct warm_write *next = add_hold(lane, step, seat, hold, write);
        told = told || write->kind != WARM_UNLOCKED;
        write = next;
    }
    if (!told && seat->row.state != seat->before) {
        *write = place;
        write->kind = WARM_SEAT;
        write++;
    }
    return write;
}

static int32_t count_writes(const struct lane_batch *batch)
{
    int32_t count = 0;
    LIST_FOR_EACH(node, &batch->steps) {
        const struct step *step = CONTAINER_OF(node, const struct step, node);
        for (const struct seat_write *seat = step->unit.seats; seat != NULL; seat = seat->next)
            count += 1;
        for (const struct hold_write *hold = step->unit.holds; hold != NULL; hold = hold->next)
            count += 1;
    }
    return count;
}

void filter_committed(struct lane *lane, struct lane_batch *batch)
{
    struct warm *warm = lane->config.warm;
    if (warm == NULL)
        return;
    bool late = lane->now_ms - batch->store.now_ms > LATE_MS;
    struct warm_write *writes = ARENA_ARRAY(&batch->store.arena, struct warm_write, count_writes(batch) + 1);
    struct warm_write *end = writes;
    LIST_FOR_EACH(node, &batch->steps) {
        struct step *step = CONTAINER_OF(node, struct step, node);
        if (batch->store.outcome != STORE_COMMITTED || step->unit.result != UNIT_OK) {
            filter_give_back(lane, step);
            continue;
        }
        for (const struct seat_write *seat = step->unit.seats; seat != NULL; seat = seat->next)
            end = add_seat(lane, step, seat, late, end);
    }
    if (warm_state(warm) == WARM_OPEN)
        return;
    if (end > writes)
        warm_write(warm, writes, (int32_t)(end - writes));
    else if (batch->store.outcome == STORE_COMMITTED)
        warm_nudge(warm);
}

/* The keys of the hold that the seat has by now, or those of `row` taken away. */
static enum warm_write_kind kind_again(const struct hot_event *event, int32_t index)
{
    if (event->seats[index].hold != NULL)
        return WARM_HELD;
    enum seat_state state = seatmap_state(event->map, index);
    return state == SEAT_AVAILABLE ? WARM_RELEASED : state == SEAT_SOLD ? WARM_SOLD : WARM_SEAT;
}

void filter_again(struct lane *lane, struct hot_event *event, int32_t index, const struct hold_row *row,
                  struct arena *arena)
{
    struct warm *warm = lane->config.warm;
    if (warm == NULL || warm_state(warm) == WARM_OPEN)
        return;
    struct warm_write *write = ARENA_NEW(arena, struct warm_write);
    const struct hot_seat *seat = &event->seats[index];
    struct hold_row current = *row;
    if (seat->hold != NULL)
        hot_hold_row(seat->hold, &current);
    filter_place(write, event, index);
    filter_hold(write, &current);
    write->kind = kind_again(event, index);
    write->state = seatmap_state(event->map, index);
    write->version = seat->version;
    write->repair = true; /* it is no news: nothing newer is overwritten */
    event->occupancy_due = true;
    warm_write(warm, write, 1);
}

/* The occupancy key goes with every change; whoever reads it finds it again within a second. */
void filter_turn(struct lane *lane)
{
    struct warm *warm = lane->config.warm;
    if (warm == NULL || lane->now_ms < lane->occupancy_at_ms)
        return;
    lane->occupancy_at_ms = lane->now_ms + OCCUPANCY_INTERVAL_MS;
    size_t position = 0;
    struct hot_event *event;
    while ((event = map_next(&lane->hot->events, &position)) != NULL) {
        if (!event->occupancy_due || event->map == NULL || warm_state(warm) == WARM_OPEN)
            continue;
        event->occupancy_due = false;
        struct buf out;
        struct jsonw json;
        buf_init(&out);
        jsonw_begin(&json, &out);
        seatmap_write_occupancy(event->map, lane->now_ms, true, &json);
        if (buf_ok(&out))
            warm_occupancy(warm, &event->row.org_id, &event->row.id, out.data, out.size);
        buf_deinit(&out);
    }
}
