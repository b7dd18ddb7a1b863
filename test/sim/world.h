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
    WORLD_SEAT_COUNT_MAX = 64,
    WORLD_HOLD_MEMORY = 64,
    WORLD_KEY_COUNT = 4,
    WORLD_RATE_HOLDS = 6, /* of the second event; the first has no rate limit */
    WORLD_RATE_SECONDS = 30,
    WORLD_GRACE_SECONDS_MIN = 1, /* no event's grace is ever shorter */
};

/* What a user was told: the other side of "durable before acknowledged". */
struct promise {
    struct uuid hold_id;
    struct uuid event_id;
    struct uuid user_id;
    int32_t seat_index;
    int64_t held_until_ms; /* as promised last */
    bool given_back;       /* an end of it was acknowledged */
    bool may_have_ended;   /* somebody asked for something that ends it, answered or not */
};

struct account { /* a checkout, as the gateway sees it */
    struct uuid checkout_id;
    int64_t amount_cents; /* as asked for */
    bool paid;            /* the lane heard that it was, and took note */
    bool given_back;      /* the gateway said so */
    int64_t asked_start;  /* the start (world.restarts) at which it was asked for last */
};

struct kept_answer { /* what was said to an Idempotency-Key: it is said again, word for word */
    uint8_t body[32];
    enum err err;
    int status;
    int32_t hold_count;
    struct uuid hold_id; /* the first */
    struct uuid checkout_id;
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
    struct uuid foreign_org_id; /* another tenant: everything here is hidden from it */
    struct uuid admin_id;
    struct uuid events[WORLD_EVENT_COUNT];
    int32_t max_seats[WORLD_EVENT_COUNT]; /* the highest max_seats_per_user there ever was */
    struct uuid users[WORLD_USER_COUNT];
    /* Recent ids, to be used again: some of them ended long ago. */
    struct uuid hold_ids[WORLD_HOLD_MEMORY];
    struct uuid checkout_ids[WORLD_HOLD_MEMORY];
    int32_t hold_id_count;
    int32_t checkout_id_count;
    struct map promises;  /* hold id → struct promise */
    struct map accounts;  /* checkout id → struct account */
    struct map tickets;   /* acknowledged: seat id → anything */
    struct map answers;   /* key → struct kept_answer */
    struct list payments; /* what the gateway has not answered yet */
    int32_t in_flight;    /* commands not answered yet */
    int32_t ending_count; /* of those, admins' that may end anybody's hold */
    int64_t started_ms;   /* when this lane began: what it does not remember is not counted */
    int64_t quiet_ms;     /* since when it is quiet */
    bool quiet;           /* no faults, no new commands: everything must come to rest */
    bool crashing;        /* answers mean nothing: the node is dead */
    /* What happened, for the closing line */
    int64_t posted, granted, refused, failed, unknown, restarts, sold;
};

void world_init(struct world *world, uint64_t seed);
void world_deinit(struct world *world);
void world_turn(struct world *world);        /* one turn of the lane, now */
void world_advance(struct world *world);     /* time goes on: to the next thing that happens, or a while */
void world_restart(struct world *world);     /* kill -9, then start again from what was committed */
void world_open_events(struct world *world); /* new ones: the old are sold out; only when calm */
void world_calm(struct world *world);        /* no faults from now on */
void world_pick_faults(struct world *world);
int world_event_index(const struct world *world, const struct uuid *event_id); /* or −1: an old one */
const struct sim_event *world_event(struct world *world, const struct uuid *event_id); /* as committed */
const struct sim_hold *world_hold(struct world *world, const struct uuid *hold_id);    /* or NULL */
const struct sim_checkout *world_checkout(struct world *world, const struct uuid *checkout_id);

/* A command with its own arena, freed when answered. */
struct command *world_command(struct world *world, enum command_kind kind, const struct uuid *user_id);
void world_post(struct world *world, struct command *command);

/* ---- actions.c: what the users do ---- */
void action_random(struct world *world);
bool action_is_ending(const struct command *command); /* an admin's, that may end anybody's hold */

/* ---- answers.c: what an answer says must be true at that very moment ---- */
void answer_check(struct world *world, struct command *command);

/* ---- gateway.c ---- */
void gateway_charge(void *context, const struct lane_charge *charge);
void gateway_refund(void *context, const struct lane_charge *charge);
void gateway_turn(struct world *world);
void gateway_heard(struct world *world, const struct command *command); /* a settlement was answered */
void gateway_forget_some(struct world *world); /* with the node that asked; the lane asks again */
void gateway_check(struct world *world, bool at_rest);
void gateway_check_start(struct world *world); /* what was under way is asked for again */
void gateway_deinit(struct world *world);

/* ---- checks.c: the promises. A broken one ends the run. ---- */
void check_step(struct world *world);  /* after every step */
void check_quiet(struct world *world); /* when everything came to rest */
void world_fail(struct world *world, const char *what) __attribute__((noreturn));

#endif
