/* SPDX-License-Identifier: Apache-2.0
 * The face of every warm tier: passes each call on through its table of
 * functions (warm_int.h). It keeps no state and decides nothing. */
#include "warm/warm_int.h"

void warm_destroy(struct warm *warm)
{
    if (warm != NULL)
        warm->functions->destroy(warm);
}

int warm_fd(struct warm *warm)
{
    return warm->functions->fd(warm);
}

int64_t warm_turn(struct warm *warm, int64_t now_us)
{
    return warm->functions->turn(warm, now_us);
}

enum warm_state warm_state(const struct warm *warm)
{
    return warm->functions->state(warm);
}

void warm_rebuilt(struct warm *warm)
{
    warm->functions->rebuilt(warm);
}

enum err warm_lock(struct warm *warm, struct warm_round *round)
{
    return warm->functions->lock(warm, round);
}

void warm_write(struct warm *warm, const struct warm_write *writes, int32_t count)
{
    if (count > 0)
        warm->functions->write(warm, writes, count);
}

void warm_nudge(struct warm *warm)
{
    warm->functions->nudge(warm);
}

void warm_occupancy(struct warm *warm, const struct uuid *org_id, const struct uuid *event_id,
                    const char *json, size_t size)
{
    warm->functions->occupancy(warm, org_id, event_id, json, size);
}

enum err warm_read(struct warm *warm, struct warm_read *read)
{
    return warm->functions->read(warm, read);
}

void warm_remove_members(struct warm *warm, const struct uuid *org_id, const struct uuid *event_id,
                         const struct warm_member *members, int32_t count)
{
    if (count > 0)
        warm->functions->remove_members(warm, org_id, event_id, members, count);
}
