/* SPDX-License-Identifier: Apache-2.0
 * Time and faults of the simulated store: what is submitted waits, happens or
 * not, and is answered or not. What a commit does to the tables is tables.c's.
 *
 * Each node has its own queue; batches of different nodes are under way at the same time, and those that begin later
 * may find what the others have locked.
 *
 *   submit ─▶ queued ─▶ (at its time, in order) ─┬─ committed ─┬─ answered
 *                                                │             └─ answer lost ─▶ resolve
 *                                                ├─ not ───────┬─ answered
 *                                                │             └─ answer lost ─▶ resolve
 *                                                └─ hangs: others find its rows locked, until resolve */
#include "store/sim/sim.h"

#include <stdlib.h>
#include <string.h>

#include "store/sim/sim_int.h"

static bool dice(struct sim_store *sim, uint32_t thousandths)
{
    return rng_below(&sim->rng, 1000) < thousandths;
}

static int64_t delay(struct sim_store *sim)
{
    return 1 + (int64_t)rng_below(&sim->rng, (uint64_t)sim->faults.delay_ms_max + 1);
}

static void job_add(struct sim_store *sim, struct sim_job job)
{
    struct sim_job *copy = malloc(sizeof(*copy));
    CHECK(copy != NULL);
    *copy = job;
    /* Batches keep their order: none is done before the one submitted before it. */
    copy->at_ms = sim->database->now_ms + delay(sim);
    if (copy->batch != NULL) {
        if (copy->at_ms < sim->last_batch_ms)
            copy->at_ms = sim->last_batch_ms;
        sim->last_batch_ms = copy->at_ms;
    }
    list_append(&sim->jobs, &copy->node);
}

static enum err sim_submit(struct store *store, struct store_batch *batch)
{
    struct sim_store *sim = (struct sim_store *)store;
    job_add(sim, (struct sim_job){.kind = SIM_COMMIT, .batch = batch});
    return ERR_OK;
}

static enum err sim_resolve(struct store *store, struct store_batch *batch)
{
    struct sim_store *sim = (struct sim_store *)store;
    job_add(sim, (struct sim_job){.kind = SIM_RESOLVE, .batch = batch});
    return ERR_OK;
}

static enum err sim_lookup(struct store *store, struct store_lookup *lookup)
{
    struct sim_store *sim = (struct sim_store *)store;
    struct sim_job job = {.kind = SIM_LOOKUP, .lookup = lookup};
    /* A reader sees what was committed when it began, or later; its answer may come after commits
     * that it did not see. */
    job.was_read = dice(sim, 500);
    if (job.was_read)
        sim_tables_lookup(sim, lookup);
    job_add(sim, job);
    return ERR_OK;
}

static enum err sim_follow(struct store *store, struct store_follow *follow)
{
    struct sim_store *sim = (struct sim_store *)store;
    struct sim_job job = {.kind = SIM_FOLLOW, .follow = follow};
    job.was_read = dice(sim, 500); /* as above */
    if (job.was_read)
        sim_feed_follow(sim, follow);
    job_add(sim, job);
    return ERR_OK;
}

static enum err sim_query(struct store *store, struct store_query *query)
{
    (void)store;
    (void)query;
    return ERR_STORE_UNAVAILABLE; /* lists for people: nobody looks at a simulation */
}

/* What other nodes' batches have locked: each node has begun with the first of its own. And what hangs, wherever. */
static void find_locked(struct sim_store *sim)
{
    LIST_FOR_EACH(other, &sim->database->nodes) {
        LIST_FOR_EACH(node, &CONTAINER_OF(other, struct sim_store, node)->hanging)
            sim_locks_add_batch(&sim->locked, CONTAINER_OF(node, struct sim_job, node)->batch);
        if (other == &sim->node)
            continue;
        LIST_FOR_EACH(node, &CONTAINER_OF(other, struct sim_store, node)->jobs) {
            const struct sim_job *job = CONTAINER_OF(node, struct sim_job, node);
            if (job->kind != SIM_COMMIT || job->happened)
                continue;
            if (dice(sim, sim->faults.locked))
                sim_locks_add_batch(&sim->locked, job->batch);
            break;
        }
    }
}

static void commit_now(struct sim_store *sim, struct store_batch *batch)
{
    find_locked(sim);
    sim_tables_commit(sim, batch);
    sim_locks_deinit(&sim->locked);
}

