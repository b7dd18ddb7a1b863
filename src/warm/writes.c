/* SPDX-License-Identifier: Apache-2.0
 * Writes after a commit: the registry's keys, members, bits and messages, all of
 * a batch at once, put straight into what is to be sent and not waited for.
 *
 * Writes are put in order of event and block, and of the version of a seat.
 * Then for each event:
 *   1. what ended takes away its own (one script);
 *   2. new holds whose lock is theirs get plain commands, because nothing of
 *      theirs can be in the way: HSET and SET are a third of a script's price;
 *   3. extensions, repairs and holds without a lock go through a script that
 *      first looks whether Redis has seen a newer version of the seat;
 *   4. one ZADD; the bits, by a script that looks in the same way, and not each time (see bits.c);
 *   5. messages, and the occupancy key goes. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "warm/messages.h"
#include "warm/redis_int.h"
#include "warm/resp.h"

enum {
    KEEP_COUNT_MAX = 128, /* seats in one call of each script */
    END_COUNT_MAX = SCRIPT_SEAT_COUNT_MAX,
};

struct write_ref {
    const struct warm_write *write;
};

/* The ids of a write, as text. */
struct write_ids {
    char seat[UUID_TEXT_SIZE];
    char hold[UUID_TEXT_SIZE];
    char user[UUID_TEXT_SIZE];
};

/* One event's part of a call. */
struct group {
    struct redis *redis;
    struct buf *out;
    const struct write_ref *refs;
    int32_t count;
    struct keys_event keys;
    char event[UUID_TEXT_SIZE];
    int32_t replies; /* that nobody waits for, since the last script */
};

#define PUT_LITERAL(out, text) buf_put((out), (text), sizeof(text) - 1)

static bool is_end(const struct warm_write *write)
{
    return write->kind == WARM_RELEASED || write->kind == WARM_SOLD || write->kind == WARM_UNLOCKED;
}

static bool is_plain(const struct warm_write *write)
{
    return write->kind == WARM_HELD && write->locked && !write->repair;
}

static bool is_kept(const struct warm_write *write)
{
    return write->kind == WARM_EXTENDED || (write->kind == WARM_HELD && !is_plain(write));
}

static int compare_blocks(const struct warm_write *a, const struct warm_write *b)
{
    int order = strcmp(a->section, b->section);
    return order != 0 ? order : (a->subsection > b->subsection) - (a->subsection < b->subsection);
}

static int compare_events(const struct warm_write *a, const struct warm_write *b)
{
    int order = uuid_compare(&a->event_id, &b->event_id);
    return order != 0 ? order : uuid_compare(&a->org_id, &b->org_id);
}

static int compare_refs(const void *left, const void *right)
{
    const struct warm_write *a = ((const struct write_ref *)left)->write;
    const struct warm_write *b = ((const struct write_ref *)right)->write;
    int order = compare_events(a, b);
    if (order == 0)
        order = compare_blocks(a, b);
    if (order == 0)
        order = (a->bit > b->bit) - (a->bit < b->bit);
    if (order == 0)
        order = (a->version > b->version) - (a->version < b->version);
    return order != 0 ? order : (a > b) - (a < b);
}

static void write_ids(const struct warm_write *write, struct write_ids *ids)
{
    uuid_format(&write->seat_id, ids->seat);
    uuid_format(&write->hold_id, ids->hold);
    uuid_format(&write->user_id, ids->user);
}

/* Scripts' answers are owed to them, so what came before must be owed first. */
static size_t group_script(struct group *group, enum script script, int64_t key_count, int64_t argument_count)
{
    link_owe_nobody(&group->redis->link, group->replies);
    group->replies = 0;
    return script_begin(&group->redis->scripts, &group->redis->link, script, key_count, argument_count);
}

static void group_script_end(struct group *group, size_t begin)
{
    script_end(&group->redis->link, begin, NULL, NULL, 0);
}

/* ---- 1. Ends ---- */

static void put_end_chunk(struct group *group, const struct warm_write *const *ends, int32_t count)
{
    struct write_ids ids;
    size_t begin = group_script(group, SCRIPT_END_HOLDS, 1 + 3 * count, 2 * count);
    keys_put_members(group->out, &group->keys);
    for (int32_t i = 0; i < count; i++) {
        write_ids(ends[i], &ids);
        keys_put_lock(group->out, &group->keys, ids.seat);
        keys_put_hold(group->out, &group->keys, ids.seat);
        keys_put_meta(group->out, &group->keys, ids.hold);
    }
    for (int32_t i = 0; i < count; i++) {
        write_ids(ends[i], &ids);
        resp_bulk(group->out, ids.hold, KEY_ID_SIZE);
        value_put_member(group->out, &group->redis->times, ids.seat, ids.hold, ids.user,
                         ends[i]->held_until_ms);
    }
    group_script_end(group, begin);
}

