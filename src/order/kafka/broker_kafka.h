/* SPDX-License-Identifier: Apache-2.0
 * The broker in earnest: Kafka, through librdkafka. Topics, P being the prefix:
 *
 *   P.commands                                           its partitions, or instead, per event:
 *   event-id-{event}______ticket-command-request______P  as many
 *   P.replies.{node}                                     one partition, read by that node from its start on
 *   P.dead-letters                                       one partition */
#ifndef HOLDFAST_ORDER_KAFKA_BROKER_KAFKA_H
#define HOLDFAST_ORDER_KAFKA_BROKER_KAFKA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/uuid.h"
#include "kafka/kafka.h"
#include "order/broker.h"

struct broker_kafka_config { /* borrowed while the broker lives, with what it points to */
    const struct kafka_config *kafka;
    const char *node_name;
    const char *topic_prefix;
    const char *group; /* NULL: the prefix */
    bool topic_per_event;
    int32_t partition_count;    /* of each topic of commands */
    bool topics_exist;          /* none is made; where they are not to be, or cannot be, made */
    int32_t session_timeout_ms; /* a node that is silent for so long loses its partitions; 0: 8 s */
    int32_t connect_timeout_ms; /* how long to wait for the first answer; 0: 10 s */
};

/* When it returns, every topic is there, and every reply to what is sent from now on will be seen. ERR_CONFIG, and `why`
 * is one sentence. Blocks. */
enum err broker_kafka_create(const struct broker_kafka_config *config, struct broker **out, char *why,
                             size_t why_size) MUST_CHECK;

/* ---- Dead letters ---- */

struct broker_kafka_dead_letter { /* borrowed for the call */
    int64_t number;               /* its offset among the dead letters */
    int64_t dead_ms;              /* when it came there */
    const char *reason;
    const char *topic; /* where it came from … */
    int32_t partition;
    int64_t offset;
    int64_t sent_ms; /* … and when it was sent there, or 0 */
    const void *value;
    size_t size;
};

/* False: no more are wanted. */
typedef bool broker_kafka_on_dead_letter(void *context, const struct broker_kafka_dead_letter *letter);

/* All of the topic from its beginning to where it ended when asked, oldest first, at most `limit`. A topic that is not
 * there is empty. Blocks for at most timeout_ms without hearing anything; ERR_STORE_UNAVAILABLE or ERR_CONFIG, and `why`
 * is one sentence. */
enum err broker_kafka_dead_letters(const struct kafka_config *kafka, const char *prefix, int64_t limit,
                                   int timeout_ms, broker_kafka_on_dead_letter *on_letter, void *context,
                                   int64_t *count, char *why, size_t why_size) MUST_CHECK;

#endif
