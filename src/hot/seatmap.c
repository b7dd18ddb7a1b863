/* SPDX-License-Identifier: Apache-2.0
 * The public face of an event's seats: made by the lane when an event is loaded
 * or gets a layout, moved by the lane after each commit, read by every loop that
 * answers availability, occupancy, layout and seat lists.
 *
 * Invariants:
 *  1. The layout and the seat ids never change once the map is shared.
 *  2. States and counts have one writer, the lane. The counts of a block are one
 *     word, so that they change at once; what is not taken is available.
 *  3. A block_info is never changed, only replaced; those replaced live as long
 *     as the map, because a reader may still look at one.
 *  4. Who drops the last reference frees the map, on whatever thread.
 *
 * About 36 bytes a seat: id 16, label pointer 8, state 1, hash slots at most 11.
 * It does not know holds or users: nothing here says who holds a seat. */
#include "hot/seatmap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/limits.h"
#include "base/text.h"

/* Three counts in a word; the fourth is what is left. */
enum { COUNT_BITS = 21 };
_Static_assert(EVENT_SEAT_COUNT_MAX < 1 << COUNT_BITS, "a count has room for every seat");
_Static_assert(SEAT_AVAILABLE == 0 && SEAT_STATE_COUNT == 4,
               "three states are counted, each in its own bits");

/* What one seat in this state adds to a block's count of taken seats. */
static uint64_t taken_one(enum seat_state state)
{
    return state == SEAT_AVAILABLE ? 0 : UINT64_C(1) << COUNT_BITS * (state - 1);
}

/* ---- Making ---- */

static struct block_info *block_info_create(const char *name, int32_t capacity, int64_t price_cents)
{
    size_t size = strlen(name) + 1;
    struct block_info *info = malloc(sizeof *info + size);
    CHECK(info != NULL);
    *info = (struct block_info){.capacity = capacity, .price_cents = price_cents};
    memcpy(info->name, name, size);
    return info;
}

/* Puts the rows at the places of their blocks; false if they are not the layout's. */
static bool blocks_fill(struct seatmap *map, const struct block_row *rows, int32_t count)
{
    const struct layout *layout = map->layout;
    if (count != layout->block_count)
        return false;
    for (int32_t i = 0; i < count; i++) {
        const struct block_row *row = &rows[i];
        if (row->ordinal < 0 || row->ordinal >= count)
            return false;
        const struct layout_block *place = &layout->blocks[row->ordinal];
        struct seatmap_block *block = &map->blocks[row->ordinal];
        if (atomic_load_explicit(&block->info, memory_order_relaxed) != NULL)
            return false;
        if (strcmp(place->section, row->section) != 0 || place->subsection != row->subsection)
            return false;
        block->id = row->id;
        atomic_init(&block->info, block_info_create(row->name, row->capacity, row->price_cents));
    }
    return true;
}

/* Made of all that a client is shown of the layout, and of ids that are made anew for every layout:
 * the same after a restart, another for another content. */
static struct uuid layout_id_make(const struct seatmap *map, const char *document, size_t size)
{
    uint8_t hash[32];
    struct buf content;
    buf_init(&content);
    sha256(document, size, hash);
    buf_put(&content, hash, sizeof hash);
    buf_put(&content, &map->event_id, sizeof map->event_id);
    for (int32_t i = 0; i < map->layout->block_count; i++) {
        const struct block_info *info = seatmap_block_info(map, i);
        buf_put(&content, &map->blocks[i].id, sizeof map->blocks[i].id);
        buf_put_int(&content, info->capacity);
        buf_put_char(&content, ' ');
        buf_put_int(&content, info->price_cents);
        buf_put_char(&content, ' ');
        buf_put(&content, info->name, strlen(info->name) + 1);
    }
    CHECK(buf_ok(&content));
    sha256(content.data, content.size, hash);
    buf_deinit(&content);
    struct uuid id;
    memcpy(id.bytes, hash, sizeof id.bytes);
    return id;
}