static void put_ends(struct group *group)
{
    const struct warm_write *ends[END_COUNT_MAX];
    int32_t count = 0;
    for (int32_t i = 0; i < group->count; i++) {
        if (!is_end(group->refs[i].write))
            continue;
        ends[count++] = group->refs[i].write;
        if (count == END_COUNT_MAX) {
            put_end_chunk(group, ends, count);
            count = 0;
        }
    }
    if (count > 0)
        put_end_chunk(group, ends, count);
}

/* ---- 2. New holds ---- */

static void put_new_meta(struct group *group, const struct warm_write *write, const struct write_ids *ids)
{
    struct value_time until = value_time(&group->redis->times, write->held_until_ms);
    struct value_time created = value_time(&group->redis->times, write->created_ms);
    const char *source = hold_source_name(write->source);
    const struct {
        const char *name, *value;
        size_t name_size, value_size;
    } fields[] = {
#define FIELD(name, value, size) {(name), (value), sizeof(name) - 1, (size)}
        FIELD("seat_id", ids->seat, KEY_ID_SIZE),        FIELD("user_id", ids->user, KEY_ID_SIZE),
        FIELD("event_id", group->event, KEY_ID_SIZE),    FIELD("held_until", until.text, until.size),
        FIELD("created_at", created.text, created.size), FIELD("source", source, strlen(source)),
        FIELD("status", "active", strlen("active")),
#undef FIELD
    };
    struct buf *out = group->out;
    if (group->redis->restores) {
        struct pack pack;
        pack_begin(&pack);
        for (size_t i = 0; i < COUNT_OF(fields); i++) {
            pack_put(&pack, fields[i].name, fields[i].name_size);
            pack_put(&pack, fields[i].value, fields[i].value_size);
        }
        pack_end(&pack, &group->redis->sums);
        /* Without REPLACE: the hold is new, and so is its key. */
        PUT_LITERAL(out, "*5\r\n$7\r\nRESTORE\r\n");
        keys_put_meta(out, &group->keys, ids->hold);
        resp_int(out, write->held_until_ms);
        resp_bulk(out, (const char *)pack.data, pack.size);
        PUT_LITERAL(out, "$6\r\nABSTTL\r\n");
        group->replies++;
        return;
    }
    resp_array(out, 2 + 2 * COUNT_OF(fields));
    RESP_WORD(out, "4", "HSET");
    keys_put_meta(out, &group->keys, ids->hold);
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        resp_bulk(out, fields[i].name, fields[i].name_size);
        resp_bulk(out, fields[i].value, fields[i].value_size);
    }
    PUT_LITERAL(out, "*3\r\n$9\r\nPEXPIREAT\r\n");
    keys_put_meta(out, &group->keys, ids->hold);
    resp_int(out, write->held_until_ms);
    group->replies += 2;
}

static void put_new(struct group *group, const struct warm_write *write)
{
    struct buf *out = group->out;
    struct write_ids ids;
    write_ids(write, &ids);
    PUT_LITERAL(out, "*5\r\n$3\r\nSET\r\n");
    keys_put_hold(out, &group->keys, ids.seat);
    value_put_hold(out, ids.hold, ids.user, write->held_until_ms);
    RESP_WORD(out, "4", "PXAT");
    resp_int(out, write->held_until_ms);
    group->replies++;
    put_new_meta(group, write, &ids);
}

static void put_new_members(struct group *group, int32_t count)
{
    struct write_ids ids;
    resp_array(group->out, 2 + 2 * count);
    RESP_WORD(group->out, "4", "ZADD");
    keys_put_members(group->out, &group->keys);
    for (int32_t i = 0; i < group->count; i++) {
        const struct warm_write *write = group->refs[i].write;
        if (!is_plain(write))
            continue;
        write_ids(write, &ids);
        resp_int(group->out, write->held_until_ms / 1000);
        value_put_member(group->out, &group->redis->times, ids.seat, ids.hold, ids.user,
                         write->held_until_ms);
    }
    group->replies++;
}

static void put_all_new(struct group *group)
{
    int32_t count = 0;
    for (int32_t i = 0; i < group->count; i++) {
        if (!is_plain(group->refs[i].write))
            continue;
        put_new(group, group->refs[i].write);
        count++;
    }
    if (count > 0)
        put_new_members(group, count);
}

/* ---- 3. Holds that are kept ---- */

