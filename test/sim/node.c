/* SPDX-License-Identifier: Apache-2.0
 * A node: a lane with its own memory, its own connection to the store and its
 * own idea of the time. It can be killed, and it can stop for a while. */
#include <stdlib.h>

#include "lane/lane_int.h"
#include "order/place.h"
#include "world.h"

static void node_lost(void *context)
{
    struct node *node = context;
    node->lost = true;
}

static void node_nudged(void *context)
{
    struct node *node = context;
    lane_nudge(node->lane);
}

static void begin_order(struct node *node, const struct uuid *node_id)
{
    struct world *world = node->world;
    struct order_shared_config config = {
        .lane = node->lane,
        .store = node->store,
        .broker = sim_log_attach(world->log, node->index),
        .node_id = *node_id,
        .node_name = sim_log_node_name(node->index),
        .topic_per_event = world->topic_per_event,
        .topic_prefix = ORDER_PREFIX,
        .reply_ms = ORDER_REPLY_MS,
        .partition_count = world->log->partition_count,
        .now_ms = world->now_ms + node->skew_ms,
        .seed = rng_next(&world->rng) | 1,
    };
    enum err err = order_shared_create(&config, &node->order);
    CHECK(err == ERR_OK);
}

void node_begin(struct node *node)
{
    struct world *world = node->world;
    node->started_ms = world->now_ms;
    node->frozen_until_ms = 0;
    node->thawed_ms = world->now_ms;
    node->lost = false;
    node->skew_ms = 0;
    if (world->shared)
        node->skew_ms = (int64_t)rng_below(&world->rng, 2 * WORLD_SKEW_MS_MAX + 1) - WORLD_SKEW_MS_MAX;
    char why[256];
    enum err err = directory_create(&node->directory);
    CHECK(err == ERR_OK);
    if (world->redis != NULL)
        node->warm = warm_sim_attach(world->redis, rng_next(&world->rng), node_nudged, node);
    struct lane_config config = {
        .store = node->store,
        .warm = node->warm,
        .node_id = uuid_make(&world->rng, world->now_ms),
        .directory = node->directory,
        .seed = rng_next(&world->rng) | 1,
        .charge = gateway_charge,
        .refund = gateway_refund,
        .on_lost = node_lost,
        .context = node,
    };
    err = lane_create(&config, world->now_ms + node->skew_ms, &node->lane, why, sizeof(why));
    if (err != ERR_OK)
        world_fail(world, why);
    if (world->log != NULL)
        begin_order(node, &config.node_id);
}

void node_end(struct node *node)
{
    node->crashing = true;
    if (node->order != NULL)
        sim_log_kill(node->world->log, node->index);
    warm_destroy(node->warm); /* rounds under way fail, and what waited for them goes to the store or not */
    node->warm = NULL;
    sim_store_crash(node->store);
    order_stop(node->order);
    lane_destroy(node->lane);
    order_destroy(node->order);
    node->order = NULL;
    if (node->world->log != NULL)
        letters_sender_died(node);
    directory_destroy(node->directory);
    node->crashing = false;
    CHECK(node->in_flight == 0);
}

void node_post(struct node *node, struct command *command)
{
    struct world *world = node->world;
    struct question *question = question_of(command);
    question->node = node;
    question->gave_key = command->has_key;
    question->asked_ms = world->now_ms;
    question->commit_count = world->tables->commit_count;
    world->posted++;
    world->ending_count += action_is_ending(command);
    node->in_flight++;
    enum err err = lane_post(node->lane, command);
    CHECK(err == ERR_OK); /* the simulated users are too few to fill the inbox */
}

bool node_is_frozen(const struct node *node)
{
    return node->frozen_until_ms > node->world->now_ms;
}

void node_turn(struct node *node)
{
    struct world *world = node->world;
    if (node_is_frozen(node))
        return;
    /* While it does not know what became of its own, it learns nothing of the others either. */
    if (node->frozen_until_ms != 0 || node->lane->unknown_count > 0)
        node->thawed_ms = world->now_ms;
    node->frozen_until_ms = 0;
    lane_turn(node->lane, world->now_ms + node->skew_ms);
    if (node->lost)
        world_fail(world, "a node cannot follow the store any more");
}

struct node *node_any(struct world *world)
{
    return &world->nodes[rng_below(&world->rng, (uint64_t)world->node_count)];
}
