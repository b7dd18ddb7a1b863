/* SPDX-License-Identifier: Apache-2.0
 * The channel that delivers domain events to a topic of Kafka: one message an
 * event, its CloudEvents JSON as value. docs/events.md tells consumers what to
 * expect.
 *
 * The key is the subject: the seat's id, or the checkout's. An event of a
 * checkout that names seats comes once more under each of them, so that whoever
 * follows a seat sees its sale in its place. */
#ifndef HOLDFAST_PUBLISH_KAFKA_EVENTS_H
#define HOLDFAST_PUBLISH_KAFKA_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "kafka/kafka.h"
#include "publish/delivery.h"

enum {
    KAFKA_EVENTS_PARTITION_COUNT = 12, /* of a topic that we make; another number is fine */
    KAFKA_EVENTS_TOPIC_MS = 2000,      /* to find or make it; the lease waits meanwhile */
};

struct kafka_events_config {
    const struct kafka_config *kafka; /* borrows, for the channel's life */
    const char *topic;                /* borrows */
    bool may_make;                    /* the topic, if it is not there */
};

/* Speaks to nobody yet: a broker that is away delays events and nothing else. */
enum err kafka_events_create(const struct kafka_events_config *config,
                             struct delivery_channel **out) MUST_CHECK;

#endif
