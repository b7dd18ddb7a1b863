/* SPDX-License-Identifier: Apache-2.0
 * What a broker is made of: the first member of each one there is. */
#ifndef HOLDFAST_ORDER_BROKER_INT_H
#define HOLDFAST_ORDER_BROKER_INT_H

#include "order/broker.h"

struct broker_functions {
    enum err (*send_command)(struct broker *broker, const char *topic, int32_t partition,
                             const struct uuid *id, const void *value, size_t size, void *owner);
    enum err (*send_reply)(struct broker *broker, const char *node_name, const void *value, size_t size);
    enum err (*send_dead_letter)(struct broker *broker, const struct broker_message *message,
                                 const char *reason);
    void (*pause)(struct broker *broker, const char *topic, int32_t partition, bool paused);
    void (*commit)(struct broker *broker, const char *topic, int32_t partition, int64_t next_offset);
    void (*confirm)(struct broker *broker, const char *topic, int32_t partition, int64_t next_offset);
    void (*rewind)(struct broker *broker, const char *topic, int32_t partition);
    void (*make_topic)(struct broker *broker, const char *topic);
    bool (*is_idle)(struct broker *broker);
    int (*fd)(struct broker *broker);
    int64_t (*poll)(struct broker *broker, int64_t now_ms);
    void (*leave)(struct broker *broker);
    void (*destroy)(struct broker *broker);
};

struct broker {
    const struct broker_functions *functions;
    struct broker_events events;
};

#endif
