/* SPDX-License-Identifier: Apache-2.0
 * See kafka_fixture.h. */
#include "unit/order/kafka_fixture.h"

#include <librdkafka/rdkafka_mock.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* cmocka needs some of the above */
#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"

enum { BROKER_COUNT = 3 };

static struct {
    rd_kafka_t *host; /* whose threads the mock runs on */
    rd_kafka_mock_cluster_t *mock;
    char url[512];
    char prefix[64];
    int prefix_count;
    struct kafka_config *config;
} cluster;

/* ---- The cluster ---- */

int cluster_start(void **state)
{
    char why[512];
    const char *real = getenv("HOLDFAST_TEST_KAFKA");
    (void)state;
    log_set_level(LOG_ERROR);
    if (real != NULL && real[0] != '\0')
        snprintf(cluster.url, sizeof(cluster.url), "%s", real);
    else {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        kafka_conf_set(conf, "log_level", "3"); /* that it has no brokers is as it should be */
        cluster.host = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
        if (cluster.host == NULL)
            return -1;
        cluster.mock = rd_kafka_mock_cluster_new(cluster.host, BROKER_COUNT);
        if (cluster.mock == NULL)
            return -1;
        snprintf(cluster.url, sizeof(cluster.url), "kafka://%s",
                 rd_kafka_mock_cluster_bootstraps(cluster.mock));
    }
    if (!kafka_config_parse(cluster.url, NULL, &cluster.config, why, sizeof(why))) {
        print_message("%s: %s\n", cluster.url, why);
        return -1;
    }
    return 0;
}

int cluster_stop(void **state)
{
    (void)state;
    kafka_config_free(cluster.config);
    if (cluster.mock != NULL) {
        rd_kafka_mock_cluster_destroy(cluster.mock);
        rd_kafka_destroy(cluster.host);
    }
    return 0;
}

int prefix_renew(void **state)
{
    (void)state;
    snprintf(cluster.prefix, sizeof(cluster.prefix), "test.%d.%lld.%d", (int)getpid(),
             (long long)clock_now_ms(), ++cluster.prefix_count);
    return 0;
}

bool cluster_is_mock(void)
{
    return cluster.mock != NULL;
}

const char *cluster_url(void)
{
    return cluster.url;
}

const char *cluster_prefix(void)
{
    return cluster.prefix;
}

void cluster_down(bool down)
{
    for (int32_t id = 1; id <= BROKER_COUNT; id++)
        assert_int_equal(down ? rd_kafka_mock_broker_set_down(cluster.mock, id)
                              : rd_kafka_mock_broker_set_up(cluster.mock, id),
                         RD_KAFKA_RESP_ERR_NO_ERROR);
}

void cluster_topic(const char *name, int partition_count)
{
    if (cluster.mock != NULL)
        /* that it is there already is fine */
        rd_kafka_mock_topic_create(cluster.mock, name, partition_count, BROKER_COUNT);
}

void cluster_config(struct broker_kafka_config *config, const char *node_name)
{
    char name[KAFKA_TOPIC_SIZE];
    *config = (struct broker_kafka_config){
        .kafka = cluster.config,
        .node_name = node_name,
        .topic_prefix = cluster.prefix,
        .partition_count = ORDER_PARTITION_COUNT,
        .topics_exist = cluster.mock != NULL,
        .session_timeout_ms = 6000,
        .connect_timeout_ms = 30000,
    };
    place_topic(cluster.prefix, name);
    cluster_topic(name, ORDER_PARTITION_COUNT);
    snprintf(name, sizeof(name), "%s.dead-letters", cluster.prefix);
    cluster_topic(name, 1);
    snprintf(name, sizeof(name), "%s.replies.%s", cluster.prefix, node_name);
    cluster_topic(name, 1);
}

/* ---- A node ---- */

static struct note *take_note(struct node *node, enum note_kind kind)
{
    assert_true(node->note_count < NODE_NOTE_COUNT_MAX);
    struct note *note = &node->notes[node->note_count++];
    note->kind = kind;
    return note;
}

static void on_assigned(void *context, const char *topic, int32_t partition)
{
    struct node *node = context;
    (void)topic;
    assert_false(node->owned[partition]);
    node->owned[partition] = true;
    node->ended[partition] = false;
    node->owned_count++;
    take_note(node, NOTE_ASSIGNED)->partition = partition;
}

static void on_revoked(void *context, const char *topic, int32_t partition, bool lost)
{
    struct node *node = context;
    (void)topic;
    (void)lost;
    assert_true(node->owned[partition]);
    node->owned[partition] = false;
    if (node->ended[partition])
        node->ended_count--;
    node->ended[partition] = false;
    node->owned_count--;
    take_note(node, NOTE_REVOKED)->partition = partition;
}

static void on_confirmed(void *context, const char *topic, int32_t partition)
{
    struct node *node = context;
    (void)topic;
    assert_true(node->owned[partition]);
    take_note(node, NOTE_CONFIRMED)->partition = partition;
}

static uint64_t number_in(const struct broker_message *message)
{
    uint64_t value;
    assert_int_equal(message->size, sizeof(value));
    memcpy(&value, message->value, sizeof(value));
    return value;
}

