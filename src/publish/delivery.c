/* SPDX-License-Identifier: Apache-2.0
 * The deliverer's thread.
 *
 *   looking ──the lease is free──▶ taking it ──written──▶ leading ─┐
 *      ▲                             │ missed                      │ a write missed or failed, or time ran out
 *      └─────────────────────────────┴─────────────────────────────┘
 *   leading: follow a page ─▶ its events ─▶ send them all ─▶ save the position, with what was given up ─▶ again
 *            and meanwhile, every 3 s: renew
 *
 * Whatever goes wrong with the store ends in looking again: the row there says
 * how far we got, and what was sent after that is sent once more. */
#include "publish/delivery.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "publish/delivery_call.h"
#include "publish/delivery_lease.h"
#include "publish/delivery_queue.h"

enum {
    FOLLOW_LIMIT = 64, /* changes in a page; each is a batch of a lane */
    FOLLOW_MS = 100,   /* how often to look for new ones */
    TROUBLE_MS = 1000, /* the store does not answer well: not at once again */
};

struct delivery {
    struct delivery_config config;
    struct delivery_call call;
    pthread_t thread;
    struct delivery_row row;       /* as it stands in the store, while we lead */
    struct feed_position position; /* all before it is done; the row's follows it */
    struct feed_position page_end; /* of the page in the queue */
    struct delivery_queue queue;
    struct arena page;                 /* changes, events and dead letters */
    struct dead_letter_write *letters; /* not written yet */
    int64_t written_ms;                /* when the row was */
    bool sending;
    bool lost; /* it was said that something was */
};

/* ---- The row ---- */

static const struct delivery_metrics *metrics(const struct delivery *delivery)
{
    return delivery->config.channel->metrics;
}

static bool stopping(struct delivery *delivery)
{
    return delivery_call_is_stopped(&delivery->call);
}

/* Writes the row and what was given up. False: it is not ours any more, or nobody knows. */
static bool write_row(struct delivery *delivery, const struct delivery_row *row, int64_t now_ms)
{
    bool missed = false;
    enum err err = delivery_call_write(&delivery->call, row, delivery->letters, now_ms, &missed);

    if (err != ERR_OK && !stopping(delivery))
        log_write(LOG_WARN, "the position of a delivery was not written", "\"code\":\"%s\"", err_code(err));
    if (err != ERR_OK || missed)
        return false;
    delivery->row = *row;
    delivery->letters = NULL;
    delivery->written_ms = now_ms;
    return true;
}

static bool renew(struct delivery *delivery, int64_t now_ms)
{
    struct delivery_row row = lease_hold(&delivery->row, &delivery->config.node, now_ms);
    row.position = delivery->position;
    return write_row(delivery, &row, now_ms);
}

/* Waits, for a stop as well. */
static void pause_until(struct delivery *delivery, int64_t until_ms)
{
    struct delivery_outcome none;

    while (!stopping(delivery)) {
        int64_t left_ms = until_ms - clock_now_ms();
        if (left_ms <= 0)
            return;
        delivery->config.channel->wait(delivery->config.channel, left_ms, &none);
    }
}

/* True: we lead. Otherwise it has waited until it is worth another look. */
static bool take(struct delivery *delivery)
{
    struct delivery_row row;
    enum err err = delivery_call_lookup(&delivery->call, &row);
    int64_t now_ms = clock_now_ms();

    if (err != ERR_OK) {
        pause_until(delivery, now_ms + TROUBLE_MS);
        return false;
    }
    if (row.version == 0)
        row.position = delivery->config.beginning;
    if (!lease_is_free(&row, &delivery->config.node, delivery->config.alone, now_ms)) {
        pause_until(delivery, lease_look_ms(&row, now_ms));
        return false;
    }
    row = lease_hold(&row, &delivery->config.node, now_ms);
    if (!write_row(delivery, &row, now_ms)) {
        pause_until(delivery, now_ms + TROUBLE_MS);
        return false;
    }
    delivery->position = row.position;
    log_write(LOG_INFO, "this node delivers domain events", "\"delivery\":\"%s\"", row.name);
    return true;
}

/* ---- A page ---- */

/* The feed was purged while nobody delivered it for a week, or the database came from another server: what is left
 * begins where this node began. */
static void skip_lost(struct delivery *delivery)
{
    const struct feed_position *beginning = &delivery->config.beginning;

    if (!delivery->lost)
        log_write(LOG_ERROR, "domain events were lost: the change feed does not go back far enough", NULL);
    delivery->lost = true;
    if (memcmp(&delivery->position, beginning, sizeof *beginning) == 0)
        pause_until(delivery, clock_now_ms() + DELIVERY_RENEW_MS); /* only another start has a newer one */
    delivery->position = *beginning;
}

