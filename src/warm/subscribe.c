/* SPDX-License-Identifier: Apache-2.0
 * Listens to the other nodes on a connection of its own: PSUBSCRIBE
 * occupancy:*. A message is only a nudge, so its content does not matter, but
 * for the node that sent it: one's own say nothing new. However many come in a
 * turn, the lane is nudged once; and once when the subscription begins, because
 * messages may have been missed.
 *
 * It follows the other connection: to the same address, and only while that one
 * is ready. Its failures are not the breaker's. */
#include <string.h>

#include "base/metrics.h"
#include "warm/redis_int.h"
#include "warm/resp.h"

static int subscription_greet(struct link *link, struct buf *out)
{
    (void)link;
    resp_array(out, 2);
    resp_text(out, "PSUBSCRIBE");
    resp_text(out, "occupancy:*");
    return 1;
}

static bool subscription_on_greeting(struct link *link, int index, const struct reply *reply)
{
    (void)link;
    (void)index;
    return reply->type == REDIS_REPLY_ARRAY;
}

static void subscription_on_ready(struct link *link)
{
    struct redis *redis = link->context;
    redis->subscription.nudged = true;
    redis->subscription.asked = false;
    redis->subscription.due_us = redis->now_us + REDIS_LISTEN_MS * 1000;
}

static void subscription_on_failed(struct link *link, bool timed_out, const char *why)
{
    struct redis *redis = link->context;
    (void)why;
    counter_add(timed_out ? COUNTER_WARM_ERRORS_TIMEOUT : COUNTER_WARM_ERRORS_CONNECTION, 1);
    redis->subscription.due_us = redis->now_us + REDIS_SUBSCRIBE_MS * 1000;
}

/* ["pmessage", pattern, channel, message], or ["pong", ""]. */
static void subscription_on_message(struct link *link, const struct reply *reply)
{
    struct redis *redis = link->context;
    const struct reply *kind =
        reply->type == REDIS_REPLY_ARRAY && reply->count > 0 ? reply->elements[0] : reply;
    if (kind == NULL || kind->text == NULL)
        return;
    if (strcasecmp(kind->text, "pong") == 0)
        redis->subscription.asked = false;
    if (strcmp(kind->text, "pmessage") != 0 || reply->count != 4 || reply->elements[3] == NULL)
        return;
    const struct reply *message = reply->elements[3];
    if (message->text != NULL &&
        memmem(message->text, message->size, redis->node, UUID_TEXT_SIZE - 1) != NULL)
        return;
    redis->subscription.nudged = true;
    counter_add(COUNTER_NUDGES, 1);
}

static const struct link_functions subscription_functions = {
    .greet = subscription_greet,
    .on_greeting = subscription_on_greeting,
    .on_ready = subscription_on_ready,
    .on_failed = subscription_on_failed,
    .on_message = subscription_on_message,
};

void subscription_init(struct redis *redis)
{
    link_init(&redis->subscription.link, &subscription_functions, redis, &redis->list, redis->tls,
              redis->epoll);
}

/* A connection that is cut without a word would be silent for ever, so it is asked now and then. */
static void subscription_ask(struct redis *redis)
{
    struct subscription *subscription = &redis->subscription;
    if (subscription->asked) {
        link_fail(&subscription->link, true, "it does not answer");
        return;
    }
    subscription->asked = true;
    subscription->due_us = redis->now_us + REDIS_LISTEN_MS * 1000;
    resp_array(&subscription->link.out, 1);
    resp_text(&subscription->link.out, "PING");
}

void subscription_turn(struct redis *redis, bool ready)
{
    struct subscription *subscription = &redis->subscription;
    struct link *link = &subscription->link;
    link_turn(link, redis->now_us, ready);
    bool due = redis->now_us >= subscription->due_us;
    if (redis->link.state == LINK_READY) {
        if (link->state != LINK_DOWN && link->address != redis->link.address)
            link_fail(link, false, "the other connection has moved");
        if (link->state == LINK_DOWN && due) {
            link->address = redis->link.address;
            link_connect(link, redis->now_us);
        } else if (link->state == LINK_READY && due) {
            subscription_ask(redis);
        }
    }
    link_flush(link, redis->now_us);
    if (subscription->nudged) {
        subscription->nudged = false;
        redis->on_nudge(redis->context);
    }
}

int64_t subscription_due_us(const struct redis *redis)
{
    const struct subscription *subscription = &redis->subscription;
    int64_t due = link_due_us(&subscription->link);
    bool waits = redis->link.state == LINK_READY &&
                 (subscription->link.state == LINK_DOWN || subscription->link.state == LINK_READY);
    return waits && subscription->due_us < due ? subscription->due_us : due;
}
