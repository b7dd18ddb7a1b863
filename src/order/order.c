/* SPDX-License-Identifier: Apache-2.0
 * The way in is the same for every order: the lane's own inbox. A lane that
 * shares its work sends on what is not its own. */
#include <stdlib.h>

#include "lane/lane.h"
#include "order/order_int.h"

enum err order_local_create(struct lane *lane, struct order **out)
{
    struct order *order = calloc(1, sizeof(*order));
    if (order == NULL)
        return ERR_INTERNAL;
    order->lane = lane;
    *out = order;
    return ERR_OK;
}

void order_stop(struct order *order)
{
    if (order != NULL)
        shared_stop(order->shared);
}

void order_destroy(struct order *order)
{
    if (order == NULL)
        return;
    shared_destroy(order->shared);
    free(order);
}

enum err order_submit(struct order *order, struct command *command)
{
    return lane_post(order->lane, command);
}
