/* SPDX-License-Identifier: Apache-2.0
 * Locks: one pipelined round trip of `SET … NX GET PXAT`. Whoever gets nothing
 * back has the lock; whoever gets a value back knows who has it. */
#include "base/check.h"
#include "warm/redis_int.h"
#include "warm/resp.h"

static bool lock_on_reply(struct link *link, struct owed *owed, const struct reply *reply)
{
    struct redis *redis = link->context;
    struct waiter *waiter = owed->object;
    if (waiter->round != NULL) {
        struct warm_round *round = waiter->round;
        struct warm_lock *lock = &round->locks[owed->index];
        if (reply->type == REDIS_REPLY_NIL) {
            lock->result = WARM_LOCK_TAKEN;
        } else if (reply->type == REDIS_REPLY_STRING) {
            lock->result = WARM_LOCK_FOUND;
            lock->found = arena_text_n(round->arena, reply->text, reply->size);
            value_read_lock(reply->text, reply->size, lock);
        } else {
            lock->result = WARM_LOCK_ERROR;
        }
    }
    redis_answered(redis, waiter);
    return true;
}

static void lock_put(struct redis *redis, const struct warm_lock *lock, const struct keys_event *keys,
                     struct waiter *waiter, int32_t index)
{
    struct link *link = &redis->link;
    struct buf *out = &link->out;
    char seat[UUID_TEXT_SIZE], hold[UUID_TEXT_SIZE], user[UUID_TEXT_SIZE];
    uuid_format(&lock->seat_id, seat);
    uuid_format(&lock->hold_id, hold);
    uuid_format(&lock->user_id, user);
    struct value_lock value = {.hold = hold,
                               .user = user,
                               .cart_token = lock->cart_token,
                               .held_at_ms = lock->held_at_ms,
                               .held_until_ms = lock->held_until_ms};
    static const char head[] = "*7\r\n$3\r\nSET\r\n", flags[] = "$2\r\nNX\r\n$3\r\nGET\r\n$4\r\nPXAT\r\n";
    buf_put(out, head, sizeof(head) - 1);
    keys_put_lock(out, keys, seat);
    value_put_lock(out, &redis->times, &value);
    buf_put(out, flags, sizeof(flags) - 1);
    resp_int(out, lock->held_until_ms + WARM_LOCK_EXTRA_MS);
    link_owe(link, &(struct owed){.on_reply = lock_on_reply, .object = waiter, .index = index, .count = 1});
}

enum err redis_lock(struct warm *warm, struct warm_round *round)
{
    struct redis *redis = redis_of(warm);
    CHECK(round->count > 0);
    if (redis->breaker.state != WARM_CLOSED || !link_has_room(&redis->link))
        return ERR_OVERLOADED;
    struct waiter *waiter = redis_wait(redis);
    waiter->round = round;
    waiter->left = round->count;
    struct keys_event keys;
    for (int32_t i = 0; i < round->count; i++) {
        const struct warm_lock *lock = &round->locks[i], *before = i > 0 ? lock - 1 : NULL;
        if (before == NULL || !uuid_equal(&lock->event_id, &before->event_id) ||
            !uuid_equal(&lock->org_id, &before->org_id))
            keys_event_init(&keys, redis->prefix, &lock->org_id, &lock->event_id);
        lock_put(redis, lock, &keys, waiter, i);
    }
    return ERR_OK;
}
