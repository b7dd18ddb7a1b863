/* SPDX-License-Identifier: Apache-2.0
 * What a batch changes in the statistics: differences per block, summed over
 * the units that were written, to be applied once at the end of the
 * transaction, blocks in order. */
#ifndef HOLDFAST_STORE_STATS_H
#define HOLDFAST_STORE_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/model.h"
#include "store/store.h"

#define STATS_HOUR_MS ((int64_t)3600 * 1000)

struct stats_holds {
    int64_t created;
    int64_t ended[HOLD_STATE_COUNT]; /* by the state they ended in; [HOLD_ACTIVE] stays 0 */
    int64_t held_ms;                 /* how long the ended ones lasted, in sum */
};

struct stats_hour { /* of the holds made in one hour */
    struct stats_hour *next;
    int64_t hour_ms; /* its beginning */
    struct stats_holds holds;
};

struct stats_block {
    struct stats_block *same_id; /* another organization's or event's block of the same id */
    struct uuid org_id;
    struct uuid event_id;
    struct uuid block_id;
    int64_t seats[SEAT_STATE_COUNT];
    struct stats_holds holds;
    struct stats_hour *hours; /* in no order */
};

struct stats {
    struct arena arena;
    struct map blocks; /* by block id */
    size_t block_count;
};

void stats_init(struct stats *stats);
void stats_deinit(struct stats *stats);
void stats_reset(struct stats *stats);

/* A hold that is updated to anything but active counts as ended now: the store sees to it that a hold
 * ends once. */
void stats_add_unit(struct stats *stats, const struct store_unit *unit);

/* By organization, event and block; valid until the next reset. */
struct stats_block **stats_sorted(struct stats *stats);

#endif
