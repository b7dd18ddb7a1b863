/* SPDX-License-Identifier: Apache-2.0
 * What is the same wherever Kafka is spoken to: where it is and how to get in,
 * its topics, its log lines. The order (order/kafka/) and the delivery of domain
 * events (publish/) build on it.
 *
 *   kafka://broker[:9092][,broker…][?property=value[&property=value…]]
 *
 * Properties are librdkafka's own (security.protocol, sasl.mechanisms,
 * ssl.ca.location, …), percent-encoded. Secrets do not belong on a command line: a file of
 * `property=value` lines may give more; it wins over the URL. What Holdfast's promises
 * rest on (acks, idempotence, offsets) cannot be set. */
#ifndef HOLDFAST_KAFKA_KAFKA_H
#define HOLDFAST_KAFKA_KAFKA_H

#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
    KAFKA_TOPIC_SIZE = 250,  /* a topic's name, with its NUL */
    KAFKA_REPLICA_COUNT = 3, /* of a topic, where there are so many brokers */
};

struct kafka_config;

/* `file`: or NULL. False, and `why` is one sentence: a property that does not exist, or is not to be set, is named;
 * no secret is repeated in it. */
bool kafka_config_parse(const char *url, const char *file, struct kafka_config **out, char *why,
                        size_t why_size);
void kafka_config_free(struct kafka_config *config); /* NULL is fine */
/* host:port,…; for people. It holds no secret. */
const char *kafka_config_brokers(const struct kafka_config *config);

struct kafka_property {
    const char *name, *value;
};

/* All of it as librdkafka takes it, with our logging; `role` stands in client.id. `preferred` is what we would rather
 * have, unless the operator said something else: ends with a NULL name, or is NULL. The caller's, until kafka_client()
 * takes it. */
rd_kafka_conf_t *kafka_conf(const struct kafka_config *config, const char *role,
                            const struct kafka_property *preferred);
/* What we must have, whatever was said. The name exists and takes the value: anything else is our mistake. */
void kafka_conf_set(rd_kafka_conf_t *conf, const char *name, const char *value);
/* NULL and one sentence: what librdkafka sees only when all of it is there (a certificate that cannot be read). Takes
 * the conf in any case. */
rd_kafka_t *kafka_client(rd_kafka_type_t type, rd_kafka_conf_t *conf, char *why, size_t why_size);

/* Waits until a broker answers, at most timeout_ms. `trouble` is what the client's error callback keeps of what it was
 * last told, "" until then; it is polled meanwhile. NULL: it has none. */
bool kafka_reach(rd_kafka_t *client, const struct kafka_config *config, int timeout_ms, const char *trouble,
                 int *broker_count, char *why, size_t why_size);

/* What is legal in a topic's name. */
bool kafka_topic_is_legal(const char *topic);

struct kafka_topic {
    const char *name;
    int32_t partition_count;
    bool any_partition_count; /* one that is there already may have another number */
    int64_t retention_ms;     /* 0: as the cluster has it */
};
/* Makes the topic, if it may and it is not there, with as many replicas as there are brokers, at most three; then asks
 * for it. Blocks for at most timeout_ms or so. An existing one with another number of partitions is an error: commands
 * would change their place. */
bool kafka_topic_make(rd_kafka_t *client, const struct kafka_topic *topic, bool may_make, int timeout_ms,
                      char *why, size_t why_size);
/* The same without waiting: the answer is an RD_KAFKA_EVENT_CREATETOPICS_RESULT on the queue. */
void kafka_topic_begin(rd_kafka_t *client, const struct kafka_topic *topic, int broker_count,
                       rd_kafka_queue_t *queue);
/* What that event says: of which topic, and why it is not there. That it was there already is no error. */
rd_kafka_resp_err_t kafka_topic_result(const rd_kafka_event_t *event, const char **name, const char **text);

#endif
