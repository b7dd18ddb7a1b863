/* SPDX-License-Identifier: Apache-2.0
 * What was read of a URL and a file. */
#ifndef HOLDFAST_KAFKA_KAFKA_INT_H
#define HOLDFAST_KAFKA_KAFKA_INT_H

#include "kafka/kafka.h"

enum { KAFKA_PROPERTY_COUNT_MAX = 256 };

struct kafka_config {
    char *brokers;
    struct kafka_property properties[KAFKA_PROPERTY_COUNT_MAX]; /* owned; later ones win */
    int32_t count;
};

#endif
