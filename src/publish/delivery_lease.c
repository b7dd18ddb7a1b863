/* SPDX-License-Identifier: Apache-2.0
 * See delivery_lease.h. */
#include "publish/delivery_lease.h"

bool lease_is_free(const struct delivery_row *row, const struct uuid *node, bool alone, int64_t now_ms)
{
    return alone || uuid_is_nil(&row->node) || uuid_equal(&row->node, node) || row->lease_until_ms <= now_ms;
}

bool lease_is_ours(const struct delivery_row *row, const struct uuid *node, int64_t now_ms)
{
    return uuid_equal(&row->node, node) && now_ms < row->lease_until_ms;
}

int64_t lease_look_ms(const struct delivery_row *row, int64_t now_ms)
{
    int64_t soon_ms = now_ms + DELIVERY_LOOK_MS;
    if (row->lease_until_ms <= now_ms)
        return now_ms;
    return row->lease_until_ms < soon_ms ? row->lease_until_ms : soon_ms;
}

struct delivery_row lease_hold(const struct delivery_row *row, const struct uuid *node, int64_t now_ms)
{
    struct delivery_row next = *row;
    next.node = *node;
    next.lease_until_ms = now_ms + DELIVERY_LEASE_MS;
    next.version++;
    return next;
}

struct delivery_row lease_give_back(const struct delivery_row *row)
{
    struct delivery_row next = *row;
    next.node = (struct uuid){{0}};
    next.lease_until_ms = 0;
    next.version++;
    return next;
}
