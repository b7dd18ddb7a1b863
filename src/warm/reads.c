/* SPDX-License-Identifier: Apache-2.0
 * Readings, one command each: members by ZSCAN, their number by ZCARD, locks by
 * MGET, holds by a script, bits by BITFIELD, as they are written. What is read was written by anybody, and is copied into
 * the asker's arena. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "warm/redis_int.h"
#include "warm/resp.h"

enum { MEMBERS_PER_SCAN = 256 }; /* Redis may give a few more than it was asked for */

/* ["cursor", [member, score, …]] */
static bool read_members(struct warm_read *read, const struct reply *reply)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->count != 2)
        return false;
    const struct reply *cursor = reply->elements[0], *found = reply->elements[1];
    if (cursor == NULL || found == NULL || cursor->type != REDIS_REPLY_STRING ||
        found->type != REDIS_REPLY_ARRAY)
        return false;
    char *end = NULL;
    read->cursor = strtoull(cursor->text, &end, 10);
    if (end == cursor->text || *end != '\0')
        return false; /* a server whose cursors are no numbers: it could not be asked on */
    read->members = ARENA_ARRAY(read->arena, struct warm_member, found->count / 2 + 1);
    for (int i = 0; i + 1 < found->count; i += 2) {
        const struct reply *text = found->elements[i];
        if (text == NULL || text->type != REDIS_REPLY_STRING)
            return false;
        struct warm_member *member = &read->members[read->member_count++];
        member->text = arena_text_n(read->arena, text->text, text->size);
        member->text_size = text->size;
        value_read_member(text->text, text->size, member);
    }
    return true;
}

static bool read_locks(struct warm_read *read, const struct reply *reply)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->count != read->seat_count)
        return false;
    read->locks = ARENA_ARRAY(read->arena, struct warm_lock, read->seat_count);
    for (int32_t i = 0; i < read->seat_count; i++) {
        const struct reply *value = reply->elements[i];
        struct warm_lock *lock = &read->locks[i];
        lock->org_id = read->org_id;
        lock->event_id = read->event_id;
        lock->seat_id = read->seat_ids[i];
        lock->result = WARM_LOCK_TAKEN;
        if (value == NULL || value->type != REDIS_REPLY_STRING)
            continue;
        lock->result = WARM_LOCK_FOUND;
        lock->found = arena_text_n(read->arena, value->text, value->size);
        value_read_lock(value->text, value->size, lock);
    }
    return true;
}

static bool read_holds(struct warm_read *read, const struct reply *reply)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->count != read->seat_count)
        return false;
    read->whole = ARENA_ARRAY(read->arena, bool, read->seat_count);
    for (int32_t i = 0; i < read->seat_count; i++) {
        const struct reply *whole = reply->elements[i];
        read->whole[i] = whole != NULL && whole->type == REDIS_REPLY_INTEGER && whole->integer == 1;
    }
    return true;
}

/* Bits are read thirty-two at a time. */
static int word_count(const struct warm_read *read)
{
    return (read->bit_count + 31) / 32;
}

static bool read_bits(struct warm_read *read, const struct reply *reply)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->count != word_count(read))
        return false;
    uint32_t *words = ARENA_ARRAY(read->arena, uint32_t, reply->count + 1);
    for (int i = 0; i < reply->count; i++) {
        const struct reply *word = reply->elements[i];
        if (word == NULL || word->type != REDIS_REPLY_INTEGER)
            return false;
        words[i] = htonl((uint32_t)word->integer);
    }
    read->bits = (const uint8_t *)words;
    read->bits_size = (size_t)reply->count * sizeof(*words);
    return true;
}

static bool read_count(struct warm_read *read, const struct reply *reply)
{
    read->count = reply->integer;
    return reply->type == REDIS_REPLY_INTEGER;
}

