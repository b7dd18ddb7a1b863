/* SPDX-License-Identifier: Apache-2.0
 * Where commands wait in order for the lane that decides them. `local`: the
 * lane's own inbox in this process. `shared`: several nodes, of which one at a
 * time decides for a block, in the order of a broker's partition. Any thread may
 * submit. */
#ifndef HOLDFAST_ORDER_ORDER_H
#define HOLDFAST_ORDER_ORDER_H

#include "base/err.h"
#include "lane/command.h"

struct broker;
struct lane;
struct order;
struct store;

enum { ORDER_NODE_NAME_SIZE = 101 };

enum err order_local_create(struct lane *lane, struct order **out) MUST_CHECK;

struct order_shared_config {
    struct lane *lane;     /* borrows; not started yet */
    struct store *store;   /* borrows: the lane's */
    struct broker *broker; /* takes it */
    struct uuid node_id;   /* the lane's */
    const char *node_name; /* where answers are sent */
    const char *topic_prefix;
    bool topic_per_event;
    int32_t partition_count; /* of each topic */
    int64_t reply_ms;        /* a caller waits so long for the answer; then 202 */
    int64_t now_ms;
    uint64_t seed; /* 0: from the system */
};
enum err order_shared_create(const struct order_shared_config *config, struct order **out) MUST_CHECK;

/* When the lane's thread has ended and before the lane is destroyed: callers that still wait are told something. */
void order_stop(struct order *order);
void order_destroy(struct order *order); /* after the lane; both: NULL is fine */

/* Transfers the command until its on_done. ERR_OVERLOADED: the queue is full, on_done never runs.
 * Releases, cancels and settlements have room of their own and are never refused. */
enum err order_submit(struct order *order, struct command *command) MUST_CHECK;

#endif
