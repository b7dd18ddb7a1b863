/* SPDX-License-Identifier: Apache-2.0
 * A layout document (SPEC: blocks, rows, seats, positions) checked and made
 * into plain arrays in layout order. */
#ifndef HOLDFAST_HOT_LAYOUT_H
#define HOLDFAST_HOT_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

struct layout_row {
    const char *label;
    int32_t block;      /* ordinal of its block */
    int32_t ordinal;    /* in its block, from 1 */
    int32_t seat_first; /* index in layout order */
    int32_t seat_count;
    bool placed; /* x, y, dx, dy were given */
    double x, y, dx, dy;
};

struct layout_block {
    char section[4];
    int32_t subsection;
    const char *name;
    int32_t capacity;
    int64_t price_cents;
    int32_t row_first;
    int32_t row_count;
    int32_t column_count; /* of its longest row */
    int32_t seat_first;
    int32_t seat_count;
};

struct layout {
    const char *name;
    const char *stage; /* JSON, or NULL */
    struct layout_block *blocks;
    int32_t block_count;
    struct layout_row *rows;
    int32_t row_count;
    const char **seat_labels; /* by index */
    int32_t seat_count;
};

/* Everything is copied into the arena. On ERR_INVALID_REQUEST `why` says which
 * block and row is wrong, and how. */
enum err layout_parse(const char *document, size_t size, struct arena *arena, struct layout **out, char *why,
                      size_t why_size) MUST_CHECK;

#endif
