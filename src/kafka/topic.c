/* SPDX-License-Identifier: Apache-2.0
 * Topics: asked for, and made by the admin requests. Several nodes may make the
 * same one at once; that it is there already is as good as having made it. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "kafka/kafka_int.h"

enum { ASK_MS = 1000, BETWEEN_MS = 100 };

bool kafka_topic_is_legal(const char *topic)
{
    size_t size = strlen(topic);
    return size > 0 && size < KAFKA_TOPIC_SIZE && strcmp(topic, ".") != 0 && strcmp(topic, "..") != 0 &&
           strspn(topic, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == size;
}

struct found {
    int32_t partition_count; /* 0: it is not there */
    int broker_count;
    rd_kafka_resp_err_t err; /* of the question, or of the topic */
};

static struct found ask(rd_kafka_t *client, const char *name, int timeout_ms)
{
    struct found found = {0};
    const struct rd_kafka_metadata *metadata;
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, name, NULL);
    if (topic == NULL) {
        found.err = rd_kafka_last_error();
        return found;
    }
    found.err = rd_kafka_metadata(client, 0, topic, &metadata, timeout_ms);
    rd_kafka_topic_destroy(topic);
    if (found.err != RD_KAFKA_RESP_ERR_NO_ERROR)
        return found;
    found.broker_count = metadata->broker_cnt;
    if (metadata->topic_cnt == 1) {
        found.partition_count = metadata->topics[0].partition_cnt;
        found.err = metadata->topics[0].err;
    }
    rd_kafka_metadata_destroy(metadata);
    return found;
}

static struct found ask_brokers(rd_kafka_t *client, int timeout_ms)
{
    struct found found = {0};
    const struct rd_kafka_metadata *metadata;
    found.err = rd_kafka_metadata(client, 0, NULL, &metadata, timeout_ms);
    if (found.err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        found.broker_count = metadata->broker_cnt;
        rd_kafka_metadata_destroy(metadata);
    }
    return found;
}

static rd_kafka_NewTopic_t *describe(const struct kafka_topic *topic, int broker_count, char *why,
                                     size_t why_size)
{
    int replicas = broker_count < KAFKA_REPLICA_COUNT ? broker_count : KAFKA_REPLICA_COUNT;
    rd_kafka_NewTopic_t *wanted = rd_kafka_NewTopic_new(topic->name, topic->partition_count,
                                                        replicas < 1 ? 1 : replicas, why, why_size);
    if (wanted == NULL)
        return NULL;
    /* Of three replicas two are enough to go on, and one that is lost loses nothing. */
    rd_kafka_NewTopic_set_config(wanted, "min.insync.replicas", replicas >= 3 ? "2" : "1");
    if (topic->retention_ms > 0) {
        char text[24];
        snprintf(text, sizeof(text), "%lld", (long long)topic->retention_ms);
        rd_kafka_NewTopic_set_config(wanted, "retention.ms", text);
    }
    return wanted;
}

static void request(rd_kafka_t *client, rd_kafka_NewTopic_t *wanted, int timeout_ms, rd_kafka_queue_t *queue)
{
    char ignored[128];
    rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(client, RD_KAFKA_ADMIN_OP_CREATETOPICS);
    CHECK(rd_kafka_AdminOptions_set_request_timeout(options, timeout_ms, ignored, sizeof(ignored)) ==
          RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_CreateTopics(client, &wanted, 1, options, queue);
    rd_kafka_AdminOptions_destroy(options);
}

void kafka_topic_begin(rd_kafka_t *client, const struct kafka_topic *topic, int broker_count,
                       rd_kafka_queue_t *queue)
{
    char why[256];
    rd_kafka_NewTopic_t *wanted = describe(topic, broker_count, why, sizeof(why));
    CHECK(wanted != NULL);
    request(client, wanted, ASK_MS * 5, queue);
    rd_kafka_NewTopic_destroy(wanted);
}

rd_kafka_resp_err_t kafka_topic_result(const rd_kafka_event_t *event, const char **name, const char **text)
{
    size_t count = 0;
    *name = "";
    *text = rd_kafka_event_error_string((rd_kafka_event_t *)event);
    rd_kafka_resp_err_t err = rd_kafka_event_error((rd_kafka_event_t *)event);
    const rd_kafka_CreateTopics_result_t *result =
        rd_kafka_event_CreateTopics_result((rd_kafka_event_t *)event);
    const rd_kafka_topic_result_t **topics =
        result == NULL ? NULL : rd_kafka_CreateTopics_result_topics(result, &count);
    if (count > 0) {
        *name = rd_kafka_topic_result_name(topics[0]);
        if (err == RD_KAFKA_RESP_ERR_NO_ERROR) {
            err = rd_kafka_topic_result_error(topics[0]);
            *text = rd_kafka_topic_result_error_string(topics[0]);
        }
    }
    if (*text == NULL)
        *text = rd_kafka_err2str(err);
    return err == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS ? RD_KAFKA_RESP_ERR_NO_ERROR : err;
}

static bool make(rd_kafka_t *client, const struct kafka_topic *topic, int broker_count, int timeout_ms,
                 char *why, size_t why_size)
{
    char trouble[256];
    const char *name, *text = "no answer";
    rd_kafka_NewTopic_t *wanted = describe(topic, broker_count, trouble, sizeof(trouble));
    if (wanted == NULL) {
        snprintf(why, why_size, "The topic %s of Kafka cannot be made: %s.", topic->name, trouble);
        return false;
    }
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    request(client, wanted, timeout_ms, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, timeout_ms + ASK_MS);
    bool good = event != NULL && kafka_topic_result(event, &name, &text) == RD_KAFKA_RESP_ERR_NO_ERROR;
    if (!good)
        snprintf(why, why_size, "The topic %s of Kafka cannot be made: %s.", topic->name, text);
    if (event != NULL)
        rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(queue);
    rd_kafka_NewTopic_destroy(wanted);
    return good;
}

static int left_ms(int64_t until_us)
{
    int64_t left = (until_us - clock_monotonic_us()) / 1000;
    return left < 1 ? 1 : (int)left;
}

bool kafka_topic_make(rd_kafka_t *client, const struct kafka_topic *topic, bool may_make, int timeout_ms,
                      char *why, size_t why_size)
{
    int64_t until_us = clock_monotonic_us() + (int64_t)timeout_ms * 1000;
    struct found found = ask_brokers(client, timeout_ms);
    /* Made before it is asked for: a question may make a broker make it, with a number of partitions of its own. One that
     * we may not make may be there all the same. */
    bool made = may_make && make(client, topic, found.broker_count, left_ms(until_us), why, why_size);
    do {
        int left = left_ms(until_us);
        found = ask(client, topic->name, left < ASK_MS ? left : ASK_MS);
        if (found.partition_count > 0 &&
            (topic->any_partition_count || found.partition_count == topic->partition_count))
            return true;
        if (found.partition_count > 0) {
            snprintf(why, why_size,
                     "The topic %s of Kafka has %d partitions and not %d: commands would change their place.",
                     topic->name, found.partition_count, topic->partition_count);
            return false;
        }
        if (!made && (found.err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
                      found.err == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC)) {
            if (!may_make)
                snprintf(why, why_size, "The topic %s of Kafka is not there, and is not to be made.",
                         topic->name);
            return false;
        }
        rd_kafka_poll(client, BETWEEN_MS); /* made, but not known everywhere yet; or no answer */
    } while (clock_monotonic_us() < until_us);
    snprintf(why, why_size, "The topic %s of Kafka could not be had within %d ms: %s.", topic->name,
             timeout_ms, rd_kafka_err2str(found.err));
    return false;
}
