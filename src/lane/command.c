/* SPDX-License-Identifier: Apache-2.0
 * A command's beginning and end. See command.h. */
#include "lane/command.h"

void command_init(struct command *command, enum command_kind kind, struct arena *arena)
{
    *command = (struct command){.kind = kind, .arena = arena};
    list_init(&command->node);
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

void command_avoid_seat(struct command *command, const struct uuid *seat_id)
{
    struct avoided_seat *avoided = ARENA_NEW(command->arena, struct avoided_seat);
    avoided->seat_id = *seat_id;
    avoided->next = command->avoided;
    command->avoided = avoided;
}
