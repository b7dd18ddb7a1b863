/* SPDX-License-Identifier: Apache-2.0
 * What an order is made of. */
#ifndef HOLDFAST_ORDER_ORDER_INT_H
#define HOLDFAST_ORDER_ORDER_INT_H

#include "order/order.h"

struct shared;

struct order {
    struct lane *lane;
    struct shared *shared; /* NULL: this node decides everything itself */
};

void shared_stop(struct shared *shared); /* NULL is fine, for both */
void shared_destroy(struct shared *shared);

#endif
