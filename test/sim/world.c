/* SPDX-License-Identifier: Apache-2.0
 * The world's clockwork: time, commands, crashes, its beginning and end. */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "lane/lane_int.h"

enum { STRIDE_MS = 250 };

static const int64_t world_begin_ms = 1700000000000;

int world_event_index(const struct world *world, const struct uuid *event_id)
{
    for (int i = 0; i < WORLD_EVENT_COUNT; i++) {
        if (uuid_equal(&world->events[i], event_id))
            return i;
    }
    return -1;
}

const struct sim_event *world_event(struct world *world, const struct uuid *event_id)
{
    return map_get(&world->tables->events, event_id);
}

const struct sim_hold *world_hold(struct world *world, const struct uuid *hold_id)
{
    return map_get(&world->tables->holds, hold_id);
}

const struct sim_checkout *world_checkout(struct world *world, const struct uuid *checkout_id)
{
    return map_get(&world->tables->checkouts, checkout_id);
}

/* ---- Commands ---- */

struct question *question_of(const struct command *command)
{
    return CONTAINER_OF(command, struct question, command);
}

static void command_done(struct command *command)
{
    struct question *question = question_of(command);
    struct node *node = question->node;
    node->in_flight--;
    node->world->ending_count -= action_is_ending(command);
    if (!node->crashing)
        answer_check(node->world, command);
    command_deinit(command);
    arena_deinit(&question->arena);
    free(question);
}

struct command *world_command(struct world *world, enum command_kind kind, const struct uuid *user_id)
{
    struct question *question = calloc(1, sizeof(*question));
    CHECK(question != NULL);
    arena_init(&question->arena);
    struct command *command = &question->command;
    command_init(command, kind, &question->arena);
    command->actor.org_id = world->org_id;
    command->actor.user_id = *user_id;
    command->actor.for_user_id = *user_id;
    command->actor.role = ROLE_BUYER;
    command->on_done = command_done;
    return command;
}

void world_post(struct world *world, struct command *command)
{
    node_post(node_any(world), command);
}

/* ---- Time ---- */

static void turn(struct world *world, uint64_t slow_in)
{
    sim_store_set_now(world->nodes[0].store, world->now_ms);
    if (world->redis != NULL)
        warm_sim_set_now(world->redis, world->now_ms);
    if (world->log != NULL)
        sim_log_set_now(world->log, world->now_ms);
    gateway_turn(world);
    int32_t first = (int32_t)rng_below(&world->rng, (uint64_t)world->node_count);
    for (int32_t i = 0; i < world->node_count; i++) {
        struct node *node = &world->nodes[(first + i) % world->node_count];
        sim_store_run(node->store);
        if (world->shared && slow_in > 0 && rng_below(&world->rng, slow_in) == 0)
            continue;
        node_turn(node);
    }
    seen_update(world);
}

void world_turn(struct world *world)
{
    turn(world, 0);
}

void world_step(struct world *world)
{
    turn(world, 5);
}

/* Of several nodes none sleeps while time passes, unless it is stopped; one alone may have to do all at once. */
static void pass(struct world *world, int64_t step_ms)
{
    for (; world->shared && step_ms > STRIDE_MS; step_ms -= STRIDE_MS) {
        world->now_ms += STRIDE_MS;
        world_step(world);
    }
    world->now_ms += step_ms;
}

void world_advance(struct world *world)
{
    int64_t next = INT64_MAX;
    for (int32_t i = 0; i < world->node_count; i++) {
        int64_t at = sim_store_next_ms(world->nodes[i].store);
        if (at > world->now_ms && at < next)
            next = at;
    }
    int64_t redis_ms = world->redis != NULL ? warm_sim_next_ms(world->redis) : INT64_MAX;
    if (redis_ms > world->now_ms && redis_ms < next)
        next = redis_ms;
    int64_t log_ms = world->log != NULL ? sim_log_next_ms(world->log) : INT64_MAX;
    if (log_ms > world->now_ms && log_ms < next)
        next = log_ms;
    int64_t step = (int64_t)rng_below(&world->rng, rng_below(&world->rng, 20) == 0 ? 20000 : 40);
    if (next < world->now_ms + step && rng_below(&world->rng, 4) != 0)
        step = next - world->now_ms;
    pass(world, step);
}

/* ---- Begin and end ---- */

static int32_t in_flight(const struct world *world)
{
    int32_t count = 0;
    for (int32_t i = 0; i < world->node_count; i++)
        count += world->nodes[i].in_flight;
    return count;
}

bool world_is_idle(const struct world *world)
{
    for (int32_t i = 0; i < world->node_count; i++) {
        const struct lane *lane = world->nodes[i].lane;
        if (!lane_is_idle(lane) || (world->log != NULL && !lane->router.is_idle(lane->router.context)))
            return false;
    }
    return in_flight(world) == 0 && (world->log == NULL || sim_log_is_settled(world->log));
}

void world_run_until_answered(struct world *world)
{
    while (in_flight(world) > 0) {
        world->now_ms += 1;
        world_turn(world);
    }
}

static const char *const layouts[WORLD_EVENT_COUNT] = {
    "{\"name\":\"Hall\",\"blocks\":["
    "{\"section\":\"A\",\"subsection\":1,\"name\":\"Stalls\",\"price_cents\":4500,"
    "\"rows\":[{\"label\":\"1\",\"seats\":6},{\"label\":\"2\",\"seats\":4}]},"
    "{\"section\":\"B\",\"subsection\":1,\"name\":\"Balcony\",\"capacity\":3,\"price_cents\":2500,"
    "\"rows\":[{\"label\":\"1\",\"seats\":5}]}]}",
    "{\"name\":\"Room\",\"blocks\":[{\"section\":\"A\",\"subsection\":1,\"name\":\"Floor\",\"price_cents\":"
    "1000,"
    "\"rows\":[{\"label\":\"1\",\"seats\":4},{\"label\":\"2\",\"seats\":4}]}]}",
};

