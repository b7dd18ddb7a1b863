/* SPDX-License-Identifier: Apache-2.0
 * Inside the simulated store. */
#ifndef HOLDFAST_STORE_SIM_SIM_INT_H
#define HOLDFAST_STORE_SIM_SIM_INT_H

#include "store/sim/sim.h"
#include "store/store_int.h"

enum sim_job_kind { SIM_COMMIT, SIM_RESOLVE, SIM_LOOKUP };

struct sim_job {
    struct list node;
    enum sim_job_kind kind;
    int64_t at_ms;
    struct store_batch *batch;
    struct store_lookup *lookup;
    bool was_read; /* the lookup: its answer is on the way, and may be overtaken by commits */
};

struct sim_key {
    uint8_t key[32];
    uint8_t body[32];
    struct uuid org_id;
    void *result;
    size_t result_size;
    int64_t created_ms;
};

struct sim_store {
    struct store store;
    struct rng rng;
    struct sim_faults faults;
    struct sim_tables tables;
    struct list jobs;
    int64_t now_ms;
    int64_t last_batch_ms;
};

void sim_tables_init(struct sim_store *sim);
void sim_tables_deinit(struct sim_store *sim);
void sim_tables_commit(struct sim_store *sim, struct store_batch *batch);
void sim_tables_lookup(struct sim_store *sim, struct store_lookup *lookup);
enum err sim_tables_load(struct sim_store *sim, const struct store_loader *loader, void *context);

#endif
