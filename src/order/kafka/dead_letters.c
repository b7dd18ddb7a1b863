/* SPDX-License-Identifier: Apache-2.0
 * Reads the dead letters, for people: the whole topic once, by a client of its
 * own that belongs to no group and leaves no trace. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "order/kafka/broker_kafka.h"

enum { TEXT_SIZE = 512 };

struct trouble {
    char text[TEXT_SIZE];
};

struct letter_text { /* what the headers say, NUL ended */
    char reason[TEXT_SIZE];
    char topic[KAFKA_TOPIC_SIZE];
};

static void keep_trouble(rd_kafka_t *client, int err, const char *reason, void *opaque)
{
    struct trouble *trouble = opaque;
    (void)client;
    if (err != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN || trouble->text[0] == '\0')
        snprintf(trouble->text, sizeof(trouble->text), "%s", reason);
}

static void read_header(const rd_kafka_message_t *message, const char *name, char *out, size_t out_size)
{
    rd_kafka_headers_t *headers;
    const void *value;
    size_t size;
    out[0] = '\0';
    if (rd_kafka_message_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR ||
        rd_kafka_header_get_last(headers, name, &value, &size) != RD_KAFKA_RESP_ERR_NO_ERROR || value == NULL)
        return;
    snprintf(out, out_size, "%.*s", (int)size, (const char *)value);
}

static int64_t read_number(const rd_kafka_message_t *message, const char *name)
{
    char text[24];
    read_header(message, name, text, sizeof(text));
    return strtoll(text, NULL, 10);
}

static bool hand_over(const rd_kafka_message_t *message, broker_kafka_on_dead_letter *on_letter,
                      void *context)
{
    struct letter_text text;
    rd_kafka_timestamp_type_t kind;
    int64_t dead_ms = rd_kafka_message_timestamp(message, &kind);
    read_header(message, "reason", text.reason, sizeof(text.reason));
    read_header(message, "topic", text.topic, sizeof(text.topic));
    struct broker_kafka_dead_letter letter = {
        .number = message->offset,
        .dead_ms = kind == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ? 0 : dead_ms,
        .reason = text.reason,
        .topic = text.topic,
        .partition = (int32_t)read_number(message, "partition"),
        .offset = read_number(message, "offset"),
        .sent_ms = read_number(message, "sent_ms"),
        .value = message->payload,
        .size = message->len,
    };
    return on_letter(context, &letter);
}

/* From `low` to `high`. */
static enum err read_all(rd_kafka_topic_t *topic, int64_t low, int64_t high, int64_t limit, int timeout_ms,
                         broker_kafka_on_dead_letter *on_letter, void *context, int64_t *count, char *why,
                         size_t why_size)
{
    enum err err = ERR_OK;
    bool wanted = true;
    CHECK(rd_kafka_consume_start(topic, 0, low) == 0);
    for (int64_t next = low; next < high && *count < limit && wanted && err == ERR_OK;) {
        rd_kafka_message_t *message = rd_kafka_consume(topic, 0, timeout_ms);
        if (message == NULL) {
            snprintf(why, why_size, "Kafka sent no more dead letters within %d ms.", timeout_ms);
            err = ERR_STORE_UNAVAILABLE;
            break;
        }
        if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
            next = message->offset + 1;
            (*count)++;
            wanted = hand_over(message, on_letter, context);
        } else if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
            next = high; /* what is missing at the end was never a message */
        } else {
            snprintf(why, why_size, "The dead letters cannot be read: %s.", rd_kafka_message_errstr(message));
            err = ERR_STORE_UNAVAILABLE;
        }
        rd_kafka_message_destroy(message);
    }
    rd_kafka_consume_stop(topic, 0);
    return err;
}

static bool is_missing(rd_kafka_resp_err_t err)
{
    return err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART || err == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC ||
           err == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION;
}

enum err broker_kafka_dead_letters(const struct kafka_config *kafka, const char *prefix, int64_t limit,
                                   int timeout_ms, broker_kafka_on_dead_letter *on_letter, void *context,
                                   int64_t *count, char *why, size_t why_size)
{
    struct trouble trouble = {""};
    char name[2 * KAFKA_TOPIC_SIZE];
    int broker_count;
    int64_t low, high;
    enum err err = ERR_OK;

    *count = 0;
    snprintf(name, sizeof(name), "%s.dead-letters", prefix);
    rd_kafka_conf_t *conf = kafka_conf(kafka, "dead-letters", NULL);
    kafka_conf_set(conf, "enable.auto.commit", "false");
    kafka_conf_set(conf, "enable.partition.eof", "true");
    kafka_conf_set(conf, "auto.offset.reset", "earliest");
    rd_kafka_conf_set_opaque(conf, &trouble);
    rd_kafka_conf_set_error_cb(conf, keep_trouble);
    rd_kafka_t *client = kafka_client(RD_KAFKA_CONSUMER, conf, why, why_size);
    if (client == NULL)
        return ERR_CONFIG;
    if (!kafka_reach(client, kafka, timeout_ms, trouble.text, &broker_count, why, why_size)) {
        err = ERR_STORE_UNAVAILABLE;
        goto unreachable;
    }
    rd_kafka_resp_err_t asked = rd_kafka_query_watermark_offsets(client, name, 0, &low, &high, timeout_ms);
    if (asked == RD_KAFKA_RESP_ERR_NO_ERROR) {
        rd_kafka_topic_t *topic = rd_kafka_topic_new(client, name, NULL);
        CHECK(topic != NULL);
        err = read_all(topic, low, high, limit, timeout_ms, on_letter, context, count, why, why_size);
        rd_kafka_topic_destroy(topic);
    } else if (!is_missing(asked)) {
        snprintf(why, why_size, "The dead letters cannot be read: %s.", rd_kafka_err2str(asked));
        err = ERR_STORE_UNAVAILABLE;
    }
unreachable:
    rd_kafka_destroy(client);
    return err;
}
