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

struct kafka_config;

/* `file`: or NULL. False, and `why` is one sentence: a property that does not exist, or is not to be set, is named;
 * no secret is repeated in it. */
bool kafka_config_parse(const char *url, const char *file, struct kafka_config **out, char *why,
                        size_t why_size);
void kafka_config_free(struct kafka_config *config); /* NULL is fine */

/* All of it as librdkafka takes it, with our logging; `role` stands in client.id. The caller's, until rd_kafka_new()
 * takes it. */
rd_kafka_conf_t *kafka_conf(const struct kafka_config *config, const char *role);

/* Asks for the topic and makes it if it is not there, with as many replicas as there are brokers, at most three. Blocks
 * for at most timeout_ms. An existing one with another number of partitions is an error: commands would change their place. */
bool kafka_topic_make(rd_kafka_t *client, const char *topic, int32_t partition_count, int timeout_ms,
                      char *why, size_t why_size);

#endif
