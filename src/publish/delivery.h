/* SPDX-License-Identifier: Apache-2.0
 * The deliverer: follows the change feed and hands its domain events to a
 * channel (a webhook, a topic of Kafka), in order, at least once. Several may be
 * on one store, each with a channel, a row and a lease of its own.
 *
 *   store ──follow──▶ changes ──domain_event──▶ queue ──channel──▶ receiver
 *     ▲                                           │
 *     └── position, lease and dead letters, one compare-and-set unit ◀──┘
 *
 * Invariants:
 *  1. One node delivers at a time (delivery_lease.h); it stops sending when its
 *     lease has run out.
 *  2. The position in the store moves only past events that were delivered or
 *     given up, and those given up are written with it.
 *  3. The lane is never waited for by anybody but this thread, and never waits
 *     for the receiver.
 *
 * A thread of its own. The store's calls belong to the lane's thread, so each is
 * a task that somebody runs there (`post`), and its callback comes from there. */
#ifndef HOLDFAST_PUBLISH_DELIVERY_H
#define HOLDFAST_PUBLISH_DELIVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/metrics.h"
#include "publish/domain_event.h"
#include "store/store.h"

struct delivery;

/* Something to be run once on the thread that polls the store. */
struct delivery_task {
    void (*run)(struct delivery_task *task, struct store *store);
};

/* ---- How events travel ---- */

enum delivery_answer {
    ANSWER_DELIVERED,
    ANSWER_FAILED,  /* it may work later: no answer, or one that says so */
    ANSWER_REFUSED, /* the same again will not work */
};

enum { DELIVERY_REASON_SIZE = 160 };

struct delivery_outcome {
    enum delivery_answer answer;
    int64_t retry_after_ms;            /* the receiver asks for this much, or 0 */
    char reason[DELIVERY_REASON_SIZE]; /* unless delivered: one phrase */
};

struct delivery_metrics {
    enum counter delivered, retried, dead;
    enum gauge leader, backlog;
};

/* One request at a time. All but `wake` on the deliverer's thread. */
struct delivery_channel {
    const char *name; /* of the delivery's row: "webhook", "kafka" */
    const struct delivery_metrics *metrics;
    /* Begins. No events: an empty request, which a receiver that is well takes. */
    void (*begin)(struct delivery_channel *channel, const struct domain_event *events, int32_t count,
                  int64_t now_ms);
    /* Goes on with the request that was begun, for so long at most; false: it is still under way. Without one it only
     * waits. */
    bool (*wait)(struct delivery_channel *channel, int64_t timeout_ms, struct delivery_outcome *out);
    void (*cancel)(struct delivery_channel *channel); /* what was begun; nothing is fine */
    void (*wake)(struct delivery_channel *channel);   /* any thread: ends a wait early */
    void (*destroy)(struct delivery_channel *channel);
};

/* ---- The deliverer ---- */

struct delivery_config {
    struct delivery_channel *channel; /* takes it */
    struct feed_position beginning;   /* where to begin if it never ran on this store */
    struct uuid node;                 /* who we are; another one at every start */
    bool alone;                       /* nobody else can have this store open */
    int32_t tries_max;                /* failures of what is sent before it is suspected */
    /* Has the task run on the thread that polls the store, unless that thread ends before. There is one at a time.
     * Deliverer's thread. */
    void (*post)(void *context, struct delivery_task *task);
    void *context;
};

/* The end of the feed at this moment. Blocks: before the lane begins, on its thread. */
enum err delivery_beginning(struct store *store, struct feed_position *out) MUST_CHECK;

/* Takes the channel, also when it fails. */
enum err delivery_start(const struct delivery_config *config, struct delivery **out) MUST_CHECK;
/* Ends the thread; another node may go on at once. While the lane still turns. */
void delivery_stop(struct delivery *delivery);
/* After the store was closed: a last answer of it may have come until then. NULL is fine. */
void delivery_destroy(struct delivery *delivery);

#endif
