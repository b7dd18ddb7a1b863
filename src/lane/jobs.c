/* SPDX-License-Identifier: Apache-2.0
 * Work over many seats: an admin releases or blocks a list of them, or an event
 * that is no longer open is emptied. A job goes in chunks of JOB_CHUNK_COUNT
 * seats, one chunk in flight, so that reserves go on between; a seat that is
 * busy is left for the next round. Sold seats and payments in flight are
 * skipped with their reason, never touched.
 *
 * The emptying of an event must end, whatever the store does: it is tried again
 * until nothing is left, and begins again after a restart (load.c). */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/metrics.h"
#include "hold/rules.h"
#include "lane/lane_int.h"

enum { JOB_CHUNK_COUNT = 256, JOB_RETRY_MS = 1000, JOB_MISS_RETRY_MS = 20 };

struct seat_job *job_create(struct lane *lane, struct command *command, enum seat_job_kind kind)
{
    struct seat_job *job = calloc(1, sizeof(*job));
    CHECK(job != NULL);
    arena_init(&job->arena);
    job->kind = kind;
    job->command = command;
    job->reason = END_ADMIN_OVERRIDE;
    list_append(&lane->jobs, &job->node);
    lane->progress = true;
    return job;
}

void job_free(struct seat_job *job)
{
    arena_deinit(&job->arena);
    free(job);
}

static void job_skip(struct seat_job *job, const struct uuid *id, enum err err, enum seat_state state)
{
    if (job->command == NULL)
        return;
    answer_add_failure(job->command, id, err, job->total_count)->state = state;
}

static void job_did_seat(struct seat_job *job, const struct uuid *seat_id)
{
    if (job->command == NULL)
        return;
    struct result *result = &job->command->result;
    if (result->seat_ids == NULL)
        result->seat_ids = ARENA_ARRAY(job->command->arena, struct uuid, job->total_count);
    result->seat_ids[result->seat_id_count++] = *seat_id;
}

/* ---- One id of the list. False: busy, look again later. ---- */

static bool job_release(struct lane *lane, struct seat_job *job, struct step *step, const struct uuid *id)
{
    struct hot_hold *hold = hot_hold(lane->hot, &job->org_id, id);
    if (hold == NULL) {
        job_skip(job, id, ERR_HOLD_NOT_FOUND, SEAT_AVAILABLE);
        return true;
    }
    if (end_hold_must_wait(hold))
        return false;
    if (hot_hold_paying(hold)) {
        job_skip(job, id, ERR_PAYMENT_IN_PROGRESS, SEAT_HELD);
        return true;
    }
    end_hold(step, hold, job->reason, SEAT_AVAILABLE, job->notes);
    if (job->command != NULL && job->command->kind == COMMAND_ADMIN_RELEASE) {
        struct hold_row row;
        hot_hold_row(hold, &row);
        row.state = HOLD_CANCELLED;
        row.reason = job->reason;
        row.ended_ms = lane->now_ms;
        answer_add_hold(job->command, hold->event, hold->seat_index, &row, job->total_count);
    }
    return true;
}

static void job_audit_seat(struct step *step, struct seat_job *job, enum audit_action action, int32_t index,
                           enum seat_state before, enum seat_state after)
{
    const struct seatmap *map = job->event->map;
    struct audit_row *audit = step_audit(step, action, "Seat", &map->seat_ids[index]);
    audit->org_id = job->org_id;
    audit->seat_id = map->seat_ids[index];
    audit->event_id = job->event->row.id;
    audit->before = step_printf(step, "{\"status\":\"%s\"}", seat_state_name(before));
    audit->after = step_printf(step, "{\"status\":\"%s\"}", seat_state_name(after));
}

