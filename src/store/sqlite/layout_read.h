/* SPDX-License-Identifier: Apache-2.0
 * An event's layout as it is in the file. */
#ifndef HOLDFAST_STORE_SQLITE_LAYOUT_READ_H
#define HOLDFAST_STORE_SQLITE_LAYOUT_READ_H

#include "base/arena.h"
#include "base/model.h"
#include "store/sqlite/connection.h"

struct layout_read {
    const char *document; /* NULL: the event has no layout, and the rest is empty */
    struct block_row *blocks;
    int32_t block_count;
    int64_t place_first; /* of its seats */
    int64_t seat_count;
    int64_t holds_ever;
};

/* What is read lives in the arena. */
enum err layout_read(struct connection *connection, const struct uuid *org_id, const struct uuid *event_id,
                     struct arena *arena, struct layout_read *out) MUST_CHECK;

#endif