static void put_place(struct buf *out, const struct warm_write *write)
{
    resp_int(out, write->bit);
    resp_int(out, (int64_t)write->bit * 32); /* not "#": Kvrocks does not know it */
    resp_int(out, write->version);
    resp_bulk(out, write->state == SEAT_AVAILABLE ? "0" : "1", 1);
}

/* The arguments of one seat, as keep_holds.lua names them. */
static void put_kept(struct group *group, const struct warm_write *write)
{
    struct buf *out = group->out;
    struct value_times *times = &group->redis->times;
    struct write_ids ids;
    write_ids(write, &ids);
    bool extend = write->kind == WARM_EXTENDED && !write->repair;
    resp_text(out, extend ? "extend" : write->repair ? "repair" : "new");
    put_place(out, write);
    resp_bulk(out, ids.seat, KEY_ID_SIZE);
    resp_bulk(out, ids.hold, KEY_ID_SIZE);
    resp_bulk(out, ids.user, KEY_ID_SIZE);
    value_put_lock(out, times,
                   &(struct value_lock){.hold = ids.hold,
                                        .user = ids.user,
                                        .cart_token = write->cart_token,
                                        .held_at_ms = write->created_ms,
                                        .held_until_ms = write->held_until_ms});
    resp_int(out, write->held_until_ms + WARM_LOCK_EXTRA_MS);
    value_put_hold(out, ids.hold, ids.user, write->held_until_ms);
    resp_int(out, write->held_until_ms);
    value_put_member(out, times, ids.seat, ids.hold, ids.user, write->held_until_ms);
    value_put_member(out, times, ids.seat, ids.hold, ids.user,
                     write->kind == WARM_EXTENDED ? write->previous_until_ms : write->held_until_ms);
    struct value_time until = value_time(times, write->held_until_ms);
    struct value_time created = value_time(times, write->created_ms);
    resp_bulk(out, until.text, until.size);
    resp_bulk(out, created.text, created.size);
    resp_text(out, hold_source_name(write->source));
}

static void put_kept_chunk(struct group *group, const struct warm_write *const *kept, int32_t count)
{
    struct write_ids ids;
    size_t begin = group_script(group, SCRIPT_KEEP_HOLDS, 1 + 5 * count, 1 + 17 * count);
    keys_put_members(group->out, &group->keys);
    for (int32_t i = 0; i < count; i++) {
        write_ids(kept[i], &ids);
        keys_put_guard(group->out, &group->keys, kept[i]->section, kept[i]->subsection);
        keys_put_bits(group->out, &group->keys, kept[i]->section, kept[i]->subsection);
        keys_put_lock(group->out, &group->keys, ids.seat);
        keys_put_hold(group->out, &group->keys, ids.seat);
        keys_put_meta(group->out, &group->keys, ids.hold);
    }
    resp_uuid(group->out, &kept[0]->event_id);
    for (int32_t i = 0; i < count; i++)
        put_kept(group, kept[i]);
    group_script_end(group, begin);
}

static void put_all_kept(struct group *group)
{
    const struct warm_write *kept[KEEP_COUNT_MAX];
    int32_t count = 0;
    for (int32_t i = 0; i < group->count; i++) {
        if (!is_kept(group->refs[i].write))
            continue;
        kept[count++] = group->refs[i].write;
        if (count == KEEP_COUNT_MAX) {
            put_kept_chunk(group, kept, count);
            count = 0;
        }
    }
    if (count > 0)
        put_kept_chunk(group, kept, count);
}

/* ---- 4. Bits ---- */

static void add_bits(struct group *group)
{
    for (int32_t i = 0; i < group->count; i++) {
        const struct warm_write *write = group->refs[i].write;
        if (write->kind != WARM_UNLOCKED && !is_kept(write))
            bits_add(&group->redis->bits, write);
    }
    if (!group->redis->bits.urgent)
        return;
    link_owe_nobody(&group->redis->link, group->replies);
    group->replies = 0;
    bits_flush(group->redis);
}

/* ---- 5. Messages ---- */

static void put_messages(struct group *group, int64_t now_ms)
{
    struct redis *redis = group->redis;
    const struct warm_write *first = group->refs[0].write;
    bool changed = false;
    message_begin(&redis->message);
    for (int32_t i = 0; i < group->count; i++) {
        const struct warm_write *write = group->refs[i].write;
        if (!message_is_due(write))
            continue;
        char seat[UUID_TEXT_SIZE];
        uuid_format(&write->seat_id, seat);
        group->replies += message_put_seat(group->out, &group->keys, &redis->times, write, seat);
        message_add(&redis->message, write);
        changed |= write->kind != WARM_EXTENDED;
    }
    if (changed) {
        PUT_LITERAL(group->out, "*2\r\n$3\r\nDEL\r\n");
        keys_put_occupancy(group->out, &group->keys);
        group->replies++;
    }
    /* Last, so that whoever hears it finds everything in place. */
    group->replies += message_put(group->out, &redis->message, &first->org_id, &first->event_id, redis->node,
                                  &redis->times, now_ms);
}

