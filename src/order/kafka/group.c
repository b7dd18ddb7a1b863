/* SPDX-License-Identifier: Apache-2.0
 * The member of the group: partitions come and go, and their commands come.
 *
 *  1. Between on_assigned and on_revoked of a partition, and only then, its
 *     messages are given out, in the order of their offsets.
 *  2. It joins when it is polled for the first time: before that nobody would
 *     take what it is given.
 *  3. Partitions move without stopping the others (cooperative-sticky).
 *  4. rd_kafka_consumer_poll(), one by one: the batch calls of librdkafka 2.0
 *     may lose messages around a rebalance. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "order/kafka/broker_kafka_int.h"

enum { SESSION_TIMEOUT_MS = 8000 };

/* ---- Partitions come and go ---- */

static void assigned(struct broker_kafka *broker, const rd_kafka_topic_partition_t *which)
{
    struct kafka_named *topic = kafka_named(broker, which->topic);
    struct kafka_partition *partition = kafka_partition(topic, which->partition);
    if (partition->owned)
        return;
    *partition = (struct kafka_partition){.owned = true, .committed = -1, .position = -1};
    gauge_set(GAUGE_ORDER_PARTITIONS, ++broker->group.owned_count);
    counter_add(COUNTER_BROKER_ASSIGNED, 1);
    if (!broker->silent)
        broker->base.events.on_assigned(broker->base.events.context, topic->name, which->partition);
}

static void revoked(struct broker_kafka *broker, const rd_kafka_topic_partition_t *which, bool lost)
{
    struct kafka_named *topic = kafka_named(broker, which->topic);
    if (!kafka_owns(topic, which->partition))
        return;
    counter_add(lost ? COUNTER_BROKER_LOST : COUNTER_BROKER_REVOKED, 1);
    gauge_set(GAUGE_ORDER_PARTITIONS, --broker->group.owned_count);
    if (!broker->silent)
        broker->base.events.on_revoked(broker->base.events.context, topic->name, which->partition, lost);
}

static void disown(struct broker_kafka *broker, const rd_kafka_topic_partition_t *which)
{
    struct kafka_partition *partition = kafka_partition(kafka_named(broker, which->topic), which->partition);
    if (partition->dirty)
        broker->group.dirty_count--;
    partition->owned = false;
    partition->dirty = false;
}

static void on_rebalance(rd_kafka_t *client, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *which,
                         void *opaque)
{
    struct broker_kafka *broker = opaque;
    const char *protocol = rd_kafka_rebalance_protocol(client); /* NULL: it is in no group any more */
    bool cooperative = protocol != NULL && strcmp(protocol, "COOPERATIVE") == 0;
    rd_kafka_error_t *error = NULL;

    if (err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        broker->group.was_assigned = true;
        if (cooperative)
            error = rd_kafka_incremental_assign(client, which);
        else
            rd_kafka_assign(client, which);
        for (int i = 0; i < which->cnt; i++)
            assigned(broker, &which->elems[i]);
    } else {
        bool lost = rd_kafka_assignment_lost(client) != 0;
        for (int i = 0; i < which->cnt; i++)
            revoked(broker, &which->elems[i], lost);
        /* What was noted for them until now goes out before they do; of lost ones it would be refused. */
        if (!lost)
            kafka_commit_send(broker, which);
        for (int i = 0; i < which->cnt; i++)
            disown(broker, &which->elems[i]);
        if (cooperative)
            error = rd_kafka_incremental_unassign(client, which);
        else
            rd_kafka_assign(client, NULL);
    }
    if (error != NULL) {
        kafka_note_error(broker, COUNTER_BROKER_ERRORS_CONSUME, rd_kafka_error_code(error),
                         "partitions could not be moved", rd_kafka_error_string(error));
        rd_kafka_error_destroy(error);
    }
    log_write(LOG_INFO, "partitions", "\"change\":\"%s\",\"count\":%d,\"owned\":%d",
              err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS ? "assigned" : "revoked", which->cnt,
              broker->group.owned_count);
}

/* ---- The client ---- */

