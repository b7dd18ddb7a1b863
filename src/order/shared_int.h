/* SPDX-License-Identifier: Apache-2.0
 * Inside the shared order: the side that asks (edge.c) and the side that decides
 * (owner.c). Everything on the lane's thread. */
#ifndef HOLDFAST_ORDER_SHARED_INT_H
#define HOLDFAST_ORDER_SHARED_INT_H

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "base/rng.h"
#include "lane/lane.h"
#include "order/broker.h"
#include "order/order.h"
#include "order/partition.h"
#include "order/place.h"

/* ---- The side that asks: edge.c, late.c ---- */

struct pending {      /* a command that was sent and is not answered yet */
    struct list node; /* in edge.waiting or edge.told; in none once it is answered */
    struct uuid id;
    struct command *command; /* NULL: its caller was told 202 */
    struct actor actor;      /* of that caller: ids and role alone */
    bool has_given_key;      /* … whose Idempotency-Key this is: */
    uint8_t key[32];
    int64_t until_ms;
    int64_t sent_us;
    bool is_reported; /* the broker has said what became of it */
};

struct edge {
    struct list waiting; /* struct pending whose caller waits, oldest first … */
    struct list told;    /* … and those whose caller was told 202 */
    int32_t waiting_count;
    int32_t told_count;
    struct map by_id; /* both */
    struct list late; /* answers that came late, oldest first */
    struct map late_by_id;
    int32_t late_count;
    int32_t telling_count; /* commands in the lane that tell of one */
    struct map topics;     /* event id → its topic, if each has its own */
};

/* ---- The side that decides: owner.c, claim.c ---- */

struct claiming { /* what the store is asked to write for partitions, one batch at a time */
    struct store_batch batch;
    bool is_under_way;
    int64_t at_ms; /* not before, after a failure */
};

struct owner {
    struct list partitions; /* struct partition.node */
    int32_t taken_count;    /* commands that the lane has */
    struct claiming claiming;
};

struct shared {
    struct order_shared_config config;
    char node_name[ORDER_NODE_NAME_SIZE];
    char prefix[ORDER_TOPIC_SIZE];
    char topic[ORDER_TOPIC_SIZE]; /* of all commands, unless each event has its own */
    struct rng rng;
    struct buf out; /* what is being sent; the broker copies it */
    struct edge edge;
    struct owner owner;
    int64_t now_ms;
    bool is_leaving;
    bool is_stopped; /* the lane's thread is gone: nothing is answered any more */
};

/* edge.c */
void edge_init(struct shared *shared);
void edge_stop(struct shared *shared); /* every caller is told something */
enum err edge_send(void *context, struct command *command, const struct lane_place *place);
void edge_on_sent(void *context, void *owner, enum broker_outcome outcome);
void edge_on_reply(void *context, const struct broker_message *message);
void edge_answer(struct shared *shared, const struct uuid *id, const void *answer, size_t size);
void edge_on_event(void *context, const struct uuid *event_id);
int64_t edge_turn(struct shared *shared);

/* late.c: answers that came when nobody waited for them any more */
void late_put(struct shared *shared, const struct pending *pending, const void *answer, size_t size);
void late_put_result(struct shared *shared, const struct pending *pending, const struct result *result);
bool late_find(struct shared *shared, const struct uuid *org_id, const struct uuid *id, const void **answer,
               size_t *size);
void late_turn(struct shared *shared);
void late_stop(struct shared *shared);

/* owner.c */
void owner_init(struct shared *shared);
void owner_stop(struct shared *shared);
void owner_on_assigned(void *context, const char *topic, int32_t partition);
void owner_on_revoked(void *context, const char *topic, int32_t partition, bool lost);
void owner_on_confirmed(void *context, const char *topic, int32_t partition);
void owner_on_command(void *context, const struct broker_message *message);
void owner_on_end(void *context, const char *topic, int32_t partition, int64_t next_offset);
int64_t owner_turn(struct shared *shared);

/* claim.c */
int64_t claim_turn(struct shared *shared);

#endif
