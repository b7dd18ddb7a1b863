/* SPDX-License-Identifier: Apache-2.0
 * Messages from any thread to one: a locked list and an eventfd that becomes
 * readable when the list stops being empty. The reader takes everything at
 * once, so a thousand messages cost one wake-up. */
#ifndef HOLDFAST_BASE_QUEUE_H
#define HOLDFAST_BASE_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/list.h"

struct queue {
    pthread_mutex_t lock;
    struct list waiting;
    size_t count; /* of those that count against count_max */
    size_t count_max;
    int fd; /* readable when something waits */
};

enum err queue_init(struct queue *queue, size_t count_max) MUST_CHECK;
void queue_deinit(struct queue *queue);

/* False, and nothing happens, when `count_max` messages wait. */
bool queue_push(struct queue *queue, struct list *node) MUST_CHECK;

/* Never refused: for what must not be dropped. Does not count against the limit. */
void queue_push_always(struct queue *queue, struct list *node);

/* Moves all that waits to the end of `out` and clears the eventfd; any thread may ask. */
void queue_take(struct queue *queue, struct list *out);
size_t queue_depth(struct queue *queue);

#endif
