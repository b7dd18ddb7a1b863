/* SPDX-License-Identifier: Apache-2.0
 * Which batches run side by side. The lane submits several; each writer takes
 * the next one that changes nothing that those which are running change.
 *
 *   waiting ──take──▶ running ──finish──▶ finished ──(all before it too)──▶ done
 *
 * Invariants: (1) batches begin in the order they were submitted: one that has
 * to wait makes those behind it wait. (2) Two batches that change the same
 * seat, checkout, user or delivery, or claim a partition that the other claims or
 * relies on, never run at the same time. (3) A batch that changes the catalogue runs
 * alone. (4) Batches are handed back in the order they were submitted.
 *
 * Called by the lane's thread and the writers', under one lock. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "store/postgres/postgres_int.h"

void pg_queue_init(struct pg_queue *queue)
{
    pthread_condattr_t attributes;
    CHECK(pthread_condattr_init(&attributes) == 0);
    CHECK(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0);
    CHECK(pthread_mutex_init(&queue->lock, NULL) == 0);
    CHECK(pthread_cond_init(&queue->wake, &attributes) == 0);
    pthread_condattr_destroy(&attributes);
    list_init(&queue->waiting);
    list_init(&queue->ordered);
    queue->stopping = false;
}

void pg_queue_deinit(struct pg_queue *queue)
{
    CHECK(list_empty(&queue->ordered));
    pthread_cond_destroy(&queue->wake);
    pthread_mutex_destroy(&queue->lock);
}

static bool batch_is_alone(const struct store_batch *batch)
{
    if (batch->outcome == STORE_UNKNOWN)
        return false; /* only its id is asked for */
    LIST_FOR_EACH(node, &batch->units) {
        const struct store_unit *unit = CONTAINER_OF(node, struct store_unit, node);
        if (unit->orgs != NULL || unit->events != NULL || unit->layouts != NULL || unit->blocks != NULL)
            return true;
    }
    return false;
}

enum err pg_queue_post(struct pg_queue *queue, struct store_batch *batch)
{
    struct pg_job *job = calloc(1, sizeof(*job));
    CHECK(job != NULL);
    job->batch = batch;
    job->alone = batch_is_alone(batch);
    map_init(&job->things);
    list_init(&job->node);
    list_init(&job->ordered);
    pthread_mutex_lock(&queue->lock);
    bool accepted = !queue->stopping;
    if (accepted) {
        list_append(&queue->waiting, &job->node);
        list_append(&queue->ordered, &job->ordered);
        pthread_cond_signal(&queue->wake);
    }
    pthread_mutex_unlock(&queue->lock);
    if (!accepted)
        free(job);
    return accepted ? ERR_OK : ERR_STORE_UNAVAILABLE;
}

void pg_queue_stop(struct pg_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->stopping = true;
    pthread_cond_broadcast(&queue->wake);
    pthread_mutex_unlock(&queue->lock);
}

/* Calls for every id of what the unit changes or, if others may at the same time, relies on; false ends it. */
static bool unit_each_thing(const struct store_unit *unit,
                            bool (*on_thing)(struct map *things, const struct uuid *id, bool changes),
                            struct map *things)
{
    bool go_on = true;
    for (const struct seat_write *w = unit->seats; w != NULL && go_on; w = w->next)
        go_on = on_thing(things, &w->row.id, true);
    for (const struct checkout_write *w = unit->checkouts; w != NULL && go_on; w = w->next)
        go_on = on_thing(things, &w->row.id, true);
    for (const struct user_write *w = unit->users; w != NULL && go_on; w = w->next)
        go_on = w->seen || on_thing(things, &w->row.id, true);
    for (const struct delivery_write *w = unit->deliveries; w != NULL && go_on; w = w->next) {
        struct uuid id = pg_name_id(w->row.name);
        go_on = on_thing(things, &id, true);
    }
    for (const struct order_claim *w = unit->order_claims; w != NULL && go_on; w = w->next) {
        struct uuid id = pg_order_id(w->row.topic, w->row.partition);
        go_on = on_thing(things, &id, true);
    }
    for (const struct order_check *w = unit->order_checks; w != NULL && go_on; w = w->next) {
        struct uuid id = pg_order_id(w->topic, w->partition);
        go_on = on_thing(things, &id, false);
    }
    return go_on;
}

static bool batch_each_thing(const struct store_batch *batch,
                             bool (*on_thing)(struct map *things, const struct uuid *id, bool changes),
                             struct map *things)
{
    LIST_FOR_EACH(node, &batch->units) {
        if (!unit_each_thing(CONTAINER_OF(node, struct store_unit, node), on_thing, things))
            return false;
    }
    return true;
}

static const char relied_on; /* stands in the map for what is not changed */

static bool thing_is_free(struct map *things, const struct uuid *id, bool changes)
{
    const void *taken = map_get(things, id);
    return taken == NULL || (!changes && taken == &relied_on);
}

static bool thing_take(struct map *things, const struct uuid *id, bool changes)
{
    if (changes)
        map_put(things, id, things);
    else if (map_get(things, id) == NULL)
        map_put(things, id, (void *)&relied_on);
    return true;
}

static bool jobs_collide(const struct pg_job *job, struct pg_job *running)
{
    if (job->alone || running->alone)
        return true;
    if (job->batch->outcome == STORE_UNKNOWN)
        return false;
    return !batch_each_thing(job->batch, thing_is_free, &running->things);
}

/* Under the lock: the first that waits, if nothing that runs stands against it. */
static struct pg_job *queue_next(struct pg_queue *queue)
{
    if (list_empty(&queue->waiting))
        return NULL;
    struct pg_job *job = CONTAINER_OF(queue->waiting.next, struct pg_job, node);
    LIST_FOR_EACH(node, &queue->ordered) {
        struct pg_job *other = CONTAINER_OF(node, struct pg_job, ordered);
        if (other->running && jobs_collide(job, other))
            return NULL;
    }
    list_remove(&job->node);
    job->running = true;
    if (job->batch->outcome != STORE_UNKNOWN)
        (void)batch_each_thing(job->batch, thing_take, &job->things);
    return job;
}

bool pg_queue_take(struct pg_queue *queue, struct pg_job **job, int timeout_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    if (timeout_ms > 0) {
        until.tv_sec += timeout_ms / 1000;
        until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000;
        }
    }
    pthread_mutex_lock(&queue->lock);
    while ((*job = queue_next(queue)) == NULL) {
        if (queue->stopping && list_empty(&queue->waiting))
            break;
        if (timeout_ms < 0)
            pthread_cond_wait(&queue->wake, &queue->lock);
        else if (pthread_cond_timedwait(&queue->wake, &queue->lock, &until) == ETIMEDOUT)
            break;
    }
    bool more = *job != NULL || !queue->stopping || !list_empty(&queue->waiting);
    pthread_mutex_unlock(&queue->lock);
    return more;
}

void pg_queue_finish(struct pg_queue *queue, struct pg_job *job, struct done *done)
{
    pthread_mutex_lock(&queue->lock);
    job->running = false;
    job->finished = true;
    map_deinit(&job->things);
    while (!list_empty(&queue->ordered)) {
        struct pg_job *first = CONTAINER_OF(queue->ordered.next, struct pg_job, ordered);
        if (!first->finished)
            break;
        list_remove(&first->ordered);
        done_post_batch(done, first->batch); /* it is the lane's again */
        free(first);
    }
    pthread_cond_broadcast(&queue->wake);
    pthread_mutex_unlock(&queue->lock);
}