static bool read_on_reply(struct link *link, struct owed *owed, const struct reply *reply)
{
    static bool (*const readers[])(struct warm_read * read, const struct reply *reply) = {
        [WARM_MEMBERS] = read_members, [WARM_HOLDS] = read_holds, [WARM_LOCKS] = read_locks,
        [WARM_COUNT] = read_count,     [WARM_BITS] = read_bits,
    };
    struct waiter *waiter = owed->object;
    if (script_again(link, owed, reply))
        return false;
    if (waiter->read != NULL && !readers[waiter->read->kind](waiter->read, reply))
        waiter_end(waiter, WARM_FAILED); /* an answer, so the breaker is not told */
    redis_answered(link->context, waiter);
    return true;
}

static void put_holds(struct buf *out, const struct keys_event *keys, const struct warm_read *read)
{
    for (int32_t i = 0; i < read->seat_count; i++) {
        char seat[UUID_TEXT_SIZE], hold[UUID_TEXT_SIZE];
        uuid_format(&read->seat_ids[i], seat);
        uuid_format(&read->hold_ids[i], hold);
        keys_put_hold(out, keys, seat);
        keys_put_meta(out, keys, hold);
    }
    for (int32_t i = 0; i < read->seat_count; i++)
        resp_uuid(out, &read->hold_ids[i]);
}

static void read_put(struct redis *redis, const struct warm_read *read, struct waiter *waiter)
{
    struct link *link = &redis->link;
    struct buf *out = &link->out;
    struct keys_event keys;
    keys_event_init(&keys, redis->prefix, &read->org_id, &read->event_id);
    switch (read->kind) {
    case WARM_MEMBERS:
        resp_array(out, 5);
        resp_text(out, "ZSCAN");
        keys_put_members(out, &keys);
        {
            char cursor[24];
            snprintf(cursor, sizeof(cursor), "%llu", (unsigned long long)read->cursor);
            resp_text(out, cursor);
        }
        resp_text(out, "COUNT");
        resp_int(out, MEMBERS_PER_SCAN);
        break;
    case WARM_HOLDS: {
        size_t begin =
            script_begin(&redis->scripts, link, SCRIPT_WHOLE_HOLDS, 2ll * read->seat_count, read->seat_count);
        put_holds(out, &keys, read);
        script_end(link, begin, read_on_reply, waiter, 0);
        return;
    }
    case WARM_LOCKS:
        resp_array(out, 1 + read->seat_count);
        resp_text(out, "MGET");
        for (int32_t i = 0; i < read->seat_count; i++) {
            char seat[UUID_TEXT_SIZE];
            uuid_format(&read->seat_ids[i], seat);
            keys_put_lock(out, &keys, seat);
        }
        break;
    case WARM_COUNT:
        resp_array(out, 2);
        resp_text(out, "ZCARD");
        keys_put_members(out, &keys);
        break;
    case WARM_BITS:
        resp_array(out, 2 + 3ll * word_count(read));
        resp_text(out, "BITFIELD");
        keys_put_bits(out, &keys, read->section, read->subsection);
        for (int i = 0; i < word_count(read); i++) {
            resp_text(out, "GET");
            resp_text(out, "u32");
            resp_int(out, 32ll * i);
        }
        break;
    }
    link_owe(link, &(struct owed){.on_reply = read_on_reply, .object = waiter, .count = 1});
}

enum err redis_read(struct warm *warm, struct warm_read *read)
{
    struct redis *redis = redis_of(warm);
    bool names_seats = read->kind == WARM_LOCKS || read->kind == WARM_HOLDS;
    CHECK(read->kind != WARM_BITS || read->bit_count > 0);
    CHECK(!names_seats || (read->seat_count > 0 && read->seat_count <= WARM_READ_COUNT_MAX));
    if (redis->breaker.state == WARM_OPEN || !link_has_room(&redis->link))
        return ERR_OVERLOADED;
    read->members = NULL;
    read->member_count = 0;
    read->whole = NULL;
    read->locks = NULL;
    read->count = 0;
    read->bits = NULL;
    read->bits_size = 0;
    bits_flush(redis); /* what was written is there to be read */
    struct waiter *waiter = redis_wait(redis);
    waiter->read = read;
    waiter->left = 1;
    read_put(redis, read, waiter);
    return ERR_OK;
}