enum err seatmap_create(const struct uuid *org_id, const struct uuid *event_id, const char *document,
                        const struct block_row *block_rows, int32_t block_count, struct seatmap **out,
                        char *why, size_t why_size)
{
    struct seatmap *map = calloc(1, sizeof *map);
    CHECK(map != NULL);
    atomic_init(&map->reference_count, 1);
    map->org_id = *org_id;
    map->event_id = *event_id;
    arena_init(&map->arena);
    size_t size = strlen(document);
    enum err err = layout_parse(document, size, &map->arena, &map->layout, why, why_size);
    if (err != ERR_OK)
        goto failed;

    const struct layout *layout = map->layout;
    map->blocks = ARENA_ARRAY(&map->arena, struct seatmap_block, layout->block_count);
    if (!blocks_fill(map, block_rows, block_count)) {
        snprintf(why, why_size, "the blocks stored are not those of the layout document");
        err = ERR_STORE_CORRUPT;
        goto failed;
    }
    map->layout_id = layout_id_make(map, document, size);
    map->seat_ids = ARENA_ARRAY(&map->arena, struct uuid, layout->seat_count);
    map->states = ARENA_ARRAY(&map->arena, _Atomic uint8_t, layout->seat_count);
    map->slot_count = 4; /* at most three quarters of them will be full */
    while (map->slot_count / 4 * 3 < (uint32_t)layout->seat_count)
        map->slot_count *= 2;
    map->slots = ARENA_ARRAY(&map->arena, uint32_t, map->slot_count);
    *out = map;
    return ERR_OK;

failed:
    seatmap_release(map);
    return err;
}

void seatmap_set_seat(struct seatmap *map, int32_t index, const struct uuid *id, enum seat_state state)
{
    CHECK(index >= 0);
    CHECK(index < map->layout->seat_count);
    CHECK(!uuid_is_nil(id));
    CHECK(uuid_is_nil(&map->seat_ids[index]));
    CHECK(state < SEAT_STATE_COUNT);
    map->seat_ids[index] = *id;
    uint32_t mask = map->slot_count - 1, at = (uint32_t)uuid_hash(id) & mask;
    while (map->slots[at] != 0)
        at = (at + 1) & mask;
    map->slots[at] = (uint32_t)index + 1;
    atomic_store_explicit(&map->states[index], (uint8_t)state, memory_order_relaxed);
    struct seatmap_block *block = &map->blocks[seatmap_row(map, index)->block];
    atomic_fetch_add_explicit(&block->taken, taken_one(state), memory_order_relaxed);
}

/* ---- References ---- */

struct seatmap *seatmap_acquire(struct seatmap *map)
{
    int32_t before = atomic_fetch_add_explicit(&map->reference_count, 1, memory_order_relaxed);
    CHECK(before > 0);
    return map;
}

static void seatmap_destroy(struct seatmap *map)
{
    for (int32_t i = 0; map->blocks != NULL && i < map->layout->block_count; i++) {
        struct block_info *info = atomic_load_explicit(&map->blocks[i].info, memory_order_relaxed);
        while (info != NULL) {
            struct block_info *retired = info->retired;
            free(info);
            info = retired;
        }
    }
    arena_deinit(&map->arena);
    free(map);
}

void seatmap_release(struct seatmap *map)
{
    if (map == NULL)
        return;
    int32_t before = atomic_fetch_sub_explicit(&map->reference_count, 1, memory_order_acq_rel);
    CHECK(before > 0);
    if (before == 1)
        seatmap_destroy(map);
}

/* ---- Finding ---- */

int32_t seatmap_find(const struct seatmap *map, const struct uuid *seat_id)
{
    uint32_t mask = map->slot_count - 1;
    for (uint32_t at = (uint32_t)uuid_hash(seat_id) & mask; map->slots[at] != 0; at = (at + 1) & mask) {
        int32_t index = (int32_t)map->slots[at] - 1;
        if (uuid_equal(&map->seat_ids[index], seat_id))
            return index;
    }
    return -1;
}

