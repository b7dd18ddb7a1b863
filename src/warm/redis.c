/* SPDX-License-Identifier: Apache-2.0
 * The warm tier in Redis: one connection for everything that is asked and
 * written, a second one that listens to the other nodes, the breaker, and the
 * turn that sees to them all.
 *
 *   1. Nothing waits: sockets are non-blocking, names are looked up elsewhere.
 *   2. A round is answered, or over after WARM_ROUND_MS_MAX; what came in time
 *      but was read late still counts, so answers are taken before deadlines.
 *   3. A round that took too long drops its connection, because its answers
 *      would come when nobody knows any more whose they are. While a connection
 *      is still being made it goes on, and only the round is over.
 *   4. Redis carries a mark. If that is gone or another one, Redis was emptied
 *      or is a different one: it is rebuilt before it filters again.
 *
 * The lane's thread. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/check.h"
#include "base/metrics.h"
#include "warm/redis_int.h"
#include "warm/resp.h"

/* ---- Waiters ---- */

struct waiter *redis_wait(struct redis *redis)
{
    struct waiter *waiter = calloc(1, sizeof(*waiter));
    CHECK(waiter != NULL);
    list_append(&redis->waiters, &waiter->node);
    redis->wanted = true;
    return waiter;
}

void waiter_end(struct waiter *waiter, enum warm_outcome outcome)
{
    struct warm_round *round = waiter->round;
    struct warm_read *read = waiter->read;
    waiter->round = NULL;
    waiter->read = NULL;
    if (round != NULL) {
        round->outcome = outcome;
        round->on_done(round);
    }
    if (read != NULL) {
        read->outcome = outcome;
        read->on_done(read);
    }
}

void redis_answered(struct redis *redis, struct waiter *waiter)
{
    if (--waiter->left > 0)
        return;
    list_remove(&waiter->node);
    if (waiter->round != NULL || waiter->read != NULL) {
        breaker_worked(&redis->breaker);
        histogram_observe(HISTOGRAM_WARM_SECONDS, (double)(redis->now_us - waiter->began_us) / 1e6);
    }
    waiter_end(waiter, WARM_ANSWERED);
    free(waiter);
}

/* What they ask anew from their callbacks is not lost with them. */
void redis_lose_waiters(struct redis *redis, enum warm_outcome outcome)
{
    struct list lost;
    list_init(&lost);
    list_splice(&lost, &redis->waiters);
    struct list *node;
    while ((node = list_pop(&lost)) != NULL) {
        struct waiter *waiter = CONTAINER_OF(node, struct waiter, node);
        waiter_end(waiter, outcome);
        free(waiter);
    }
}

/* ---- The connection that is asked ---- */

enum greeting { GREETING_MARK = SCRIPT_COUNT, GREETING_PACK, GREETING_PING, GREETING_COUNT };

static void redis_put_mark(struct redis *redis, struct buf *out)
{
    struct uuid mark = uuid_make(&redis->rng, redis->now_us / 1000);
    uuid_format(&mark, redis->next_mark);
    resp_array(out, 5);
    resp_text(out, "SET");
    keys_put_mark(out, redis->prefix);
    resp_text(out, redis->next_mark);
    resp_text(out, "NX");
    resp_text(out, "GET");
}

/* Makes a packed hash that is dead at once: an older server, or rights that do not reach that far, say no. */
static void redis_put_probe(struct redis *redis, struct buf *out)
{
    struct pack pack;
    pack_begin(&pack);
    pack_put(&pack, "field", 5);
    pack_put(&pack, "value", 5);
    pack_end(&pack, &redis->sums);
    resp_array(out, 5);
    resp_text(out, "RESTORE");
    keys_put_probe(out, redis->prefix);
    resp_int(out, 1);
    resp_bulk(out, (const char *)pack.data, pack.size);
    resp_text(out, "ABSTTL");
}

static int redis_greet(struct link *link, struct buf *out)
{
    scripts_put_load(out);
    redis_put_mark(link->context, out);
    redis_put_probe(link->context, out);
    resp_array(out, 1);
    resp_text(out, "PING");
    return GREETING_COUNT;
}

/* What the mark is now; true if it is the one that was seen before. */
static bool redis_take_mark(struct redis *redis, const struct reply *reply)
{
    const char *now = reply->type == REDIS_REPLY_STRING ? reply->text : redis->next_mark;
    bool same = strcmp(now, redis->mark) == 0;
    snprintf(redis->mark, sizeof(redis->mark), "%s", now);
    redis->mark_at_us = redis->now_us + REDIS_MARK_MS * 1000;
    return same;
}

static bool redis_on_greeting(struct link *link, int index, const struct reply *reply)
{
    struct redis *redis = link->context;
    if (index == GREETING_PACK)
        redis->restores = reply->type != REDIS_REPLY_ERROR;
    else if (reply->type == REDIS_REPLY_ERROR)
        return false;
    if (index == GREETING_MARK && !redis_take_mark(redis, reply) && redis->breaker.state == WARM_CLOSED)
        breaker_rebuild(&redis->breaker, "it was emptied, or is another one");
    return true;
}