/* Whoever claims partitions does not ask what became of a batch, but looks at the rows: his do not hang. */
static bool may_hang(const struct store_batch *batch)
{
    LIST_FOR_EACH(node, &batch->units) {
        const struct store_unit *unit = CONTAINER_OF(node, const struct store_unit, node);
        if (unit->seats != NULL || unit->key != NULL)
            return true;
    }
    return false;
}

static void hang(struct sim_store *sim, struct store_batch *batch)
{
    struct sim_job *job = calloc(1, sizeof(*job));
    CHECK(job != NULL);
    job->kind = SIM_COMMIT;
    job->batch = batch;
    list_append(&sim->hanging, &job->node);
}

/* It goes on at last, and comes to its end, or not. */
static void unhang(struct sim_store *sim, const struct store_batch *batch)
{
    LIST_FOR_EACH_SAFE(node, &sim->hanging) {
        struct sim_job *job = CONTAINER_OF(node, struct sim_job, node);
        if (batch != NULL && job->batch != batch)
            continue;
        list_remove(node);
        if (dice(sim, 500))
            commit_now(sim, job->batch);
        free(job);
    }
}

static void do_commit(struct sim_store *sim, struct sim_job *job)
{
    struct store_batch *batch = job->batch;
    if (job->happened)
        return;
    job->happened = true;
    batch->err = ERR_OK;
    if (dice(sim, sim->faults.fail)) {
        batch->outcome = STORE_FAILED;
        batch->err = ERR_STORE_UNAVAILABLE;
    } else if (dice(sim, sim->faults.lose_before)) {
        batch->outcome = STORE_UNKNOWN;
    } else if (dice(sim, sim->faults.hang) && may_hang(batch)) {
        batch->outcome = STORE_UNKNOWN;
        hang(sim, batch);
    } else {
        commit_now(sim, batch);
        batch->outcome = dice(sim, sim->faults.lose_after) ? STORE_UNKNOWN : STORE_COMMITTED;
    }
}

static void do_resolve(struct sim_store *sim, struct store_batch *batch)
{
    if (dice(sim, sim->faults.stay_unknown)) {
        batch->outcome = STORE_UNKNOWN;
        return;
    }
    unhang(sim, batch);
    /* Results of the units were filled in by the commit, if there was one. */
    bool committed = map_get(&sim->database->tables.batches, &batch->id) != NULL;
    batch->outcome = committed ? STORE_COMMITTED : STORE_FAILED;
    batch->err = committed ? ERR_OK : ERR_STORE_UNAVAILABLE;
    if (!committed)
        map_put(&sim->database->tables.batches, &batch->id, sim->database); /* used up: it never can */
}

static void do_job(struct sim_store *sim, struct sim_job *job)
{
    switch (job->kind) {
    case SIM_COMMIT:
        do_commit(sim, job);
        job->batch->on_done(job->batch);
        break;
    case SIM_RESOLVE:
        do_resolve(sim, job->batch);
        job->batch->on_done(job->batch);
        break;
    case SIM_LOOKUP:
        job->lookup->err = dice(sim, sim->faults.lookup_fail) ? ERR_STORE_UNAVAILABLE : ERR_OK;
        if (job->lookup->err == ERR_OK && !job->was_read)
            sim_tables_lookup(sim, job->lookup);
        job->lookup->on_done(job->lookup);
        break;
    case SIM_FOLLOW:
        if (dice(sim, sim->faults.lookup_fail))
            job->follow->err = ERR_STORE_UNAVAILABLE;
        else if (!job->was_read)
            sim_feed_follow(sim, job->follow);
        job->follow->on_done(job->follow);
        break;
    }
}

static void sim_poll(struct store *store)
{
    struct sim_store *sim = (struct sim_store *)store;
    struct list due;
    list_init(&due);
    LIST_FOR_EACH_SAFE(node, &sim->jobs) {
        if (CONTAINER_OF(node, struct sim_job, node)->at_ms > sim->database->now_ms)
            continue;
        list_remove(node);
        list_append(&due, node);
    }
    struct list *node;
    while ((node = list_pop(&due)) != NULL) {
        struct sim_job *job = CONTAINER_OF(node, struct sim_job, node);
        do_job(sim, job);
        free(job);
    }
}

void sim_store_run(struct store *store)
{
    struct sim_store *sim = (struct sim_store *)store;
    LIST_FOR_EACH(node, &sim->jobs) {
        struct sim_job *job = CONTAINER_OF(node, struct sim_job, node);
        if (job->kind == SIM_COMMIT && job->at_ms <= sim->database->now_ms)
            do_commit(sim, job);
    }
}