const struct layout_row *seatmap_row(const struct seatmap *map, int32_t index)
{
    const struct layout *layout = map->layout;
    CHECK(index >= 0);
    CHECK(index < layout->seat_count);
    int32_t low = 0, high = layout->row_count - 1; /* the last row that begins at or before the seat */
    while (low < high) {
        int32_t middle = low + (high - low + 1) / 2;
        if (layout->rows[middle].seat_first <= index)
            low = middle;
        else
            high = middle - 1;
    }
    return &layout->rows[low];
}

const struct layout_block *seatmap_block(const struct seatmap *map, int32_t index)
{
    return &map->layout->blocks[seatmap_row(map, index)->block];
}

int32_t seatmap_block_find(const struct seatmap *map, const struct uuid *block_id)
{
    for (int32_t i = 0; i < map->layout->block_count; i++) {
        if (uuid_equal(&map->blocks[i].id, block_id))
            return i;
    }
    return -1;
}

int32_t seatmap_block_next(const struct seatmap *map, const char *section, int32_t subsection,
                           int32_t *position)
{
    while (*position < map->layout->block_count) {
        int32_t ordinal = (*position)++;
        const struct layout_block *block = &map->layout->blocks[ordinal];
        if ((section[0] == '\0' || strcmp(block->section, section) == 0) &&
            (subsection == 0 || block->subsection == subsection))
            return ordinal;
    }
    return -1;
}

/* ---- States and counts ---- */

enum seat_state seatmap_state(const struct seatmap *map, int32_t index)
{
    CHECK(index >= 0);
    CHECK(index < map->layout->seat_count);
    return (enum seat_state)atomic_load_explicit(&map->states[index], memory_order_acquire);
}

const struct block_info *seatmap_block_info(const struct seatmap *map, int32_t block)
{
    CHECK(block >= 0);
    CHECK(block < map->layout->block_count);
    return atomic_load_explicit(&map->blocks[block].info, memory_order_acquire);
}

void seatmap_block_counts(const struct seatmap *map, int32_t block, int32_t counts[SEAT_STATE_COUNT])
{
    CHECK(block >= 0);
    CHECK(block < map->layout->block_count);
    uint64_t taken = atomic_load_explicit(&map->blocks[block].taken, memory_order_acquire);
    counts[SEAT_AVAILABLE] = map->layout->blocks[block].seat_count;
    for (int32_t state = SEAT_AVAILABLE + 1; state < SEAT_STATE_COUNT; state++) {
        counts[state] = (int32_t)(taken >> COUNT_BITS * (state - 1) & ((UINT64_C(1) << COUNT_BITS) - 1));
        counts[SEAT_AVAILABLE] -= counts[state];
    }
}

void seatmap_counts(const struct seatmap *map, int32_t counts[SEAT_STATE_COUNT])
{
    memset(counts, 0, sizeof counts[0] * SEAT_STATE_COUNT);
    for (int32_t block = 0; block < map->layout->block_count; block++) {
        int32_t part[SEAT_STATE_COUNT];
        seatmap_block_counts(map, block, part);
        for (int32_t state = 0; state < SEAT_STATE_COUNT; state++)
            counts[state] += part[state];
    }
}

void seatmap_move(struct seatmap *map, int32_t index, enum seat_state to)
{
    CHECK(to < SEAT_STATE_COUNT);
    enum seat_state from = seatmap_state(map, index);
    if (from == to)
        return;
    atomic_store_explicit(&map->states[index], (uint8_t)to, memory_order_release);
    struct seatmap_block *block = &map->blocks[seatmap_row(map, index)->block];
    atomic_fetch_add_explicit(&block->taken, taken_one(to) - taken_one(from), memory_order_release);
}

void seatmap_set_block_info(struct seatmap *map, int32_t block, const char *name, int32_t capacity,
                            int64_t price_cents)
{
    CHECK(block >= 0);
    CHECK(block < map->layout->block_count);
    struct block_info *info = block_info_create(name, capacity, price_cents);
    info->retired = atomic_load_explicit(&map->blocks[block].info, memory_order_relaxed);
    atomic_store_explicit(&map->blocks[block].info, info, memory_order_release);
    /* After the info: a reader that sees the new revision also sees what it stands for. */
    atomic_fetch_add_explicit(&map->revision, 1, memory_order_release);
}
