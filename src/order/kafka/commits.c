/* SPDX-License-Identifier: Apache-2.0
 * Offsets that are told to the group's coordinator, all partitions in one
 * request and a few requests a second, and how far they are behind. Where a
 * command's effect is decided is the store; this is where the next owner begins
 * to read, and what people see as lag. And since the coordinator takes offsets
 * from members of the present generation alone, it is how one finds out whether
 * one still is one. */
#include "base/check.h"
#include "base/clock.h"
#include "order/kafka/broker_kafka_int.h"

static void set_dirty(struct broker_kafka *broker, struct kafka_partition *partition, bool dirty)
{
    if (partition->dirty != dirty)
        broker->group.dirty_count += dirty ? 1 : -1;
    partition->dirty = dirty;
}

void kafka_commit(struct broker *base, const char *name, int32_t number, int64_t next_offset)
{
    struct broker_kafka *broker = CONTAINER_OF(base, struct broker_kafka, base);
    struct kafka_named *topic = kafka_named(broker, name);
    if (!kafka_owns(topic, number))
        return;
    struct kafka_partition *partition = &topic->partitions[number];
    if (next_offset <= partition->committed)
        return;
    partition->committed = next_offset;
    set_dirty(broker, partition, true);
}

void kafka_confirm(struct broker *base, const char *name, int32_t number, int64_t next_offset)
{
    struct broker_kafka *broker = CONTAINER_OF(base, struct broker_kafka, base);
    struct kafka_named *topic = kafka_named(broker, name);
    if (!kafka_owns(topic, number))
        return;
    struct kafka_partition *partition = &topic->partitions[number];
    if (partition->committed < 0)
        partition->committed = next_offset;
    partition->is_doubted = true;
    set_dirty(broker, partition, true);
}

void kafka_commit_forget(struct broker_kafka *broker, struct kafka_partition *partition)
{
    set_dirty(broker, partition, false);
    partition->committed = -1;
}

static void add_dirty(struct broker_kafka *broker, rd_kafka_topic_partition_list_t *offsets,
                      struct kafka_named *topic, int32_t number)
{
    if (number >= topic->partition_count || !topic->partitions[number].dirty)
        return;
    struct kafka_partition *partition = &topic->partitions[number];
    rd_kafka_topic_partition_list_add(offsets, topic->name, number)->offset = partition->committed;
    set_dirty(broker, partition, false);
    partition->is_asked = partition->is_doubted;
}

void kafka_commit_send(struct broker_kafka *broker, const rd_kafka_topic_partition_list_t *only)
{
    struct kafka_group *group = &broker->group;
    if (group->dirty_count == 0)
        return;
    rd_kafka_topic_partition_list_t *offsets = rd_kafka_topic_partition_list_new(group->dirty_count);
    if (only != NULL)
        for (int i = 0; i < only->cnt; i++)
            add_dirty(broker, offsets, kafka_named(broker, only->elems[i].topic), only->elems[i].partition);
    else
        for (int i = 0; i < TOPIC_BUCKET_COUNT; i++)
            for (struct kafka_named *topic = broker->topics[i]; topic != NULL; topic = topic->next)
                for (int32_t j = 0; j < topic->partition_count; j++)
                    add_dirty(broker, offsets, topic, j);
    if (offsets->cnt > 0) {
        rd_kafka_resp_err_t err = rd_kafka_commit(group->client, offsets, 1);
        if (err == RD_KAFKA_RESP_ERR_NO_ERROR) {
            group->commit_count++;
            group->commit_sent_us = clock_monotonic_us();
        } else
            kafka_note_error(broker, COUNTER_BROKER_ERRORS_COMMIT, err, "offsets cannot be committed",
                             rd_kafka_err2str(err));
    }
    rd_kafka_topic_partition_list_destroy(offsets);
}

