/* SPDX-License-Identifier: Apache-2.0
 * The order of a partition's commands. They come to the lane in the order in
 * which the broker keeps them, and are decided in it: one that cannot be decided
 * yet, because the store is asked for its key, or a seat's last change is not
 * committed, stands in line, and so do those behind it, whatever they want.
 *
 *   first in line, or nobody is ──▶ looked at ──▶ decided: in the batch, or answered
 *         ▲                             └─ not yet: stays first, is looked at again
 *         └─ called ◀── waits, with somebody in front
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

void line_leave(struct lane *lane, struct command *command)
{
    command->has_begun = true;
    if (list_empty(&command->line_node))
        return;
    list_remove(&command->line_node);
    LIST_FOR_EACH(node, &command->sent.fence->line) {
        struct command *next = CONTAINER_OF(node, struct command, line_node);
        if (!next->is_uncalled)
            break; /* it was called before, or is not ready to be */
        next->is_uncalled = false;
        next->arrived_ms = lane->now_ms; /* standing in line is not what makes it late */
        lane_make_ready(lane, next);
    }
}
