/* SPDX-License-Identifier: Apache-2.0
 * The warm tier in Redis, inside: what its parts share. */
#ifndef HOLDFAST_WARM_REDIS_INT_H
#define HOLDFAST_WARM_REDIS_INT_H

#include "base/rng.h"
#include "warm/bits.h"
#include "warm/breaker.h"
#include "warm/keys.h"
#include "warm/link.h"
#include "warm/pack.h"
#include "warm/scripts.h"
#include "warm/values.h"
#include "warm/warm_int.h"

enum {
    REDIS_RECONNECT_MS = 100,  /* while nobody asks; whoever asks is reason enough to try at once */
    REDIS_MARK_MS = 5000,      /* how often it is asked whether it is still the same */
    REDIS_SUBSCRIBE_MS = 1000, /* between tries to subscribe */
    REDIS_LISTEN_MS = 5000,    /* the subscription is asked whether it lives, and has as long to say so */
    REDIS_OCCUPANCY_SECONDS = 10,
};

/* Somebody waits for one or several answers. Left alone (both NULL) when that took too long while the connection is
 * still being made: the answers will come, and nobody wants them. */
struct waiter {
    struct list node;
    struct warm_round *round;
    struct warm_read *read;
    int32_t left;        /* answers */
    int64_t began_us;    /* 0: in the next turn */
    int64_t deadline_us; /* of a round */
};

struct subscription {
    struct link link;
    int64_t due_us; /* to try, or to ask whether it lives */
    bool asked;
    bool nudged; /* another node said something since the last turn */
};

struct redis {
    struct warm warm;
    struct address_list list;
    struct tls *tls[ADDRESS_COUNT_MAX];
    char prefix[KEY_PREFIX_SIZE_MAX + 1];
    char node[UUID_TEXT_SIZE];
    void (*on_nudge)(void *context);
    void *context;
    int epoll;
    int64_t now_us; /* this turn's */
    struct breaker breaker;
    struct link link;
    struct subscription subscription;
    struct scripts scripts;
    struct list waiters; /* struct waiter */
    int64_t connect_at_us;
    bool wanted;               /* something was asked since the last turn */
    char mark[UUID_TEXT_SIZE]; /* what Redis' mark was; "": never seen */
    char next_mark[UUID_TEXT_SIZE];
    int64_t mark_at_us;
    struct rng rng;
    bool restores; /* Redis takes packed hashes: see pack.h */
    struct pack_sums sums;
    struct bits bits;
    /* Scratch, kept from call to call: */
    struct value_times times;
    struct buf message;
    struct write_ref *order;
    int32_t order_capacity;
};

static inline struct redis *redis_of(struct warm *warm)
{
    return CONTAINER_OF(warm, struct redis, warm);
}

/* Waiters */
struct waiter *redis_wait(struct redis *redis);
void redis_answered(struct redis *redis, struct waiter *waiter);
void redis_lose_waiters(struct redis *redis, enum warm_outcome outcome);
void waiter_end(struct waiter *waiter, enum warm_outcome outcome); /* tells, and leaves it alone */

/* locks.c, reads.c, writes.c: the functions of warm.h */
enum err redis_lock(struct warm *warm, struct warm_round *round);
enum err redis_read(struct warm *warm, struct warm_read *read);
void redis_write(struct warm *warm, const struct warm_write *writes, int32_t count);
void redis_nudge(struct warm *warm);
void redis_occupancy(struct warm *warm, const struct uuid *org_id, const struct uuid *event_id,
                     const char *json, size_t size);
void redis_remove_members(struct warm *warm, const struct uuid *org_id, const struct uuid *event_id,
                          const struct warm_member *members, int32_t count);

/* subscribe.c */
void subscription_init(struct redis *redis);
void subscription_turn(struct redis *redis, bool ready);
int64_t subscription_due_us(const struct redis *redis);

#endif