/* Answers to requests that went out before somebody doubted say nothing about now. */
static void confirm_asked(struct broker_kafka *broker, const rd_kafka_topic_partition_t *which)
{
    struct kafka_named *topic = kafka_named(broker, which->topic);
    if (which->err != RD_KAFKA_RESP_ERR_NO_ERROR || !kafka_owns(topic, which->partition))
        return;
    struct kafka_partition *partition = &topic->partitions[which->partition];
    if (!partition->is_asked)
        return;
    partition->is_doubted = partition->is_asked = false;
    broker->base.events.on_confirmed(broker->base.events.context, topic->name, which->partition);
}

void kafka_on_commit(rd_kafka_t *client, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *offsets,
                     void *opaque)
{
    struct broker_kafka *broker = opaque;
    struct kafka_group *group = &broker->group;
    (void)client;
    if (group->commit_count > 0 && --group->commit_count == 0 && err == RD_KAFKA_RESP_ERR_NO_ERROR)
        histogram_observe(HISTOGRAM_ORDER_COMMIT_SECONDS,
                          (double)(clock_monotonic_us() - group->commit_sent_us) / 1e6);
    if (broker->silent)
        return;
    for (int i = 0; err == RD_KAFKA_RESP_ERR_NO_ERROR && offsets != NULL && i < offsets->cnt; i++)
        confirm_asked(broker, &offsets->elems[i]);
    if (err == RD_KAFKA_RESP_ERR_NO_ERROR || err == RD_KAFKA_RESP_ERR__NO_OFFSET)
        return;
    kafka_note_error(broker, COUNTER_BROKER_ERRORS_COMMIT, err, "offsets were not committed",
                     rd_kafka_err2str(err));
    /* With the next request, unless something newer goes with it. */
    for (int i = 0; offsets != NULL && i < offsets->cnt; i++) {
        struct kafka_named *topic = kafka_named(broker, offsets->elems[i].topic);
        if (kafka_owns(topic, offsets->elems[i].partition))
            set_dirty(broker, &topic->partitions[offsets->elems[i].partition], true);
    }
}

/* As far as it is known here: what is not fetched because it is paused does not count yet. */
static int64_t lag_of(struct broker_kafka *broker, const struct kafka_named *topic, int32_t number)
{
    const struct kafka_partition *partition = &topic->partitions[number];
    int64_t low, high;
    if (rd_kafka_get_watermark_offsets(broker->group.client, topic->name, number, &low, &high) !=
            RD_KAFKA_RESP_ERR_NO_ERROR ||
        high < 0)
        return 0;
    int64_t from = partition->committed >= 0 ? partition->committed : partition->position;
    if (from < 0)
        from = low < 0 ? 0 : low;
    return high > from ? high - from : 0;
}

static void measure_lag(struct broker_kafka *broker)
{
    int64_t lag = 0;
    for (int i = 0; i < TOPIC_BUCKET_COUNT; i++)
        for (struct kafka_named *topic = broker->topics[i]; topic != NULL; topic = topic->next)
            for (int32_t j = 0; j < topic->partition_count; j++)
                if (topic->partitions[j].owned)
                    lag += lag_of(broker, topic, j);
    gauge_set(GAUGE_ORDER_LAG, lag);
}

int64_t kafka_commits_serve(struct broker_kafka *broker)
{
    struct kafka_group *group = &broker->group;
    if (broker->now_ms >= group->lag_due_ms) {
        measure_lag(broker);
        group->lag_due_ms = broker->now_ms + LAG_INTERVAL_MS;
    }
    if (broker->now_ms >= group->commit_due_ms && group->dirty_count > 0 && group->commit_count == 0 &&
        group->leaving == NULL) {
        kafka_commit_send(broker, NULL);
        group->commit_due_ms = broker->now_ms + COMMIT_INTERVAL_MS;
    }
    bool waiting = group->dirty_count > 0 && group->commit_count == 0 && group->leaving == NULL;
    return waiting && group->commit_due_ms < group->lag_due_ms ? group->commit_due_ms : group->lag_due_ms;
}
