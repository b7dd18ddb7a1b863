/* SPDX-License-Identifier: Apache-2.0
 * What goes out: commands, replies, dead letters.
 *
 *  1. Stored means stored by all replicas in sync, once (acks=all, idempotence).
 *  2. Each command's fate is told once: by its delivery report, which comes when
 *     it is stored, or when its time is up and librdkafka has looked (once a
 *     second). What may have reached a broker is UNKNOWN, never NOT_STORED.
 *  3. A dead letter that was not stored is sent again: it is the only copy that
 *     people will look for.
 *  4. An idempotent producer can fail for good (its sequence was lost on the
 *     broker's side). It is replaced then: what it still had is reported as it
 *     stands, and a thread of its own waits for its end.
 *
 * The opaque of a message says what it is: a command's owner, NULL for a reply,
 * the broker itself for a dead letter. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "order/kafka/broker_kafka_int.h"

enum { DEAD_LETTER_MS = 60000 };

static void count_outcome(enum broker_outcome outcome)
{
    static const enum counter counters[] = {
        [BROKER_STORED] = COUNTER_ORDER_SENT,
        [BROKER_NOT_STORED] = COUNTER_ORDER_NOT_STORED,
        [BROKER_UNKNOWN] = COUNTER_ORDER_UNKNOWN,
    };
    counter_add(counters[outcome], 1);
}

static enum broker_outcome outcome_of(const rd_kafka_message_t *message)
{
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR)
        return BROKER_STORED;
    switch (rd_kafka_message_status(message)) {
    case RD_KAFKA_MSG_STATUS_PERSISTED:
        return BROKER_STORED;
    case RD_KAFKA_MSG_STATUS_NOT_PERSISTED:
        return BROKER_NOT_STORED;
    default:
        return BROKER_UNKNOWN;
    }
}

static rd_kafka_topic_t *handle_of(struct broker_kafka *broker, struct kafka_named *topic, int timeout_ms)
{
    if (topic->handle != NULL || broker->producer.client == NULL)
        return topic->handle;
    char text[16], why[128];
    rd_kafka_topic_conf_t *conf = rd_kafka_default_topic_conf_dup(broker->producer.client);
    snprintf(text, sizeof(text), "%d", timeout_ms);
    CHECK(rd_kafka_topic_conf_set(conf, "message.timeout.ms", text, why, sizeof(why)) == RD_KAFKA_CONF_OK);
    topic->handle = rd_kafka_topic_new(broker->producer.client, topic->name, conf);
    if (topic->handle == NULL)
        rd_kafka_topic_conf_destroy(conf);
    return topic->handle;
}

/* Why it was not taken. */
static enum err refused(struct broker_kafka *broker, rd_kafka_resp_err_t err)
{
    if (err == RD_KAFKA_RESP_ERR__FATAL)
        broker->producer.failed = true;
    if (err != RD_KAFKA_RESP_ERR__QUEUE_FULL)
        kafka_note_error(broker, COUNTER_BROKER_ERRORS_PRODUCE, err, "a message was not taken",
                         rd_kafka_err2str(err));
    return err == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE ? ERR_BODY_TOO_LARGE : ERR_OVERLOADED;
}

static enum err produce(struct broker_kafka *broker, rd_kafka_topic_t *handle, int32_t partition,
                        const void *value, size_t size, const struct uuid *key, void *opaque)
{
    if (handle == NULL || broker->producer.failed)
        return ERR_OVERLOADED;
    if (rd_kafka_produce(handle, partition, RD_KAFKA_MSG_F_COPY, (void *)value, size,
                         key == NULL ? NULL : key->bytes, key == NULL ? 0 : sizeof(key->bytes), opaque) != 0)
        return refused(broker, rd_kafka_last_error());
    return ERR_OK;
}

