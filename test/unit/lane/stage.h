/* SPDX-License-Identifier: Apache-2.0
 * A lane on a stage: the real lane over the simulated store, on one thread,
 * with a clock, a gateway and users that a test moves by hand. One event with
 * the blocks A-1 (rows of 6 and 4 seats) and B-1 (5 seats, capacity 3).
 *
 * A commit takes one millisecond: what is posted and turned at the same moment
 * meets what is not committed yet. */
#ifndef HOLDFAST_TEST_LANE_STAGE_H
#define HOLDFAST_TEST_LANE_STAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "hot/directory.h"
#include "lane/lane_int.h"
#include "store/sim/sim.h"

enum { STAGE_USER_COUNT = 8, STAGE_CHARGE_COUNT_MAX = 16, STAGE_SEAT_COUNT = 15, STAGE_SEAT_B = 10 };

struct stage;

/* A command, its arena, and whether it was answered. Lives until the stage is taken down. */
struct ask {
    struct command command;
    struct arena arena;
    struct list node;
    struct stage *stage;
    bool done;
};

struct stage_charge {
    struct uuid checkout_id;
    int64_t amount_cents;
    int32_t attempt;
    char token[32];
};

struct stage {
    int64_t now_ms;
    struct store *store;
    struct directory *directory;
    struct lane *lane;
    struct rng rng;
    struct uuid org_id;
    struct uuid event_id;
    struct uuid admin_id;
    struct uuid users[STAGE_USER_COUNT];
    struct list asks;
    int32_t waiting_count; /* asks without an answer */
    struct stage_charge charges[STAGE_CHARGE_COUNT_MAX];
    int32_t charge_count;
    struct stage_charge refunds[STAGE_CHARGE_COUNT_MAX];
    int32_t refund_count;
};

/* What a test may want otherwise; NULL: as it is. */
struct stage *stage_create(const struct policy *policy, const char *layout);
/* One block of many seats. */
struct stage *stage_create_large(const struct policy *policy, int32_t row_count, int32_t row_size);
void stage_destroy(struct stage *stage);
struct policy
stage_policy(void); /* ttl 60, extension 60, longest 150, grace 5, payment 60, 4 seats, no rate */
void stage_restart(struct stage *stage); /* the node dies; what was under way may have happened */
int stage_setup(void **state);           /* for cmocka: the plain stage */
int stage_teardown(void **state);

/* ---- Time ---- */
void stage_turn(struct stage *stage);                                /* one turn, now */
void stage_pass(struct stage *stage, int64_t ms);                    /* time goes by */
void stage_finish(struct stage *stage);                              /* until every ask is answered */
void stage_until_event(struct stage *stage, enum event_state state); /* is committed, and not a turn longer */
void stage_faults(struct stage *stage, struct sim_faults faults);
void stage_calm(struct stage *stage);

/* ---- Asking ---- */
struct ask *stage_ask(struct stage *stage, enum command_kind kind, int user); /* user −1: the admin */
void stage_post(struct ask *ask);
enum err stage_do(struct ask *ask); /* posts it and waits for the answer */
void ask_key(struct ask *ask, uint8_t key, uint8_t body);

struct ask *ask_seat(struct stage *stage, int user, int32_t seat);
struct ask *ask_seats(struct stage *stage, int user, const int32_t *seats, int32_t count);
struct ask *ask_best(struct stage *stage, int user, int32_t quantity, const char *section);
struct ask *ask_id(struct stage *stage, enum command_kind kind, int user, const struct uuid *id);
struct ask *ask_checkout(struct stage *stage, int user);
struct ask *ask_block(struct stage *stage, const int32_t *seats, int32_t count);
struct ask *ask_release_event(struct stage *stage);
struct ask *ask_event_state(struct stage *stage, enum event_state state);
struct ask *ask_settled(struct stage *stage, const struct uuid *checkout_id, enum payment_outcome outcome);

/* Done at once, and expected to succeed. */
struct uuid stage_hold(struct stage *stage, int user, int32_t seat);
struct uuid stage_checkout(struct stage *stage, int user);
/* Posted and pinned: the gateway was asked, and the caller waits for its answer. */
struct ask *stage_pay(struct stage *stage, int user, const struct uuid *checkout_id);

/* ---- Looking ---- */
struct uuid stage_seat_id(struct stage *stage, int32_t seat);
enum seat_state stage_seat(struct stage *stage, int32_t seat);     /* as committed */
enum seat_state stage_seat_hot(struct stage *stage, int32_t seat); /* as in memory */
const struct hold_row *stage_hold_row(struct stage *stage, const struct uuid *id);
const struct checkout_row *stage_checkout_row(struct stage *stage, const struct uuid *id);
struct hot_event *stage_event(struct stage *stage);
int32_t stage_ticket_count(struct stage *stage);
/* Memory is what the store is, nothing is busy, pending or waiting. */
void stage_check_rest(struct stage *stage);

#endif
