/* SPDX-License-Identifier: Apache-2.0
 * A thread with a list of work, and the list of what is done with the eventfd
 * that wakes the lane. The threads of SQLite and PostgreSQL are workers.
 *
 * Invariants: (1) work is taken in the order it was posted. (2) What was
 * accepted is done, also when the store is being closed. (3) Callbacks of the
 * lane run in done_poll() alone, on the thread that calls it, in the order the
 * work was finished.
 *
 * The lists are unbounded on purpose: the lane bounds how much it submits. */
#include "store/worker.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

void worker_init(struct worker *worker)
{
    memset(worker, 0, sizeof(*worker));
    pthread_condattr_t attributes;
    CHECK(pthread_condattr_init(&attributes) == 0);
    CHECK(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0);
    CHECK(pthread_mutex_init(&worker->lock, NULL) == 0);
    CHECK(pthread_cond_init(&worker->wake, &attributes) == 0);
    pthread_condattr_destroy(&attributes);
    list_init(&worker->waiting);
}

void worker_deinit(struct worker *worker)
{
    CHECK(list_empty(&worker->waiting));
    pthread_cond_destroy(&worker->wake);
    pthread_mutex_destroy(&worker->lock);
}

enum err worker_start(struct worker *worker, const char *name, void *(*body)(void *), void *argument)
{
    if (pthread_create(&worker->thread, NULL, body, argument) != 0)
        return ERR_STORE_OPEN;
    worker->running = true;
    pthread_setname_np(worker->thread, name);
    return ERR_OK;
}

void worker_stop(struct worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    worker->stopping = true;
    pthread_cond_signal(&worker->wake);
    pthread_mutex_unlock(&worker->lock);
    if (worker->running)
        pthread_join(worker->thread, NULL);
    worker->running = false;
}

enum err worker_post(struct worker *worker, struct list *node)
{
    pthread_mutex_lock(&worker->lock);
    bool accepted = worker->running && !worker->stopping;
    if (accepted) {
        if (list_empty(&worker->waiting))
            pthread_cond_signal(&worker->wake);
        list_append(&worker->waiting, node);
    }
    pthread_mutex_unlock(&worker->lock);
    return accepted ? ERR_OK : ERR_STORE_UNAVAILABLE;
}

bool worker_take(struct worker *worker, struct list *out, int timeout_ms)
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
    pthread_mutex_lock(&worker->lock);
    while (list_empty(&worker->waiting) && !worker->stopping) {
        if (timeout_ms < 0)
            pthread_cond_wait(&worker->wake, &worker->lock);
        else if (pthread_cond_timedwait(&worker->wake, &worker->lock, &until) == ETIMEDOUT)
            break;
    }
    list_splice(out, &worker->waiting);
    bool more = !worker->stopping || !list_empty(out);
    pthread_mutex_unlock(&worker->lock);
    return more;
}

enum err done_init(struct done *done)
{
    memset(done, 0, sizeof(*done));
    list_init(&done->batches);
    list_init(&done->lookups);
    list_init(&done->follows);
    done->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (done->fd < 0)
        return ERR_STORE_OPEN;
    CHECK(pthread_mutex_init(&done->lock, NULL) == 0);
    return ERR_OK;
}

void done_deinit(struct done *done)
{
    if (done->fd < 0)
        return;
    close(done->fd);
    pthread_mutex_destroy(&done->lock);
}

/* Under the lock, before something is added: only the first addition wakes the lane. */
static void done_wake(struct done *done)
{
    if (!list_empty(&done->batches) || !list_empty(&done->lookups) || !list_empty(&done->follows))
        return;
    uint64_t one = 1;
    ssize_t written = write(done->fd, &one, sizeof(one));
    CHECK(written == (ssize_t)sizeof(one));
}

void done_post_batch(struct done *done, struct store_batch *batch)
{
    pthread_mutex_lock(&done->lock);
    done_wake(done);
    list_append(&done->batches, &batch->node);
    pthread_mutex_unlock(&done->lock);
}

void done_post_lookups(struct done *done, struct list *lookups)
{
    if (list_empty(lookups))
        return;
    pthread_mutex_lock(&done->lock);
    done_wake(done);
    list_splice(&done->lookups, lookups);
    pthread_mutex_unlock(&done->lock);
}

void done_post_follows(struct done *done, struct list *follows)
{
    if (list_empty(follows))
        return;
    pthread_mutex_lock(&done->lock);
    done_wake(done);
    list_splice(&done->follows, follows);
    pthread_mutex_unlock(&done->lock);
}

void done_poll(struct done *done)
{
    struct list batches, lookups, follows;
    list_init(&batches);
    list_init(&lookups);
    list_init(&follows);
    pthread_mutex_lock(&done->lock);
    uint64_t count;
    ssize_t ignored = read(done->fd, &count, sizeof(count)); /* empty when nothing was posted */
    (void)ignored;
    list_splice(&batches, &done->batches);
    list_splice(&lookups, &done->lookups);
    list_splice(&follows, &done->follows);
    pthread_mutex_unlock(&done->lock);

    struct list *node;
    while ((node = list_pop(&batches)) != NULL) {
        struct store_batch *batch = CONTAINER_OF(node, struct store_batch, node);
        batch->on_done(batch);
    }
    while ((node = list_pop(&lookups)) != NULL) {
        struct store_lookup *lookup = CONTAINER_OF(node, struct store_lookup, node);
        lookup->on_done(lookup);
    }
    while ((node = list_pop(&follows)) != NULL) {
        struct store_follow *follow = CONTAINER_OF(node, struct store_follow, node);
        follow->on_done(follow);
    }
}
