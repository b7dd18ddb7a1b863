/* SPDX-License-Identifier: Apache-2.0
 * What a store says about the holds of each event. */
#ifndef HOLDFAST_CLI_CENSUS_H
#define HOLDFAST_CLI_CENSUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/map.h"
#include "base/model.h"

struct census_event {
    struct census_event *next;
    struct event_row row; /* name in the census' arena */
    int32_t counts[SEAT_STATE_COUNT];
    int32_t active_hold_count;
};

struct census {
    struct arena arena;
    struct census_event *first; /* in the store's order */
    struct census_event **last;
    struct map events; /* id → census_event */
};

/* Walks the store at `url` without writing. False and one sentence if it cannot. */
bool census_take(struct census *census, const char *url, char *why, size_t why_size) MUST_CHECK;
void census_deinit(struct census *census); /* also after a failed census_take() */

#endif
