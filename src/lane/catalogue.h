/* SPDX-License-Identifier: Apache-2.0
 * What a new layout is to the store, for the lane and for importing. */
#ifndef HOLDFAST_LANE_CATALOGUE_H
#define HOLDFAST_LANE_CATALOGUE_H

#include "base/rng.h"
#include "hot/layout.h"
#include "store/store.h"

/* Makes ids for blocks and seats. Everything is in the arena, but for what `layout` and
 * `document` own, which must live as long. */
struct layout_write *catalogue_layout_write(struct arena *arena, const struct event_row *event,
                                            const char *document, const struct layout *layout,
                                            struct rng *rng, int64_t now_ms);

#endif
