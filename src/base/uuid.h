/* SPDX-License-Identifier: Apache-2.0
 * UUIDs as 16 bytes. The all-zero value means "none". */
#ifndef HOLDFAST_BASE_UUID_H
#define HOLDFAST_BASE_UUID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define UUID_TEXT_SIZE 37 /* 36 characters and a NUL */

struct uuid {
    uint8_t bytes[16];
};

struct rng;

/* Version 7: milliseconds, then a counter and random bits; ids made one after
 * another by the same rng sort in the order of making. */
struct uuid uuid_make(struct rng *rng, int64_t now_ms);

/* Accepts exactly the 8-4-4-4-12 form, either case. */
bool uuid_parse(const char *text, size_t length, struct uuid *out);
void uuid_format(const struct uuid *uuid, char out[UUID_TEXT_SIZE]); /* lower case, NUL ended */

static inline bool uuid_equal(const struct uuid *a, const struct uuid *b)
{
    return memcmp(a->bytes, b->bytes, 16) == 0;
}

static inline int uuid_compare(const struct uuid *a, const struct uuid *b)
{
    return memcmp(a->bytes, b->bytes, 16);
}

static inline bool uuid_is_nil(const struct uuid *uuid)
{
    static const struct uuid nil;
    return uuid_equal(uuid, &nil);
}

/* Mixed, because version 7 ids share their first bytes. */
static inline uint64_t uuid_hash(const struct uuid *uuid)
{
    uint64_t high, low;
    memcpy(&high, uuid->bytes, 8);
    memcpy(&low, uuid->bytes + 8, 8);
    /* Ids of others may differ in a few bits at either end: every bit must reach those that a table looks at. */
    uint64_t h = (high ^ (high >> 32)) * 0xD6E8FEB86659FD93ull + (low ^ (low >> 29)) * 0x9E3779B97F4A7C15ull;
    h = (h ^ (h >> 32)) * 0xD6E8FEB86659FD93ull;
    return h ^ (h >> 32);
}

#endif