void sim_store_crash(struct store *store)
{
    struct sim_store *sim = (struct sim_store *)store;
    struct list jobs;
    unhang(sim, NULL);
    list_init(&jobs);
    list_splice(&jobs, &sim->jobs);
    bool alive = true; /* a batch can only have happened if all before it did */
    struct list *node;
    while ((node = list_pop(&jobs)) != NULL) {
        struct sim_job *job = CONTAINER_OF(node, struct sim_job, node);
        if (job->kind == SIM_LOOKUP) {
            job->lookup->err = ERR_STORE_UNAVAILABLE;
            job->lookup->on_done(job->lookup);
        } else if (job->kind == SIM_FOLLOW) {
            job->follow->err = ERR_STORE_UNAVAILABLE;
            job->follow->on_done(job->follow);
        } else {
            alive = alive && (job->happened || dice(sim, 500));
            if (job->kind == SIM_COMMIT && alive && !job->happened)
                sim_tables_commit(sim, job->batch);
            job->batch->outcome = STORE_UNKNOWN;
            job->batch->on_done(job->batch);
        }
        free(job);
    }
    sim->last_batch_ms = 0;
}

static enum err sim_load(struct store *store, const struct store_loader *loader, void *context)
{
    return sim_tables_load((struct sim_store *)store, loader, context);
}

static int sim_fd(struct store *store)
{
    (void)store;
    return -1;
}

static bool sim_is_up(struct store *store)
{
    (void)store;
    return true;
}

static int64_t sim_now_ms(struct store *store)
{
    return ((struct sim_store *)store)->database->now_ms;
}

static enum err sim_verify(struct store *store,
                           void (*on_check)(void *context, const char *claim, int64_t broken,
                                            const char *example),
                           void *context)
{
    (void)store;
    (void)on_check;
    (void)context;
    return ERR_OK; /* the simulator checks every step itself */
}

static void sim_close(struct store *store)
{
    struct sim_store *sim = (struct sim_store *)store;
    struct sim_database *database = sim->database;
    CHECK(list_empty(&sim->jobs));
    CHECK(list_empty(&sim->hanging));
    list_remove(&sim->node);
    free(sim);
    if (!list_empty(&database->nodes))
        return;
    sim_feed_deinit(&database->feed);
    sim_tables_deinit(&database->tables);
    free(database);
}

static const struct store_functions functions = {
    .submit = sim_submit,
    .resolve = sim_resolve,
    .lookup = sim_lookup,
    .follow = sim_follow,
    .query = sim_query,
    .load = sim_load,
    .fd = sim_fd,
    .poll = sim_poll,
    .is_up = sim_is_up,
    .now_ms = sim_now_ms,
    .verify = sim_verify,
    .close = sim_close,
};

static struct sim_store *node_create(struct sim_database *database, uint64_t seed)
{
    struct sim_store *sim = calloc(1, sizeof(*sim));
    CHECK(sim != NULL);
    sim->store.functions = &functions;
    sim->database = database;
    rng_init_seed(&sim->rng, seed);
    list_init(&sim->jobs);
    list_init(&sim->hanging);
    list_append(&database->nodes, &sim->node);
    return sim;
}

struct store *sim_store_create(uint64_t seed)
{
    struct sim_database *database = calloc(1, sizeof(*database));
    CHECK(database != NULL);
    sim_tables_init(&database->tables);
    database->feed.next = 1;
    list_init(&database->nodes);
    return &node_create(database, seed)->store;
}

struct store *sim_store_attach(struct store *first, uint64_t seed)
{
    struct sim_database *database = ((struct sim_store *)first)->database;
    struct sim_store *sim = node_create(database, seed);
    LIST_FOR_EACH(node, &database->nodes) {
        CONTAINER_OF(node, struct sim_store, node)->store.shared = true;
    }
    return &sim->store;
}

const struct sim_tables *sim_store_tables(struct store *store)
{
    return &((struct sim_store *)store)->database->tables;
}

void sim_store_set_faults(struct store *store, const struct sim_faults *faults)
{
    ((struct sim_store *)store)->faults = *faults;
}

void sim_store_set_now(struct store *store, int64_t now_ms)
{
    ((struct sim_store *)store)->database->now_ms = now_ms;
}

int64_t sim_store_next_ms(struct store *store)
{
    struct sim_store *sim = (struct sim_store *)store;
    int64_t next = INT64_MAX;
    LIST_FOR_EACH(node, &sim->jobs) {
        int64_t at = CONTAINER_OF(node, struct sim_job, node)->at_ms;
        next = at < next ? at : next;
    }
    return next;
}