enum err kafka_send_command(struct broker *base, const char *name, int32_t partition, const struct uuid *id,
                            const void *value, size_t size, void *owner)
{
    struct broker_kafka *broker = CONTAINER_OF(base, struct broker_kafka, base);
    CHECK(owner != NULL);
    CHECK(owner != broker);
    rd_kafka_topic_t *handle = handle_of(broker, kafka_named(broker, name), ORDER_SEND_MS_MAX);
    return produce(broker, handle, partition, value, size, id, owner);
}

enum err kafka_send_reply(struct broker *base, const char *node_name, const void *value, size_t size)
{
    struct broker_kafka *broker = CONTAINER_OF(base, struct broker_kafka, base);
    char name[2 * KAFKA_TOPIC_SIZE];
    int length = snprintf(name, sizeof(name), "%s.replies.%s", broker->prefix, node_name);
    if (length >= (int)sizeof(name) || !kafka_topic_is_legal(name))
        return ERR_INVALID_REQUEST;
    rd_kafka_topic_t *handle = handle_of(broker, kafka_named(broker, name), ORDER_DEADLINE_MS);
    return produce(broker, handle, 0, value, size, NULL, NULL);
}

/* ---- Dead letters ---- */

/* Takes the headers. */
static enum err send_dead(struct broker_kafka *broker, const void *value, size_t size,
                          rd_kafka_headers_t *headers)
{
    rd_kafka_topic_t *handle = handle_of(broker, broker->dead_letters, DEAD_LETTER_MS);
    rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR__STATE;
    if (handle != NULL && !broker->producer.failed)
        err =
            rd_kafka_producev(broker->producer.client, RD_KAFKA_V_RKT(handle), RD_KAFKA_V_PARTITION(0),
                              RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_VALUE((void *)value, size),
                              RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_OPAQUE(broker), RD_KAFKA_V_END);
    if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
        return ERR_OK;
    rd_kafka_headers_destroy(headers);
    return refused(broker, err);
}

static void add_header(rd_kafka_headers_t *headers, const char *name, const char *value)
{
    CHECK(rd_kafka_header_add(headers, name, -1, value, -1) == RD_KAFKA_RESP_ERR_NO_ERROR);
}

static void add_number(rd_kafka_headers_t *headers, const char *name, int64_t value)
{
    char text[24];
    snprintf(text, sizeof(text), "%lld", (long long)value);
    add_header(headers, name, text);
}

enum err kafka_send_dead_letter(struct broker *base, const struct broker_message *message, const char *reason)
{
    struct broker_kafka *broker = CONTAINER_OF(base, struct broker_kafka, base);
    rd_kafka_headers_t *headers = rd_kafka_headers_new(5);
    add_header(headers, "reason", reason);
    add_header(headers, "topic", message->topic);
    add_number(headers, "partition", message->partition);
    add_number(headers, "offset", message->offset);
    add_number(headers, "sent_ms", message->sent_ms);
    return send_dead(broker, message->value, message->size, headers);
}

/* Kept until there is a producer that takes it: the report may be the last word of one that has failed. */
static void dead_letter_reported(struct broker_kafka *broker, const rd_kafka_message_t *message)
{
    struct kafka_producer *producer = &broker->producer;
    rd_kafka_headers_t *headers;
    if (outcome_of(message) == BROKER_STORED || broker->silent)
        return;
    if (producer->dead_count == DEAD_LETTER_COUNT_MAX) {
        log_write(LOG_ERROR, "dead letter lost", "\"size\":%zu", message->len);
        return;
    }
    struct kafka_dead_letter *letter = malloc(sizeof(*letter) + message->len);
    CHECK(letter != NULL);
    letter->headers = rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR
                          ? rd_kafka_headers_copy(headers)
                          : rd_kafka_headers_new(0);
    letter->size = message->len;
    memcpy(letter->value, message->payload, message->len);
    letter->next = NULL;
    if (producer->dead == NULL)
        producer->dead_end = &producer->dead;
    *producer->dead_end = letter;
    producer->dead_end = &letter->next;
    producer->dead_count++;
}

