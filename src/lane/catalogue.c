/* SPDX-License-Identifier: Apache-2.0
 * See catalogue.h. */
#include "lane/catalogue.h"

#include <string.h>

static void write_block(const struct event_row *event, const struct layout_block *from, int32_t ordinal,
                        struct rng *rng, int64_t now_ms, struct block_row *out)
{
    *out = (struct block_row){
        .org_id = event->org_id,
        .event_id = event->id,
        .id = uuid_make(rng, now_ms),
        .subsection = from->subsection,
        .ordinal = ordinal,
        .name = from->name,
        .capacity = from->capacity,
        .price_cents = from->price_cents,
    };
    memcpy(out->section, from->section, sizeof(out->section));
}

struct layout_write *catalogue_layout_write(struct arena *arena, const struct event_row *event,
                                            const char *document, const struct layout *layout,
                                            struct rng *rng, int64_t now_ms)
{
    struct layout_write *write = ARENA_NEW(arena, struct layout_write);
    struct block_row *blocks = ARENA_ARRAY(arena, struct block_row, layout->block_count + 1);
    struct layout_seat *seats = ARENA_ARRAY(arena, struct layout_seat, layout->seat_count + 1);
    for (int32_t i = 0; i < layout->block_count; i++)
        write_block(event, &layout->blocks[i], i, rng, now_ms, &blocks[i]);
    for (int32_t i = 0; i < layout->row_count; i++) {
        const struct layout_row *row = &layout->rows[i];
        for (int32_t j = 0; j < row->seat_count; j++) {
            seats[row->seat_first + j] = (struct layout_seat){
                .id = uuid_make(rng, now_ms),
                .block = row->block,
                .row = row->ordinal,
                .seat = j + 1,
                .row_label = row->label,
                .seat_label = layout->seat_labels[row->seat_first + j],
            };
        }
    }
    *write = (struct layout_write){
        .org_id = event->org_id,
        .event_id = event->id,
        .document = document,
        .blocks = blocks,
        .block_count = layout->block_count,
        .seats = seats,
        .seat_count = layout->seat_count,
    };
    return write;
}
