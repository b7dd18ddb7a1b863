/* SPDX-License-Identifier: Apache-2.0
 * The reader of this node's replies: one partition, no group, from where it
 * ended when the node started. Being the smallest of the three clients it also
 * says, once a second, whether any broker answers, and carries admin requests. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "order/kafka/broker_kafka_int.h"

enum { WATERMARK_MS = 1000, BETWEEN_MS = 100 };

static int on_statistics(rd_kafka_t *client, char *text, size_t size, void *opaque)
{
    json_t *statistics = json_loadb(text, size, 0, NULL), *broker;
    const char *name;
    int64_t up = 0;
    (void)client;
    (void)opaque;
    json_object_foreach(json_object_get(statistics, "brokers"), name, broker)
    {
        const char *state = json_string_value(json_object_get(broker, "state"));
        if (state != NULL && strcmp(state, "UP") == 0)
            up = 1;
    }
    gauge_set(GAUGE_BROKER_UP, up);
    json_decref(statistics);
    return 0; /* the text stays librdkafka's */
}

bool kafka_replies_open(struct broker_kafka *broker, char *why, size_t why_size)
{
    static const struct kafka_property preferred[] = {
        {"fetch.wait.max.ms", "100"},
        {"fetch.error.backoff.ms", "100"},
        {"queued.max.messages.kbytes", "16384"},
        {NULL, NULL},
    };
    rd_kafka_conf_t *conf = kafka_conf(broker->kafka, "replies", preferred);
    kafka_conf_set(conf, "statistics.interval.ms", "1000");
    kafka_conf_set(conf, "auto.offset.reset", "earliest");
    kafka_conf_set(conf, "enable.auto.commit", "false");
    rd_kafka_conf_set_opaque(conf, broker);
    rd_kafka_conf_set_stats_cb(conf, on_statistics);
    rd_kafka_conf_set_error_cb(conf, kafka_on_error);
    broker->replies.client = kafka_client(RD_KAFKA_CONSUMER, conf, why, why_size);
    if (broker->replies.client == NULL)
        return false;
    broker->replies.main_queue = rd_kafka_queue_get_main(broker->replies.client);
    kafka_watch(broker, broker->replies.main_queue);
    broker->admin_queue = rd_kafka_queue_new(broker->replies.client);
    kafka_watch(broker, broker->admin_queue);
    return true;
}

bool kafka_replies_begin(struct broker_kafka *broker, int timeout_ms, char *why, size_t why_size)
{
    struct kafka_replies *replies = &broker->replies;
    int64_t until_us = clock_monotonic_us() + (int64_t)timeout_ms * 1000;
    int64_t low, high;
    rd_kafka_resp_err_t err;
    /* A topic made a moment ago may have no leader yet. */
    while ((err = rd_kafka_query_watermark_offsets(replies->client, broker->replies_topic, 0, &low, &high,
                                                   WATERMARK_MS)) != RD_KAFKA_RESP_ERR_NO_ERROR) {
        if (clock_monotonic_us() > until_us) {
            snprintf(why, why_size, "The topic %s of Kafka cannot be read: %s.", broker->replies_topic,
                     rd_kafka_err2str(err));
            return false;
        }
        rd_kafka_poll(replies->client, BETWEEN_MS);
    }
    replies->topic = rd_kafka_topic_new(replies->client, broker->replies_topic, NULL);
    CHECK(replies->topic != NULL);
    replies->queue = rd_kafka_queue_new(replies->client);
    kafka_watch(broker, replies->queue);
    CHECK(rd_kafka_consume_start_queue(replies->topic, 0, high, replies->queue) == 0);
    gauge_set(GAUGE_BROKER_UP, 1); /* it has answered just now: a node that is up is ready */
    return true;
}

static void take(struct broker_kafka *broker, const rd_kafka_message_t *message)
{
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        kafka_note_error(broker, COUNTER_BROKER_ERRORS_CONSUME, message->err, "replies cannot be read",
                         rd_kafka_message_errstr(message));
        return;
    }
    struct broker_message reply = kafka_message(message, broker->replies_topic);
    broker->base.events.on_reply(broker->base.events.context, &reply);
}

bool kafka_replies_serve(struct broker_kafka *broker)
{
    struct kafka_replies *replies = &broker->replies;
    rd_kafka_poll(replies->client, 0);
    for (int i = 0; i < REPLY_POLL_COUNT_MAX; i++) {
        rd_kafka_message_t *message = rd_kafka_consume_queue(replies->queue, 0);
        if (message == NULL)
            break;
        take(broker, message);
        rd_kafka_message_destroy(message);
    }
    return rd_kafka_queue_length(replies->queue) > 0;
}

void kafka_replies_close(struct broker_kafka *broker)
{
    struct kafka_replies *replies = &broker->replies;
    if (replies->client == NULL)
        return;
    if (replies->queue != NULL) {
        rd_kafka_consume_stop(replies->topic, 0);
        rd_kafka_queue_destroy(replies->queue);
        rd_kafka_topic_destroy(replies->topic);
    }
    rd_kafka_queue_destroy(broker->admin_queue);
    rd_kafka_queue_destroy(replies->main_queue);
    rd_kafka_destroy(replies->client);
    gauge_set(GAUGE_BROKER_UP, 0);
}
