/* SPDX-License-Identifier: Apache-2.0
 * For the simulated warm tier only: what its two halves share. */
#ifndef HOLDFAST_WARM_SIM_SIM_INT_H
#define HOLDFAST_WARM_SIM_SIM_INT_H

#include "base/rng.h"
#include "warm/sim/sim.h"
#include "warm/values.h"
#include "warm/warm_int.h"

struct warm_sim {
    struct warm_sim_tables tables;
    struct warm_sim_faults faults;
    struct list nodes; /* struct sim_node */
    struct rng rng;
    int64_t now_ms;
    bool away;
    struct value_times times;
    struct buf text;
};

/* Something that a node asked for. They happen in the order in which they were asked. */
struct sim_request {
    struct list node;
    struct warm_round *round; /* one of these … */
    struct warm_read *read;
    struct warm_write *writes; /* … owns, with their texts … */
    struct warm_member *members;
    int32_t count; /* of writes or members */
    struct uuid org_id, event_id;
    int64_t happens_ms;
    int64_t answers_ms;
    int64_t deadline_ms;
    bool happened;
    bool lost;   /* it never happens */
    bool breaks; /* its connection does, when it would be answered */
};

struct sim_node {
    struct warm warm;
    struct warm_sim *sim;
    struct list node;
    struct list requests;
    struct rng rng;
    void (*on_nudge)(void *context);
    void *context;
    enum warm_state state;
    int32_t failures;
    int64_t open_until_ms;
    int64_t rebuild_at_ms; /* it will notice that Redis was emptied; INT64_MAX: nothing to notice */
    int64_t nudge_at_ms;   /* INT64_MAX: never */
};

/* tables.c: what happens inside Redis */
void sim_lock(struct warm_sim *sim, struct sim_node *node, struct warm_round *round);
void sim_read(struct warm_sim *sim, struct warm_read *read);
void sim_write(struct warm_sim *sim, const struct warm_write *write);
void sim_remove_member(struct warm_sim *sim, const struct warm_member *member);
void sim_clear(struct warm_sim *sim);

static inline bool sim_dice(struct rng *rng, uint32_t thousandths)
{
    return thousandths > 0 && rng_below(rng, 1000) < thousandths;
}

static inline int64_t sim_delay(struct rng *rng, int64_t most_ms)
{
    return most_ms > 0 ? (int64_t)rng_below(rng, (uint64_t)most_ms + 1) : 0;
}

#endif