bool kafka_group_open(struct broker_kafka *broker, char *why, size_t why_size)
{
    char session_ms[16];
    snprintf(session_ms, sizeof(session_ms), "%d",
             broker->session_timeout_ms == 0 ? SESSION_TIMEOUT_MS : broker->session_timeout_ms);
    const struct kafka_property preferred[] = {
        {"session.timeout.ms", session_ms},
        {"heartbeat.interval.ms", "500"},
        {"max.poll.interval.ms", "60000"},
        {"fetch.wait.max.ms", "100"},
        {"fetch.error.backoff.ms", "100"},
        {"queued.max.messages.kbytes", "16384"},
        {"topic.metadata.refresh.interval.ms", broker->topic_per_event ? "1000" : "10000"},
        {NULL, NULL},
    };
    rd_kafka_conf_t *conf = kafka_conf(broker->kafka, "group", preferred);
    kafka_conf_set(conf, "group.id", broker->group_id);
    kafka_conf_set(conf, "partition.assignment.strategy", "cooperative-sticky");
    kafka_conf_set(conf, "enable.auto.commit", "false");
    kafka_conf_set(conf, "enable.auto.offset.store", "false");
    kafka_conf_set(conf, "auto.offset.reset", "earliest");
    kafka_conf_set(conf, "enable.partition.eof", "true");
    rd_kafka_conf_set_opaque(conf, broker);
    rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
    rd_kafka_conf_set_offset_commit_cb(conf, kafka_on_commit);
    rd_kafka_conf_set_error_cb(conf, kafka_on_error);
    rd_kafka_t *client = kafka_client(RD_KAFKA_CONSUMER, conf, why, why_size);
    if (client == NULL)
        return false;
    broker->group.client = client;
    rd_kafka_poll_set_consumer(client);
    broker->group.queue = rd_kafka_queue_get_consumer(client);
    kafka_watch(broker, broker->group.queue);
    return true;
}

/* A regular expression of librdkafka's, which begins with ^: names have no other special characters than dots. */
static void put_pattern(const char *prefix, char *out, size_t size)
{
    int at = snprintf(out, size, "^event-id-[0-9a-f-]+______ticket-command-request______");
    for (; *prefix != '\0' && at + 4 < (int)size; prefix++) {
        if (*prefix == '.')
            out[at++] = '\\';
        out[at++] = *prefix;
    }
    out[at++] = '$';
    out[at] = '\0';
}

static void join(struct broker_kafka *broker)
{
    char topic[2 * KAFKA_TOPIC_SIZE + 64];
    if (broker->topic_per_event)
        put_pattern(broker->prefix, topic, sizeof(topic));
    else
        place_topic(broker->prefix, topic);
    rd_kafka_topic_partition_list_t *wanted = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(wanted, topic, RD_KAFKA_PARTITION_UA);
    rd_kafka_resp_err_t err = rd_kafka_subscribe(broker->group.client, wanted);
    rd_kafka_topic_partition_list_destroy(wanted);
    CHECK(err == RD_KAFKA_RESP_ERR_NO_ERROR);
    broker->group.joined = true;
}

static void take(struct broker_kafka *broker, const rd_kafka_message_t *message)
{
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR && message->err != RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        kafka_note_error(broker, COUNTER_BROKER_ERRORS_CONSUME, message->err, "commands cannot be read",
                         rd_kafka_message_errstr(message));
        return;
    }
    struct kafka_named *topic = kafka_named(broker, rd_kafka_topic_name(message->rkt));
    if (!kafka_owns(topic, message->partition) || broker->silent)
        return;
    struct kafka_partition *partition = &topic->partitions[message->partition];
    struct broker_events *events = &broker->base.events;
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        partition->position = message->offset;
        events->on_end(events->context, topic->name, message->partition, message->offset);
        return;
    }
    struct broker_message command = kafka_message(message, topic->name);
    partition->position = message->offset + 1;
    events->on_command(events->context, &command);
}

bool kafka_group_serve(struct broker_kafka *broker)
{
    struct kafka_group *group = &broker->group;
    if (!group->joined && group->leaving == NULL)
        join(broker);
    if (group->leaving != NULL && rd_kafka_consumer_closed(group->client))
        return false;
    for (int i = 0; i < GROUP_POLL_COUNT_MAX; i++) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(group->client, 0);
        if (message == NULL)
            break;
        take(broker, message);
        rd_kafka_message_destroy(message);
    }
    return rd_kafka_queue_length(group->leaving != NULL ? group->leaving : group->queue) > 0;
}

