/* SPDX-License-Identifier: Apache-2.0
 * The broker's beginning, turn and end. A turn empties what the three clients
 * have queued, a bounded number of messages each, and never waits.
 *
 * The eventfd is read before the queues are: what comes after a queue was seen
 * empty writes to it again, so nothing is slept over. What a turn leaves behind
 * in a queue asks for another turn at once. */
#include "order/kafka/broker_kafka.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "order/kafka/broker_kafka_int.h"

enum { CONNECT_TIMEOUT_MS = 10000, LOG_INTERVAL_US = 10000000 };

void kafka_watch(struct broker_kafka *broker, rd_kafka_queue_t *queue)
{
    static const uint64_t one = 1;
    rd_kafka_queue_io_event_enable(queue, broker->fd, &one, sizeof(one));
}

/* ---- Trouble ---- */

void kafka_note_error(struct broker_kafka *broker, enum counter counter, rd_kafka_resp_err_t err,
                      const char *what, const char *reason)
{
    int64_t now_us = clock_monotonic_us();
    char quoted[512];
    counter_add(counter, 1);
    /* One that goes on for a while is said now and then. */
    if (err == broker->logged && now_us - broker->logged_us < LOG_INTERVAL_US)
        return;
    broker->logged = err;
    broker->logged_us = now_us;
    log_quote(reason, quoted, sizeof(quoted));
    log_write(LOG_WARN, what, "\"error\":\"%s\",\"text\":\"%s\"", rd_kafka_err2name(err), quoted);
}

void kafka_on_error(rd_kafka_t *client, int err, const char *reason, void *opaque)
{
    struct broker_kafka *broker = opaque;
    if (err == RD_KAFKA_RESP_ERR__FATAL && client == broker->producer.client) {
        broker->producer.failed = true; /* said and counted when it is replaced */
        return;
    }
    /* That all are down is only the sum of what was said of each. */
    if (err != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN || broker->trouble[0] == '\0')
        snprintf(broker->trouble, sizeof(broker->trouble), "%s", reason);
    kafka_note_error(broker,
                     err == RD_KAFKA_RESP_ERR__FATAL ? COUNTER_BROKER_ERRORS_FATAL
                                                     : COUNTER_BROKER_ERRORS_CONNECTION,
                     (rd_kafka_resp_err_t)err, "trouble with a broker", reason);
}

/* ---- A turn ---- */

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t kafka_poll(struct broker *base, int64_t now_ms)
{
    struct broker_kafka *broker = CONTAINER_OF(base, struct broker_kafka, base);
    uint64_t ignored;
    while (read(broker->fd, &ignored, sizeof(ignored)) < 0 && errno == EINTR)
        ;
    broker->now_ms = now_ms;
    int64_t due_ms = kafka_producer_serve(broker);
    bool more_replies = kafka_replies_serve(broker);
    bool more_commands = kafka_group_serve(broker);
    due_ms = earlier(due_ms, kafka_topics_serve(broker));
    due_ms = earlier(due_ms, kafka_commits_serve(broker));
    return more_replies || more_commands ? now_ms : due_ms;
}

static int kafka_fd(struct broker *base)
{
    return CONTAINER_OF(base, struct broker_kafka, base)->fd;
}

static bool kafka_is_idle(struct broker *base)
{
    return kafka_producer_is_idle(CONTAINER_OF(base, struct broker_kafka, base));
}

static void kafka_destroy(struct broker *base)
{
    struct broker_kafka *broker = CONTAINER_OF(base, struct broker_kafka, base);
    broker->silent = true;
    kafka_group_close(broker);
    kafka_producer_close(broker);
    kafka_replies_close(broker);
    kafka_topics_free(broker);
    if (broker->fd >= 0)
        close(broker->fd);
    free(broker);
}

static const struct broker_functions functions = {
    .send_command = kafka_send_command,
    .send_reply = kafka_send_reply,
    .send_dead_letter = kafka_send_dead_letter,
    .pause = kafka_group_pause,
    .rewind = kafka_group_rewind,
    .commit = kafka_commit,
    .confirm = kafka_confirm,
    .make_topic = kafka_make_topic,
    .is_idle = kafka_is_idle,
    .fd = kafka_fd,
    .poll = kafka_poll,
    .leave = kafka_group_leave,
    .destroy = kafka_destroy,
};

/* ---- What comes ---- */

