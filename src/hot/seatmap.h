/* SPDX-License-Identifier: Apache-2.0
 * What everybody may see of an event's seats: the layout, which never changes,
 * and each seat's state and each block's counts, which the lane alone writes
 * and any thread reads as atomics. Counted references: a reader that acquired
 * a map may use it after the event got another layout.
 *
 * Invariants: (1) counts of a block always sum to its number of seats, for
 * every thread. (2) states change only after their commit. */
#ifndef HOLDFAST_HOT_SEATMAP_H
#define HOLDFAST_HOT_SEATMAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/model.h"
#include "hot/layout.h"

struct block_info {             /* what an admin may change; replaced as a whole */
    struct block_info *retired; /* freed with the map */
    int32_t capacity;
    int64_t price_cents;
    char name[]; /* NUL ended */
};

struct seatmap_block {
    struct uuid id;
    _Atomic(struct block_info *) info;
    _Atomic uint64_t taken; /* how many are held, sold and blocked, packed: seatmap_block_counts() */
};

struct seatmap {
    _Atomic int32_t reference_count;
    _Atomic uint32_t revision; /* goes up with every block_info: part of the ETag */
    struct uuid org_id;
    struct uuid event_id;
    struct uuid layout_id; /* another for every layout: part of the ETag */
    struct arena arena;    /* owns layout */
    struct layout *layout;
    struct seatmap_block *blocks;
    struct uuid *seat_ids;   /* by index */
    _Atomic uint8_t *states; /* by index: enum seat_state */
    uint32_t *slots;         /* hash of seat_ids: index + 1, or 0 */
    uint32_t slot_count;     /* a power of two */
};

/* Parses `document`; block_rows, in any order, give ids and what admins changed since. Seat ids
 * are set with seatmap_set_seat(), all of them, once each, before the map is shared. One reference.
 * ERR_INVALID_REQUEST: the document is wrong; ERR_STORE_CORRUPT: the rows are not its blocks. */
enum err seatmap_create(const struct uuid *org_id, const struct uuid *event_id, const char *document,
                        const struct block_row *block_rows, int32_t block_count, struct seatmap **out,
                        char *why, size_t why_size) MUST_CHECK;
void seatmap_set_seat(struct seatmap *map, int32_t index, const struct uuid *id, enum seat_state state);

struct seatmap *seatmap_acquire(struct seatmap *map);
void seatmap_release(struct seatmap *map); /* NULL is fine */

int32_t seatmap_find(const struct seatmap *map, const struct uuid *seat_id); /* index, or −1 */
const struct layout_row *seatmap_row(const struct seatmap *map, int32_t index);
const struct layout_block *seatmap_block(const struct seatmap *map, int32_t index);
int32_t seatmap_block_find(const struct seatmap *map, const struct uuid *block_id); /* ordinal, or −1 */
/* By section unless "", and subsection unless 0; `*position` starts at 0. Ordinal, or −1 at the end. */
int32_t seatmap_block_next(const struct seatmap *map, const char *section, int32_t subsection,
                           int32_t *position);
enum seat_state seatmap_state(const struct seatmap *map, int32_t index);
const struct block_info *seatmap_block_info(const struct seatmap *map, int32_t block);
void seatmap_counts(const struct seatmap *map, int32_t counts[SEAT_STATE_COUNT]);
void seatmap_block_counts(const struct seatmap *map, int32_t block, int32_t counts[SEAT_STATE_COUNT]);

/* The lane only: */
void seatmap_move(struct seatmap *map, int32_t index, enum seat_state to);
void seatmap_set_block_info(struct seatmap *map, int32_t block, const char *name, int32_t capacity,
                            int64_t price_cents);

/* {"available": …, "held": …, …, "percent_sold": …, "timestamp": …}, with "blocks" if asked. */
void seatmap_write_occupancy(const struct seatmap *map, int64_t now_ms, bool with_blocks, struct jsonw *json);

#endif
