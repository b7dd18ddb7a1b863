/* SPDX-License-Identifier: Apache-2.0
 * Occupancy as JSON: for the occupancy call, for the snapshots and frames of
 * streams. Any thread; the time is given.
 *
 * Invariants:
 *  1. The event's counts are the sums of the blocks' counts in the same answer:
 *     each block is read once.
 *  2. available + held + sold + blocked = total, for the event and each block. */
#include <stdio.h>

#include "base/limits.h"
#include "hot/seatmap.h"

/* A layout has at least one seat. */
static void write_counts(const int32_t counts[SEAT_STATE_COUNT], int32_t total, struct jsonw *json)
{
    jsonw_key_int(json, "available", counts[SEAT_AVAILABLE]);
    jsonw_key_int(json, "held", counts[SEAT_HELD]);
    jsonw_key_int(json, "sold", counts[SEAT_SOLD]);
    jsonw_key_int(json, "blocked", counts[SEAT_BLOCKED]);
    jsonw_key_int(json, "total", total);
    jsonw_key_fixed(json, "percent_available", counts[SEAT_AVAILABLE] * 100.0 / total, 1);
    jsonw_key_fixed(json, "percent_held", counts[SEAT_HELD] * 100.0 / total, 1);
    jsonw_key_fixed(json, "percent_sold", counts[SEAT_SOLD] * 100.0 / total, 1);
}

static void write_block(const struct seatmap *map, int32_t block, const int32_t counts[SEAT_STATE_COUNT],
                        struct jsonw *json)
{
    const struct layout_block *place = &map->layout->blocks[block];
    char code[16];
    snprintf(code, sizeof code, "%s-%d", place->section, (int)place->subsection);
    jsonw_object_open(json);
    jsonw_key_text(json, "block", code);
    jsonw_key_uuid(json, "block_id", &map->blocks[block].id);
    jsonw_key_text(json, "name", seatmap_block_info(map, block)->name);
    write_counts(counts, place->seat_count, json);
    jsonw_object_close(json);
}

void seatmap_write_occupancy(const struct seatmap *map, int64_t now_ms, bool with_blocks, struct jsonw *json)
{
    int32_t blocks[EVENT_BLOCK_COUNT_MAX][SEAT_STATE_COUNT], sum[SEAT_STATE_COUNT] = {0};
    for (int32_t block = 0; block < map->layout->block_count; block++) {
        seatmap_block_counts(map, block, blocks[block]);
        for (int32_t state = 0; state < SEAT_STATE_COUNT; state++)
            sum[state] += blocks[block][state];
    }
    jsonw_object_open(json);
    write_counts(sum, map->layout->seat_count, json);
    jsonw_key_time(json, "timestamp", now_ms);
    if (with_blocks) {
        jsonw_key(json, "blocks");
        jsonw_array_open(json);
        for (int32_t block = 0; block < map->layout->block_count; block++)
            write_block(map, block, blocks[block], json);
        jsonw_array_close(json);
    }
    jsonw_object_close(json);
}
