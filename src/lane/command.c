/* SPDX-License-Identifier: Apache-2.0
 * A command's beginning and end. See command.h. */
#include "lane/command.h"

#include "base/clock.h"

void command_init(struct command *command, enum command_kind kind, struct arena *arena)
{
    *command = (struct command){.kind = kind, .arena = arena};
    list_init(&command->node);
    list_init(&command->line_node);
}

void command_arrives(struct command *command)
{
    command->arrived_us = clock_monotonic_us();
    command->arrived_ms = 0; /* the lane's own clock sets it */
    command->try_count = 0;
    command->fresh_needed = 0;
    command->key_found = false;
    command->locks = NULL;
    command->avoided = NULL;
    command->avoid_count = 0;
    command->counted = false;
    list_init(&command->line_node);
    command->has_begun = false;
    command->is_uncalled = false;
    command->came_number = 0;
    command->lane_state = NULL;
}

bool command_names_its_hold(const struct command *command)
{
    return command->kind == COMMAND_HOLD_SEATS && command->hold_seats.count == 1 &&
           !command->hold_seats.several && command->sent.is_taken && command->sent.is_key_made;
}

bool command_can_be_sent(enum command_kind kind)
{
    switch (kind) {
    case COMMAND_HOLD_SEATS:
    case COMMAND_HOLD_BEST:
    case COMMAND_HOLD_EXTEND:
    case COMMAND_HOLD_RELEASE:
    case COMMAND_CHECKOUT_START:
    case COMMAND_CHECKOUT_COMPLETE:
    case COMMAND_CHECKOUT_CANCEL:
        return true;
    default:
        return false;
    }
}

void command_deinit(struct command *command)
{
    for (struct map_reference *reference = command->maps; reference != NULL; reference = reference->next)
        seatmap_release(reference->map);
    command->maps = NULL;
}

struct seatmap *command_hold_map(struct command *command, struct seatmap *map)
{
    for (struct map_reference *reference = command->maps; reference != NULL; reference = reference->next) {
        if (reference->map == map)
            return map;
    }
    struct map_reference *reference = ARENA_NEW(command->arena, struct map_reference);
    reference->map = seatmap_acquire(map);
    reference->next = command->maps;
    command->maps = reference;
    return map;
}

struct strange_lock *command_strange_lock(const struct command *command, const struct uuid *hold_id)
{
    struct strange_lock *lock = command->locks;
    while (lock != NULL && !uuid_equal(&lock->hold_id, hold_id))
        lock = lock->next;
    return lock;
}

bool command_avoid_seat(struct command *command, const struct uuid *seat_id)
{
    for (const struct avoided_seat *seat = command->avoided; seat != NULL; seat = seat->next) {
        if (uuid_equal(&seat->seat_id, seat_id))
            return false;
    }
    struct avoided_seat *avoided = ARENA_NEW(command->arena, struct avoided_seat);
    avoided->seat_id = *seat_id;
    avoided->next = command->avoided;
    command->avoided = avoided;
    return true;
}