static void on_command(void *context, const struct broker_message *message)
{
    struct node *node = context;
    if (!node->owned[message->partition])
        node->strange_count++;
    if (number_in(message) <= node->ignored_up_to)
        return;
    struct note *note = take_note(node, NOTE_COMMAND);
    note->partition = message->partition;
    note->offset = message->offset;
    note->value = number_in(message);
    node->command_count++;
    if (node->commits)
        broker_commit(node->broker, message->topic, message->partition, message->offset + 1);
    if (node->pause_every > 0 && node->command_count % node->pause_every == 0) {
        node->paused = true;
        broker_pause(node->broker, message->topic, message->partition, true);
    }
}

static void on_end(void *context, const char *topic, int32_t partition, int64_t next_offset)
{
    (void)next_offset;
    struct node *node = context;
    (void)topic;
    if (!node->owned[partition])
        node->strange_count++;
    if (!node->ended[partition])
        node->ended_count++;
    node->ended[partition] = true;
    take_note(node, NOTE_END)->partition = partition;
}

static void on_reply(void *context, const struct broker_message *message)
{
    struct node *node = context;
    take_note(node, NOTE_REPLY)->value = number_in(message);
    node->reply_count++;
}

static void on_sent(void *context, void *owner, enum broker_outcome outcome)
{
    struct node *node = context;
    struct note *note = take_note(node, NOTE_SENT);
    note->value = (uint64_t)(uintptr_t)owner;
    note->outcome = (int32_t)outcome;
    node->outcome_count[outcome]++;
    node->sent_count++;
}

struct node *node_start_with(const struct broker_kafka_config *config)
{
    char why[512] = "";
    struct node *node = calloc(1, sizeof(*node));
    assert_non_null(node);
    enum err err = broker_kafka_create(config, &node->broker, why, sizeof(why));
    if (err != ERR_OK)
        fail_msg("%s", why);
    snprintf(node->name, sizeof(node->name), "%s", config->node_name);
    place_topic(config->topic_prefix, node->commands);
    struct broker_events events = {
        .on_assigned = on_assigned,
        .on_revoked = on_revoked,
        .on_confirmed = on_confirmed,
        .on_command = on_command,
        .on_end = on_end,
        .on_reply = on_reply,
        .on_sent = on_sent,
        .context = node,
    };
    broker_listen(node->broker, &events);
    return node;
}

struct node *node_start(const char *name)
{
    struct broker_kafka_config config;
    cluster_config(&config, name);
    return node_start_with(&config);
}

void node_stop(struct node *node)
{
    broker_destroy(node->broker);
    free(node);
}

void node_forget(struct node *node)
{
    node->command_count = node->reply_count = node->sent_count = node->note_count = 0;
    memset(node->outcome_count, 0, sizeof(node->outcome_count));
}

void node_send(struct node *node, int32_t partition, uint64_t value)
{
    struct uuid id = {{0}};
    memcpy(id.bytes, &value, sizeof(value));
    assert_int_equal(broker_send_command(node->broker, node->commands, partition, &id, &value, sizeof(value),
                                         (void *)(uintptr_t)value),
                     ERR_OK);
}

void node_reply(struct node *node, const char *to, uint64_t value)
{
    assert_int_equal(broker_send_reply(node->broker, to, &value, sizeof(value)), ERR_OK);
}

/* ---- Turns ---- */

/* As the lane does: asleep until something comes, or the broker wants to run. */
static void turn(struct node **nodes, int node_count)
{
    struct pollfd waits[8];
    int64_t now_ms = clock_now_ms(), due_ms = now_ms + 1000;
    assert_true(node_count <= 8);
    for (int i = 0; i < node_count; i++) {
        if (nodes[i]->due_ms < due_ms)
            due_ms = nodes[i]->due_ms;
        waits[i] = (struct pollfd){.fd = broker_fd(nodes[i]->broker), .events = POLLIN};
    }
    poll(waits, (nfds_t)node_count, due_ms > now_ms ? (int)(due_ms - now_ms) : 0);
    now_ms = clock_now_ms();
    for (int i = 0; i < node_count; i++)
        nodes[i]->due_ms = broker_poll(nodes[i]->broker, now_ms);
}

void wait_until(struct node **nodes, int node_count, const char *what, condition *is_met, void *context)
{
    int64_t until_ms = clock_now_ms() + WAIT_MS_MAX;
    while (!is_met(context)) {
        if (clock_now_ms() > until_ms) {
            for (int i = 0; i < node_count; i++)
                print_message("%s: %d owned, %d ended, %d commands, %d replies, %d sent\n", nodes[i]->name,
                              nodes[i]->owned_count, nodes[i]->ended_count, nodes[i]->command_count,
                              nodes[i]->reply_count, nodes[i]->sent_count);
            fail_msg("still waiting for %s", what);
        }
        turn(nodes, node_count);
    }
}

struct crowd {
    struct node **nodes;
    int count;
};

static bool all_owned(void *context)
{
    const struct crowd *crowd = context;
    int32_t ended = 0;
    for (int i = 0; i < crowd->count; i++)
        if (crowd->nodes[i]->owned_count == 0)
            return false;
        else
            ended += crowd->nodes[i]->ended_count;
    return ended == ORDER_PARTITION_COUNT;
}

void wait_until_owned(struct node **nodes, int node_count)
{
    struct crowd crowd = {nodes, node_count};
    wait_until(nodes, node_count, "every partition to be somebody's", all_owned, &crowd);
}