static bool job_block(struct seat_job *job, struct step *step, int32_t index)
{
    struct hot_event *event = job->event;
    const struct uuid *id = &event->map->seat_ids[index];
    enum seat_state state = seatmap_state(event->map, index);
    struct hot_hold *hold = event->seats[index].hold;
    if (hold != NULL && end_hold_must_wait(hold))
        return false;
    if (state == SEAT_SOLD) {
        job_skip(job, id, ERR_SEAT_NOT_AVAILABLE, state);
    } else if (hold != NULL && hot_hold_paying(hold)) {
        job_skip(job, id, ERR_PAYMENT_IN_PROGRESS, state);
    } else {
        if (state == SEAT_HELD)
            end_hold(step, hold, job->reason, SEAT_BLOCKED, job->notes);
        else if (state == SEAT_AVAILABLE)
            step_seat(step, event, index, SEAT_BLOCKED);
        if (state != SEAT_BLOCKED)
            job_audit_seat(step, job, AUDIT_SEAT_BLOCKED, index, state, SEAT_BLOCKED);
        job_did_seat(job, id);
    }
    return true;
}

static bool job_unblock(struct seat_job *job, struct step *step, int32_t index)
{
    const struct uuid *id = &job->event->map->seat_ids[index];
    enum seat_state state = seatmap_state(job->event->map, index);
    if (state == SEAT_HELD || state == SEAT_SOLD) {
        job_skip(job, id, ERR_SEAT_NOT_AVAILABLE, state);
        return true;
    }
    if (state == SEAT_BLOCKED) {
        step_seat(step, job->event, index, SEAT_AVAILABLE);
        job_audit_seat(step, job, AUDIT_SEAT_UNBLOCKED, index, state, SEAT_AVAILABLE);
    }
    job_did_seat(job, id);
    return true;
}

static bool job_one(struct lane *lane, struct seat_job *job, struct step *step, const struct uuid *id)
{
    if (job->kind == JOB_RELEASE)
        return job_release(lane, job, step, id);
    int32_t index = seatmap_find(job->event->map, id);
    if (index < 0) {
        job_skip(job, id, ERR_SEAT_NOT_FOUND, SEAT_AVAILABLE);
        return true;
    }
    if (job->event->exclusive || job->event->seats[index].busy)
        return false;
    return job->kind == JOB_BLOCK ? job_block(job, step, index) : job_unblock(job, step, index);
}

/* ---- Turns ---- */

/* What an event still holds, for its emptying. */
static void job_list_event(struct seat_job *job)
{
    struct hot_event *event = job->event;
    int32_t seat_count = event->map != NULL ? event->map->layout->seat_count : 0;
    if (job->ids == NULL) {
        job->ids = ARENA_ARRAY(&job->arena, struct uuid, seat_count + 1);
        job->later = ARENA_ARRAY(&job->arena, struct uuid, seat_count + 1);
    }
    job->count = 0;
    for (int32_t i = 0; i < seat_count; i++) {
        if (event->seats[i].hold != NULL)
            job->ids[job->count++] = event->seats[i].hold->id;
    }
    if (job->total_count < job->count)
        job->total_count = job->count;
}

void job_over_event(struct seat_job *job, struct hot_event *event)
{
    job->event = event;
    job->org_id = event->row.org_id;
    job_list_event(job);
}

static void job_finish(struct lane *lane, struct seat_job *job)
{
    struct command *command = job->command;
    bool key_is_written = job->empties_event; /* with the event's own change */
    list_remove(&job->node);
    job_free(job);
    if (command == NULL)
        return;
    struct result *result = &command->result;
    result->status = 200;
    if (key_is_written) {
        result->now_ms = lane->now_ms;
        lane_reply(lane, command);
        return;
    }
    bool nothing_done = result->hold_count == 0 && result->seat_id_count == 0 && result->failure_count > 0;
    bool is_list = command->kind == COMMAND_SEATS_BLOCK || command->kind == COMMAND_SEATS_UNBLOCK;
    lane_answer_now(lane, command, is_list && nothing_done ? result->failures[0].err : ERR_OK);
}

/* What a chunk adds to the answer counts when it is committed; until then it can be taken back. */
static void job_remember_answer(struct seat_job *job)
{
    if (job->command == NULL)
        return;
    job->hold_count = job->command->result.hold_count;
    job->seat_id_count = job->command->result.seat_id_count;
    job->failure_count = job->command->result.failure_count;
}

static void job_take_back_answer(struct seat_job *job)
{
    if (job->command == NULL)
        return;
    job->command->result.hold_count = job->hold_count;
    job->command->result.seat_id_count = job->seat_id_count;
    job->command->result.failure_count = job->failure_count;
}

