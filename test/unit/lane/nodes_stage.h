/* SPDX-License-Identifier: Apache-2.0
 * Two lanes on a stage: two nodes over the tables of one simulated store, on
 * one thread and with one clock. Each has its own memory, users' questions and
 * faults. What a test wants to happen while a node is slow happens while the
 * other one turns alone: nothing reaches a node that does not turn. */
#ifndef HOLDFAST_TEST_LANE_NODES_STAGE_H
#define HOLDFAST_TEST_LANE_NODES_STAGE_H

#include "stage.h"
#include "warm/sim/sim.h"

struct nodes {
    struct stage *a;
    struct stage *b;
    struct warm_sim *redis; /* NULL: there is none. Only b has it … */
    struct warm *warm;      /* … by this */
};

struct nodes *nodes_create(struct stage *first); /* `first` becomes a: its lane is started once more. Owns */
struct nodes *nodes_create_with_redis(struct stage *first);
void nodes_destroy(struct nodes *nodes);
/* For cmocka: over the plain stage, but a payment may take 15 minutes: what ends it here is no deadline. */
int nodes_setup(void **state);
int nodes_teardown(void **state);

/* ---- Time ---- */
void nodes_pass(struct nodes *nodes, int64_t ms);                           /* for both */
void nodes_pass_alone(struct nodes *nodes, struct stage *node, int64_t ms); /* the other one does not turn */
void nodes_finish(struct nodes *nodes);                                     /* until every ask is answered */
void nodes_finish_alone(struct nodes *nodes, struct stage *node);           /* every ask of this one */
enum err nodes_do(struct nodes *nodes, struct ask *ask);                    /* posts it; nodes_finish() */
enum err nodes_do_alone(struct nodes *nodes, struct ask *ask);
/* From now on the node's commits happen, and it is not told so before stage_calm(). */
void nodes_lose_answers(struct stage *node);

/* ---- Looking ---- */
int32_t nodes_lost_count(const struct nodes *nodes); /* how often b said that it cannot follow any more */
void nodes_check_rest(struct nodes *nodes);          /* stage_check_rest() of both */

#endif
