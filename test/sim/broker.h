/* SPDX-License-Identifier: Apache-2.0
 * The simulator's broker: one log for all nodes, with topics of partitions and a
 * group whose members come and go. What was sent arrives late, or not, and its
 * sender may never hear which; replies are lost or come twice; a partition is
 * given back before another node gets it, or is taken from a node that does not
 * know yet and goes on reading (broker_leave(), sim_log_expire()); where a reader
 * was is forgotten now and then. What is in a partition stays there, in its order.
 *
 * Everything is drawn from the seed, and happens when the clock is set. */
#ifndef HOLDFAST_TEST_SIM_BROKER_H
#define HOLDFAST_TEST_SIM_BROKER_H

#include "base/list.h"
#include "base/map.h"
#include "base/rng.h"
#include "order/broker_int.h"

enum { SIM_LOG_NODE_COUNT_MAX = 4 };

struct sim_log_faults {   /* each in thousandths */
    uint32_t full;        /* the queue has no room for a command */
    uint32_t not_stored;  /* it is not, and the sender is told */
    uint32_t unknown;     /* it is or is not, and nobody can tell */
    uint32_t lose_reply;  /* also: a reply finds no room */
    uint32_t reply_twice; /* now, and later */
    uint32_t forget;      /* a new owner begins further back than what was committed */
    int64_t delay_ms_max; /* of everything that travels */
    int64_t send_ms_max;  /* until a command that has a hard time is given up */
    int64_t news_ms_max;  /* until a node hears that it was thrown out of the group */
};

/* A command in the log, or on its way there. The broker's part; what the users were told of it is letters.c's. */
struct letter {
    struct list node;    /* in sim_log.letters */
    struct list sending; /* while it is on its way */
    struct uuid id;
    int32_t sender; /* index of the node */
    struct sim_partition *partition;
    int64_t offset; /* −1: it is not in the log */
    int64_t at_ms;  /* when it is, or can be read */
    void *value;
    size_t size;
    bool is_spoiled; /* nothing that could be decided */
    bool is_buried;  /* it is among the dead letters */
    bool is_replied; /* an answer was sent */
    void *model;     /* letters.c */
};

struct sim_reader { /* what a node knows of a partition */
    bool has_it;
    bool is_paused;
    bool is_end_due; /* it has read everything there was, and is told so next */
    bool is_end_told;
    int64_t position;
};

struct sim_partition {
    struct list node;
    struct sim_log *log;
    char topic[96];
    const char *topic_name; /* the same for all of a topic */
    int32_t number;
    struct letter **letters; /* by offset */
    int64_t count;
    int64_t capacity;
    int64_t committed;  /* … by a reader: it goes on there */
    int32_t owner;      /* index of the node, or −1 */
    int32_t wanted;     /* who is to have it */
    bool is_asked_back; /* of its owner */
    int64_t free_at_ms; /* a dead owner is missed only then */
    int64_t visible_ms; /* of the last letter */
    struct sim_reader readers[SIM_LOG_NODE_COUNT_MAX];
    /* For the checks: what was seen last of the store's row. */
    int64_t noted_offset;
    int64_t epoch;
};

struct sim_log {
    struct rng rng;
    int64_t now_ms;
    struct sim_log_faults faults;
    int32_t partition_count; /* of each topic */
    struct list partitions;
    struct list letters; /* all there ever were */
    struct list sending; /* … and those on their way into the log */
    struct sim_broker *nodes[SIM_LOG_NODE_COUNT_MAX];
    /* Whoever keeps accounts of letters. */
    void (*on_letter)(void *context, struct letter *letter);
    struct letter *(*find_letter)(void *context, const struct uuid *id);
    void *context;
    int64_t rebalance_count, expiry_count, dead_letter_count;
};

struct sim_log *sim_log_create(uint64_t seed, int32_t partition_count);
void sim_log_destroy(struct sim_log *log);
void sim_log_set_faults(struct sim_log *log, const struct sim_log_faults *faults);
void sim_log_set_now(struct sim_log *log, int64_t now_ms); /* what is due happens */
int64_t sim_log_next_ms(const struct sim_log *log);        /* INT64_MAX: never */
const char *sim_log_node_name(int32_t index);

struct broker *sim_log_attach(struct sim_log *log, int32_t index);
void sim_log_kill(struct sim_log *log,
                  int32_t index); /* before its broker is destroyed: nobody is told anything */
void sim_log_expire(struct sim_log *log, int32_t index); /* thrown out of the group; it hears of that later */
void sim_log_rebalance(struct sim_log *log);             /* some partitions are to move */
void sim_log_spoil(struct sim_log *log);                 /* something is sent that is no command */
bool sim_log_is_settled(const struct sim_log *log); /* everybody has what they are to have, and has read it */

#endif
