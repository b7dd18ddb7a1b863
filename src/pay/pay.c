/* SPDX-License-Identifier: Apache-2.0
 * The payment thread: a queue by time of what is to be asked and of what is to
 * be told. It stands between the lane, which must not wait, and the gateway,
 * which takes as long as it takes.
 *
 * Invariants:
 *  1. Nothing here sleeps for one job: a slow answer is a time in the queue, and
 *     the others pass it.
 *  2. Every attempt is told to on_outcome exactly once; after PAY_UNKNOWN the
 *     same job is asked again, one attempt higher, until the outcome is known.
 *  3. No lock is held while a gateway or on_outcome runs, so both may submit.
 *  4. What is not done when the thread ends is dropped: the store knows which
 *     payments are in progress, and they are submitted again at the next start.
 *
 * There are at most as many jobs as checkouts being paid, which the store has
 * accepted one by one; so this queue has no limit of its own and, like the
 * pools, aborts when memory ends. */
#include "pay/pay.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/metrics.h"
#include "pay/pay_int.h"

struct pay {
    struct pay_gateway *gateway; /* owns */
    pay_on_outcome on_outcome;
    void *context;
    pthread_t thread;

    pthread_mutex_t lock;
    pthread_cond_t wake;       /* on the monotonic clock */
    struct pay_attempt **heap; /* by due_us, then order: the next one first */
    size_t count;
    size_t capacity;
    uint64_t order;
    struct list started; /* with the gateway */
    bool stopping;
};

/* ---- The queue; all under the lock ---- */

static bool is_before(const struct pay_attempt *a, const struct pay_attempt *b)
{
    return a->due_us != b->due_us ? a->due_us < b->due_us : a->order < b->order;
}

static void heap_push(struct pay *pay, struct pay_attempt *attempt)
{
    if (pay->count == pay->capacity) {
        pay->capacity = pay->capacity == 0 ? 64 : pay->capacity * 2;
        pay->heap = realloc(pay->heap, pay->capacity * sizeof *pay->heap);
        CHECK(pay->heap != NULL);
    }
    attempt->order = pay->order++;
    size_t i = pay->count++;
    while (i > 0 && is_before(attempt, pay->heap[(i - 1) / 2])) {
        pay->heap[i] = pay->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    pay->heap[i] = attempt;
    if (i == 0)
        pthread_cond_signal(&pay->wake); /* the thread may be waiting for a later one */
}

static struct pay_attempt *heap_pop(struct pay *pay)
{
    struct pay_attempt *first = pay->heap[0];
    struct pay_attempt *last = pay->heap[--pay->count];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= pay->count)
            break;
        if (child + 1 < pay->count && is_before(pay->heap[child + 1], pay->heap[child]))
            child++;
        if (!is_before(pay->heap[child], last))
            break;
        pay->heap[i] = pay->heap[child];
        i = child;
    }
    pay->heap[i] = last;
    return first;
}

/* ---- An attempt's way ---- */

static int64_t backoff_ms(int32_t attempt)
{
    int64_t delay_ms = PAY_BACKOFF_MS_FIRST;
    for (int32_t i = 1; i < attempt && delay_ms < PAY_BACKOFF_MS_MAX; i++)
        delay_ms *= 2;
    return delay_ms < PAY_BACKOFF_MS_MAX ? delay_ms : PAY_BACKOFF_MS_MAX;
}

static void attempt_start(struct pay *pay, struct pay_attempt *attempt, int64_t now_us)
{
    attempt->state = ATTEMPT_STARTED;
    attempt->started_us = now_us;
    list_append(&pay->started, &attempt->node);
    pthread_mutex_unlock(&pay->lock);
    if (attempt->job.refund)
        pay->gateway->refund(pay->gateway, pay, attempt, now_us);
    else
        pay->gateway->charge(pay->gateway, pay, attempt, now_us);
    pthread_mutex_lock(&pay->lock);
}

void pay_answer(struct pay *pay, struct pay_attempt *attempt, enum pay_outcome outcome, int64_t delay_ms)
{
    pthread_mutex_lock(&pay->lock);
    CHECK(attempt->state == ATTEMPT_STARTED);
    list_remove(&attempt->node);
    attempt->state = ATTEMPT_ANSWERED;
    attempt->outcome = outcome;
    attempt->due_us = clock_monotonic_us() + delay_ms * 1000;
    heap_push(pay, attempt);
    pthread_mutex_unlock(&pay->lock);
}

