/* SPDX-License-Identifier: Apache-2.0
 * The names of everything in Redis. The parts that are the same for a whole
 * event are put together once a batch; each key is then written as one argument
 * of a command. */
#ifndef HOLDFAST_WARM_KEYS_H
#define HOLDFAST_WARM_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/uuid.h"

enum {
    KEY_PREFIX_SIZE_MAX = 64,
    KEY_ID_SIZE = UUID_TEXT_SIZE - 1,
    KEY_HEAD_SIZE = KEY_PREFIX_SIZE_MAX + 2 * UUID_TEXT_SIZE + 32,
};

struct keys_event {
    char bare[KEY_HEAD_SIZE];   /* org:{org}:event:{event}: */
    char tenant[KEY_HEAD_SIZE]; /* {prefix}:org:{org}: */
    char event[KEY_HEAD_SIZE];  /* {prefix}:org:{org}:event:{event}: */
    size_t bare_size, tenant_size, event_size;
};

void keys_event_init(struct keys_event *keys, const char *prefix, const struct uuid *org_id,
                     const struct uuid *event_id);

/* Each writes one argument. `seat` and `hold` are KEY_ID_SIZE characters. */
void keys_put_lock(struct buf *out, const struct keys_event *keys, const char *seat);
void keys_put_hold(struct buf *out, const struct keys_event *keys, const char *seat);
void keys_put_meta(struct buf *out, const struct keys_event *keys, const char *hold);
void keys_put_members(struct buf *out, const struct keys_event *keys);
void keys_put_occupancy(struct buf *out, const struct keys_event *keys);
void keys_put_bits(struct buf *out, const struct keys_event *keys, const char *section, int32_t subsection);
void keys_put_guard(struct buf *out, const struct keys_event *keys, const char *section, int32_t subsection);
void keys_put_mark(struct buf *out,
                   const char *prefix); /* says whether Redis is still the one that was filled */
void keys_put_probe(struct buf *out, const char *prefix);
void keys_put_occupancy_channel(struct buf *out, const struct uuid *org_id, const struct uuid *event_id);
void keys_put_seat_channel(struct buf *out, const struct keys_event *keys, const char *change);

#endif
