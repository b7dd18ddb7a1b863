/* SPDX-License-Identifier: Apache-2.0
 * The broker as the order sees it: topics of partitions that keep what was sent
 * to them in order, and give each partition to one node of the group at a time.
 * Kafka in earnest (order/kafka/), a sketch of it in the simulator.
 *
 * All calls, and all of broker_events from inside broker_poll(), on one thread:
 * the lane's. Nothing here blocks. Topic names handed out by the broker live as
 * long as it does, and the same topic is always the same pointer. */
#ifndef HOLDFAST_ORDER_BROKER_H
#define HOLDFAST_ORDER_BROKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/uuid.h"

struct broker; /* opaque: see broker_int.h */

enum broker_outcome {
    BROKER_STORED,     /* by all replicas in sync */
    BROKER_NOT_STORED, /* and never will be */
    BROKER_UNKNOWN,
};

struct broker_message { /* borrowed for the call */
    const char *topic;
    int32_t partition;
    int64_t offset;
    int64_t sent_ms; /* by the broker's or the sender's clock, or 0 */
    const void *value;
    size_t size;
};

struct broker_events {
    /* A partition is this node's from now on: its messages come, beginning at or before the first that was not
     * committed with broker_commit(). */
    void (*on_assigned)(void *context, const char *topic, int32_t partition);
    /* It is not any more. `lost`: nor has it been for a while. No commit is taken for it after this. */
    void (*on_revoked)(void *context, const char *topic, int32_t partition, bool lost);
    /* After broker_confirm(): it is this node's, or was when the broker was asked. */
    void (*on_confirmed)(void *context, const char *topic, int32_t partition);
    void (*on_command)(void *context, const struct broker_message *message);
    /* All that was sent to the partition so far has come. Each time that is so again, or the first time: either. */
    void (*on_end)(void *context, const char *topic, int32_t partition, int64_t next_offset);
    void (*on_reply)(void *context, const struct broker_message *message); /* to this node's own replies */
    /* What became of a command, once for each that broker_send_command() took. */
    void (*on_sent)(void *context, void *owner, enum broker_outcome outcome);
    void *context;
};

/* Before the first poll. */
void broker_listen(struct broker *broker, const struct broker_events *events);

/* ERR_OVERLOADED: its queue is full, on_sent never runs. A command that could not be stored within ORDER_SEND_MS_MAX is
 * BROKER_NOT_STORED or BROKER_UNKNOWN then. `value` is copied; `id` is the message's key. */
enum err broker_send_command(struct broker *broker, const char *topic, int32_t partition,
                             const struct uuid *id, const void *value, size_t size, void *owner) MUST_CHECK;
/* Nobody is told whether it arrived: who waits for it asks the store in the end. */
enum err broker_send_reply(struct broker *broker, const char *node_name, const void *value,
                           size_t size) MUST_CHECK;
/* The message as it came, with the reason and where it came from beside it. */
enum err broker_send_dead_letter(struct broker *broker, const struct broker_message *message,
                                 const char *reason) MUST_CHECK;

void broker_pause(struct broker *broker, const char *topic, int32_t partition, bool paused);
/* Cosmetic: where the next owner begins to read, and what lag is measured from. */
void broker_commit(struct broker *broker, const char *topic, int32_t partition, int64_t next_offset);
/* Is it still this node's? on_confirmed comes if it is; otherwise, and if nobody answers, nothing does, but sooner or
 * later on_revoked. Offsets before next_offset are done. */
void broker_confirm(struct broker *broker, const char *topic, int32_t partition, int64_t next_offset);
/* What was given out of the partition comes once more, from its beginning. */
void broker_rewind(struct broker *broker, const char *topic, int32_t partition);
void broker_make_topic(struct broker *broker, const char *topic); /* unless it is there */
bool broker_is_idle(struct broker *broker);                       /* nothing of ours is on its way to it */
int broker_fd(struct broker *broker); /* readable when broker_poll() has something to do */
/* What has come, at most so many messages that a turn stays short. Returns when it wants to run again at the latest. */
int64_t broker_poll(struct broker *broker, int64_t now_ms);
/* Gives the partitions to the others: on_revoked comes for each, then no more commands. Replies go on coming. */
void broker_leave(struct broker *broker);
void broker_destroy(struct broker *broker); /* NULL is fine */

#endif
