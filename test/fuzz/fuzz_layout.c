/* SPDX-License-Identifier: Apache-2.0
 * Layout documents of any bytes: either refused with a reason in UTF-8, or
 * made into arrays that keep every promise of layout.h. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/check.h"
#include "base/limits.h"
#include "base/text.h"
#include "hot/layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_row(const struct layout *layout, const struct layout_row *row)
{
    CHECK(row->label[0] != '\0');
    CHECK(row->seat_count >= 1);
    CHECK(row->seat_count <= ROW_SEAT_COUNT_MAX);
    CHECK(row->seat_first + row->seat_count <= layout->seat_count);
    CHECK(isfinite(row->x) && isfinite(row->y) && isfinite(row->dx) && isfinite(row->dy));
    for (int32_t i = 0; i < row->seat_count; i++) {
        const char *label = layout->seat_labels[row->seat_first + i];
        size_t count = text_character_count(label, strlen(label));
        CHECK(count >= 1);
        CHECK(count <= TEXT_SIZE_MAX);
        /* All pairs of short rows; neighbours of long ones. */
        for (int32_t j = i + 1; j < row->seat_count && (row->seat_count < 64 || j < i + 2); j++)
            CHECK(strcmp(label, layout->seat_labels[row->seat_first + j]) != 0);
    }
}

static void check_layout(const struct layout *layout)
{
    int32_t row_next = 0, seat_next = 0;
    CHECK(layout->name[0] != '\0');
    CHECK(layout->block_count >= 1);
    CHECK(layout->block_count <= EVENT_BLOCK_COUNT_MAX);
    CHECK(layout->seat_count <= EVENT_SEAT_COUNT_MAX);
    for (int32_t b = 0; b < layout->block_count; b++) {
        const struct layout_block *block = &layout->blocks[b];
        int32_t longest = 0;
        CHECK(block->row_first == row_next);
        CHECK(block->seat_first == seat_next);
        CHECK(block->capacity >= 1);
        CHECK(block->capacity <= block->seat_count);
        CHECK(block->price_cents >= 0);
        for (int32_t r = 0; r < block->row_count; r++) {
            const struct layout_row *row = &layout->rows[row_next++];
            CHECK(row->block == b);
            CHECK(row->ordinal == r + 1);
            CHECK(row->seat_first == seat_next);
            check_row(layout, row);
            seat_next += row->seat_count;
            longest = row->seat_count > longest ? row->seat_count : longest;
        }
        CHECK(block->column_count == longest);
        CHECK(block->seat_first + block->seat_count == seat_next);
    }
    CHECK(row_next == layout->row_count);
    CHECK(seat_next == layout->seat_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct layout *layout = NULL;
    char why[160] = "";
    arena_init(&arena);
    if (layout_parse((const char *)data, size, &arena, &layout, why, sizeof why) == ERR_OK) {
        check_layout(layout);
    } else {
        CHECK(why[0] != '\0');
        CHECK(text_is_utf8(why, strlen(why)));
    }
    arena_deinit(&arena);
    return 0;
}