static void job_chunk_done(struct seat_job *job)
{
    struct uuid *ids = job->ids;
    job->ids = job->later;
    job->count = job->later_count;
    job->later = ids;
}

static void job_turn(struct lane *lane, struct seat_job *job)
{
    struct step *step = step_begin(lane, NULL);
    step->job = job;
    int32_t done_count = 0;
    if (job->later == NULL)
        job->later = ARENA_ARRAY(&job->arena, struct uuid, job->count + 1);
    job->later_count = 0;
    job_remember_answer(job);
    for (int32_t i = 0; i < job->count; i++) {
        /* The chunk is full, or the seat busy: it stays in the list. */
        if (done_count < JOB_CHUNK_COUNT && job_one(lane, job, step, &job->ids[i]))
            done_count++;
        else
            job->later[job->later_count++] = job->ids[i];
    }
    if (step->unit.seats != NULL) {
        job->in_flight = true;
        step_submit(step);
        return;
    }
    job_chunk_done(job);
    if (job->count == 0)
        job_finish(lane, job);
}

void jobs_turn(struct lane *lane)
{
    LIST_FOR_EACH_SAFE(node, &lane->jobs) {
        struct seat_job *job = CONTAINER_OF(node, struct seat_job, node);
        bool is_due = job->retry_at_ms <= lane->now_ms && job->fresh_needed <= lane->follow.fresh;
        if (!job->in_flight && is_due && batch_has_room(lane))
            job_turn(lane, job);
    }
}

void job_step_done(struct lane *lane, struct step *step, bool written)
{
    struct seat_job *job = step->job;
    job->in_flight = false;
    if (written) {
        job_chunk_done(job);
        if (job->count == 0)
            job_finish(lane, job);
        return;
    }
    job->retry_at_ms = lane->now_ms + JOB_RETRY_MS;
    struct command *command = job->command;
    job->command = NULL;
    bool must_end = job->empties_event;
    if (command != NULL) {
        /* An event's own change is committed; only its emptying goes on behind. */
        command->result = (struct result){.id = command->id, .status = 200, .now_ms = lane->now_ms};
        if (!must_end) {
            command->result.err = ERR_STORE_UNAVAILABLE;
            command->result.message = "The store became unavailable; a part may be done. Ask again.";
            command->result.retry_after_seconds = 1;
        }
        lane_reply(lane, command);
    }
    if (must_end) {
        job_list_event(job);
        return;
    }
    list_remove(&job->node);
    job_free(job);
}

void job_step_missed(struct lane *lane, struct step *step)
{
    struct seat_job *job = step->job;
    job->in_flight = false;
    job->retry_at_ms = lane->now_ms + JOB_MISS_RETRY_MS;
    job->fresh_needed = follow_next_number(lane); /* the other node's change comes first */
    job_take_back_answer(job);
}

/* ---- Commands that become jobs ---- */

enum decision decide_seats_block(struct lane *lane, struct command *command)
{
    command->result = (struct result){0};
    if (!follow_is_fresh(lane, command))
        return DEFERRED;
    struct hot_event *event = hot_event(lane->hot, &command->actor.org_id, &command->id);
    if (event == NULL)
        return lane_answer(lane, command, ERR_EVENT_NOT_FOUND);
    if (event->map == NULL)
        return lane_answer(lane, command, ERR_SEAT_NOT_FOUND);
    struct seat_job *job =
        job_create(lane, command, command->kind == COMMAND_SEATS_BLOCK ? JOB_BLOCK : JOB_UNBLOCK);
    job->event = event;
    job->org_id = command->actor.org_id;
    job->notes = arena_text(&job->arena, command->seats.notes);
    job->count = job->total_count = command->seats.count;
    job->ids = arena_copy(&job->arena, command->seats.seat_ids, sizeof(struct uuid) * (size_t)job->count);
    return DECIDED;
}

