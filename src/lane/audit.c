/* SPDX-License-Identifier: Apache-2.0
 * The audit log: one row per action, written in the transaction of what it tells
 * of, by whoever's command the step is (or by the system).
 *
 * A reserve that failed changes nothing, so it has no transaction of its own: its
 * row is queued and written with the next batch. That queue is bounded; what does
 * not fit is counted and dropped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "lane/lane_int.h"

enum { FAILURES_PER_BATCH_MAX = 1024 };

struct audit_row *step_audit(struct step *step, enum audit_action action, const char *entity_type,
                             const struct uuid *entity_id)
{
    struct audit_write *write = ARENA_NEW(step_arena(step), struct audit_write);
    write->row = (struct audit_row){
        .role = ROLE_SYSTEM,
        .action = action,
        .entity_type = entity_type,
        .entity_id = *entity_id,
        .held_duration_seconds = -1,
        .created_ms = step->batch->lane->now_ms,
    };
    const struct command *command = step->job != NULL ? step->job->command : step->command;
    if (command != NULL) {
        write->row.org_id = command->actor.org_id;
        write->row.role = command->actor.role;
        if (command->actor.role != ROLE_SYSTEM)
            write->row.actor_id = command->actor.user_id;
        write->row.ip = command->actor.ip;
        write->row.user_agent = command->actor.user_agent;
        write->row.request_id = command->actor.request_id;
    }
    *step->audits_end = write;
    step->audits_end = &write->next;
    return &write->row;
}

struct audit_row *audit_hold(struct step *step, enum audit_action action, const struct hold_row *row)
{
    struct audit_row *audit = step_audit(step, action, "SeatHold", &row->id);
    audit->org_id = row->org_id;
    audit->seat_id = row->seat_id;
    audit->event_id = row->event_id;
    audit->checkout_id = row->checkout_id;
    audit->user_id = row->user_id;
    return audit;
}

struct audit_row *audit_checkout(struct step *step, enum audit_action action, const struct checkout_row *row)
{
    struct audit_row *audit = step_audit(step, action, "Checkout", &row->id);
    audit->org_id = row->org_id;
    audit->event_id = row->event_id;
    audit->checkout_id = row->id;
    audit->user_id = row->user_id;
    return audit;
}

/* ---- Failed reserves ---- */

struct failed_reserve {
    struct list node;
    struct audit_row row;
    char ip[64];
    char user_agent[256];
    char request_id[80];
};

static void copy_text(char *to, size_t size, const char *from, const char **field)
{
    if (from == NULL)
        return;
    snprintf(to, size, "%s", from);
    /* Never half a character. */
    size_t length = strlen(to);
    if (length == size - 1)
        while (length > 0 && ((unsigned char)to[length - 1] & 0x80))
            to[--length] = '\0';
    *field = to;
}

void audit_failed_reserve(struct lane *lane, const struct command *command, const struct uuid *event_id,
                          const struct uuid *seat_id, enum err err)
{
    if (lane->failure_count >= AUDIT_QUEUE_COUNT_MAX) {
        counter_add(COUNTER_AUDIT_DROPPED, 1);
        return;
    }
    struct failed_reserve *failed = calloc(1, sizeof(*failed));
    if (failed == NULL) {
        counter_add(COUNTER_AUDIT_DROPPED, 1);
        return;
    }
    failed->row = (struct audit_row){
        .org_id = command->actor.org_id,
        .actor_id = command->actor.user_id,
        .role = command->actor.role,
        .action = AUDIT_SEAT_RESERVE_FAILED,
        .entity_type = "Seat",
        .entity_id = *seat_id,
        .seat_id = *seat_id,
        .event_id = *event_id,
        .user_id = command->actor.for_user_id,
        .reason = err_code(err),
        .held_duration_seconds = -1,
        .created_ms = lane->now_ms,
    };
    copy_text(failed->ip, sizeof(failed->ip), command->actor.ip, &failed->row.ip);
    copy_text(failed->user_agent, sizeof(failed->user_agent), command->actor.user_agent,
              &failed->row.user_agent);
    copy_text(failed->request_id, sizeof(failed->request_id), command->actor.request_id,
              &failed->row.request_id);
    list_append(&lane->failures, &failed->node);
    lane->failure_count++;
}

void audit_failures_write(struct lane *lane)
{
    if (list_empty(&lane->failures) || !batch_has_room(lane))
        return;
    struct step *step = step_begin(lane, NULL);
    for (int32_t i = 0; i < FAILURES_PER_BATCH_MAX && !list_empty(&lane->failures); i++) {
        struct failed_reserve *failed = CONTAINER_OF(list_pop(&lane->failures), struct failed_reserve, node);
        struct audit_row *row = step_audit(step, AUDIT_SEAT_RESERVE_FAILED, "Seat", &failed->row.entity_id);
        *row = failed->row;
        row->ip = arena_text(step_arena(step), row->ip);
        row->user_agent = arena_text(step_arena(step), row->user_agent);
        row->request_id = arena_text(step_arena(step), row->request_id);
        free(failed);
        lane->failure_count--;
    }
    step_submit(step);
}