static void send_dead_again(struct broker_kafka *broker)
{
    struct kafka_producer *producer = &broker->producer;
    while (producer->dead != NULL && producer->client != NULL && !producer->failed) {
        struct kafka_dead_letter *letter = producer->dead;
        rd_kafka_headers_t *headers = rd_kafka_headers_copy(letter->headers);
        enum err err = send_dead(broker, letter->value, letter->size, headers);
        if (err == ERR_BODY_TOO_LARGE)
            log_write(LOG_ERROR, "dead letter lost", "\"size\":%zu", letter->size);
        else if (err != ERR_OK)
            return;
        producer->dead = letter->next;
        producer->dead_count--;
        rd_kafka_headers_destroy(letter->headers);
        free(letter);
    }
}

static void forget_dead(struct kafka_producer *producer)
{
    while (producer->dead != NULL) {
        struct kafka_dead_letter *letter = producer->dead;
        producer->dead = letter->next;
        rd_kafka_headers_destroy(letter->headers);
        free(letter);
    }
}

/* ---- Reports ---- */

static void on_report(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque)
{
    struct broker_kafka *broker = opaque;
    (void)client;
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR)
        kafka_note_error(broker, COUNTER_BROKER_ERRORS_PRODUCE, message->err, "a message was not stored",
                         rd_kafka_err2str(message->err));
    if (message->_private == NULL)
        return;
    if (message->_private == broker) {
        dead_letter_reported(broker, message);
        return;
    }
    enum broker_outcome outcome = outcome_of(message);
    if (outcome == BROKER_STORED)
        histogram_observe(HISTOGRAM_ORDER_PRODUCE_SECONDS, (double)rd_kafka_message_latency(message) / 1e6);
    count_outcome(outcome);
    if (!broker->silent)
        broker->base.events.on_sent(broker->base.events.context, message->_private, outcome);
}

/* ---- The client, and the one after it ---- */

bool kafka_producer_open(struct broker_kafka *broker, char *why, size_t why_size)
{
    /* Commands of a moment share a request. Each wakes a thread that looks at every partition, and each request costs the
     * broker far more than what is in it: a few milliseconds more are several times fewer of both. */
    static const struct kafka_property preferred[] = {
        {"linger.ms", "3"},
        {"enable.sparse.connections", "false"}, /* a connection is there before its first command is */
        {"queue.buffering.max.messages", "200000"},
        {"retry.backoff.ms", "50"},
        {NULL, NULL},
    };
    char timeout[16];
    rd_kafka_conf_t *conf = kafka_conf(broker->kafka, "producer", preferred);
    kafka_conf_set(conf, "acks", "all");
    kafka_conf_set(conf, "enable.idempotence", "true");
    snprintf(timeout, sizeof(timeout), "%d", ORDER_SEND_MS_MAX);
    kafka_conf_set(conf, "message.timeout.ms", timeout);
    rd_kafka_conf_set_opaque(conf, broker);
    rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    rd_kafka_conf_set_error_cb(conf, kafka_on_error);
    rd_kafka_t *client = kafka_client(RD_KAFKA_PRODUCER, conf, why, why_size);
    if (client == NULL)
        return false;
    broker->producer.client = client;
    broker->producer.queue = rd_kafka_queue_get_main(client);
    broker->producer.failed = false;
    kafka_watch(broker, broker->producer.queue);
    if (!broker->topic_per_event) { /* then it asks now where the partitions are */
        char commands[KAFKA_TOPIC_SIZE];
        place_topic(broker->prefix, commands);
        handle_of(broker, kafka_named(broker, commands), ORDER_SEND_MS_MAX);
    }
    return true;
}

static void forget_handles(struct broker_kafka *broker, bool retired)
{
    for (int i = 0; i < TOPIC_BUCKET_COUNT; i++)
        for (struct kafka_named *topic = broker->topics[i]; topic != NULL; topic = topic->next) {
            rd_kafka_topic_t **handle = retired ? &topic->retired_handle : &topic->handle;
            if (*handle != NULL)
                rd_kafka_topic_destroy(*handle);
            *handle = NULL;
        }
}