/* The hold on a seat of any of the organization's events; the seat's state if there is none. */
static struct hot_hold *find_by_seat(struct lane *lane, const struct uuid *org_id, const struct uuid *seat_id,
                                     enum err *err, enum seat_state *state)
{
    size_t position = 0;
    struct hot_event *event;
    *err = ERR_SEAT_NOT_FOUND;
    while ((event = map_next(&lane->hot->events, &position)) != NULL) {
        if (event->map == NULL || !uuid_equal(&event->row.org_id, org_id))
            continue;
        int32_t index = seatmap_find(event->map, seat_id);
        if (index < 0)
            continue;
        *state = seatmap_state(event->map, index);
        *err = *state == SEAT_SOLD || *state == SEAT_BLOCKED ? ERR_SEAT_NOT_AVAILABLE : ERR_HOLD_NOT_FOUND;
        return event->seats[index].hold;
    }
    return NULL;
}

static void release_by_seats(struct lane *lane, struct command *command, struct seat_job *job)
{
    job->total_count = command->release.seat_count;
    job->ids = ARENA_ARRAY(&job->arena, struct uuid, job->total_count);
    for (int32_t i = 0; i < command->release.seat_count; i++) {
        enum err err;
        enum seat_state state = SEAT_AVAILABLE;
        const struct uuid *seat_id = &command->release.seat_ids[i];
        struct hot_hold *hold = find_by_seat(lane, &command->actor.org_id, seat_id, &err, &state);
        if (hold != NULL)
            job->ids[job->count++] = hold->id;
        else
            job_skip(job, seat_id, err, state);
    }
}

/* A checkout that is not open: does it exist at all? */
static enum decision release_ended_checkout(struct lane *lane, struct command *command)
{
    struct store_lookup *lookup = lane_lookup(lane, command, LOOKUP_CHECKOUT, &command->release.checkout_id);
    if (lookup == NULL)
        return LOOKING_UP;
    if (lookup->err != ERR_OK)
        return lane_answer(lane, command, ERR_STORE_UNAVAILABLE);
    if (!lookup->found)
        return lane_answer(lane, command, ERR_CHECKOUT_NOT_FOUND);
    answer_add_failure(command, &command->release.checkout_id, ERR_CHECKOUT_NOT_CANCELLABLE, 1);
    command->result.status = 200;
    return lane_answer(lane, command, ERR_OK);
}

static void release_by_checkout(struct seat_job *job, struct hot_checkout *checkout)
{
    LIST_FOR_EACH(node, &checkout->holds)
        job->total_count++;
    job->ids = ARENA_ARRAY(&job->arena, struct uuid, job->total_count + 1);
    LIST_FOR_EACH(node, &checkout->holds)
        job->ids[job->count++] = CONTAINER_OF(node, struct hot_hold, checkout_node)->id;
}

enum decision decide_admin_release(struct lane *lane, struct command *command)
{
    command->result = (struct result){0};
    if (!follow_is_fresh(lane, command))
        return DEFERRED;
    const struct uuid *org_id = &command->actor.org_id;
    struct hot_event *event = NULL;
    struct hot_checkout *checkout = NULL;
    if (!uuid_is_nil(&command->release.event_id)) {
        event = hot_event(lane->hot, org_id, &command->release.event_id);
        if (event == NULL)
            return lane_answer(lane, command, ERR_EVENT_NOT_FOUND);
    }
    if (!uuid_is_nil(&command->release.checkout_id)) {
        checkout = hot_checkout(lane->hot, org_id, &command->release.checkout_id);
        if (checkout == NULL || checkout->row.ended_ms != 0)
            return release_ended_checkout(lane, command);
        if (checkout->busy)
            return DEFERRED;
    }
    struct seat_job *job = job_create(lane, command, JOB_RELEASE);
    job->org_id = *org_id;
    job->notes = arena_text(&job->arena, command->release.notes);
    if (event != NULL) {
        job_over_event(job, event);
    } else if (checkout != NULL) {
        release_by_checkout(job, checkout);
    } else if (command->release.seat_ids != NULL) {
        release_by_seats(lane, command, job);
    } else {
        job->count = job->total_count = command->release.hold_count;
        job->ids =
            arena_copy(&job->arena, command->release.hold_ids, sizeof(struct uuid) * (size_t)job->count);
    }
    return DECIDED;
}
