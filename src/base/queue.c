/* SPDX-License-Identifier: Apache-2.0
 * Messages from any thread to one. The lock covers a few pointer moves; the
 * eventfd is written after it, so that the reader does not wake into it.
 *
 * Invariants:
 *   1. Whoever makes the list non-empty writes the eventfd, nobody else. A
 *      reader that empties the list before that write arrives is woken once
 *      for nothing; it is never left asleep with something waiting.
 *   2. Messages leave in the order in which they came.
 *   3. A message is its sender's until pushed, then the queue's, then the
 *      taker's.
 *
 * Senders must be gone before queue_deinit(): they may still be about to write
 * the eventfd. */
#include "base/queue.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum err queue_init(struct queue *queue, size_t count_max)
{
    queue->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (queue->fd < 0)
        return ERR_INTERNAL;
    int failure = pthread_mutex_init(&queue->lock, NULL);
    CHECK(failure == 0);
    list_init(&queue->waiting);
    queue->count = 0;
    queue->count_max = count_max;
    return ERR_OK;
}

void queue_deinit(struct queue *queue)
{
    pthread_mutex_destroy(&queue->lock);
    close(queue->fd);
    queue->fd = -1;
}

static void queue_wake(struct queue *queue)
{
    uint64_t one = 1;
    while (write(queue->fd, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
}

bool queue_push(struct queue *queue, struct list *node)
{
    pthread_mutex_lock(&queue->lock);
    bool room = queue->count < queue->count_max;
    bool was_empty = list_empty(&queue->waiting);
    if (room) {
        list_append(&queue->waiting, node);
        queue->count++;
    }
    pthread_mutex_unlock(&queue->lock);
    if (room && was_empty)
        queue_wake(queue);
    return room;
}

void queue_push_always(struct queue *queue, struct list *node)
{
    pthread_mutex_lock(&queue->lock);
    bool was_empty = list_empty(&queue->waiting);
    list_append(&queue->waiting, node);
    pthread_mutex_unlock(&queue->lock);
    if (was_empty)
        queue_wake(queue);
}

void queue_take(struct queue *queue, struct list *out)
{
    uint64_t wakes;
    pthread_mutex_lock(&queue->lock);
    list_splice(out, &queue->waiting);
    queue->count = 0;
    /* Under the lock, so that it cannot swallow the write of a later push. */
    while (read(queue->fd, &wakes, sizeof(wakes)) < 0 && errno == EINTR)
        ;
    pthread_mutex_unlock(&queue->lock);
}

size_t queue_depth(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    size_t count = queue->count;
    pthread_mutex_unlock(&queue->lock);
    return count;
}
