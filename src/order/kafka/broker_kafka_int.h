/* SPDX-License-Identifier: Apache-2.0
 * For the files of this folder: the broker's parts, and what each does in a turn.
 *
 * Three clients of librdkafka: the producer, the member of the group that reads
 * commands, and the reader of this node's replies. Their queues write to one
 * eventfd when something comes; their callbacks run only where broker_poll()
 * serves them, on the lane's thread. */
#ifndef HOLDFAST_ORDER_KAFKA_BROKER_KAFKA_INT_H
#define HOLDFAST_ORDER_KAFKA_BROKER_KAFKA_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/metrics.h"
#include "order/broker_int.h"
#include "order/kafka/broker_kafka.h"
#include "order/place.h"

enum {
    GROUP_POLL_COUNT_MAX = 1024, /* commands in a turn */
    REPLY_POLL_COUNT_MAX = 1024, /* replies in a turn */
    /* A commit in the middle of a rebalance makes librdkafka give up all of its partitions: not too often. */
    COMMIT_INTERVAL_MS = 2000,
    LAG_INTERVAL_MS = 1000,
    MAKE_RETRY_MS = 500,
    REPLACE_RETRY_MS = 1000,
    DEAD_LETTER_COUNT_MAX = 10000, /* that wait to be sent again */
    DESTROY_FLUSH_MS = 500,        /* for what is still on its way out */
    DESTROY_LEAVE_MS = 1500,       /* for saying good-bye to the group */
    TOPIC_BUCKET_COUNT = 256,
    REPLY_RETENTION_MS = 3600000,
};

struct kafka_partition {
    bool owned;
    bool paused;
    bool dirty;        /* `committed` is to be sent */
    bool is_doubted;   /* … and whether the coordinator takes it is to be told … */
    bool is_asked;     /* … when this request is answered */
    int64_t committed; /* the next offset, or −1: nothing was committed since it came */
    int64_t position;  /* the next one that will come, or −1 */
};

struct kafka_named { /* a topic, as long as the broker lives */
    struct kafka_named *next;
    rd_kafka_topic_t *handle;         /* of the producer, or NULL */
    rd_kafka_topic_t *retired_handle; /* of the one before it */
    struct kafka_partition *partitions;
    int32_t partition_count;
    int32_t make_count;  /* tries so far; 0: it is not ours to make */
    int64_t make_due_ms; /* of the next try; 0: none */
    char name[];
};

struct kafka_dead_letter { /* one that is to be sent again */
    struct kafka_dead_letter *next;
    rd_kafka_headers_t *headers;
    size_t size;
    char value[];
};

struct kafka_producer {
    rd_kafka_t *client; /* NULL: the last one failed and there is no other yet */
    rd_kafka_queue_t *queue;
    bool failed; /* for good, as librdkafka says; it is to be replaced */
    int64_t replace_due_ms;
    struct kafka_dead_letter *dead, **dead_end; /* oldest first; where the next one goes */
    int32_t dead_count;
    rd_kafka_t *retired; /* until its last report has come */
    rd_kafka_queue_t *retired_queue;
    rd_kafka_t *ending; /* being destroyed, which may take a while, by a thread of its own */
    pthread_t ender;
    atomic_bool ended; /* set by that thread at its end */
};

struct kafka_group {
    rd_kafka_t *client;
    rd_kafka_queue_t *queue;
    bool was_assigned;         /* once, if only nothing */
    rd_kafka_queue_t *leaving; /* what comes while it leaves; NULL: it stays */
    bool joined;
    int32_t owned_count;
    int32_t dirty_count;
    int32_t commit_count; /* under way */
    int64_t commit_sent_us;
    int64_t commit_due_ms;
    int64_t lag_due_ms;
};

struct kafka_replies {
    rd_kafka_t *client;
    rd_kafka_queue_t *main_queue;
    rd_kafka_topic_t *topic;
    rd_kafka_queue_t *queue; /* where its messages come; NULL: it is not read yet */
};

