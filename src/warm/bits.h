/* SPDX-License-Identifier: Apache-2.0
 * The bits of seats, gathered over a few batches and set block by block. */
#ifndef HOLDFAST_WARM_BITS_H
#define HOLDFAST_WARM_BITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/uuid.h"
#include "warm/warm.h"

enum {
    BITS_WAIT_MS_MAX = 50, /* as long as frames are gathered for those who look at the map */
    BITS_COUNT_MAX = 2048, /* that wait */
};

struct bit_change {
    struct uuid org_id;
    struct uuid event_id;
    char section[4];
    int32_t subsection;
    int32_t bit;
    int32_t version;
    bool taken;
};

struct bits {
    struct bit_change *changes;
    int32_t count;
    int32_t capacity;
    bool urgent;      /* they may not wait */
    int64_t since_us; /* the first of them waits; 0: since this turn */
};

struct redis;

void bits_deinit(struct bits *bits);
void bits_clear(struct bits *bits);
void bits_add(struct bits *bits, const struct warm_write *write);
void bits_flush(struct redis *redis); /* sends them */
void bits_turn(struct redis *redis);  /* sends them if that is due */
int64_t bits_due_us(const struct redis *redis);

#endif
