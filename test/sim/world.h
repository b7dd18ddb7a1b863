/* SPDX-License-Identifier: Apache-2.0
 * A simulated world: the real lane, rules and hot tier on one thread, a
 * simulated store, clock, gateway and users. Everything that happens is drawn
 * from one seed, so a run can be replayed exactly. */
#ifndef HOLDFAST_TEST_SIM_WORLD_H
#define HOLDFAST_TEST_SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/rng.h"
#include "hot/directory.h"
#include "lane/lane.h"
#include "store/sim/sim.h"

enum {
    WORLD_USER_COUNT = 12,
    WORLD_EVENT_COUNT = 2,
    WORLD_HOLD_MEMORY = 64,
    WORLD_KEY_COUNT = 32,
};

/* What a user was told: the other side of "durable before acknowledged". */
struct promise {
    struct uuid hold_id;
    struct uuid event_id;
    struct uuid user_id;
    int32_t seat_index;
    int64_t held_until_ms; /* as promised last */
    bool given_back;       /* released, cancelled, paid for or failed, or may have been */
};

struct world {
    uint64_t seed;
    struct rng rng;
    int64_t now_ms;
    int64_t step;
    struct store *store;
    struct directory *directory;
    struct lane *lane;
    struct uuid org_id;
    struct uuid admin_id;
    struct uuid events[WORLD_EVENT_COUNT];
    struct uuid users[WORLD_USER_COUNT];
    /* Recent ids, to be used again: some of them ended long ago. */
    struct uuid hold_ids[WORLD_HOLD_MEMORY];
    struct uuid checkout_ids[WORLD_HOLD_MEMORY];
    int32_t hold_id_count;
    int32_t checkout_id_count;
    struct map promises;  /* hold id → struct promise */
    struct list payments; /* what the gateway has not answered yet */
    int32_t in_flight;    /* commands not answered yet */
    bool quiet;           /* no faults, no new commands: everything must come to rest */
    bool crashing;        /* answers mean nothing: the node is dead */
    /* What happened, for the closing line */
    int64_t posted, granted, refused, failed, unknown, restarts, replays, sold;
};

void world_init(struct world *world, uint64_t seed);
void world_deinit(struct world *world);
void world_turn(struct world *world);        /* one turn of the lane, now */
void world_advance(struct world *world);     /* time goes on: to the next thing that happens, or a while */
void world_restart(struct world *world);     /* kill -9, then start again from what was committed */
void world_open_events(struct world *world); /* new ones: the old are sold out; only when calm */
void world_calm(struct world *world);        /* no faults from now on */
void world_pick_faults(struct world *world);

/* A command with its own arena, freed when answered. */
struct command *world_command(struct world *world, enum command_kind kind, const struct uuid *user_id);
void world_post(struct world *world, struct command *command);

/* ---- actions.c ---- */
void action_random(struct world *world);
void action_answered(struct world *world, struct command *command); /* checks it against what was promised */

/* ---- checks.c: the promises. A broken one ends the run. ---- */
void check_step(struct world *world);  /* after every step */
void check_quiet(struct world *world); /* when everything came to rest */
void world_fail(struct world *world, const char *what) __attribute__((noreturn));

#endif