static void make_event(struct world *world, int32_t which)
{
    struct command *create = world_command(world, COMMAND_EVENT_CREATE, &world->admin_id);
    create->actor.role = ROLE_ADMIN;
    world->events[which] = uuid_make(&world->rng, world->now_ms);
    create->event.row = (struct event_row){
        .id = world->events[which],
        .name = "Show",
        .state = EVENT_PUBLISHED,
        .sale_start_ms = INT64_MIN,
        .sale_end_ms = INT64_MAX,
        .currency = "EUR",
        .policy = policy_default(),
    };
    struct policy *policy = &create->event.row.policy;
    policy->hold_ttl_seconds = 20;
    policy->checkout_extension_seconds = 15;
    policy->hold_max_seconds = 60;
    policy->release_grace_seconds = 2;
    policy->payment_max_seconds = 20;
    policy->max_seats_per_user = world->max_seats[which] = 5;
    policy->rate_limit_holds = which == 0 ? 0 : WORLD_RATE_HOLDS;
    policy->rate_limit_window_seconds = WORLD_RATE_SECONDS;
    policy->forbid_single_seat_gaps = which;
    world_post(world, create);
    world_run_until_answered(world);
    struct command *layout = world_command(world, COMMAND_LAYOUT_PUT, &world->admin_id);
    layout->actor.role = ROLE_ADMIN;
    layout->id = world->events[which];
    layout->layout.document = layouts[which];
    layout->layout.size = strlen(layouts[which]);
    world_post(world, layout);
    world_run_until_answered(world);
    world->seen[which] = (struct seen){.closed = false};
    const struct sim_event *event = world_event(world, &world->events[which]);
    CHECK(event != NULL);
    CHECK(event->seat_count > 0);
}

void world_open_events(struct world *world)
{
    for (int32_t i = 0; i < WORLD_EVENT_COUNT; i++)
        make_event(world, i);
}

/* The first makes the tables; the others come to them. */
static void make_nodes(struct world *world)
{
    world->node_count = 1 + (int32_t)(world->seed % WORLD_NODE_COUNT_MAX);
    world->shared = world->node_count > 1;
    for (int32_t i = 0; i < world->node_count; i++) {
        struct node *node = &world->nodes[i];
        node->world = world;
        node->index = i;
        uint64_t seed = rng_next(&world->rng);
        node->store = i == 0 ? sim_store_create(seed) : sim_store_attach(world->nodes[0].store, seed);
    }
    uint64_t kind = world->seed / WORLD_NODE_COUNT_MAX;
    if (world->shared ? kind % 2 == 0 : kind % 4 == 1) {
        world->redis = warm_sim_create(rng_next(&world->rng));
        warm_sim_set_now(world->redis, world->now_ms);
    }
    world->tables = sim_store_tables(world->nodes[0].store);
    if (world->shared ? kind / 2 % 2 == 1 : kind % 4 == 2) {
        world->log = sim_log_create(rng_next(&world->rng), 1 + (int32_t)rng_below(&world->rng, 8));
        world->topic_per_event = rng_below(&world->rng, 4) == 0;
        sim_log_set_now(world->log, world->now_ms);
    }
    world->loose = world->shared || world->log != NULL;
    letters_init(world);
}

void world_init(struct world *world, uint64_t seed)
{
    *world = (struct world){.seed = seed, .now_ms = world_begin_ms};
    rng_init_seed(&world->rng, seed);
    list_init(&world->payments);
    map_init(&world->promises);
    map_init(&world->accounts);
    map_init(&world->tickets);
    map_init(&world->answers);
    make_nodes(world);
    sim_store_set_now(world->nodes[0].store, world->now_ms);
    weather_fine(world);
    for (int i = 0; i < WORLD_USER_COUNT; i++)
        world->users[i] = uuid_make(&world->rng, world->now_ms);
    world->admin_id = uuid_make(&world->rng, world->now_ms);
    world->foreign_org_id = uuid_make(&world->rng, world->now_ms);
    for (int32_t i = 0; i < world->node_count; i++)
        node_begin(&world->nodes[i]);
    struct command *org = world_command(world, COMMAND_ORG_CREATE, &world->admin_id);
    org->actor.role = ROLE_OPERATOR;
    org->id = world->org_id = uuid_make(&world->rng, world->now_ms);
    org->admin.name = "Simulated";
    world_post(world, org);
    world_run_until_answered(world);
    world_open_events(world);
}

void world_deinit(struct world *world)
{
    for (int32_t i = 0; i < world->node_count; i++)
        node_end(&world->nodes[i]);
    for (int32_t i = 0; i < world->node_count; i++)
        store_close(world->nodes[i].store);
    if (world->redis != NULL)
        warm_sim_destroy(world->redis);
    letters_deinit(world);
    if (world->log != NULL)
        sim_log_destroy(world->log);
    gateway_deinit(world);
    size_t position = 0;
    struct promise *promise;
    while ((promise = map_next(&world->promises, &position)) != NULL)
        free(promise);
    map_deinit(&world->promises);
    map_deinit(&world->tickets);
    position = 0;
    struct kept_answer *answer;
    while ((answer = map_next(&world->answers, &position)) != NULL)
        free(answer);
    map_deinit(&world->answers);
}
