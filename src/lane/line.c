/* SPDX-License-Identifier: Apache-2.0
 * The order of a partition's commands. They come to the lane in the order in
 * which the broker keeps them, and are decided in it: while one of them asks the
 * store for its key it stands in line, and so do those behind it.
 *
 *   first in line, or nobody is ──▶ looked at ──▶ decided, or waits for its seat
 *         ▲                             └─ wants several: stays first, is looked at again
 *         └─ called ◀── waits, with somebody in front
 *
 * Who waits for a seat's commit is not passed by others who want that seat: they
 * wait for the same commit, behind him. But who wants several seats would be
 * passed by those who want only the others of them; so he stays in line.
 *
 * Everybody asks for his key before he waits, so that a line takes as long as its
 * longest question, not as all of them. */
#include "lane/lane_int.h"

static bool has_turn(const struct command *command)
{
    const struct order_fence *fence = command->sent.fence;
    return fence == NULL || command->has_begun || list_empty(&fence->line) ||
           fence->line.next == &command->line_node;
}

void line_join(struct command *command)
{
    if (command->sent.fence != NULL && !command->has_begun && list_empty(&command->line_node))
        list_append(&command->sent.fence->line, &command->line_node);
}

bool line_must_wait(struct lane *lane, struct command *command)
{
    if (has_turn(command))
        return false;
    line_join(command);
    command->is_uncalled = true;
    if (command->came_number == 0)
        command->came_number = lane->follow.number + 1;
    return true;
}

static bool wants_several(const struct command *command)
{
    return command->kind == COMMAND_HOLD_BEST ||
           (command->kind == COMMAND_HOLD_SEATS && command->hold_seats.count > 1);
}

void line_wait_for_seats(struct lane *lane, struct command *command)
{
    if (wants_several(command))
        line_join(command);
    else
        line_leave(lane, command);
}

void line_leave(struct lane *lane, struct command *command)
{
    command->has_begun = true;
    if (list_empty(&command->line_node))
        return;
    list_remove(&command->line_node);
    struct list *line = &command->sent.fence->line;
    struct command *next = CONTAINER_OF(line->next, struct command, line_node);
    if (list_empty(line) || !next->is_uncalled)
        return; /* it was called before, or still asks for its key */
    next->is_uncalled = false;
    next->arrived_ms = lane->now_ms; /* standing in line is not what makes it late */
    lane_make_ready(lane, next);
}
