/* SPDX-License-Identifier: Apache-2.0
 * One broker or another. */
#include "order/broker.h"

#include "order/broker_int.h"

void broker_listen(struct broker *broker, const struct broker_events *events)
{
    broker->events = *events;
}

enum err broker_send_command(struct broker *broker, const char *topic, int32_t partition,
                             const struct uuid *id, const void *value, size_t size, void *owner)
{
    return broker->functions->send_command(broker, topic, partition, id, value, size, owner);
}

enum err broker_send_reply(struct broker *broker, const char *node_name, const void *value, size_t size)
{
    return broker->functions->send_reply(broker, node_name, value, size);
}

enum err broker_send_dead_letter(struct broker *broker, const struct broker_message *message,
                                 const char *reason)
{
    return broker->functions->send_dead_letter(broker, message, reason);
}

void broker_pause(struct broker *broker, const char *topic, int32_t partition, bool paused)
{
    broker->functions->pause(broker, topic, partition, paused);
}

void broker_commit(struct broker *broker, const char *topic, int32_t partition, int64_t next_offset)
{
    broker->functions->commit(broker, topic, partition, next_offset);
}

void broker_confirm(struct broker *broker, const char *topic, int32_t partition, int64_t next_offset)
{
    broker->functions->confirm(broker, topic, partition, next_offset);
}

void broker_rewind(struct broker *broker, const char *topic, int32_t partition)
{
    broker->functions->rewind(broker, topic, partition);
}

void broker_make_topic(struct broker *broker, const char *topic)
{
    broker->functions->make_topic(broker, topic);
}

bool broker_is_idle(struct broker *broker)
{
    return broker->functions->is_idle(broker);
}

int broker_fd(struct broker *broker)
{
    return broker->functions->fd(broker);
}

int64_t broker_poll(struct broker *broker, int64_t now_ms)
{
    return broker->functions->poll(broker, now_ms);
}

void broker_leave(struct broker *broker)
{
    broker->functions->leave(broker);
}

void broker_destroy(struct broker *broker)
{
    if (broker != NULL)
        broker->functions->destroy(broker);
}
