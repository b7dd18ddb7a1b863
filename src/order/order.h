/* SPDX-License-Identifier: Apache-2.0
 * Where commands wait in order for the lane. `local`: the lane's own inbox in
 * this process. Any thread may submit. */
#ifndef HOLDFAST_ORDER_ORDER_H
#define HOLDFAST_ORDER_ORDER_H

#include "base/err.h"
#include "lane/command.h"

struct order;
struct lane;

enum err order_local_create(struct lane *lane, struct order **out) MUST_CHECK;
void order_destroy(struct order *order);

/* Transfers the command until its on_done. ERR_OVERLOADED: the queue is full, on_done never runs.
 * Releases, cancels and settlements have room of their own and are never refused. */
enum err order_submit(struct order *order, struct command *command) MUST_CHECK;

#endif
