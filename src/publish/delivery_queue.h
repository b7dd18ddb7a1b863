/* SPDX-License-Identifier: Apache-2.0
 * What is sent next: the events of one page of the feed, how many of them go
 * into the next request, when, and which of them are given up.
 *
 * One request at a time, from the head on, so that every key keeps its order.
 *
 *   plain ──delivered──▶ plain (the next ones)
 *     │ failed: the same again after 1, 2, 4 … 60 s, `tries_max` times
 *     │ refused, or tried often enough
 *     ▼
 *   asking: an empty request. Is it the receiver, or what we send?
 *     │ no good answer ─▶ plain, after a pause: the receiver is away, nothing is given up
 *     │ a good answer
 *     ├─ several events ─▶ halving ──until one is left──▶ asking once more
 *     └─ one event ──────▶ last ──delivered──▶ plain
 *                            └─ anything else ─▶ that event is dead; plain
 *
 * Invariants: (1) an event is given up only right after the receiver took an
 * empty request, so an outage or a wrong address gives up nothing. (2) All events
 * before `at` were delivered or given up.
 *
 * Pure: given the same answers and times it does the same. */
#ifndef HOLDFAST_PUBLISH_DELIVERY_QUEUE_H
#define HOLDFAST_PUBLISH_DELIVERY_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "publish/delivery.h"
#include "publish/domain_event.h"

enum {
    DELIVERY_BACKOFF_MS_FIRST = 1000,
    DELIVERY_BACKOFF_MS_MAX = 60000,
    DELIVERY_REQUEST_COUNT_MAX = 256,       /* events in a request … */
    DELIVERY_REQUEST_SIZE_MAX = 512 * 1024, /* … and their bytes, but for one that is larger */
};

enum queue_stage { QUEUE_PLAIN, QUEUE_ASKING, QUEUE_HALVING, QUEUE_LAST };

struct delivery_queue {
    const struct domain_event *events; /* borrows */
    int32_t count;
    int32_t at; /* the head */
    enum queue_stage stage;
    int32_t request_count; /* how many events the request under way, or the last one, has or had */
    int32_t bad_end;       /* while halving: the trouble is before this one */
    int32_t tries;         /* requests with what is at the head that failed */
    int32_t pauses;        /* since something was delivered */
    int64_t next_ms;       /* not before this */
    int32_t tries_max;
    struct rng rng; /* for the jitter */
};

void delivery_queue_init(struct delivery_queue *queue, int32_t tries_max, uint64_t seed);
/* The events must live until they are done. What is known of the receiver stays. */
void delivery_queue_fill(struct delivery_queue *queue, const struct domain_event *events, int32_t count);
bool delivery_queue_is_done(const struct delivery_queue *queue);

/* How many events from `at` on to send now; 0: an empty request. Not before next_ms, not when done. */
int32_t delivery_queue_next(struct delivery_queue *queue);

/* What became of it. True: the event at `dead` is given up after so many tries. */
struct dead_event {
    const struct domain_event *event;
    int32_t tries;
};
bool delivery_queue_answer(struct delivery_queue *queue, const struct delivery_outcome *outcome,
                           int64_t now_ms, struct dead_event *dead);

#endif
