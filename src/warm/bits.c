/* SPDX-License-Identifier: Apache-2.0
 * Seats' bits. A call from Lua into Redis costs as much as a plain command, and
 * seats that are sold at random lie in as many blocks as there are; so bits that
 * are set are gathered for up to BITS_WAIT_MS_MAX, and a block's are set at once.
 *
 * A bit that is cleared never waits, nor do those that wait already then: the
 * version that goes with it is what keeps a repair from bringing back the hold
 * that has ended. For a seat that was taken there is no such hold: the end of
 * the one before it has been sent. The order does not matter otherwise, because
 * every bit carries its version. */
#include "warm/bits.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "warm/redis_int.h"
#include "warm/resp.h"

enum { CALL_SEAT_COUNT_MAX = 1024 };

void bits_deinit(struct bits *bits)
{
    free(bits->changes);
}

void bits_clear(struct bits *bits)
{
    bits->count = 0;
    bits->urgent = false;
    bits->since_us = 0;
}

void bits_add(struct bits *bits, const struct warm_write *write)
{
    if (bits->count == bits->capacity) {
        bits->capacity = bits->capacity == 0 ? BITS_COUNT_MAX : bits->capacity * 2;
        bits->changes = realloc(bits->changes, (size_t)bits->capacity * sizeof(*bits->changes));
        CHECK(bits->changes != NULL);
    }
    struct bit_change *change = &bits->changes[bits->count++];
    *change = (struct bit_change){.org_id = write->org_id,
                                  .event_id = write->event_id,
                                  .subsection = write->subsection,
                                  .bit = write->bit,
                                  .version = write->version,
                                  .taken = write->state != SEAT_AVAILABLE};
    memcpy(change->section, write->section, sizeof(change->section));
    bits->urgent |= write->kind != WARM_HELD || bits->count >= BITS_COUNT_MAX;
}

static int compare_events(const struct bit_change *a, const struct bit_change *b)
{
    int order = uuid_compare(&a->event_id, &b->event_id);
    return order != 0 ? order : uuid_compare(&a->org_id, &b->org_id);
}

static int compare_blocks(const struct bit_change *a, const struct bit_change *b)
{
    int order = memcmp(a->section, b->section, sizeof(a->section));
    return order != 0 ? order : (a->subsection > b->subsection) - (a->subsection < b->subsection);
}

static int compare_changes(const void *left, const void *right)
{
    const struct bit_change *a = left, *b = right;
    int order = compare_events(a, b);
    if (order == 0)
        order = compare_blocks(a, b);
    if (order == 0)
        order = (a->bit > b->bit) - (a->bit < b->bit);
    return order != 0 ? order : (a->version > b->version) - (a->version < b->version);
}

/* Of a seat that changed more than once only the last version counts. What is left; they are in order. */
static int32_t keep_last(struct bit_change *changes, int32_t count)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < count; i++) {
        const struct bit_change *next = i + 1 < count ? &changes[i + 1] : NULL;
        if (next == NULL || next->bit != changes[i].bit || compare_blocks(next, &changes[i]) != 0 ||
            compare_events(next, &changes[i]) != 0)
            changes[kept++] = changes[i];
    }
    return kept;
}

/* How many from the first on are of one block, and fit one BITFIELD. */
static int32_t block_run(const struct bit_change *changes, int32_t count)
{
    int32_t end = 1;
    while (end < count && end < SCRIPT_SEAT_COUNT_MAX && compare_blocks(&changes[0], &changes[end]) == 0)
        end++;
    return end;
}

static int32_t event_run(const struct bit_change *changes, int32_t count)
{
    int32_t end = 1;
    while (end < count && end < CALL_SEAT_COUNT_MAX && compare_events(&changes[0], &changes[end]) == 0)
        end++;
    return end;
}

/* One call for seats of one event. */
static void put_call(struct redis *redis, const struct bit_change *changes, int32_t count)
{
    struct buf *out = &redis->link.out;
    struct keys_event keys;
    int32_t block_count = 0;
    keys_event_init(&keys, redis->prefix, &changes[0].org_id, &changes[0].event_id);
    for (int32_t i = 0; i < count; i += block_run(changes + i, count - i))
        block_count++;
    size_t begin = script_begin(&redis->scripts, &redis->link, SCRIPT_SET_BITS, 2 * block_count,
                                block_count + 4 * count);
    for (int32_t i = 0; i < count; i += block_run(changes + i, count - i)) {
        keys_put_guard(out, &keys, changes[i].section, changes[i].subsection);
        keys_put_bits(out, &keys, changes[i].section, changes[i].subsection);
    }
    for (int32_t i = 0; i < count;) {
        int32_t run = block_run(changes + i, count - i);
        resp_int(out, run);
        for (int32_t end = i + run; i < end; i++) {
            resp_int(out, changes[i].bit);
            resp_int(out, (int64_t)changes[i].bit * 32); /* not "#": Kvrocks does not know it */
            resp_int(out, changes[i].version);
            resp_bulk(out, changes[i].taken ? "1" : "0", 1);
        }
    }
    script_end(&redis->link, begin, NULL, NULL, 0);
}

void bits_flush(struct redis *redis)
{
    struct bits *bits = &redis->bits;
    if (bits->count > 1)
        qsort(bits->changes, (size_t)bits->count, sizeof(*bits->changes), compare_changes);
    int32_t count = keep_last(bits->changes, bits->count);
    for (int32_t i = 0, run; i < count; i += run) {
        run = event_run(bits->changes + i, count - i);
        put_call(redis, bits->changes + i, run);
    }
    bits_clear(bits);
}

int64_t bits_due_us(const struct redis *redis)
{
    const struct bits *bits = &redis->bits;
    if (bits->count == 0)
        return INT64_MAX;
    return bits->since_us == 0 ? redis->now_us : bits->since_us + BITS_WAIT_MS_MAX * 1000;
}

void bits_turn(struct redis *redis)
{
    struct bits *bits = &redis->bits;
    if (bits->count == 0)
        return;
    if (bits->since_us == 0)
        bits->since_us = redis->now_us;
    if (bits->urgent || redis->now_us >= bits_due_us(redis))
        bits_flush(redis);
}
