/* SPDX-License-Identifier: Apache-2.0
 * The deliverer's way to the store: asks on the thread that polls it, and waits
 * for the answer. One question at a time.
 *
 *   deliverer: asked ──post──▶ lane: run, store …, on_done ──▶ answered ──▶ deliverer goes on
 *
 * The memory of a question is the lane's until it is answered. Once stopped, the
 * deliverer waits a little for its last answers and no longer; what was not
 * answered by then is abandoned: nothing more can be asked, and the call may be
 * freed only after the store was closed. */
#ifndef HOLDFAST_PUBLISH_DELIVERY_CALL_H
#define HOLDFAST_PUBLISH_DELIVERY_CALL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "publish/delivery.h"
#include "store/store.h"

enum { DELIVERY_STOP_MS = 2000 };

enum call_kind { CALL_LOOKUP, CALL_FOLLOW, CALL_WRITE };

struct delivery_call {
    struct delivery_task task;
    const struct delivery_config *config; /* borrows */
    pthread_mutex_t lock;                 /* guards `answered` and `deadline_us` */
    pthread_cond_t changed;
    bool answered;
    int64_t deadline_us; /* stopped: waits end then; 0: not stopped */
    bool abandoned;
    struct rng rng; /* for the ids of batches */
    enum call_kind kind;
    struct store_lookup lookup;
    struct store_follow follow;
    struct store_batch batch; /* its arena has what is looked up, too */
    struct store_unit unit;
    struct delivery_write write;
    enum err err;
};

void delivery_call_init(struct delivery_call *call, const struct delivery_config *config);
void delivery_call_deinit(struct delivery_call *call);
void delivery_call_stop(struct delivery_call *call); /* any thread */
bool delivery_call_is_stopped(struct delivery_call *call);

/* Each returns an error if there is no answer. Deliverer's thread. */

/* The row, whose name is the channel's. Not found: version 0. */
enum err delivery_call_lookup(struct delivery_call *call, struct delivery_row *out) MUST_CHECK;
/* The answer is in call->follow, and in the arena, until the next one. */
enum err delivery_call_follow(struct delivery_call *call, const struct feed_position *after, int32_t limit,
                              struct arena *arena) MUST_CHECK;
/* `missed`: another node wrote the row; nothing was changed. An error: it may have been changed, or not. */
enum err delivery_call_write(struct delivery_call *call, const struct delivery_row *row,
                             struct dead_letter_write *letters, int64_t now_ms, bool *missed) MUST_CHECK;

#endif
