/* SPDX-License-Identifier: Apache-2.0
 * Order within one process: the lane's own inbox. */
#include <stdlib.h>

#include "lane/lane.h"
#include "order/order.h"

struct order {
    struct lane *lane;
};

enum err order_local_create(struct lane *lane, struct order **out)
{
    struct order *order = calloc(1, sizeof(*order));
    if (order == NULL)
        return ERR_INTERNAL;
    order->lane = lane;
    *out = order;
    return ERR_OK;
}

void order_destroy(struct order *order)
{
    free(order);
}

enum err order_submit(struct order *order, struct command *command)
{
    return lane_post(order->lane, command);
}
