/* SPDX-License-Identifier: Apache-2.0
 * See delivery_queue.h, which has the diagram. Deliverer's thread; no clock, no network. */
#include "publish/delivery_queue.h"

#include "base/check.h"

void delivery_queue_init(struct delivery_queue *queue, int32_t tries_max, uint64_t seed)
{
    CHECK(tries_max > 0);
    *queue = (struct delivery_queue){.tries_max = tries_max};
    rng_init_seed(&queue->rng, seed);
}

void delivery_queue_fill(struct delivery_queue *queue, const struct domain_event *events, int32_t count)
{
    queue->events = events;
    queue->count = count;
    queue->at = 0;
    queue->stage = QUEUE_PLAIN;
    queue->bad_end = 0;
}

bool delivery_queue_is_done(const struct delivery_queue *queue)
{
    return queue->at == queue->count;
}

/* As many as fit, at least one. */
static int32_t fitting(const struct delivery_queue *queue, int32_t end)
{
    size_t size = 0;
    int32_t count = 0;

    while (queue->at + count < end && count < DELIVERY_REQUEST_COUNT_MAX) {
        size += queue->events[queue->at + count].size;
        if (count > 0 && size > DELIVERY_REQUEST_SIZE_MAX)
            break;
        count++;
    }
    return count;
}

int32_t delivery_queue_next(struct delivery_queue *queue)
{
    CHECK(!delivery_queue_is_done(queue));
    switch (queue->stage) {
    case QUEUE_PLAIN:
        queue->request_count = fitting(queue, queue->count);
        return queue->request_count;
    case QUEUE_HALVING:
        queue->request_count = (queue->bad_end - queue->at + 1) / 2;
        return queue->request_count;
    case QUEUE_LAST:
        CHECK(queue->request_count == 1);
        return 1;
    case QUEUE_ASKING:
        break;
    }
    return 0; /* request_count stays: it says what the answer is about */
}

/* Half of it at least, the rest by chance: receivers that come back are not met by everybody at once. */
static void queue_pause(struct delivery_queue *queue, const struct delivery_outcome *outcome, int64_t now_ms)
{
    int64_t delay_ms = DELIVERY_BACKOFF_MS_FIRST, asked_ms = outcome->retry_after_ms;

    for (int32_t i = 0; i < queue->pauses && delay_ms < DELIVERY_BACKOFF_MS_MAX; i++)
        delay_ms *= 2;
    if (delay_ms > DELIVERY_BACKOFF_MS_MAX)
        delay_ms = DELIVERY_BACKOFF_MS_MAX;
    if (asked_ms > DELIVERY_BACKOFF_MS_MAX)
        asked_ms = DELIVERY_BACKOFF_MS_MAX;
    delay_ms = delay_ms / 2 + (int64_t)rng_below(&queue->rng, (uint64_t)delay_ms / 2 + 1);
    queue->pauses++;
    queue->next_ms = now_ms + (delay_ms > asked_ms ? delay_ms : asked_ms);
}

static void queue_passed(struct delivery_queue *queue, int32_t count)
{
    queue->at += count;
    queue->pauses = 0;
    if (queue->stage == QUEUE_HALVING && queue->at < queue->bad_end)
        return; /* those that are left were part of what failed */
    queue->stage = QUEUE_PLAIN;
    queue->tries = 0;
}

/* The receiver was asked whether it is there. */
static void queue_asked(struct delivery_queue *queue, const struct delivery_outcome *outcome, int64_t now_ms)
{
    if (outcome->answer != ANSWER_DELIVERED) {
        queue->stage = QUEUE_PLAIN;
        queue_pause(queue, outcome, now_ms);
    } else if (queue->request_count == 1) {
        queue->stage = QUEUE_LAST;
    } else {
        queue->stage = QUEUE_HALVING;
        queue->bad_end = queue->at + queue->request_count;
    }
}

static void queue_failed(struct delivery_queue *queue, const struct delivery_outcome *outcome, int64_t now_ms)
{
    bool hopeless = outcome->answer == ANSWER_REFUSED || queue->tries >= queue->tries_max;

    if (queue->stage == QUEUE_HALVING && queue->request_count > 1)
        queue->bad_end = queue->at + queue->request_count;
    else if (queue->stage == QUEUE_HALVING || hopeless)
        queue->stage = QUEUE_ASKING;
    else
        queue_pause(queue, outcome, now_ms);
}

bool delivery_queue_answer(struct delivery_queue *queue, const struct delivery_outcome *outcome,
                           int64_t now_ms, struct dead_event *dead)
{
    queue->next_ms = now_ms;
    if (queue->stage == QUEUE_ASKING) {
        queue_asked(queue, outcome, now_ms);
        return false;
    }
    if (outcome->answer == ANSWER_DELIVERED) {
        queue_passed(queue, queue->request_count);
        return false;
    }
    queue->tries++;
    if (queue->stage != QUEUE_LAST) {
        queue_failed(queue, outcome, now_ms);
        return false;
    }
    *dead = (struct dead_event){.event = &queue->events[queue->at], .tries = queue->tries};
    queue_passed(queue, 1);
    return true;
}
