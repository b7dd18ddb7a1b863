/* SPDX-License-Identifier: Apache-2.0
 * For stores with threads: a thread with a list of work, and the list of what
 * is done, with the descriptor that wakes the lane. */
#ifndef HOLDFAST_STORE_WORKER_H
#define HOLDFAST_STORE_WORKER_H

#include <pthread.h>
#include <stdbool.h>

#include "base/list.h"
#include "store/store.h"

/* ---- Work for one thread ---- */

struct worker { /* a thread and what waits for it */
    pthread_t thread;
    bool running;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct list waiting; /* under lock */
    bool stopping;       /* under lock */
};

void worker_init(struct worker *worker);
void worker_deinit(struct worker *worker);
enum err worker_start(struct worker *worker, const char *name, void *(*body)(void *),
                      void *argument) MUST_CHECK;
void worker_stop(struct worker *worker); /* the body finishes what waits, then ends */
enum err worker_post(struct worker *worker, struct list *node) MUST_CHECK; /* refused once stopping */
/* Moves what waits to `out`; waits for it up to timeout_ms (−1: for ever). False: stopping, and nothing left. */
bool worker_take(struct worker *worker, struct list *out, int timeout_ms);

/* ---- Answers for the lane ---- */

struct done {
    pthread_mutex_t lock;
    struct list batches; /* under lock */
    struct list lookups; /* under lock */
    struct list follows; /* under lock */
    int fd;              /* readable when one of them is not empty */
};

enum err done_init(struct done *done) MUST_CHECK;
void done_deinit(struct done *done);
void done_post_batch(struct done *done, struct store_batch *batch);
void done_post_lookups(struct done *done, struct list *lookups);
void done_post_follows(struct done *done, struct list *follows);
void done_poll(struct done *done);

#endif