static void make_events(struct delivery *delivery, const struct store_follow *follow)
{
    struct domain_events *lists = ARENA_ARRAY(&delivery->page, struct domain_events, follow->count + 1);
    int32_t count = 0;

    for (int32_t i = 0; i < follow->count; i++) {
        if (!domain_events_of(&follow->changes[i], &delivery->page, &lists[i]))
            log_write(LOG_ERROR, "a change cannot be read to its end", "\"change\":%lld",
                      (long long)follow->changes[i].id);
        count += lists[i].count;
    }
    struct domain_event *events = ARENA_ARRAY(&delivery->page, struct domain_event, count + 1);
    int32_t at = 0;
    for (int32_t i = 0; i < follow->count; i++) {
        memcpy(&events[at], lists[i].list, (size_t)lists[i].count * sizeof *events);
        at += lists[i].count;
    }
    delivery_queue_fill(&delivery->queue, events, count);
}

/* The next page into the queue; waits if there is none. False: the store does not answer. */
static bool follow_page(struct delivery *delivery)
{
    const struct store_follow *follow = &delivery->call.follow;

    CHECK(delivery->letters == NULL);
    arena_reset(&delivery->page);
    if (delivery_call_follow(&delivery->call, &delivery->position, FOLLOW_LIMIT, &delivery->page) != ERR_OK)
        return false;
    if (follow->lost) {
        skip_lost(delivery);
        return true;
    }
    delivery->lost = false;
    make_events(delivery, follow);
    delivery->page_end = follow->position;
    if (!delivery_queue_is_done(&delivery->queue))
        return true;
    delivery->position = delivery->page_end; /* written with the next renewal */
    if (!follow->more)
        pause_until(delivery, clock_now_ms() + FOLLOW_MS);
    return true;
}

/* ---- Sending ---- */

static void bury(struct delivery *delivery, const struct dead_event *dead, const char *reason, int64_t now_ms)
{
    struct dead_letter_write *letter = ARENA_NEW(&delivery->page, struct dead_letter_write);
    char id[UUID_TEXT_SIZE], quoted[2 * DELIVERY_REASON_SIZE];

    letter->row = (struct dead_letter_row){
        .org_id = dead->event->org_id,
        .id = dead->event->id,
        .delivery = delivery->config.channel->name,
        .type = domain_event_type_name(dead->event->type),
        .body = dead->event->body,
        .reason = arena_text(&delivery->page, reason),
        .try_count = dead->tries,
        .created_ms = now_ms,
    };
    letter->next = delivery->letters;
    delivery->letters = letter;
    counter_add(metrics(delivery)->dead, 1);
    uuid_format(&dead->event->id, id);
    log_quote(reason, quoted, sizeof quoted);
    log_write(LOG_ERROR, "a domain event was given up",
              "\"id\":\"%s\",\"type\":\"%s\",\"reason\":\"%s\",\"tries\":%d", id, letter->row.type, quoted,
              dead->tries);
}

static void count_delivered(const struct delivery *delivery, int32_t from, int64_t now_ms)
{
    const struct delivery_queue *queue = &delivery->queue;
    for (int32_t i = from; i < queue->at; i++) {
        int64_t age_ms = now_ms - queue->events[i].time_ms;
        histogram_observe(HISTOGRAM_DELIVERY_SECONDS, age_ms > 0 ? (double)age_ms / 1e3 : 0);
    }
    counter_add(metrics(delivery)->delivered, (uint64_t)(queue->at - from));
}

static void on_outcome(struct delivery *delivery, const struct delivery_outcome *outcome)
{
    struct delivery_queue *queue = &delivery->queue;
    int64_t now_ms = clock_now_ms();
    int32_t from = queue->at;
    struct dead_event dead;
    char quoted[2 * DELIVERY_REASON_SIZE];

    delivery->sending = false;
    if (delivery_queue_answer(queue, outcome, now_ms, &dead)) {
        bury(delivery, &dead, outcome->reason, now_ms);
    } else if (queue->at > from) {
        count_delivered(delivery, from, now_ms);
    } else if (outcome->answer != ANSWER_DELIVERED) {
        log_quote(outcome->reason, quoted, sizeof quoted);
        log_write(LOG_WARN, "domain events were not delivered",
                  "\"delivery\":\"%s\",\"reason\":\"%s\",\"again_ms\":%lld", delivery->config.channel->name,
                  quoted, (long long)(queue->next_ms - now_ms));
    }
}

static void begin_request(struct delivery *delivery, int64_t now_ms)
{
    struct delivery_queue *queue = &delivery->queue;
    int32_t count = delivery_queue_next(queue);

    if (queue->tries > 0)
        counter_add(metrics(delivery)->retried, (uint64_t)count);
    delivery->config.channel->begin(delivery->config.channel, &queue->events[queue->at], count, now_ms);
    delivery->sending = true;
}

