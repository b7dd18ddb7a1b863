/* SPDX-License-Identifier: Apache-2.0
 * Making, reading and writing UUIDs.
 *
 * Version 7 as made here (RFC 9562, method 1: a counter after the time):
 *   48 bits  milliseconds
 *    4       version
 *   12       counter, upper part
 *    2       variant
 *   14       counter, lower part
 *   48       random
 * The counter begins at random below half its range each millisecond and goes
 * up by one; when it is used up, or when the clock goes back, time borrows
 * from the future. So ids of one rng are strictly ascending.
 * Pure but for the rng, which belongs to its thread. */
#include "base/uuid.h"

#include "base/rng.h"

#define COUNTER_BITS 26
#define COUNTER_LIMIT (1u << COUNTER_BITS)

struct uuid uuid_make(struct rng *rng, int64_t now_ms)
{
    uint64_t random = rng_next(rng);
    if (now_ms > rng->uuid_last_ms) {
        rng->uuid_last_ms = now_ms;
        rng->uuid_counter = (uint32_t)(random >> 32) & (COUNTER_LIMIT / 2 - 1);
    } else if (++rng->uuid_counter == COUNTER_LIMIT) {
        rng->uuid_last_ms++;
        rng->uuid_counter = 0;
    }
    random ^= rng_next(rng); /* the first word may have told its upper half */

    struct uuid uuid;
    uint64_t time = (uint64_t)rng->uuid_last_ms;
    uint32_t counter = rng->uuid_counter;
    for (int i = 0; i < 6; i++)
        uuid.bytes[i] = (uint8_t)(time >> (40 - 8 * i));
    uuid.bytes[6] = (uint8_t)(0x70 | counter >> 22);
    uuid.bytes[7] = (uint8_t)(counter >> 14);
    uuid.bytes[8] = (uint8_t)(0x80 | (counter >> 8 & 0x3F));
    uuid.bytes[9] = (uint8_t)counter;
    for (int i = 0; i < 6; i++)
        uuid.bytes[10 + i] = (uint8_t)(random >> (8 * i));
    return uuid;
}

/* The value of a hexadecimal digit, or −1. */
/* clang-format off */
static const int8_t hex_value[256] = {
#define HEX_EMPTY_16 -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1
#define HEX_LETTERS_16 -1, 10, 11, 12, 13, 14, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1
    HEX_EMPTY_16, HEX_EMPTY_16, HEX_EMPTY_16,
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, -1, -1, -1, -1, -1, -1,
    HEX_LETTERS_16, HEX_EMPTY_16, HEX_LETTERS_16, HEX_EMPTY_16,
    HEX_EMPTY_16, HEX_EMPTY_16, HEX_EMPTY_16, HEX_EMPTY_16,
    HEX_EMPTY_16, HEX_EMPTY_16, HEX_EMPTY_16, HEX_EMPTY_16,
};
/* clang-format on */

/* Where each byte's two digits stand; the dashes are between. */
static const uint8_t digit_places[16] = {0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34};

bool uuid_parse(const char *text, size_t length, struct uuid *out)
{
    if (length != UUID_TEXT_SIZE - 1)
        return false;
    if (text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-')
        return false;
    struct uuid uuid;
    int wrong = 0;
    for (int i = 0; i < 16; i++) {
        int high = hex_value[(unsigned char)text[digit_places[i]]];
        int low = hex_value[(unsigned char)text[digit_places[i] + 1]];
        wrong |= high | low; /* negative as soon as one is */
        uuid.bytes[i] = (uint8_t)((unsigned)high << 4 | (unsigned)low);
    }
    if (wrong < 0)
        return false;
    *out = uuid;
    return true;
}

void uuid_format(const struct uuid *uuid, char out[UUID_TEXT_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < 16; i++) {
        out[digit_places[i]] = digits[uuid->bytes[i] >> 4];
        out[digit_places[i] + 1] = digits[uuid->bytes[i] & 15];
    }
    out[8] = out[13] = out[18] = out[23] = '-';
    out[UUID_TEXT_SIZE - 1] = '\0';
}
