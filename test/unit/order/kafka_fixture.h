/* SPDX-License-Identifier: Apache-2.0
 * A cluster to test against, and nodes that note what their broker tells them.
 *
 * The cluster is librdkafka's own mock, in this process; or, where
 * HOLDFAST_TEST_KAFKA is kafka://…, a real one that others may use too. Topics of
 * each test have a prefix of their own. The mock cannot make topics: they are
 * there before. */
#ifndef HOLDFAST_TEST_KAFKA_FIXTURE_H
#define HOLDFAST_TEST_KAFKA_FIXTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"
#include "order/kafka/broker_kafka.h"
#include "order/place.h"

enum { NODE_NOTE_COUNT_MAX = 65536, WAIT_MS_MAX = 60000 * PATIENCE };

enum note_kind { NOTE_ASSIGNED, NOTE_REVOKED, NOTE_COMMAND, NOTE_END, NOTE_REPLY, NOTE_SENT, NOTE_CONFIRMED };

struct note {
    enum note_kind kind;
    int32_t partition;
    int64_t offset;
    uint64_t value;  /* of a command or reply; the owner's number, if it was sent */
    int32_t outcome; /* of what was sent */
};

struct node {
    struct broker *broker;
    char name[32];
    char commands[KAFKA_TOPIC_SIZE]; /* the topic */
    int64_t due_ms;                  /* when its broker wants to run */
    bool commits;                    /* each command as it comes */
    uint64_t ignored_up_to;          /* commands of tests before */
    int32_t pause_every;             /* commands; 0: never */
    bool paused;                     /* since the test last looked */
    bool owned[ORDER_PARTITION_COUNT];
    int32_t owned_count;
    int32_t ended_count; /* partitions that were told to have come to their end */
    bool ended[ORDER_PARTITION_COUNT];
    int32_t command_count, reply_count, sent_count, strange_count;
    int32_t outcome_count[3];
    struct note notes[NODE_NOTE_COUNT_MAX];
    int32_t note_count;
};

/* For cmocka: around all tests, and around each. */
int cluster_start(void **state);
int cluster_stop(void **state);
int prefix_renew(void **state);

bool cluster_is_mock(void);
const char *cluster_url(void);
const char *cluster_prefix(void);
void cluster_down(bool down);                              /* all of the mock's brokers */
void cluster_topic(const char *name, int partition_count); /* of the mock; a real one makes its own */
void cluster_config(struct broker_kafka_config *config, const char *node_name); /* `kafka` is the fixture's */

struct node *node_start(const char *name);
struct node *node_start_with(const struct broker_kafka_config *config);
void node_stop(struct node *node); /* as a process that ends in good order would */

void node_forget(struct node *node); /* what it noted and counted, but not what it has */

/* Commands and replies of the tests are numbers. */
void node_send(struct node *node, int32_t partition, uint64_t value);
void node_reply(struct node *node, const char *to, uint64_t value);

/* Runs the nodes' turns until the condition holds; fails after WAIT_MS_MAX, saying for what it waited. */
typedef bool condition(void *context);
void wait_until(struct node **nodes, int node_count, const char *what, condition *is_met, void *context);
void wait_until_owned(struct node **nodes,
                      int node_count); /* every partition has come to its end at some node */

#endif
