/* SPDX-License-Identifier: Apache-2.0
 * What goes wrong: stores that fail, answers that are lost, nodes that are
 * killed or stop for a while. Each node has its own weather. */
#include "base/limits.h"
#include "lane/lane_int.h"
#include "world.h"

enum { FREEZE_MS_MAX = 90000 }; /* longer than a hold lives with every extension */

static void change_store(struct node *node)
{
    struct world *world = node->world;
    bool bad = rng_below(&world->rng, 3) == 0;
    struct sim_faults faults = {
        .fail = bad ? 100 : 5,
        .lose_before = bad ? 60 : 3,
        .lose_after = bad ? 150 : 5,
        .hang = !world->shared ? 0
                : bad          ? 40
                               : 2, /* an embedded store has one writer */
        .stay_unknown = bad ? 700 : 50,
        .lookup_fail = bad ? 50 : 2,
        .locked = world->shared && rng_below(&world->rng, 2) == 0 ? 300 : 0,
        .delay_ms_max = bad ? 800 : 10,
        .feed_delay_ms_max = world->shared ? (int64_t)(bad ? 2000 : 50) : 0,
    };
    sim_store_set_faults(node->store, &faults);
}

static void change_redis(struct world *world)
{
    bool bad = rng_below(&world->rng, 3) == 0;
    struct warm_sim_faults faults = {
        .late = bad ? 60 : 3,
        .lost = bad ? 60 : 3,
        .fail = bad ? 30 : 2,
        .error = bad ? 30 : 1,
        .lose_write = bad ? 100 : 5,
        .lose_nudge = bad ? 300 : 5,
        .spoil = bad ? 20 : 1,
        .delay_ms_max = bad ? 40 : 2,
        .nudge_delay_ms_max = bad ? 300 : 2,
        .open_ms_max = 30000,
    };
    warm_sim_set_faults(world->redis, &faults);
    warm_sim_set_away(world->redis, rng_below(&world->rng, 6) == 0);
}

static void change_log(struct world *world)
{
    bool bad = rng_below(&world->rng, 3) == 0;
    struct sim_log_faults faults = {
        .full = bad ? 20 : 1,
        .not_stored = bad ? 60 : 3,
        .unknown = bad ? 80 : 5,
        .lose_reply = bad ? 150 : 5,
        .reply_twice = bad ? 150 : 10,
        .forget = bad ? 700 : 200,
        .delay_ms_max = bad ? 1500 : 10,
        .send_ms_max = ORDER_SEND_MS_MAX,
        .news_ms_max = bad ? 6000 : 500,
    };
    sim_log_set_faults(world->log, &faults);
}

void weather_group(struct world *world)
{
    if (world->log == NULL || world->fine)
        return;
    uint64_t what = rng_below(&world->rng, 4);
    if (what == 0)
        sim_log_rebalance(world->log);
    else if (what == 1)
        sim_log_spoil(world->log);
    else
        sim_log_expire(world->log, node_any(world)->index);
}

void weather_flush(struct world *world)
{
    if (world->redis != NULL && !world->fine)
        warm_sim_flush(world->redis);
}

void weather_change(struct world *world)
{
    world->quiet = false;
    if (rng_below(&world->rng, 5) == 0) { /* a fine day, with all those people about */
        weather_fine(world);
        world->quiet = false;
        return;
    }
    world->fine = false;
    for (int32_t i = 0; i < world->node_count; i++)
        change_store(&world->nodes[i]);
    if (world->redis != NULL)
        change_redis(world);
    if (world->log != NULL)
        change_log(world);
}

void weather_fine(struct world *world)
{
    struct sim_faults none = {.delay_ms_max = 2, .feed_delay_ms_max = world->shared ? 5 : 0};
    for (int32_t i = 0; i < world->node_count; i++) {
        sim_store_set_faults(world->nodes[i].store, &none);
        if (world->nodes[i].frozen_until_ms > world->now_ms)
            world->nodes[i].frozen_until_ms = world->now_ms;
    }
    if (world->redis != NULL) {
        struct warm_sim_faults calm = {.delay_ms_max = 1, .open_ms_max = 1000};
        warm_sim_set_faults(world->redis, &calm);
        warm_sim_set_away(world->redis, false);
    }
    if (world->log != NULL) {
        struct sim_log_faults calm = {.delay_ms_max = 3, .send_ms_max = 3, .news_ms_max = 3};
        sim_log_set_faults(world->log, &calm);
    }
    world->fine = true;
    world->quiet = true;
    world->fine_ms = world->now_ms;
}

/* It gives its partitions to the others first, and goes on for a while with what it has. */
static void stop_orderly(struct node *node)
{
    struct world *world = node->world;
    node->lane->router.leave(node->lane->router.context);
    for (int64_t end_ms = world->now_ms + (int64_t)rng_below(&world->rng, 3000); world->now_ms < end_ms;
         world->now_ms += 20) {
        world_step(world);
        letters_check_step(world);
    }
}

void weather_restart(struct world *world)
{
    struct node *node = node_any(world);
    world->restarts++;
    world->fine_ms = world->now_ms;
    if (world->log != NULL && rng_below(&world->rng, 2) == 0)
        stop_orderly(node);
    node_end(node);
    gateway_forget_some(node);
    if (!world->shared)
        world->now_ms += (int64_t)rng_below(&world->rng, 5000);
    sim_store_set_now(node->store, world->now_ms);
    node_begin(node);
    if (!world->shared)
        gateway_check_start(world);
}

void weather_freeze(struct world *world)
{
    struct node *node = node_any(world);
    if (world->fine)
        return;
    world->freezes++;
    uint64_t longest = rng_below(&world->rng, 3) == 0 ? FREEZE_MS_MAX : 5000;
    node->frozen_until_ms = world->now_ms + 1 + (int64_t)rng_below(&world->rng, longest);
}