static void redis_on_ready(struct link *link)
{
    struct redis *redis = link->context;
    if (redis->breaker.state == WARM_OPEN)
        breaker_rebuild(&redis->breaker, "it answers again");
}

static void redis_count_failure(struct redis *redis, bool timed_out, const char *why)
{
    counter_add(timed_out ? COUNTER_WARM_ERRORS_TIMEOUT : COUNTER_WARM_ERRORS_CONNECTION, 1);
    breaker_failed(&redis->breaker, redis->now_us, why);
}

static void redis_on_failed(struct link *link, bool timed_out, const char *why)
{
    struct redis *redis = link->context;
    redis_count_failure(redis, timed_out, why);
    if (redis->breaker.state == WARM_OPEN)
        breaker_wait(&redis->breaker, redis->now_us);
    redis->connect_at_us = redis->now_us + REDIS_RECONNECT_MS * 1000;
    redis_lose_waiters(redis, timed_out ? WARM_TIMED_OUT : WARM_FAILED);
}

static void redis_on_message(struct link *link, const struct reply *reply)
{
    (void)reply;
    link_fail(link, false, "it answers what it was not asked");
}

static const struct link_functions redis_link_functions = {
    .greet = redis_greet,
    .on_greeting = redis_on_greeting,
    .on_ready = redis_on_ready,
    .on_failed = redis_on_failed,
    .on_message = redis_on_message,
};

/* ---- The mark ---- */

static bool redis_on_mark(struct link *link, struct owed *owed, const struct reply *reply)
{
    struct redis *redis = link->context;
    (void)owed;
    if (reply->type == REDIS_REPLY_ERROR || redis_take_mark(redis, reply))
        return true;
    /* What was written so far is gone with the mark, so a rebuild under way begins anew, too. */
    if (redis->breaker.state == WARM_REBUILDING)
        link_fail(link, false, "it was emptied while it was rebuilt");
    else
        breaker_rebuild(&redis->breaker, "it was emptied");
    return true;
}

static void redis_ask_for_mark(struct redis *redis)
{
    if (redis->link.state != LINK_READY || redis->now_us < redis->mark_at_us)
        return;
    redis->mark_at_us = redis->now_us + REDIS_MARK_MS * 1000;
    redis_put_mark(redis, &redis->link.out);
    link_owe(&redis->link, &(struct owed){.on_reply = redis_on_mark, .count = 1});
}

/* ---- The turn ---- */

/* Which of the connections have something to read, or room to write. */
static void redis_poll(struct redis *redis, bool *link_ready, bool *subscription_ready)
{
    struct epoll_event events[4];
    int count = epoll_wait(redis->epoll, events, COUNT_OF(events), 0);
    for (int i = 0; i < count; i++) {
        *link_ready |= events[i].data.ptr == &redis->link;
        *subscription_ready |= events[i].data.ptr == &redis->subscription.link;
    }
}

/* Rounds that took too long are over. With an open connection the first of them is enough to drop it, and all of them
 * with it; otherwise each is a failure of its own. */
static void redis_end_late(struct redis *redis)
{
    LIST_FOR_EACH(node, &redis->waiters) {
        struct waiter *waiter = CONTAINER_OF(node, struct waiter, node);
        if (waiter->began_us == 0) {
            waiter->began_us = redis->now_us;
            waiter->deadline_us = redis->now_us + WARM_ROUND_MS_MAX * 1000;
        }
    }
    for (;;) {
        struct waiter *late = NULL;
        LIST_FOR_EACH(node, &redis->waiters) {
            struct waiter *waiter = CONTAINER_OF(node, struct waiter, node);
            if (waiter->round != NULL && redis->now_us >= waiter->deadline_us) {
                late = waiter;
                break;
            }
        }
        if (late == NULL)
            return;
        if (redis->link.state == LINK_READY) {
            link_fail(&redis->link, true, "a round took too long");
            return;
        }
        redis_count_failure(redis, true, "a round took too long");
        waiter_end(late, WARM_TIMED_OUT);
    }
}

/* While it is open nothing is asked; what was asked before is over. */
static void redis_drop_asked(struct redis *redis)
{
    if (redis->breaker.state != WARM_OPEN || redis->link.state == LINK_READY)
        return;
    link_drop_queue(&redis->link);
    bits_clear(&redis->bits);
    redis_lose_waiters(redis, WARM_FAILED);
}