static void attempt_tell(struct pay *pay, struct pay_attempt *attempt, int64_t now_us)
{
    pthread_mutex_unlock(&pay->lock);
    histogram_observe(HISTOGRAM_PAYMENT_SECONDS, (double)(now_us - attempt->started_us) / 1e6);
    if (attempt->outcome == PAY_UNKNOWN)
        counter_add(COUNTER_PAYMENTS_UNKNOWN, 1);
    pay->on_outcome(pay->context, &attempt->job, attempt->outcome);
    pthread_mutex_lock(&pay->lock);

    if (attempt->outcome != PAY_UNKNOWN) {
        free(attempt);
        return;
    }
    attempt->due_us = now_us + backoff_ms(attempt->job.attempt) * 1000;
    attempt->state = ATTEMPT_WAITING;
    if (attempt->job.attempt < INT32_MAX)
        attempt->job.attempt++;
    heap_push(pay, attempt);
}

static void wait_for_next(struct pay *pay)
{
    if (pay->count == 0) {
        pthread_cond_wait(&pay->wake, &pay->lock);
        return;
    }
    int64_t due_us = pay->heap[0]->due_us;
    struct timespec due = {.tv_sec = due_us / 1000000, .tv_nsec = due_us % 1000000 * 1000};
    pthread_cond_timedwait(&pay->wake, &pay->lock, &due);
}

static void *pay_thread(void *context)
{
    struct pay *pay = context;
    sigset_t signals;

    sigfillset(&signals); /* they are the main thread's */
    pthread_sigmask(SIG_SETMASK, &signals, NULL);
    pthread_setname_np(pthread_self(), "pay");

    pthread_mutex_lock(&pay->lock);
    while (!pay->stopping) {
        int64_t now_us = clock_monotonic_us();
        if (pay->count == 0 || pay->heap[0]->due_us > now_us) {
            wait_for_next(pay);
            continue;
        }
        struct pay_attempt *attempt = heap_pop(pay);
        if (attempt->state == ATTEMPT_ANSWERED)
            attempt_tell(pay, attempt, now_us);
        else
            attempt_start(pay, attempt, now_us);
    }
    pthread_mutex_unlock(&pay->lock);
    return NULL;
}

/* ---- The face ---- */

enum err pay_create(struct pay_gateway *gateway, pay_on_outcome on_outcome, void *context, struct pay **out)
{
    struct pay *pay = calloc(1, sizeof *pay);
    if (pay == NULL)
        goto no_pay;
    pay->gateway = gateway;
    pay->on_outcome = on_outcome;
    pay->context = context;
    list_init(&pay->started);
    pthread_mutex_init(&pay->lock, NULL);

    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&pay->wake, &attributes);
    pthread_condattr_destroy(&attributes);

    if (pthread_create(&pay->thread, NULL, pay_thread, pay) != 0)
        goto no_thread;
    *out = pay;
    return ERR_OK;

no_thread:
    pthread_cond_destroy(&pay->wake);
    pthread_mutex_destroy(&pay->lock);
    free(pay);
no_pay:
    gateway->destroy(gateway);
    return ERR_INTERNAL;
}

void pay_destroy(struct pay *pay)
{
    if (pay == NULL)
        return;
    pthread_mutex_lock(&pay->lock);
    pay->stopping = true;
    pthread_cond_signal(&pay->wake);
    pthread_mutex_unlock(&pay->lock);
    pthread_join(pay->thread, NULL);
    pay->gateway->destroy(pay->gateway);

    struct list *node;
    while ((node = list_pop(&pay->started)) != NULL)
        free(CONTAINER_OF(node, struct pay_attempt, node));
    for (size_t i = 0; i < pay->count; i++)
        free(pay->heap[i]);
    free(pay->heap);
    pthread_cond_destroy(&pay->wake);
    pthread_mutex_destroy(&pay->lock);
    free(pay);
}

void pay_submit(struct pay *pay, const struct pay_job *job)
{
    struct pay_attempt *attempt = calloc(1, sizeof *attempt);
    CHECK(attempt != NULL);
    attempt->job = *job;
    attempt->job.token[sizeof attempt->job.token - 1] = '\0';
    if (attempt->job.attempt < 1)
        attempt->job.attempt = 1;
    list_init(&attempt->node);
    attempt->state = ATTEMPT_WAITING;

    pthread_mutex_lock(&pay->lock);
    attempt->due_us = clock_monotonic_us();
    heap_push(pay, attempt);
    pthread_mutex_unlock(&pay->lock);
}
