/* SPDX-License-Identifier: Apache-2.0
 * What Redis says, compared with what is committed: a member and a lock for
 * every active hold, no member and no old lock for any other, a bit for every
 * seat that is not free. It may be wrong for a while; once it was put right, and
 * nothing failed since, it is not. */
#include <string.h>

#include "warm/values.h"
#include "world.h"

enum {
    ORPHAN_MS_MAX = 60000, /* longer ago than the last reconciliation: it should have found it */
    STEADY_MS = 5000,      /* after bad weather, all that was late has come */
    NEW_MS = 2000,
    BACK_MS_MAX = 60000, /* a breaker that opened last, and everything written anew */
};

static bool is_back(const struct world *world)
{
    for (int32_t i = 0; i < world->node_count; i++) {
        if (warm_state(world->nodes[i].warm) != WARM_CLOSED)
            return false;
    }
    return true;
}

void registry_reconcile(struct world *world)
{
    if (world->redis == NULL)
        return;
    for (int64_t end_ms = world->now_ms + BACK_MS_MAX; !is_back(world); world->now_ms += 50) {
        if (world->now_ms > end_ms)
            world_fail(world, "Redis is back, and a node does not use it");
        world_turn(world);
    }
    for (int which = 0; which < WORLD_EVENT_COUNT; which++) {
        struct command *command = world_command(world, COMMAND_RECONCILE, &world->admin_id);
        command->actor.role = ROLE_ADMIN;
        command->id = world->events[which];
        world_post(world, command);
    }
    world_run_until_answered(world);
}

static void check_members(struct world *world)
{
    const struct warm_sim_tables *redis = warm_sim_tables(world->redis);
    size_t position = 0;
    int64_t count = 0;
    const struct warm_sim_member *entry;
    while ((entry = map_next(&redis->members, &position)) != NULL) {
        const struct warm_member *member = &entry->member;
        if (world_event_index(world, &entry->event_id) < 0)
            continue;
        const struct sim_hold *hold = world_hold(world, &member->hold_id);
        if (hold == NULL || hold->row.state != HOLD_ACTIVE ||
            hold->row.held_until_ms != member->held_until_ms)
            world_fail(world, "Redis has a member that is of no active hold");
        count++;
    }
    position = 0;
    const struct sim_hold *hold;
    while ((hold = map_next(&world->tables->holds, &position)) != NULL)
        count -= hold->row.state == HOLD_ACTIVE && world_event_index(world, &hold->row.event_id) >= 0;
    if (count != 0)
        world_fail(world, "Redis lacks a member, or has one twice");
}

static void check_lock(struct world *world, const struct seat_row *seat)
{
    const struct warm_sim_lock *lock = map_get(&warm_sim_tables(world->redis)->locks, &seat->id);
    struct warm_lock found = {.readable = false};
    bool is_there = lock != NULL && lock->dies_ms > world->now_ms;
    if (is_there)
        value_read_lock(lock->text, strlen(lock->text), &found);
    bool is_theirs = found.readable && uuid_equal(&found.found_hold_id, &seat->hold_id);
    /* One of a try that came later and failed is left to die: it keeps nobody out who would get the seat. */
    bool is_later = found.readable && uuid_compare(&found.found_hold_id, &seat->hold_id) > 0;
    if (seat->state == SEAT_HELD && seat->held_until_ms > world->now_ms && !is_theirs && !is_later)
        world_fail(world, "Redis has no lock of an active hold");
    const struct sim_hold *hold = found.readable ? world_hold(world, &found.found_hold_id) : NULL;
    bool is_active = hold != NULL && hold->row.state == HOLD_ACTIVE;
    if (found.readable && !is_active && world->now_ms - found.found_held_at_ms > ORPHAN_MS_MAX)
        world_fail(world, "Redis has a lock that is of no active hold");
}

/* The key that other programs find a seat's hold by. */
static void check_key(struct world *world, const struct seat_row *seat)
{
    const struct warm_sim_hold *key = map_get(&warm_sim_tables(world->redis)->holds, &seat->id);
    bool is_theirs = key != NULL && key->dies_ms > world->now_ms && uuid_equal(&key->hold_id, &seat->hold_id);
    if (seat->state == SEAT_HELD && seat->held_until_ms > world->now_ms && !is_theirs)
        world_fail(world, "Redis does not name the hold of a seat");
}

static void check_seats(struct world *world, const struct sim_event *event)
{
    const struct warm_sim_tables *redis = warm_sim_tables(world->redis);
    for (int32_t i = 0; i < event->seat_count; i++) {
        const struct seat_row *row = &event->seats[i].row;
        const struct warm_sim_seat *seat = map_get(&redis->seats, &row->id);
        if ((seat != NULL && seat->taken) != (row->state != SEAT_AVAILABLE))
            world_fail(world, "Redis has another bit than the seat");
        check_lock(world, row);
        check_key(world, row);
    }
}

void registry_check_locks(struct world *world)
{
    if (world->redis == NULL)
        return;
    if (!world->fine || !is_back(world)) {
        world->steady_ms = world->now_ms + STEADY_MS;
        return;
    }
    size_t position = 0;
    const struct sim_hold *hold;
    while ((hold = map_next(&world->tables->holds, &position)) != NULL) {
        const struct hold_row *row = &hold->row;
        /* A storm may be shorter than the time between two checks. */
        bool made_in_fine_weather =
            row->created_ms > world->steady_ms && row->created_ms > world->fine_ms + STEADY_MS;
        if (row->state != HOLD_ACTIVE || !made_in_fine_weather || world->now_ms - row->created_ms < NEW_MS)
            continue;
        const struct sim_event *event = world_event(world, &row->event_id);
        for (int32_t i = 0; i < event->seat_count; i++) {
            if (uuid_equal(&event->seats[i].row.id, &row->seat_id))
                check_lock(world, &event->seats[i].row);
        }
    }
}

void registry_check(struct world *world)
{
    if (world->redis == NULL)
        return;
    check_members(world);
    for (int which = 0; which < WORLD_EVENT_COUNT; which++)
        check_seats(world, world_event(world, &world->events[which]));
}
