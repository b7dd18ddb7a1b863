/* SPDX-License-Identifier: Apache-2.0
 * A simulated world: one to three nodes, each with the real lane, rules and hot
 * tier, all on one thread; a simulated store that they share, clocks, a gateway
 * and users who ask any of them; in some worlds a broker, through which commands
 * go to the node that decides for their block. Everything that happens is drawn
 * from one seed, so a run can be replayed exactly. */
#ifndef HOLDFAST_TEST_SIM_WORLD_H
#define HOLDFAST_TEST_SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/map.h"
#include "base/rng.h"
#include "broker.h"
#include "hot/directory.h"
#include "lane/lane.h"
#include "order/order.h"
#include "store/sim/sim.h"
#include "warm/sim/sim.h"

enum {
    WORLD_NODE_COUNT_MAX = 3,
    WORLD_USER_COUNT = 12,
    WORLD_EVENT_COUNT = 2,
    WORLD_SEAT_COUNT_MAX = 64,
    WORLD_HOLD_MEMORY = 64,
    WORLD_KEY_COUNT = 4,
    WORLD_PENDING_MEMORY = 16,
    WORLD_RATE_HOLDS = 6, /* of the second event; the first has no rate limit */
    WORLD_RATE_SECONDS = 30,
    WORLD_GRACE_SECONDS_MIN = 1, /* no event's grace is ever shorter … */
    WORLD_GRACE_SECONDS_MAX = 4, /* … or longer */
    WORLD_SKEW_MS_MAX = 400,     /* of a node's clock: two differ by less than the grace */
    /* What a node knows of the others may be so old when the change feed is slow, its questions fail and Redis loses
     * what it was told. A node that was stopped may be older still. */
    WORLD_LAG_MS_MAX = 20000,
    /* An answer through the broker is so much older when it comes; after that its caller is told 202. */
    WORLD_ROUND_MS_MAX = ORDER_REPLY_MS + COMMAND_WAIT_MS_MAX + 4000,
};

/* What a user was told: the other side of "durable before acknowledged". */
struct promise {
    struct uuid hold_id;
    struct uuid event_id;
    struct uuid user_id;
    int32_t seat_index;
    int64_t held_until_ms; /* as promised last */
    int64_t ended_ms;      /* when it was first seen to have ended; 0: it has not */
    bool given_back;       /* an end of it was acknowledged */
    bool may_have_ended;   /* somebody asked for something that ends it, answered or not */
};

struct world;

struct node {
    struct world *world;
    int32_t index;
    struct store *store;
    struct warm *warm; /* or NULL */
    struct directory *directory;
    struct lane *lane;
    struct order *order;     /* or NULL: it decides everything itself */
    int64_t skew_ms;         /* its clock is wrong by so much */
    int64_t frozen_until_ms; /* it has no turns before; then it goes on with what it remembers */
    int64_t thawed_ms;       /* when it was last held up: by that, or by a commit whose outcome was lost */
    int64_t started_ms;      /* when this lane began: what it does not remember is not counted */
    int32_t in_flight;       /* commands not answered yet */
    bool crashing;           /* answers mean nothing: the node is dead */
    bool lost;               /* it cannot follow the store any more, and says so */
};

/* A command with its own arena, freed when answered. */
struct question {
    struct command command;
    struct arena arena;
    struct node *node;
    bool gave_key; /* its caller did; the order makes one for every command */
    int64_t asked_ms;
    int64_t commit_count; /* of the tables, then */
};

/* What was last seen of the tables, after every turn: an answer may rest on what was true a moment ago. */
struct seen {
    int64_t state_ms[WORLD_SEAT_COUNT_MAX]
                    [SEAT_STATE_COUNT]; /* when the seat was last in this state; 0: never */
    bool closed;
    int64_t closed_ms;
    int64_t holds_ever; /* when it was closed … */
    int64_t completed;  /* … and checkouts of it that were paid */
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
    struct node nodes[WORLD_NODE_COUNT_MAX];
    int32_t node_count;
    bool shared;         /* there are several */
    struct sim_log *log; /* the broker's; NULL: every node decides what it is asked */
    bool topic_per_event;
    bool loose;                      /* an answer may be of a moment ago: there are several, or a broker */
    const struct sim_tables *tables; /* what is committed */
    struct warm_sim *redis;          /* or NULL: they have none */
    struct seen seen[WORLD_EVENT_COUNT];
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
    bool fine;            /* no faults … */
    int64_t fine_ms;      /* … since then */
    int64_t steady_ms;    /* all nodes use Redis since then, and nothing is lost */
    bool quiet;           /* and no new commands: everything must come to rest */
    /* Commands that went through the broker: letters.c */
    struct map letters;        /* id → struct letter, since the last rest */
    struct map letters_by_key; /* those whose key was made */
    struct list mails;
    struct map started; /* checkouts that a command's answer names */
    struct uuid pendings[WORLD_PENDING_MEMORY];
    int64_t basket_count;
    bool at_rest; /* nothing is pending any more */
    int64_t sent, pending;
    /* What happened, for the closing line */
    int64_t posted, granted, refused, failed, unknown, restarts, freezes, sold;
};

