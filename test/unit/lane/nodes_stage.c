/* SPDX-License-Identifier: Apache-2.0
 * See nodes_stage.h. */
#include "nodes_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

/* How long commands may take, when nothing is lost: only a hang reaches it. */
enum { FINISH_MS_MAX = 20000 };

struct second { /* b, and what it says; stage_destroy() frees it by its stage */
    struct stage stage;
    int32_t lost_count;
};

static void on_lost(void *context)
{
    CONTAINER_OF((struct stage *)context, struct second, stage)->lost_count++;
}

/* ---- Time ---- */

static void step(struct nodes *nodes, struct stage *alone, int64_t ms)
{
    nodes->a->now_ms += ms;
    nodes->b->now_ms = nodes->a->now_ms;
    if (nodes->redis != NULL)
        warm_sim_set_now(nodes->redis, nodes->a->now_ms);
    if (alone != nodes->b)
        stage_turn(nodes->a);
    if (alone != nodes->a)
        stage_turn(nodes->b);
}

void nodes_pass_alone(struct nodes *nodes, struct stage *node, int64_t ms)
{
    int64_t step_ms = ms > 5000 ? 50 : 1;
    for (int64_t passed_ms = 0; passed_ms < ms; passed_ms += step_ms)
        step(nodes, node, step_ms);
}

void nodes_pass(struct nodes *nodes, int64_t ms)
{
    nodes_pass_alone(nodes, NULL, ms);
}

void nodes_finish(struct nodes *nodes)
{
    for (int i = 0; i < FINISH_MS_MAX && nodes->a->waiting_count + nodes->b->waiting_count > 0; i++)
        step(nodes, NULL, 1);
    assert_int_equal(nodes->a->waiting_count, 0);
    assert_int_equal(nodes->b->waiting_count, 0);
}

void nodes_finish_alone(struct nodes *nodes, struct stage *node)
{
    for (int i = 0; i < FINISH_MS_MAX && node->waiting_count > 0; i++)
        step(nodes, node, 1);
    assert_int_equal(node->waiting_count, 0);
}

enum err nodes_do(struct nodes *nodes, struct ask *ask)
{
    stage_post(ask);
    nodes_finish(nodes);
    return ask->command.result.err;
}

enum err nodes_do_alone(struct nodes *nodes, struct ask *ask)
{
    stage_post(ask);
    nodes_finish_alone(nodes, ask->stage);
    return ask->command.result.err;
}

void nodes_lose_answers(struct stage *node)
{
    stage_faults(node, (struct sim_faults){.lose_after = 1000, .stay_unknown = 1000});
}

/* ---- Looking ---- */

int32_t nodes_lost_count(const struct nodes *nodes)
{
    return CONTAINER_OF(nodes->b, const struct second, stage)->lost_count;
}

void nodes_check_rest(struct nodes *nodes)
{
    nodes_pass(nodes, 300); /* the feed brings each what the other one did last */
    stage_check_rest(nodes->a);
    nodes->b->now_ms = nodes->a->now_ms;
    stage_check_rest(nodes->b);
    nodes->a->now_ms = nodes->b->now_ms;
}

/* ---- Up and down ---- */

/* The same organization, event and users, for a node that begins now. */
static struct stage *second_create(struct stage *first, struct warm *warm)
{
    struct second *second = calloc(1, sizeof(*second));
    assert_non_null(second);
    struct stage *stage = &second->stage;
    stage->now_ms = first->now_ms;
    rng_init_seed(&stage->rng, 8);
    stage->org_id = first->org_id;
    stage->event_id = first->event_id;
    stage->admin_id = first->admin_id;
    memcpy(stage->users, first->users, sizeof(stage->users));
    list_init(&stage->asks);
    stage->store = sim_store_attach(first->store, 12);
    stage_calm(stage);
    stage_restart(first); /* it is not alone any more, and must know */
    assert_int_equal(directory_create(&stage->directory), ERR_OK);

    char why[256];
    struct lane_config config = first->lane->config; /* the same gateway */
    config.store = stage->store;
    config.warm = warm;
    config.directory = stage->directory;
    config.seed = rng_next(&stage->rng) | 1;
    config.node_id = uuid_make(&stage->rng, stage->now_ms);
    config.on_lost = on_lost;
    config.context = stage;
    assert_int_equal(lane_create(&config, stage->now_ms, &stage->lane, why, sizeof(why)), ERR_OK);
    return stage;
}

static struct nodes *create(struct stage *first, bool with_redis)
{
    struct nodes *nodes = calloc(1, sizeof(*nodes));
    assert_non_null(nodes);
    nodes->a = first;
    if (with_redis) {
        nodes->redis = warm_sim_create(5);
        warm_sim_set_faults(nodes->redis, &(struct warm_sim_faults){0});
        warm_sim_set_now(nodes->redis, first->now_ms);
        nodes->warm = warm_sim_attach(nodes->redis, 1, NULL, NULL);
    }
    nodes->b = second_create(first, nodes->warm);
    nodes_pass(nodes, 300); /* both have caught up */
    return nodes;
}

struct nodes *nodes_create(struct stage *first)
{
    return create(first, false);
}

struct nodes *nodes_create_with_redis(struct stage *first)
{
    return create(first, true);
}

void nodes_destroy(struct nodes *nodes)
{
    warm_destroy(nodes->warm);
    stage_destroy(nodes->b);
    stage_destroy(nodes->a);
    if (nodes->redis != NULL)
        warm_sim_destroy(nodes->redis);
    free(nodes);
}

int nodes_setup(void **state)
{
    struct policy policy = stage_policy();
    policy.payment_max_seconds = 900;
    *state = nodes_create(stage_create(&policy, NULL));
    return 0;
}

int nodes_teardown(void **state)
{
    nodes_destroy(*state);
    return 0;
}