static void write_group(struct redis *redis, const struct write_ref *refs, int32_t count, int64_t now_ms)
{
    struct group group = {.redis = redis, .out = &redis->link.out, .refs = refs, .count = count};
    keys_event_init(&group.keys, redis->prefix, &refs[0].write->org_id, &refs[0].write->event_id);
    uuid_format(&refs[0].write->event_id, group.event);
    put_ends(&group);
    put_all_new(&group);
    put_all_kept(&group);
    add_bits(&group);
    put_messages(&group, now_ms);
    link_owe_nobody(&redis->link, group.replies);
}

static void write_order(struct redis *redis, const struct warm_write *writes, int32_t count)
{
    if (count > redis->order_capacity) {
        free(redis->order);
        redis->order = malloc((size_t)count * sizeof(*redis->order));
        CHECK(redis->order != NULL);
        redis->order_capacity = count;
    }
    bool sorted = true;
    for (int32_t i = 0; i < count; i++) {
        redis->order[i].write = &writes[i];
        sorted = sorted && (i == 0 || compare_refs(&redis->order[i - 1], &redis->order[i]) < 0);
    }
    if (!sorted)
        qsort(redis->order, (size_t)count, sizeof(*redis->order), compare_refs);
}

void redis_write(struct warm *warm, const struct warm_write *writes, int32_t count)
{
    struct redis *redis = redis_of(warm);
    if (redis->breaker.state == WARM_OPEN || !link_has_room(&redis->link))
        return;
    redis->wanted = true;
    write_order(redis, writes, count);
    int64_t now_ms = clock_now_ms();
    for (int32_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count; end++) {
            if (compare_events(redis->order[begin].write, redis->order[end].write) != 0)
                break;
        }
        write_group(redis, redis->order + begin, end - begin, now_ms);
    }
}

void redis_nudge(struct warm *warm)
{
    struct redis *redis = redis_of(warm);
    if (redis->breaker.state == WARM_OPEN || !link_has_room(&redis->link))
        return;
    struct buf *out = &redis->link.out;
    redis->wanted = true;
    resp_array(out, 3);
    resp_text(out, "PUBLISH");
    resp_text(out, "occupancy:nudge");
    resp_text(out, redis->node);
    link_owe_nobody(&redis->link, 1);
}

void redis_occupancy(struct warm *warm, const struct uuid *org_id, const struct uuid *event_id,
                     const char *json, size_t size)
{
    struct redis *redis = redis_of(warm);
    if (redis->breaker.state == WARM_OPEN || !link_has_room(&redis->link))
        return;
    struct buf *out = &redis->link.out;
    struct keys_event keys;
    redis->wanted = true;
    keys_event_init(&keys, redis->prefix, org_id, event_id);
    resp_array(out, 5);
    resp_text(out, "SET");
    keys_put_occupancy(out, &keys);
    resp_bulk(out, json, size);
    resp_text(out, "EX");
    resp_int(out, REDIS_OCCUPANCY_SECONDS);
    link_owe_nobody(&redis->link, 1);
}

static void put_found_member(struct redis *redis, const struct warm_member *member)
{
    struct buf *out = &redis->link.out;
    if (member->text != NULL) {
        resp_bulk(out, member->text, member->text_size > 0 ? member->text_size : strlen(member->text));
        return;
    }
    char seat[UUID_TEXT_SIZE], hold[UUID_TEXT_SIZE], user[UUID_TEXT_SIZE];
    uuid_format(&member->seat_id, seat);
    uuid_format(&member->hold_id, hold);
    uuid_format(&member->user_id, user);
    value_put_member(out, &redis->times, seat, hold, user, member->held_until_ms);
}

void redis_remove_members(struct warm *warm, const struct uuid *org_id, const struct uuid *event_id,
                          const struct warm_member *members, int32_t count)
{
    struct redis *redis = redis_of(warm);
    if (redis->breaker.state == WARM_OPEN || !link_has_room(&redis->link))
        return;
    struct keys_event keys;
    redis->wanted = true;
    keys_event_init(&keys, redis->prefix, org_id, event_id);
    resp_array(&redis->link.out, 2 + count);
    resp_text(&redis->link.out, "ZREM");
    keys_put_members(&redis->link.out, &keys);
    for (int32_t i = 0; i < count; i++)
        put_found_member(redis, &members[i]);
    link_owe_nobody(&redis->link, 1);
}
