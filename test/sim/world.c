/* SPDX-License-Identifier: Apache-2.0
 * The world's clockwork: time, commands, crashes, its beginning and end. */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

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
    return map_get(&sim_store_tables(world->store)->events, event_id);
}

const struct sim_hold *world_hold(struct world *world, const struct uuid *hold_id)
{
    return map_get(&sim_store_tables(world->store)->holds, hold_id);
}

const struct sim_checkout *world_checkout(struct world *world, const struct uuid *checkout_id)
{
    return map_get(&sim_store_tables(world->store)->checkouts, checkout_id);
}

/* ---- Commands ---- */

static void command_done(struct command *command)
{
    struct world *world = command->owner;
    world->in_flight--;
    world->ending_count -= action_is_ending(command);
    if (!world->crashing)
        answer_check(world, command);
    struct arena *arena = command->arena;
    command_deinit(command);
    arena_deinit(arena);
    free(arena);
    free(command);
}

struct command *world_command(struct world *world, enum command_kind kind, const struct uuid *user_id)
{
    struct arena *arena = malloc(sizeof(*arena));
    struct command *command = malloc(sizeof(*command));
    CHECK(arena != NULL);
    CHECK(command != NULL);
    arena_init(arena);
    command_init(command, kind, arena);
    command->actor.org_id = world->org_id;
    command->actor.user_id = *user_id;
    command->actor.for_user_id = *user_id;
    command->actor.role = ROLE_BUYER;
    command->on_done = command_done;
    command->owner = world;
    return command;
}

void world_post(struct world *world, struct command *command)
{
    world->posted++;
    world->in_flight++;
    world->ending_count += action_is_ending(command);
    enum err err = lane_post(world->lane, command);
    CHECK(err == ERR_OK); /* the simulated users are too few to fill the inbox */
}

/* ---- Time ---- */

void world_turn(struct world *world)
{
    sim_store_set_now(world->store, world->now_ms);
    gateway_turn(world);
    lane_turn(world->lane, world->now_ms);
}

void world_advance(struct world *world)
{
    int64_t next = sim_store_next_ms(world->store);
    int64_t step = (int64_t)rng_below(&world->rng, rng_below(&world->rng, 20) == 0 ? 20000 : 40);
    if (next < world->now_ms + step && rng_below(&world->rng, 4) != 0)
        world->now_ms = next > world->now_ms ? next : world->now_ms;
    else
        world->now_ms += step;
}

static void lane_begin(struct world *world)
{
    world->started_ms = world->now_ms;
    char why[256];
    enum err err = directory_create(&world->directory);
    CHECK(err == ERR_OK);
    struct lane_config config = {
        .store = world->store,
        .directory = world->directory,
        .seed = rng_next(&world->rng) | 1,
        .charge = gateway_charge,
        .refund = gateway_refund,
        .context = world,
    };
    err = lane_create(&config, world->now_ms, &world->lane, why, sizeof(why));
    if (err != ERR_OK)
        world_fail(world, why);
}

static void lane_end(struct world *world)
{
    world->crashing = true;
    sim_store_crash(world->store);
    lane_destroy(world->lane);
    directory_destroy(world->directory);
    world->crashing = false;
    CHECK(world->in_flight == 0);
}

void world_restart(struct world *world)
{
    world->restarts++;
    lane_end(world);
    gateway_forget_some(world);
    world->now_ms += (int64_t)rng_below(&world->rng, 5000);
    sim_store_set_now(world->store, world->now_ms);
    lane_begin(world);
    gateway_check_start(world);
}

void world_calm(struct world *world)
{
    struct sim_faults none = {.delay_ms_max = 2};
    sim_store_set_faults(world->store, &none);
    world->quiet = true;
    world->quiet_ms = world->now_ms;
}

void world_pick_faults(struct world *world)
{
    bool bad = rng_below(&world->rng, 3) == 0;
    struct sim_faults faults = {
        .fail = bad ? 100 : 5,
        .lose_before = bad ? 60 : 3,
        .lose_after = bad ? 60 : 3,
        .stay_unknown = bad ? 400 : 50,
        .lookup_fail = bad ? 50 : 2,
        .delay_ms_max = bad ? 800 : 10,
    };
    sim_store_set_faults(world->store, &faults);
    world->quiet = false;
}

/* ---- Begin and end ---- */

static void run_until_answered(struct world *world)
{
    while (world->in_flight > 0) {
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
    run_until_answered(world);
    struct command *layout = world_command(world, COMMAND_LAYOUT_PUT, &world->admin_id);
    layout->actor.role = ROLE_ADMIN;
    layout->id = world->events[which];
    layout->layout.document = layouts[which];
    layout->layout.size = strlen(layouts[which]);
    world_post(world, layout);
    run_until_answered(world);
    struct sim_event *event = map_get(&sim_store_tables(world->store)->events, &world->events[which]);
    CHECK(event != NULL);
    CHECK(event->seat_count > 0);
}

void world_open_events(struct world *world)
{
    for (int32_t i = 0; i < WORLD_EVENT_COUNT; i++)
        make_event(world, i);
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
    world->store = sim_store_create(rng_next(&world->rng));
    sim_store_set_now(world->store, world->now_ms);
    world_calm(world);
    for (int i = 0; i < WORLD_USER_COUNT; i++)
        world->users[i] = uuid_make(&world->rng, world->now_ms);
    world->admin_id = uuid_make(&world->rng, world->now_ms);
    world->foreign_org_id = uuid_make(&world->rng, world->now_ms);
    lane_begin(world);
    struct command *org = world_command(world, COMMAND_ORG_CREATE, &world->admin_id);
    org->actor.role = ROLE_OPERATOR;
    org->id = world->org_id = uuid_make(&world->rng, world->now_ms);
    org->admin.name = "Simulated";
    world_post(world, org);
    run_until_answered(world);
    world_open_events(world);
}

void world_deinit(struct world *world)
{
    lane_end(world);
    store_close(world->store);
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
