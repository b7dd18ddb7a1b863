/* SPDX-License-Identifier: Apache-2.0
 * The topics this node has met, by name, and what it has of each: partitions,
 * and the producer's handle. A topic that is asked to be made is made by an
 * admin request whose answer comes later; one that fails is tried again.
 *
 * The lane's thread. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "order/kafka/broker_kafka_int.h"

static unsigned bucket_of(const char *name)
{
    uint32_t hash = 2166136261u;
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return (hash ^ (hash >> 16)) % TOPIC_BUCKET_COUNT;
}

struct kafka_named *kafka_named(struct broker_kafka *broker, const char *name)
{
    struct kafka_named **bucket = &broker->topics[bucket_of(name)];
    for (struct kafka_named *topic = *bucket; topic != NULL; topic = topic->next)
        if (strcmp(topic->name, name) == 0)
            return topic;
    size_t size = strlen(name) + 1;
    struct kafka_named *topic = calloc(1, sizeof(*topic) + size);
    CHECK(topic != NULL);
    memcpy(topic->name, name, size);
    topic->next = *bucket;
    *bucket = topic;
    return topic;
}

struct kafka_partition *kafka_partition(struct kafka_named *topic, int32_t partition)
{
    CHECK(partition >= 0);
    if (partition >= topic->partition_count) {
        int32_t count = partition + 1 > ORDER_PARTITION_COUNT ? partition + 1 : ORDER_PARTITION_COUNT;
        topic->partitions = realloc(topic->partitions, (size_t)count * sizeof(*topic->partitions));
        CHECK(topic->partitions != NULL);
        for (int32_t i = topic->partition_count; i < count; i++)
            topic->partitions[i] = (struct kafka_partition){.committed = -1, .position = -1};
        topic->partition_count = count;
    }
    return &topic->partitions[partition];
}

bool kafka_owns(const struct kafka_named *topic, int32_t partition)
{
    return partition >= 0 && partition < topic->partition_count && topic->partitions[partition].owned;
}

/* ---- Making them ---- */

static void try_to_make(struct broker_kafka *broker, struct kafka_named *topic)
{
    struct kafka_topic wanted = {.name = topic->name, .partition_count = broker->partition_count};
    topic->make_count++;
    topic->make_due_ms = 0;
    kafka_topic_begin(broker->replies.client, &wanted, broker->broker_count, broker->admin_queue);
}

void kafka_make_topic(struct broker *base, const char *name)
{
    struct broker_kafka *broker = CONTAINER_OF(base, struct broker_kafka, base);
    struct kafka_named *topic = kafka_named(broker, name);
    if (broker->topics_exist || topic->make_count > 0)
        return;
    try_to_make(broker, topic);
}

static void take_result(struct broker_kafka *broker, const rd_kafka_event_t *event)
{
    const char *name, *text;
    rd_kafka_resp_err_t err = kafka_topic_result(event, &name, &text);
    if (err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        log_write(LOG_INFO, "topic", "\"topic\":\"%s\"", name);
        return;
    }
    kafka_note_error(broker, COUNTER_BROKER_ERRORS_PRODUCE, err, "a topic could not be made", text);
    /* An answer that is only an error does not say of what: all that were asked for are asked for again. */
    for (int i = 0; i < TOPIC_BUCKET_COUNT; i++)
        for (struct kafka_named *topic = broker->topics[i]; topic != NULL; topic = topic->next)
            if ((name[0] == '\0' || strcmp(topic->name, name) == 0) && topic->make_count > 0)
                topic->make_due_ms = broker->now_ms + ((int64_t)MAKE_RETRY_MS
                                                       << (topic->make_count < 6 ? topic->make_count : 6));
}

int64_t kafka_topics_serve(struct broker_kafka *broker)
{
    int64_t due_ms = TIME_MAX;
    rd_kafka_event_t *event;
    while ((event = rd_kafka_queue_poll(broker->admin_queue, 0)) != NULL) {
        if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_CREATETOPICS_RESULT)
            take_result(broker, event);
        rd_kafka_event_destroy(event);
    }
    for (int i = 0; i < TOPIC_BUCKET_COUNT; i++)
        for (struct kafka_named *topic = broker->topics[i]; topic != NULL; topic = topic->next) {
            if (topic->make_due_ms == 0)
                continue;
            if (topic->make_due_ms <= broker->now_ms)
                try_to_make(broker, topic);
            else if (topic->make_due_ms < due_ms)
                due_ms = topic->make_due_ms;
        }
    return due_ms;
}

void kafka_topics_free(struct broker_kafka *broker)
{
    for (int i = 0; i < TOPIC_BUCKET_COUNT; i++)
        while (broker->topics[i] != NULL) {
            struct kafka_named *topic = broker->topics[i];
            broker->topics[i] = topic->next;
            free(topic->partitions);
            free(topic);
        }
}
