/* SPDX-License-Identifier: Apache-2.0
 * Domain events to Kafka, by a producer of the deliverer's own.
 *
 *   begin ─▶ messages into the producer, as it has room ─▶ every one acknowledged: delivered
 *                                                     └─▶ one failed: the producer is thrown away
 *
 * Invariants:
 *  1. Delivered means that all replicas in sync have every message of the request
 *     (acks=all).
 *  2. No message overtakes another of its partition. The producer is idempotent and
 *     never gives one up by itself (no timeout, no gaps): while brokers are away a
 *     request is under way for as long as that lasts. Where one fails all the same,
 *     nothing behind it is sent by that producer: what it still has is purged, and the request
 *     begins again from its head with another one.
 *  3. Only what a broker, or the limit on a message's size, has against an event
 *     itself can make it a dead letter; never an outage, missing rights or a missing
 *     topic. So an empty request, which asks for whose fault it is, is answered
 *     from the last failure.
 *
 * Deliverer's thread, but for wake(); librdkafka's threads only write to `fd`. */
#include "publish/kafka_events.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/uuid.h"

struct kafka_events {
    struct delivery_channel channel;
    struct kafka_events_config config;
    int fd;             /* an eventfd: a message's fate is known, or somebody wakes us */
    rd_kafka_t *client; /* NULL: none yet, or it was thrown away */
    bool topic_is_there;

    /* The request under way */
    bool sending;
    const struct domain_event *events; /* borrows */
    int32_t count;
    int32_t at;      /* the event to send next … */
    int32_t seat_at; /* … and under which of its keys: −1 for its own */
    int64_t unacked; /* messages that the producer has */
    bool has_failed; /* with `failure`; nothing more is sent */
    struct delivery_outcome failure;
};

/* ---- Failures ---- */

/* True: it is the event, and another try will end in the same way. */
static bool is_about_event(rd_kafka_resp_err_t err)
{
    switch (err) {
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE:
    case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_INVALID_MSG:
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:
        return true;
    default:
        return false;
    }
}

/* The first one counts: the others follow from it. */
static void fail(struct kafka_events *events, enum delivery_answer answer, const char *reason)
{
    if (events->has_failed)
        return;
    events->has_failed = true;
    events->failure = (struct delivery_outcome){.answer = answer};
    snprintf(events->failure.reason, sizeof events->failure.reason, "Kafka: %.140s", reason);
}

static void fail_with(struct kafka_events *events, rd_kafka_resp_err_t err)
{
    fail(events, is_about_event(err) ? ANSWER_REFUSED : ANSWER_FAILED, rd_kafka_err2str(err));
}

/* From rd_kafka_poll(). */
static void on_fate(rd_kafka_t *client, const rd_kafka_message_t *message, void *context)
{
    struct kafka_events *events = context;

    (void)client;
    CHECK(events->unacked > 0);
    events->unacked--;
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR)
        fail_with(events, message->err);
}

/* ---- The producer ---- */

static void client_drop(struct kafka_events *events)
{
    if (events->client == NULL)
        return;
    rd_kafka_purge(events->client,
                   RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING);
    rd_kafka_destroy(events->client);
    events->client = NULL;
    events->unacked = 0;
}

/* Whatever it has for us makes the eventfd readable. */
static void client_listen(struct kafka_events *events)
{
    static const uint64_t one = 1;
    rd_kafka_queue_t *queue = rd_kafka_queue_get_main(events->client);
    rd_kafka_queue_io_event_enable(queue, events->fd, &one, sizeof one);
    rd_kafka_queue_destroy(queue);
}

static rd_kafka_t *client_make(struct kafka_events *events, char *why, size_t why_size)
{
    static const struct kafka_property preferred[] = {
        {"compression.codec", "lz4"},
        {"linger.ms", "2"},
        {"queue.buffering.max.kbytes", "65536"},
        {NULL, NULL},
    };
    rd_kafka_conf_t *conf = kafka_conf(events->config.kafka, "events", preferred);

    kafka_conf_set(conf, "enable.idempotence", "true"); /* acks=all, and in order */
    kafka_conf_set(conf, "enable.gapless.guarantee", "true");
    kafka_conf_set(conf, "message.timeout.ms", "0");
    kafka_conf_set(conf, "partitioner", "murmur2_random"); /* as Java's: joins by key need no other topic */
    rd_kafka_conf_set_dr_msg_cb(conf, on_fate);
    rd_kafka_conf_set_opaque(conf, events);
    return kafka_client(RD_KAFKA_PRODUCER, conf, why, why_size);
}

static const char *topic_of(const struct kafka_events *events)
{
    return events->config.topic;
}

/* False: the request has failed. */
static bool client_ready(struct kafka_events *events)
{
    struct kafka_topic topic = {
        .name = topic_of(events),
        .partition_count = KAFKA_EVENTS_PARTITION_COUNT,
        .any_partition_count = true,
    };
    char why[400];

    if (events->client == NULL) {
        events->client = client_make(events, why, sizeof why);
        if (events->client == NULL) {
            fail(events, ANSWER_FAILED, why);
            return false;
        }
        client_listen(events);
    }
    if (!events->topic_is_there) {
        events->topic_is_there = kafka_topic_make(events->client, &topic, events->config.may_make,
                                                  KAFKA_EVENTS_TOPIC_MS, why, sizeof why);
        if (!events->topic_is_there)
            fail(events, ANSWER_FAILED, why);
    }
    return events->topic_is_there;
}

/* ---- Messages ---- */