struct broker_message kafka_message(const rd_kafka_message_t *message, const char *topic)
{
    rd_kafka_timestamp_type_t kind;
    int64_t sent_ms = rd_kafka_message_timestamp(message, &kind);
    return (struct broker_message){
        .topic = topic,
        .partition = message->partition,
        .offset = message->offset,
        .sent_ms = kind == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ? 0 : sent_ms,
        .value = message->payload,
        .size = message->len,
    };
}

/* ---- The beginning ---- */

static bool name_topics(struct broker_kafka *broker, const struct broker_kafka_config *config, char *why,
                        size_t why_size)
{
    static const struct uuid some_event;
    char longest[KAFKA_TOPIC_SIZE];
    const char *prefix = config->topic_prefix;
    int room = (int)sizeof(broker->prefix);
    int size = snprintf(broker->prefix, sizeof(broker->prefix), "%s", prefix);
    place_topic_of_event(prefix, &some_event, longest);
    if (size >= room || !kafka_topic_is_legal(broker->prefix) || strlen(longest) >= KAFKA_TOPIC_SIZE - 1) {
        snprintf(why, why_size,
                 "The prefix of Kafka topics %.80s is too long or has other characters than letters, "
                 "digits, '.', '_' and '-'.",
                 prefix);
        return false;
    }
    size = snprintf(broker->replies_topic, sizeof(broker->replies_topic), "%s.replies.%s", prefix,
                    config->node_name);
    if (config->node_name[0] == '\0' || size >= room || !kafka_topic_is_legal(broker->replies_topic)) {
        snprintf(why, why_size,
                 "The node's name %.80s cannot stand in the name of a Kafka topic: it is empty, too long or "
                 "has other characters than letters, digits, '.', '_' and '-'.",
                 config->node_name);
        return false;
    }
    size = snprintf(broker->group_id, sizeof(broker->group_id), "%s",
                    config->group == NULL ? prefix : config->group);
    if (size == 0 || size >= room) {
        snprintf(why, why_size, "The name of the Kafka consumer group is empty or too long.");
        return false;
    }
    return true;
}

static bool make_topics(struct broker_kafka *broker, int timeout_ms, char *why, size_t why_size)
{
    char commands[KAFKA_TOPIC_SIZE], dead[2 * KAFKA_TOPIC_SIZE];
    place_topic(broker->prefix, commands);
    snprintf(dead, sizeof(dead), "%s.dead-letters", broker->prefix);
    broker->dead_letters = kafka_named(broker, dead);
    const struct kafka_topic topics[] = {
        {.name = commands, .partition_count = broker->partition_count},
        {.name = broker->replies_topic, .partition_count = 1, .retention_ms = REPLY_RETENTION_MS},
        {.name = dead, .partition_count = 1},
    };
    for (size_t i = broker->topic_per_event ? 1 : 0; i < COUNT_OF(topics); i++)
        if (!kafka_topic_make(broker->replies.client, &topics[i], !broker->topics_exist, timeout_ms, why,
                              why_size))
            return false;
    return true;
}

enum err broker_kafka_create(const struct broker_kafka_config *config, struct broker **out, char *why,
                             size_t why_size)
{
    int timeout_ms = config->connect_timeout_ms == 0 ? CONNECT_TIMEOUT_MS : config->connect_timeout_ms;
    struct broker_kafka *broker = calloc(1, sizeof(*broker));
    CHECK(broker != NULL);
    broker->base.functions = &functions;
    broker->kafka = config->kafka;
    broker->topic_per_event = config->topic_per_event;
    broker->topics_exist = config->topics_exist;
    broker->partition_count = config->partition_count;
    broker->session_timeout_ms = config->session_timeout_ms;
    broker->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    CHECK(broker->fd >= 0);
    if (!name_topics(broker, config, why, why_size) || !kafka_replies_open(broker, why, why_size) ||
        !kafka_reach(broker->replies.client, config->kafka, timeout_ms, broker->trouble,
                     &broker->broker_count, why, why_size) ||
        !make_topics(broker, timeout_ms, why, why_size) ||
        !kafka_replies_begin(broker, timeout_ms, why, why_size) ||
        !kafka_producer_open(broker, why, why_size) || !kafka_group_open(broker, why, why_size)) {
        kafka_destroy(&broker->base);
        return ERR_CONFIG;
    }
    *out = &broker->base;
    return ERR_OK;
}