static void redis_connect(struct redis *redis)
{
    if (redis->link.state != LINK_DOWN)
        return;
    bool due = redis->breaker.state == WARM_OPEN ? breaker_may_connect(&redis->breaker, redis->now_us)
                                                 : redis->wanted || redis->now_us >= redis->connect_at_us;
    if (due)
        link_connect(&redis->link, redis->now_us);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t redis_due_us(struct redis *redis)
{
    int64_t due = earlier(link_due_us(&redis->link), subscription_due_us(redis));
    due = earlier(due, bits_due_us(redis));
    if (redis->link.state == LINK_READY)
        due = earlier(due, redis->mark_at_us);
    else if (redis->link.state == LINK_DOWN)
        due = earlier(due,
                      redis->breaker.state == WARM_OPEN ? redis->breaker.retry_at_us : redis->connect_at_us);
    LIST_FOR_EACH(node, &redis->waiters) {
        struct waiter *waiter = CONTAINER_OF(node, struct waiter, node);
        if (waiter->began_us == 0)
            return redis->now_us; /* asked in a callback of this turn */
        if (waiter->round != NULL)
            due = earlier(due, waiter->deadline_us);
    }
    return due;
}

static int64_t redis_turn(struct warm *warm, int64_t now_us)
{
    struct redis *redis = redis_of(warm);
    bool link_ready = false, subscription_ready = false;
    redis->now_us = now_us;
    redis_connect(redis);
    redis->wanted = false;
    redis_poll(redis, &link_ready, &subscription_ready);
    bool owed = redis->link.replies_owed > 0;
    link_turn(&redis->link, now_us, link_ready);
    if (owed && redis->link.state == LINK_READY && redis->link.replies_owed == 0)
        breaker_worked(&redis->breaker);
    redis_end_late(redis);
    redis_drop_asked(redis);
    redis_ask_for_mark(redis);
    bits_turn(redis);
    link_flush(&redis->link, now_us);
    subscription_turn(redis, subscription_ready);
    return redis_due_us(redis);
}

/* ---- The rest of warm.h ---- */

static void redis_destroy(struct warm *warm)
{
    struct redis *redis = redis_of(warm);
    redis_lose_waiters(redis, WARM_FAILED);
    link_deinit(&redis->link);
    link_deinit(&redis->subscription.link);
    for (int32_t i = 0; i < redis->list.count; i++)
        tls_destroy(redis->tls[i]);
    close(redis->epoll);
    buf_deinit(&redis->message);
    bits_deinit(&redis->bits);
    free(redis->order);
    explicit_bzero(&redis->list, sizeof(redis->list));
    free(redis);
    gauge_set(GAUGE_WARM_UP, 0);
    gauge_set(GAUGE_BREAKER_STATE, -1);
}

static int redis_fd(struct warm *warm)
{
    return redis_of(warm)->epoll;
}

static enum warm_state redis_state(const struct warm *warm)
{
    return CONTAINER_OF(warm, const struct redis, warm)->breaker.state;
}

static void redis_rebuilt(struct warm *warm)
{
    breaker_rebuilt(&redis_of(warm)->breaker);
}

static const struct warm_functions redis_functions = {
    .destroy = redis_destroy,
    .fd = redis_fd,
    .turn = redis_turn,
    .state = redis_state,
    .rebuilt = redis_rebuilt,
    .lock = redis_lock,
    .write = redis_write,
    .nudge = redis_nudge,
    .occupancy = redis_occupancy,
    .read = redis_read,
    .remove_members = redis_remove_members,
};

static enum err redis_configure(struct redis *redis, const struct warm_config *config, char *why,
                                size_t why_size)
{
    enum err err = url_parse(config->url, &redis->list, why, why_size);
    for (int32_t i = 0; i < redis->list.count && err == ERR_OK; i++)
        err = tls_create(&redis->list.addresses[i], &redis->tls[i], why, why_size);
    if (err == ERR_OK && (config->prefix[0] == '\0' || strlen(config->prefix) > KEY_PREFIX_SIZE_MAX)) {
        snprintf(why, why_size, "The prefix of Redis' keys must have 1 to %d bytes.", KEY_PREFIX_SIZE_MAX);
        err = ERR_CONFIG;
    }
    redis->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (err == ERR_OK && redis->epoll < 0) {
        snprintf(why, why_size, "Redis cannot be connected to: %s.", strerror(errno));
        err = ERR_CONFIG;
    }
    return err;
}

enum err warm_create(const struct warm_config *config, struct warm **out, char *why, size_t why_size)
{
    struct redis *redis = calloc(1, sizeof(*redis));
    CHECK(redis != NULL);
    enum err err = redis_configure(redis, config, why, why_size);
    if (err != ERR_OK) {
        for (int32_t i = 0; i < redis->list.count; i++)
            tls_destroy(redis->tls[i]);
        if (redis->epoll >= 0)
            close(redis->epoll);
        free(redis);
        return err;
    }
    redis->warm.functions = &redis_functions;
    snprintf(redis->prefix, sizeof(redis->prefix), "%s", config->prefix);
    uuid_format(&config->node_id, redis->node);
    redis->on_nudge = config->on_nudge;
    redis->context = config->context;
    rng_init_system(&redis->rng);
    list_init(&redis->waiters);
    scripts_init(&redis->scripts);
    pack_sums_init(&redis->sums);
    breaker_init(&redis->breaker, redis->list.retry_ms);
    link_init(&redis->link, &redis_link_functions, redis, &redis->list, redis->tls, redis->epoll);
    subscription_init(redis);
    *out = &redis->warm;
    return ERR_OK;
}

enum err warm_check(const struct warm_config *config, char *why, size_t why_size)
{
    struct warm *warm = NULL;
    enum err err = warm_create(config, &warm, why, why_size);
    warm_destroy(warm);
    return err;
}