void kafka_group_pause(struct broker *base, const char *name, int32_t number, bool paused)
{
    struct broker_kafka *broker = CONTAINER_OF(base, struct broker_kafka, base);
    struct kafka_named *topic = kafka_named(broker, name);
    /* To resume what is not paused would lose what was fetched of it (librdkafka 2.0). */
    if (!kafka_owns(topic, number) || topic->partitions[number].paused == paused)
        return;
    topic->partitions[number].paused = paused;
    rd_kafka_topic_partition_list_t *which = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(which, name, number);
    rd_kafka_resp_err_t err = paused ? rd_kafka_pause_partitions(broker->group.client, which)
                                     : rd_kafka_resume_partitions(broker->group.client, which);
    if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
        err = which->elems[0].err;
    rd_kafka_topic_partition_list_destroy(which);
    if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
        kafka_note_error(broker, COUNTER_BROKER_ERRORS_CONSUME, err, "a partition cannot be paused",
                         rd_kafka_err2str(err));
}

void kafka_group_rewind(struct broker *base, const char *name, int32_t number)
{
    struct broker_kafka *broker = CONTAINER_OF(base, struct broker_kafka, base);
    struct kafka_named *topic = kafka_named(broker, name);
    if (!kafka_owns(topic, number))
        return;
    kafka_commit_forget(broker, &topic->partitions[number]);
    rd_kafka_topic_partition_list_t *which = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(which, name, number)->offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_error_t *error = rd_kafka_seek_partitions(broker->group.client, which, 0);
    rd_kafka_topic_partition_list_destroy(which);
    if (error == NULL)
        return;
    kafka_note_error(broker, COUNTER_BROKER_ERRORS_CONSUME, rd_kafka_error_code(error),
                     "a partition cannot be read anew", rd_kafka_error_string(error));
    rd_kafka_error_destroy(error);
}

/* The revocation, and the end of it, come through rd_kafka_consumer_poll() like everything before. */
void kafka_group_leave(struct broker *base)
{
    struct broker_kafka *broker = CONTAINER_OF(base, struct broker_kafka, base);
    struct kafka_group *group = &broker->group;
    if (group->leaving != NULL)
        return;
    kafka_commit_send(broker, NULL);
    group->leaving = rd_kafka_queue_new(group->client);
    kafka_watch(broker, group->leaving);
    rd_kafka_error_t *error = rd_kafka_consumer_close_queue(group->client, group->leaving);
    if (error == NULL)
        return;
    kafka_note_error(broker, COUNTER_BROKER_ERRORS_CONSUME, rd_kafka_error_code(error),
                     "the group cannot be left", rd_kafka_error_string(error));
    rd_kafka_error_destroy(error);
}

void kafka_group_close(struct broker_kafka *broker)
{
    struct kafka_group *group = &broker->group;
    if (group->client == NULL)
        return;
    kafka_group_leave(&broker->base);
    int64_t until_us = clock_monotonic_us() + DESTROY_LEAVE_MS * 1000;
    while (!rd_kafka_consumer_closed(group->client) && clock_monotonic_us() < until_us) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(group->client, 20);
        if (message != NULL)
            rd_kafka_message_destroy(message);
    }
    rd_kafka_queue_io_event_enable(group->leaving, -1, NULL, 0);
    rd_kafka_queue_io_event_enable(group->queue, -1, NULL, 0);
    rd_kafka_queue_destroy(group->leaving);
    rd_kafka_queue_destroy(group->queue);
    /* Two cases are left to the process's end, with nothing of ours to write to: while a JoinGroup is under way this would
     * wait for its answer, for as long as the slowest member takes; and between joining and the first assignment librdkafka
     * before 2.3 aborts on it. */
    bool is_closed = rd_kafka_consumer_closed(group->client) != 0;
    if (is_closed && (group->was_assigned || !group->joined))
        rd_kafka_destroy_flags(group->client, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    gauge_set(GAUGE_ORDER_PARTITIONS, 0);
    gauge_set(GAUGE_ORDER_LAG, 0);
}