/* Goes on sending until the row is due to be renewed, a request ends, or there is a stop. */
static void send_turn(struct delivery *delivery, int64_t now_ms)
{
    struct delivery_channel *channel = delivery->config.channel;
    int64_t until_ms = delivery->written_ms + DELIVERY_RENEW_MS;
    struct delivery_outcome outcome;

    if (!delivery->sending && delivery->queue.next_ms <= now_ms)
        begin_request(delivery, now_ms);
    if (!delivery->sending && delivery->queue.next_ms < until_ms)
        until_ms = delivery->queue.next_ms;
    if (channel->wait(channel, until_ms > now_ms ? until_ms - now_ms : 0, &outcome))
        on_outcome(delivery, &outcome);
}

static void set_backlog(const struct delivery *delivery, int64_t now_ms)
{
    const struct delivery_queue *queue = &delivery->queue;
    int64_t age_ms = delivery_queue_is_done(queue) ? 0 : now_ms - queue->events[queue->at].time_ms;
    gauge_set(metrics(delivery)->backlog, age_ms > 0 ? age_ms / 1000 : 0);
}

/* True: all of a page was delivered or given up just now, and the position is behind it. */
static bool pass_page(struct delivery *delivery)
{
    if (delivery->queue.count == 0 || !delivery_queue_is_done(&delivery->queue))
        return false;
    delivery->position = delivery->page_end;
    delivery_queue_fill(&delivery->queue, NULL, 0);
    return true;
}

/* One thing at a time: save, renew, follow or send. False: we do not lead any more. */
static bool lead_turn(struct delivery *delivery)
{
    int64_t now_ms = clock_now_ms();

    set_backlog(delivery, now_ms);
    if (!lease_is_ours(&delivery->row, &delivery->config.node, now_ms))
        return false;
    if (pass_page(delivery) || now_ms >= delivery->written_ms + DELIVERY_RENEW_MS)
        return renew(delivery, now_ms);
    if (delivery_queue_is_done(&delivery->queue))
        return follow_page(delivery);
    send_turn(delivery, now_ms);
    return true;
}

static void lead(struct delivery *delivery)
{
    bool good = true;

    gauge_set(metrics(delivery)->leader, 1);
    while (good && !stopping(delivery))
        good = lead_turn(delivery);
    delivery->config.channel->cancel(delivery->config.channel);
    delivery->sending = false;
    if (good) { /* stopped: a page that was begun is sent again by whoever comes next */
        pass_page(delivery);
        struct delivery_row row = lease_give_back(&delivery->row);
        row.position = delivery->position;
        good = write_row(delivery, &row, clock_now_ms());
    }
    if (!good)
        log_write(LOG_WARN, "this node no longer delivers domain events", "\"delivery\":\"%s\"",
                  delivery->config.channel->name);
    delivery_queue_fill(&delivery->queue, NULL, 0);
    delivery->letters = NULL;
    gauge_set(metrics(delivery)->leader, 0);
    gauge_set(metrics(delivery)->backlog, 0);
}

static void *run(void *context)
{
    struct delivery *delivery = context;

    while (!stopping(delivery))
        if (take(delivery))
            lead(delivery);
    return NULL;
}

/* ---- From outside ---- */

static enum err on_position(void *context, const struct feed_position *position)
{
    *(struct feed_position *)context = *position;
    return ERR_OVERLOADED; /* the rest of the load is not wanted */
}

enum err delivery_beginning(struct store *store, struct feed_position *out)
{
    static const struct store_loader loader = {.on_position = on_position};
    enum err err = store_load(store, &loader, out);
    return err == ERR_OVERLOADED ? ERR_OK : err;
}

enum err delivery_start(const struct delivery_config *config, struct delivery **out)
{
    struct delivery *delivery = calloc(1, sizeof *delivery);

    CHECK(delivery != NULL);
    delivery->config = *config;
    delivery_call_init(&delivery->call, &delivery->config);
    delivery_queue_init(&delivery->queue, config->tries_max, rng_next(&delivery->call.rng));
    arena_init(&delivery->page);
    if (pthread_create(&delivery->thread, NULL, run, delivery) != 0) {
        delivery_destroy(delivery);
        return ERR_INTERNAL;
    }
    *out = delivery;
    return ERR_OK;
}

void delivery_stop(struct delivery *delivery)
{
    delivery_call_stop(&delivery->call);
    delivery->config.channel->wake(delivery->config.channel);
    pthread_join(delivery->thread, NULL);
}

void delivery_destroy(struct delivery *delivery)
{
    if (delivery == NULL)
        return;
    delivery->config.channel->destroy(delivery->config.channel);
    delivery_call_deinit(&delivery->call);
    arena_deinit(&delivery->page);
    free(delivery);
}