static void *end_client(void *argument)
{
    struct kafka_producer *producer = argument;
    rd_kafka_destroy(producer->ending);
    atomic_store(&producer->ended, true);
    return NULL;
}

static void retire(struct broker_kafka *broker)
{
    struct kafka_producer *producer = &broker->producer;
    char text[256] = "";
    rd_kafka_fatal_error(producer->client, text, sizeof(text));
    kafka_note_error(broker, COUNTER_BROKER_ERRORS_FATAL, RD_KAFKA_RESP_ERR__FATAL,
                     "the producer is replaced", text);
    rd_kafka_purge(producer->client,
                   RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING);
    producer->retired = producer->client;
    producer->retired_queue = producer->queue;
    producer->client = NULL;
    producer->queue = NULL;
    for (int i = 0; i < TOPIC_BUCKET_COUNT; i++)
        for (struct kafka_named *topic = broker->topics[i]; topic != NULL; topic = topic->next) {
            topic->retired_handle = topic->handle;
            topic->handle = NULL;
        }
}

static void serve_retired(struct broker_kafka *broker)
{
    struct kafka_producer *producer = &broker->producer;
    if (producer->ending != NULL && atomic_load(&producer->ended)) {
        pthread_join(producer->ender, NULL);
        producer->ending = NULL;
    }
    if (producer->retired == NULL)
        return;
    rd_kafka_poll(producer->retired, 0);
    if (producer->ending != NULL || rd_kafka_outq_len(producer->retired) > 0)
        return;
    forget_handles(broker, true);
    rd_kafka_queue_destroy(producer->retired_queue);
    producer->ending = producer->retired;
    producer->retired = NULL;
    atomic_store(&producer->ended, false);
    CHECK(pthread_create(&producer->ender, NULL, end_client, producer) == 0);
}

static void replace(struct broker_kafka *broker)
{
    char why[512];
    struct kafka_producer *producer = &broker->producer;
    if (producer->client != NULL) {
        if (producer->retired != NULL)
            return; /* one at a time: it has reports to give */
        retire(broker);
    }
    if (broker->now_ms < producer->replace_due_ms)
        return;
    if (!kafka_producer_open(broker, why, sizeof(why)))
        kafka_note_error(broker, COUNTER_BROKER_ERRORS_FATAL, RD_KAFKA_RESP_ERR__FATAL,
                         "there is no producer", why);
    producer->replace_due_ms = broker->now_ms + REPLACE_RETRY_MS;
}

int64_t kafka_producer_serve(struct broker_kafka *broker)
{
    struct kafka_producer *producer = &broker->producer;
    if (producer->client != NULL)
        rd_kafka_poll(producer->client, 0);
    if (producer->failed)
        replace(broker);
    serve_retired(broker);
    send_dead_again(broker);
    bool busy =
        producer->failed || producer->dead != NULL || producer->retired != NULL || producer->ending != NULL;
    return busy ? broker->now_ms + 10 : TIME_MAX;
}

bool kafka_producer_is_idle(struct broker_kafka *broker)
{
    const struct kafka_producer *producer = &broker->producer;
    return (producer->client == NULL || rd_kafka_outq_len(producer->client) == 0) &&
           producer->retired == NULL && producer->dead == NULL;
}

static void end_now(rd_kafka_t *client, rd_kafka_queue_t *queue)
{
    if (client == NULL)
        return;
    rd_kafka_purge(client, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    rd_kafka_poll(client, 0);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(client);
}

void kafka_producer_close(struct broker_kafka *broker)
{
    struct kafka_producer *producer = &broker->producer;
    if (producer->client != NULL)
        rd_kafka_flush(producer->client, DESTROY_FLUSH_MS);
    forget_handles(broker, false);
    forget_handles(broker, true);
    end_now(producer->client, producer->queue);
    end_now(producer->retired, producer->retired_queue);
    if (producer->ending != NULL)
        pthread_join(producer->ender, NULL);
    forget_dead(producer);
}