struct broker_kafka {
    struct broker base;
    const struct kafka_config *kafka;
    char prefix[KAFKA_TOPIC_SIZE];
    char group_id[KAFKA_TOPIC_SIZE];
    char replies_topic[KAFKA_TOPIC_SIZE];
    bool topic_per_event;
    bool topics_exist;
    int32_t partition_count;
    int32_t session_timeout_ms;
    int fd;
    int broker_count; /* when it was created */
    int64_t now_ms;   /* of this turn */
    bool silent;      /* nobody is told anything any more */
    struct kafka_named *topics[TOPIC_BUCKET_COUNT];
    struct kafka_named *dead_letters;
    struct kafka_producer producer;
    struct kafka_group group;
    struct kafka_replies replies;
    rd_kafka_queue_t *admin_queue; /* of the replies' client */
    char trouble[256];             /* what librdkafka last said was wrong */
    int64_t logged_us;             /* when the last line about it was written */
    rd_kafka_resp_err_t logged;
};

/* broker_kafka.c */
void kafka_watch(struct broker_kafka *broker, rd_kafka_queue_t *queue); /* its news wake the lane */
struct broker_message kafka_message(const rd_kafka_message_t *message, const char *topic);
void kafka_on_error(rd_kafka_t *client, int err, const char *reason, void *opaque);
void kafka_note_error(struct broker_kafka *broker, enum counter counter, rd_kafka_resp_err_t err,
                      const char *what, const char *reason);

/* topics.c */
struct kafka_named *kafka_named(struct broker_kafka *broker, const char *name); /* made if need be */
struct kafka_partition *kafka_partition(struct kafka_named *topic, int32_t partition);
bool kafka_owns(const struct kafka_named *topic, int32_t partition);
void kafka_make_topic(struct broker *base, const char *name);
int64_t kafka_topics_serve(struct broker_kafka *broker); /* when it is due again */
void kafka_topics_free(struct broker_kafka *broker);

/* producer.c */
bool kafka_producer_open(struct broker_kafka *broker, char *why, size_t why_size);
enum err kafka_send_command(struct broker *base, const char *topic, int32_t partition, const struct uuid *id,
                            const void *value, size_t size, void *owner);
enum err kafka_send_reply(struct broker *base, const char *node_name, const void *value, size_t size);
enum err kafka_send_dead_letter(struct broker *base, const struct broker_message *message,
                                const char *reason);
bool kafka_producer_is_idle(struct broker_kafka *broker);
int64_t kafka_producer_serve(struct broker_kafka *broker);
void kafka_producer_close(struct broker_kafka *broker);

/* group.c */
bool kafka_group_open(struct broker_kafka *broker, char *why, size_t why_size);
bool kafka_group_serve(struct broker_kafka *broker); /* is there more */
void kafka_group_rewind(struct broker *base, const char *name, int32_t number);
void kafka_group_pause(struct broker *base, const char *topic, int32_t partition, bool paused);
void kafka_group_leave(struct broker *base);
void kafka_group_close(struct broker_kafka *broker);

/* commits.c */
void kafka_commit(struct broker *base, const char *topic, int32_t partition, int64_t next_offset);
void kafka_confirm(struct broker *base, const char *topic, int32_t partition, int64_t next_offset);
void kafka_commit_forget(struct broker_kafka *broker,
                         struct kafka_partition *partition); /* offsets begin again */
/* What is to be committed, of all partitions, or of those in the list. */
void kafka_commit_send(struct broker_kafka *broker, const rd_kafka_topic_partition_list_t *only);
void kafka_on_commit(rd_kafka_t *client, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *offsets,
                     void *opaque);
int64_t kafka_commits_serve(struct broker_kafka *broker); /* and the lag; when it is due again */

/* replies.c */
bool kafka_replies_open(struct broker_kafka *broker, char *why, size_t why_size);
/* From its end on. */
bool kafka_replies_begin(struct broker_kafka *broker, int timeout_ms, char *why, size_t why_size);
bool kafka_replies_serve(struct broker_kafka *broker); /* is there more */
void kafka_replies_close(struct broker_kafka *broker);

#endif
