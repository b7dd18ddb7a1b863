/* SPDX-License-Identifier: Apache-2.0
 * What was committed a moment ago. A node alone knows what is committed; one of
 * several may refuse on what was true a little earlier, and no more than that. */
#include "hold/rules.h"
#include "world.h"

int64_t seen_completed(struct world *world, const struct uuid *event_id)
{
    int64_t count = 0;
    size_t position = 0;
    const struct sim_checkout *checkout;
    while ((checkout = map_next(&world->tables->checkouts, &position)) != NULL)
        count += checkout->row.state == CHECKOUT_COMPLETED && uuid_equal(&checkout->row.event_id, event_id);
    return count;
}

void seen_update(struct world *world)
{
    for (int which = 0; which < WORLD_EVENT_COUNT; which++) {
        const struct sim_event *event = world_event(world, &world->events[which]);
        struct seen *seen = &world->seen[which];
        if (event == NULL)
            continue;
        for (int32_t i = 0; i < event->seat_count; i++)
            seen->state_ms[i][event->seats[i].row.state] = world->now_ms;
        if (seen->closed || event_is_open(event->row.state))
            continue;
        seen->closed = true;
        seen->closed_ms = world->now_ms;
        seen->holds_ever = event->holds_ever;
        seen->completed = seen_completed(world, &event->row.id);
    }
}

int64_t seen_lag_ms(const struct world *world, const struct node *node)
{
    if (!world->loose)
        return 0;
    int64_t lag_ms = WORLD_LAG_MS_MAX + (world->log != NULL ? WORLD_ROUND_MS_MAX : 0);
    bool just_woke_up = world->now_ms - node->thawed_ms < lag_ms;
    for (int32_t i = 0; i < world->node_count && world->log != NULL;
         i++) /* any of them may have decided it */
        just_woke_up = just_woke_up || world->now_ms - world->nodes[i].thawed_ms < lag_ms;
    return just_woke_up ? INT64_MAX / 2 : lag_ms;
}

bool seen_lately(struct world *world, const struct node *node, const struct sim_event *event,
                 const struct uuid *seat_id, enum seat_state state)
{
    int which = world_event_index(world, &event->row.id);
    for (int32_t i = 0; i < event->seat_count; i++) {
        if (!uuid_equal(&event->seats[i].row.id, seat_id))
            continue;
        if (event->seats[i].row.state == state)
            return true;
        int64_t at_ms = which >= 0 ? world->seen[which].state_ms[i][state] : world->now_ms;
        return at_ms != 0 && world->now_ms - at_ms <= seen_lag_ms(world, node) && world->loose;
    }
    return false;
}
