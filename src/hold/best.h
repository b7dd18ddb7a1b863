/* SPDX-License-Identifier: Apache-2.0
 * Best available, and the rule against stranded single seats, over bit rows.
 * Pure: free seats in, choice out. */
#ifndef HOLDFAST_HOLD_BEST_H
#define HOLDFAST_HOLD_BEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct bit_row { /* seats first … first + count − 1 of the event, side by side */
    int32_t first;
    int32_t count;
};

struct bit_rows {
    const uint64_t *free; /* by seat index: bit (i mod 64) of word i / 64 is 1 if the seat may be taken */
    const struct bit_row *rows; /* the rows to look at, in order: front first */
    int32_t row_count;
};

struct best_explanation {
    bool adjacent;    /* all in one unbroken run */
    int32_t split;    /* in how many runs */
    int32_t stranded; /* single free seats this choice leaves beside it */
    double distance;  /* mean distance of the seats from their row's centre, in seats */
};

/* Chooses `quantity` seats (1 … HOLD_SEAT_COUNT_MAX), indexes ascending in `seats`.
 * adjacent: one run in the first row that has one, nearest its centre, preferring a place that
 * strands no single seat in that row or the next. Otherwise, if no row has a run: the largest
 * runs combined. ERR_NOT_ENOUGH_SEATS leaves `seats` alone. */
enum err best_find(const struct bit_rows *rows, int32_t quantity, bool adjacent, int32_t *seats,
                   struct best_explanation *out) MUST_CHECK;

/* Would taking `seats` (ascending indexes, all free) strand a single seat that the same number of
 * seats placed otherwise in the same free run would not? The stranded indexes go to `stranded`
 * (room for 2 × count). Returns how many; 0: nothing to object. */
int32_t best_stranded(const struct bit_rows *rows, const int32_t *seats, int32_t count, int32_t *stranded);

static inline bool bit_get(const uint64_t *bits, int32_t index)
{
    return bits[index / 64] >> (index % 64) & 1;
}

static inline void bit_set(uint64_t *bits, int32_t index, bool value)
{
    uint64_t mask = 1ull << (index % 64);
    bits[index / 64] = value ? bits[index / 64] | mask : bits[index / 64] & ~mask;
}

#endif
