/* SPDX-License-Identifier: Apache-2.0
 * Order over several nodes: the commands of one block are decided by one node at
 * a time, in the order in which a broker keeps them. Any node takes any request;
 * edge.c sends it on, owner.c decides what is this node's. */
#include <stdio.h>
#include <stdlib.h>

#include "order/order_int.h"
#include "order/shared_int.h"

static bool find(void *context, const struct uuid *org_id, const struct uuid *id, const void **answer,
                 size_t *size)
{
    struct shared *shared = context;
    const struct pending *pending = map_get(&shared->edge.by_id, id);
    if (pending != NULL)
        return uuid_equal(&pending->actor.org_id, org_id);
    return late_find(shared, org_id, id, answer, size);
}

static int64_t turn(void *context, int64_t now_ms)
{
    struct shared *shared = context;
    shared->now_ms = now_ms;
    int64_t broker_ms = broker_poll(shared->config.broker, now_ms);
    int64_t owner_ms = owner_turn(shared);
    int64_t edge_ms = edge_turn(shared);
    int64_t next_ms = owner_ms < edge_ms ? owner_ms : edge_ms;
    return broker_ms < next_ms ? broker_ms : next_ms;
}

static bool is_idle(void *context)
{
    struct shared *shared = context;
    return shared->edge.waiting_count == 0 && shared->edge.telling_count == 0 &&
           shared->owner.taken_count == 0 && !shared->owner.claiming.is_under_way &&
           broker_is_idle(shared->config.broker);
}

static void leave(void *context)
{
    struct shared *shared = context;
    shared->is_leaving = true;
    broker_leave(shared->config.broker);
}

enum err order_shared_create(const struct order_shared_config *config, struct order **out)
{
    struct order *order = calloc(1, sizeof(*order));
    struct shared *shared = calloc(1, sizeof(*shared));
    CHECK(order != NULL);
    CHECK(shared != NULL);
    shared->config = *config;
    snprintf(shared->node_name, sizeof(shared->node_name), "%s", config->node_name);
    snprintf(shared->prefix, sizeof(shared->prefix), "%s", config->topic_prefix);
    place_topic(shared->prefix, shared->topic);
    if (config->seed != 0)
        rng_init_seed(&shared->rng, config->seed);
    else
        rng_init_system(&shared->rng);
    shared->now_ms = config->now_ms;
    buf_init(&shared->out);
    edge_init(shared);
    owner_init(shared);
    broker_listen(config->broker, &(struct broker_events){
                                      .on_assigned = owner_on_assigned,
                                      .on_revoked = owner_on_revoked,
                                      .on_confirmed = owner_on_confirmed,
                                      .on_command = owner_on_command,
                                      .on_end = owner_on_end,
                                      .on_reply = edge_on_reply,
                                      .on_sent = edge_on_sent,
                                      .context = shared,
                                  });
    order->lane = config->lane;
    order->shared = shared;
    lane_set_router(config->lane, &(struct lane_router){
                                      .send = edge_send,
                                      .find = find,
                                      .on_event = edge_on_event,
                                      .turn = turn,
                                      .is_idle = is_idle,
                                      .leave = leave,
                                      .fd = broker_fd(config->broker),
                                      .context = shared,
                                  });
    *out = order;
    return ERR_OK;
}

void shared_stop(struct shared *shared)
{
    if (shared == NULL)
        return;
    shared->is_stopped = true;
    broker_destroy(shared->config.broker);
    edge_stop(shared);
}

void shared_destroy(struct shared *shared)
{
    if (shared == NULL)
        return;
    owner_stop(shared);
    buf_deinit(&shared->out);
    free(shared);
}