static rd_kafka_resp_err_t produce(struct kafka_events *events, const struct domain_event *event,
                                   const struct uuid *key)
{
    char text[UUID_TEXT_SIZE];

    uuid_format(key, text);
    return rd_kafka_producev(
        events->client, RD_KAFKA_V_TOPIC(topic_of(events)), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
        RD_KAFKA_V_KEY(text, strlen(text)), RD_KAFKA_V_VALUE((void *)event->body, event->size),
        RD_KAFKA_V_TIMESTAMP(event->time_ms),
        RD_KAFKA_V_HEADER("content-type", "application/cloudevents+json", -1), RD_KAFKA_V_END);
}

/* As many as the producer has room for; the rest when some are acknowledged. */
static void produce_more(struct kafka_events *events)
{
    while (!events->has_failed && events->at < events->count) {
        const struct domain_event *event = &events->events[events->at];
        const struct uuid *key = events->seat_at < 0 ? &event->key : &event->seats[events->seat_at];
        rd_kafka_resp_err_t err = produce(events, event, key);
        if (err == RD_KAFKA_RESP_ERR__QUEUE_FULL)
            return;
        if (err != RD_KAFKA_RESP_ERR_NO_ERROR) {
            fail_with(events, err);
            return;
        }
        events->unacked++;
        if (++events->seat_at >= event->seat_count) {
            events->seat_at = -1;
            events->at++;
        }
    }
}

/* ---- The channel ---- */

static void events_begin(struct delivery_channel *channel, const struct domain_event *list, int32_t count,
                         int64_t now_ms)
{
    struct kafka_events *events = CONTAINER_OF(channel, struct kafka_events, channel);

    (void)now_ms;
    CHECK(!events->sending);
    CHECK(events->unacked == 0);
    events->sending = true;
    events->events = list;
    events->count = count;
    events->at = 0;
    events->seat_at = -1;
    if (count == 0)
        return;
    events->has_failed = false;
    if (client_ready(events))
        produce_more(events);
}

static void check_fatal(struct kafka_events *events)
{
    char text[DELIVERY_REASON_SIZE];

    if (events->client != NULL && rd_kafka_fatal_error(events->client, text, sizeof text) != 0)
        fail(events, ANSWER_FAILED, text);
}

/* The fate of the empty request: it is the events' fault, or it is not. */
static void judge_empty(const struct kafka_events *events, struct delivery_outcome *out)
{
    *out = events->failure;
    if (!events->has_failed || events->failure.answer == ANSWER_REFUSED)
        *out = (struct delivery_outcome){.answer = ANSWER_DELIVERED};
}

/* True once the request has ended. */
static bool events_drive(struct kafka_events *events, struct delivery_outcome *out)
{
    while (events->client != NULL && rd_kafka_poll(events->client, 0) > 0)
        continue;
    if (!events->sending)
        return false;
    if (events->count == 0) {
        judge_empty(events, out);
        events->sending = false;
        return true;
    }
    check_fatal(events);
    if (!events->has_failed)
        produce_more(events);
    if (events->has_failed) {
        client_drop(events); /* with everything behind what failed */
        *out = events->failure;
    } else if (events->at < events->count || events->unacked > 0) {
        return false;
    } else {
        *out = (struct delivery_outcome){.answer = ANSWER_DELIVERED};
    }
    events->sending = false;
    return true;
}

static bool events_wait(struct delivery_channel *channel, int64_t timeout_ms, struct delivery_outcome *out)
{
    struct kafka_events *events = CONTAINER_OF(channel, struct kafka_events, channel);
    struct pollfd ready = {.fd = events->fd, .events = POLLIN};
    uint64_t times;

    if (events_drive(events, out))
        return true;
    if (poll(&ready, 1, (int)timeout_ms) > 0 && read(events->fd, &times, sizeof times) < 0)
        return false; /* somebody else cannot have read it: it will be tried again */
    return events_drive(events, out);
}

/* Messages that are on their way may still arrive: consumers know old ones by their sequence. */
static void events_cancel(struct delivery_channel *channel)
{
    struct kafka_events *events = CONTAINER_OF(channel, struct kafka_events, channel);

    if (events->sending && events->unacked > 0)
        client_drop(events);
    events->sending = false;
}

static void events_wake(struct delivery_channel *channel)
{
    static const uint64_t one = 1;
    ssize_t size = write(CONTAINER_OF(channel, struct kafka_events, channel)->fd, &one, sizeof one);
    (void)size; /* it fails only when it is readable for long already */
}

static void events_destroy(struct delivery_channel *channel)
{
    struct kafka_events *events = CONTAINER_OF(channel, struct kafka_events, channel);

    client_drop(events);
    close(events->fd);
    free(events);
}

static const struct delivery_metrics metrics = {
    .delivered = COUNTER_DELIVERIES_KAFKA_DELIVERED,
    .retried = COUNTER_DELIVERIES_KAFKA_RETRIED,
    .dead = COUNTER_DELIVERIES_KAFKA_DEAD,
    .leader = GAUGE_DELIVERY_KAFKA_LEADER,
    .backlog = GAUGE_DELIVERY_KAFKA_BACKLOG,
};

enum err kafka_events_create(const struct kafka_events_config *config, struct delivery_channel **out)
{
    struct kafka_events *events = calloc(1, sizeof *events);

    CHECK(events != NULL);
    events->channel = (struct delivery_channel){
        .name = "kafka",
        .metrics = &metrics,
        .begin = events_begin,
        .wait = events_wait,
        .cancel = events_cancel,
        .wake = events_wake,
        .destroy = events_destroy,
    };
    events->config = *config;
    events->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (events->fd < 0) {
        free(events);
        return ERR_INTERNAL;
    }
    *out = &events->channel;
    return ERR_OK;
}
