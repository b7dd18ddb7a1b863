/* SPDX-License-Identifier: Apache-2.0
 * Inside the simulated store: the database that its nodes share, and a node. */
#ifndef HOLDFAST_STORE_SIM_SIM_INT_H
#define HOLDFAST_STORE_SIM_SIM_INT_H

#include "store/sim/sim.h"
#include "store/store_int.h"

/* ---- What a batch has locked while it is under way ---- */

struct sim_lock {
    struct uuid id; /* of a seat, hold, checkout, event, block, … */
    bool written;   /* otherwise it is relied on: others may do that too */
};

struct sim_locks {
    struct sim_lock *items;
    size_t count;
    size_t capacity;
};

void sim_locks_add_batch(struct sim_locks *locks, const struct store_batch *batch);
bool sim_locks_exclude(const struct sim_locks *locks, const struct uuid *id, bool to_write);
bool sim_locks_meet(const struct sim_locks *a, const struct sim_locks *b);
void sim_locks_deinit(struct sim_locks *locks);

/* ---- The change feed ---- */

struct sim_change {
    int64_t number; /* in order of commits, from 1: windows are of these */
    int64_t id;     /* in the order in which a window is given out */
    int64_t created_ms;
    int64_t visible_ms;
    void *data;
    size_t size;
    struct sim_locks locks; /* what it must stay in order with, until it is visible */
};

struct sim_feed {
    struct sim_change *changes; /* by number, without a gap */
    size_t count;
    size_t capacity;
    int64_t purged; /* the highest number that was purged */
    int64_t next;   /* the number and id that come next */
};

struct sim_key {
    uint8_t key[32];
    uint8_t body[32];
    struct uuid org_id;
    void *result;
    size_t result_size;
    int64_t created_ms;
};

struct sim_database {
    struct sim_tables tables;
    struct sim_feed feed;
    struct list nodes; /* sim_store */
    int64_t now_ms;
};

/* ---- A node ---- */

enum sim_job_kind { SIM_COMMIT, SIM_RESOLVE, SIM_LOOKUP, SIM_FOLLOW };

struct sim_job {
    struct list node;
    enum sim_job_kind kind;
    int64_t at_ms;
    struct store_batch *batch;
    struct store_lookup *lookup;
    struct store_follow *follow;
    bool was_read; /* a lookup or follow: its answer is on the way, and may be overtaken by commits */
    bool happened; /* a commit: so is its answer */
};

struct sim_store {
    struct store store;
    struct list node; /* in the database's */
    struct sim_database *database;
    struct rng rng;
    struct sim_faults faults;
    struct list jobs;
    struct list hanging; /* struct sim_job: commits that are neither done nor not */
    int64_t last_batch_ms;
    struct sim_locks locked; /* during a commit: what other nodes have under way */
};

void sim_tables_init(struct sim_tables *tables);
void sim_tables_deinit(struct sim_tables *tables);
void sim_tables_commit(struct sim_store *sim, struct store_batch *batch);
void sim_tables_lookup(struct sim_store *sim, struct store_lookup *lookup);
enum err sim_tables_load(struct sim_store *sim, const struct store_loader *loader, void *context);

/* Keys of the tables' maps for what has more than one id. */
struct uuid sim_key_of_user(const struct uuid *org_id, const struct uuid *user_id);
struct sim_key *sim_find_key(struct sim_tables *tables, const struct uuid *org_id, const uint8_t key[32],
                             int64_t now_ms);
struct sim_delivery *sim_find_delivery(struct sim_tables *tables, const char *name);

/* Who decides a partition: fills every mark; false if the unit relies on what is not so. */
bool sim_orders_compare(struct sim_store *sim, struct store_unit *unit);
void sim_orders_write(struct sim_store *sim, const struct store_unit *unit);
void sim_orders_deinit(struct sim_tables *tables);
struct uuid sim_key_of_order(const char *topic, int32_t partition);
struct sim_order *sim_find_order(struct sim_tables *tables, const char *topic, int32_t partition);

/* The units that were written, as one change; after them the purge. */
void sim_feed_add(struct sim_store *sim, const struct store_batch *batch);
void sim_feed_purge(struct sim_database *database, const struct store_batch *batch);
void sim_feed_follow(struct sim_store *sim, struct store_follow *follow);
struct feed_position sim_feed_position(const struct sim_database *database); /* of what is loaded now */
void sim_feed_deinit(struct sim_feed *feed);

#endif
