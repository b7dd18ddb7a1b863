/* SPDX-License-Identifier: Apache-2.0
 * See delivery_call.h. Functions named on_… and run_… run on the thread that
 * polls the store, all others on the deliverer's. */
#include "publish/delivery_call.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"

static void call_answered(struct delivery_call *call, enum err err)
{
    pthread_mutex_lock(&call->lock);
    call->err = err;
    call->answered = true;
    pthread_cond_signal(&call->changed);
    pthread_mutex_unlock(&call->lock);
}

static void on_lookup(struct store_lookup *lookup)
{
    call_answered(lookup->context, lookup->err);
}

static void on_follow(struct store_follow *follow)
{
    call_answered(follow->context, follow->err);
}

/* An unknown outcome is not resolved: the row is read again, and its version tells. */
static void on_batch(struct store_batch *batch)
{
    enum err err = batch->err != ERR_OK ? batch->err : ERR_STORE_UNAVAILABLE;
    call_answered(batch->context, batch->outcome == STORE_COMMITTED ? ERR_OK : err);
}

static void run_task(struct delivery_task *task, struct store *store)
{
    struct delivery_call *call = CONTAINER_OF(task, struct delivery_call, task);
    enum err err = ERR_OK;

    switch (call->kind) {
    case CALL_LOOKUP:
        err = store_lookup(store, &call->lookup);
        break;
    case CALL_FOLLOW:
        err = store_follow(store, &call->follow);
        break;
    case CALL_WRITE:
        err = store_submit(store, &call->batch);
        break;
    }
    if (err != ERR_OK)
        call_answered(call, err);
}

/* ---- The deliverer's side ---- */

void delivery_call_init(struct delivery_call *call, const struct delivery_config *config)
{
    pthread_condattr_t attributes;

    *call = (struct delivery_call){.task = {.run = run_task}, .config = config};
    rng_init_system(&call->rng);
    arena_init(&call->batch.arena);
    pthread_mutex_init(&call->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&call->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

void delivery_call_deinit(struct delivery_call *call)
{
    arena_deinit(&call->batch.arena);
    pthread_cond_destroy(&call->changed);
    pthread_mutex_destroy(&call->lock);
}

void delivery_call_stop(struct delivery_call *call)
{
    pthread_mutex_lock(&call->lock);
    call->deadline_us = clock_monotonic_us() + DELIVERY_STOP_MS * 1000;
    pthread_cond_signal(&call->changed);
    pthread_mutex_unlock(&call->lock);
}

bool delivery_call_is_stopped(struct delivery_call *call)
{
    pthread_mutex_lock(&call->lock);
    bool stopped = call->deadline_us != 0;
    pthread_mutex_unlock(&call->lock);
    return stopped;
}

static void wait_until(struct delivery_call *call, int64_t deadline_us)
{
    struct timespec deadline = {.tv_sec = deadline_us / 1000000, .tv_nsec = deadline_us % 1000000 * 1000};
    pthread_cond_timedwait(&call->changed, &call->lock, &deadline);
}

static enum err ask(struct delivery_call *call, enum call_kind kind)
{
    if (call->abandoned)
        return ERR_OVERLOADED;
    call->kind = kind;
    call->answered = false; /* nobody else has it now */
    call->config->post(call->config->context, &call->task);
    pthread_mutex_lock(&call->lock);
    while (!call->answered) {
        if (call->deadline_us == 0)
            pthread_cond_wait(&call->changed, &call->lock);
        else if (clock_monotonic_us() < call->deadline_us)
            wait_until(call, call->deadline_us);
        else
            break;
    }
    call->abandoned = !call->answered;
    enum err err = call->answered ? call->err : ERR_OVERLOADED;
    pthread_mutex_unlock(&call->lock);
    return err;
}

enum err delivery_call_lookup(struct delivery_call *call, struct delivery_row *out)
{
    if (call->abandoned)
        return ERR_OVERLOADED;
    arena_reset(&call->batch.arena);
    call->lookup = (struct store_lookup){
        .kind = LOOKUP_DELIVERY,
        .name = call->config->channel->name,
        .arena = &call->batch.arena,
        .on_done = on_lookup,
        .context = call,
    };
    list_init(&call->lookup.node);
    enum err err = ask(call, CALL_LOOKUP);
    if (err != ERR_OK)
        return err;
    *out = (struct delivery_row){.version = 0};
    if (call->lookup.found)
        *out = call->lookup.delivery;
    out->name = call->config->channel->name; /* the arena's text does not last */
    return ERR_OK;
}

enum err delivery_call_follow(struct delivery_call *call, const struct feed_position *after, int32_t limit,
                              struct arena *arena)
{
    if (call->abandoned)
        return ERR_OVERLOADED;
    call->follow = (struct store_follow){
        .after = *after,
        .limit = limit,
        .arena = arena,
        .on_done = on_follow,
        .context = call,
    };
    list_init(&call->follow.node);
    return ask(call, CALL_FOLLOW);
}

enum err delivery_call_write(struct delivery_call *call, const struct delivery_row *row,
                             struct dead_letter_write *letters, int64_t now_ms, bool *missed)
{
    if (call->abandoned)
        return ERR_OVERLOADED;
    struct arena arena = call->batch.arena;
    arena_reset(&arena);
    call->write = (struct delivery_write){.row = *row};
    call->unit = (struct store_unit){.deliveries = &call->write, .dead_letters = letters};
    call->batch = (struct store_batch){
        .id = uuid_make(&call->rng, now_ms),
        .node_id = call->config->node,
        .arena = arena,
        .unit_count = 1,
        .now_ms = now_ms,
        .on_done = on_batch,
        .context = call,
    };
    list_init(&call->batch.node);
    list_init(&call->batch.units);
    list_append(&call->batch.units, &call->unit.node);
    enum err err = ask(call, CALL_WRITE);
    if (err != ERR_OK)
        return err;
    *missed = call->unit.result == UNIT_MISSED;
    return call->unit.result == UNIT_OK || *missed ? ERR_OK : ERR_INTERNAL;
}
