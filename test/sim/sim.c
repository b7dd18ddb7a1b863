/* SPDX-License-Identifier: Apache-2.0
 * sim --seed N --steps N: runs the simulated world and checks the promises after
 * every step. The same seed gives the same run, to the last random number.
 *
 * Days of weather: every few hundred steps the faults change, now and then a node
 * is killed or stops for a while, and now and then everything is left alone for
 * long enough that all must know the same, or come to rest. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "world.h"

static void run_for(struct world *world, int64_t duration_ms)
{
    for (int64_t end_ms = world->now_ms + duration_ms; world->now_ms < end_ms; world->now_ms += 50) {
        world_turn(world);
        if (world->now_ms % 1000 == 0)
            check_step(world);
    }
    world_turn(world);
}

/* Longer than a hold lives with every extension, a payment, all retries and a reaper turn. */
static void rest(struct world *world)
{
    weather_fine(world);
    run_for(world, 240 * 1000);
    check_quiet(world);
    registry_check(world);
    letters_check_rest(world);
}

/* Long enough that every node knows everything; not so long that people have given their seats back. */
static void settle(struct world *world)
{
    weather_fine(world);
    run_for(world, 8 * 1000);
    registry_reconcile(world);
    /* Time goes on ending what they have: at a moment when nothing was written just now. */
    int64_t commit_count = -1;
    for (int32_t i = 0; i < 100; i++) {
        if (world_is_idle(world) && commit_count == world->tables->commit_count)
            break;
        commit_count = world->tables->commit_count;
        /* What changes no seat is nobody's news in Redis: they would look for it by and by. */
        for (int32_t node = 0; node < world->node_count; node++)
            lane_nudge(world->nodes[node].lane);
        run_for(world, 500);
    }
    check_settled(world);
    registry_check(world);
    weather_change(world);
}

static void one_step(struct world *world)
{
    uint64_t what = rng_below(&world->rng, 4000);
    if (what < 4) {
        weather_restart(world);
    } else if (what < 20) {
        weather_change(world);
    } else if (what < 24) {
        rest(world);
        world_open_events(world);
        weather_change(world);
    } else if (what < 28) {
        settle(world);
    } else if (what < 34) {
        weather_freeze(world);
    } else if (what < 37) {
        weather_flush(world);
    } else if (what < 49 && world->log != NULL) {
        weather_group(world);
    } else if (what < 2000) {
        action_random(world);
    } else {
        world_advance(world);
    }
    world_step(world);
    check_step(world);
}

static uint64_t number(const char *text)
{
    char *end;
    uint64_t value = strtoull(text, &end, 10);
    if (*text == '\0' || *end != '\0') {
        fprintf(stderr, "sim: %s is not a number\n", text);
        exit(2);
    }
    return value;
}

int main(int count, char **arguments)
{
    uint64_t seed = 1, steps = 20000;
    for (int i = 1; i + 1 < count; i += 2) {
        if (strcmp(arguments[i], "--seed") == 0)
            seed = number(arguments[i + 1]);
        else if (strcmp(arguments[i], "--steps") == 0)
            steps = number(arguments[i + 1]);
    }
    log_set_level(LOG_ERROR);
    struct world world;
    world_init(&world, seed);
    weather_change(&world);
    for (world.step = 0; world.step < (int64_t)steps; world.step++)
        one_step(&world);
    rest(&world);
    const struct sim_tables *tables = world.tables;
    /* Who does nothing breaks no promise. That no checkout is paid for happens: some worlds have less than twenty. */
    if (steps >= 10000 && world.granted < (int64_t)steps / 400)
        world_fail(&world, "hardly anything was granted");
    printf("seed %llu: %d nodes, %llu steps, %lld commands, %lld holds granted, %lld tickets, %lld refused, "
           "%lld failed, "
           "%lld unknown, %lld sent, %lld pending, %lld restarts, %lld freezes, %lld misses, %lld commits, "
           "%lld audit rows: every promise kept\n",
           (unsigned long long)seed, (int)world.node_count, (unsigned long long)steps,
           (long long)world.posted, (long long)world.granted, (long long)world.sold, (long long)world.refused,
           (long long)world.failed, (long long)world.unknown, (long long)world.sent, (long long)world.pending,
           (long long)world.restarts, (long long)world.freezes, (long long)tables->miss_count,
           (long long)tables->commit_count, (long long)tables->audit_count);
    world_deinit(&world);
    return 0;
}