void world_init(struct world *world, uint64_t seed);
void world_deinit(struct world *world);
void world_turn(struct world *world);    /* one turn of every node that has one, now */
void world_step(struct world *world);    /* the same, but a node may be too slow for it */
void world_advance(struct world *world); /* time goes on: to the next thing that happens, or a while */
void world_run_until_answered(struct world *world);
void world_open_events(struct world *world);   /* new ones: the old are sold out; only when it is fine */
bool world_is_idle(const struct world *world); /* nothing is under way */
int world_event_index(const struct world *world, const struct uuid *event_id); /* or −1: an old one */
const struct sim_event *world_event(struct world *world, const struct uuid *event_id); /* as committed */
const struct sim_hold *world_hold(struct world *world, const struct uuid *hold_id);    /* or NULL */
const struct sim_checkout *world_checkout(struct world *world, const struct uuid *checkout_id);

struct command *world_command(struct world *world, enum command_kind kind, const struct uuid *user_id);
void world_post(struct world *world, struct command *command); /* to any node */
struct question *question_of(const struct command *command);

/* ---- node.c ---- */
void node_begin(struct node *node);
void node_end(struct node *node); /* kill -9 */
void node_post(struct node *node, struct command *command);
void node_turn(struct node *node);
bool node_is_frozen(const struct node *node);
struct node *node_any(struct world *world);

/* ---- weather.c: what goes wrong ---- */
void weather_change(struct world *world);  /* of all nodes and what they share */
void weather_fine(struct world *world);    /* no faults from now on, and everybody is awake */
void weather_restart(struct world *world); /* a node is killed, and started again from what was committed */
void weather_flush(struct world *world);   /* Redis forgets everything */
void weather_freeze(struct world *world);  /* a node stops, for longer than a hold lives perhaps */
void weather_group(struct world *world); /* the broker moves partitions, or throws a node out that is well */

/* ---- seen.c ---- */
void seen_update(struct world *world); /* after every turn */
/* Was the seat in this state, as far as a node may remember? */
bool seen_lately(struct world *world, const struct node *node, const struct sim_event *event,
                 const struct uuid *seat_id, enum seat_state state);
int64_t seen_lag_ms(const struct world *world, const struct node *node);  /* how old its memory may be */
int64_t seen_completed(struct world *world, const struct uuid *event_id); /* its checkouts that were paid */

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
void gateway_forget_some(
    struct node *node); /* with the node that asked; it is asked again, or tells another */
void gateway_check(struct world *world, bool at_rest);
void gateway_check_start(struct world *world); /* what was under way is asked for again: by a node alone */
void gateway_deinit(struct world *world);

/* ---- letters.c: commands through the broker ---- */
void letters_init(struct world *world);
void letters_deinit(struct world *world);
int64_t letters_basket(const char *cart);                                  /* the number of a cart, or 0 */
bool letters_answered(struct world *world, const struct command *command); /* true: the answer is to come */
bool letters_told(struct world *world, const struct command *command); /* an ANSWER_GET; true: of a success */
void letters_ask(struct world *world);                                 /* somebody asks for an answer */
void letters_sender_died(struct node *node);
void letters_check_step(struct world *world);
void letters_check_holds(struct world *world);
void letters_check_rest(struct world *world);

/* ---- memory.c: what the nodes remember ---- */
void memory_check(struct world *world); /* after every step: nothing that is not so, or was not so before */
void memory_check_settled(struct world *world); /* nothing under way: every node has what is committed */
void memory_check_at_rest(struct world *world); /* nothing is left */

/* ---- registry.c: what Redis says ---- */
void registry_reconcile(struct world *world);   /* asks for it to be put right, and waits for that */
void registry_check_locks(struct world *world); /* those taken while nothing failed are there */
void registry_check(struct world *world);       /* it is what is committed */

/* ---- checks.c: the promises. A broken one ends the run. ---- */
void check_step(struct world *world);    /* after every step */
void check_quiet(struct world *world);   /* when everything came to rest */
void check_settled(struct world *world); /* when nothing is under way, though people hold seats */
void world_fail(struct world *world, const char *what) __attribute__((noreturn));

#endif
