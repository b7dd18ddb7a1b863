/* SPDX-License-Identifier: Apache-2.0
 * For warm tiers only: the table of functions behind warm.h. */
#ifndef HOLDFAST_WARM_WARM_INT_H
#define HOLDFAST_WARM_WARM_INT_H

#include "warm/warm.h"

struct warm_functions {
    void (*destroy)(struct warm *warm);
    int (*fd)(struct warm *warm);
    int64_t (*turn)(struct warm *warm, int64_t now_us);
    enum warm_state (*state)(const struct warm *warm);
    void (*rebuilt)(struct warm *warm);
    enum err (*lock)(struct warm *warm, struct warm_round *round);
    void (*write)(struct warm *warm, const struct warm_write *writes, int32_t count);
    void (*nudge)(struct warm *warm);
    void (*occupancy)(struct warm *warm, const struct uuid *org_id, const struct uuid *event_id,
                      const char *json, size_t size);
    enum err (*read)(struct warm *warm, struct warm_read *read);
    void (*remove_members)(struct warm *warm, const struct uuid *org_id, const struct uuid *event_id,
                           const struct warm_member *members, int32_t count);
};

struct warm { /* a warm tier embeds this as its first member */
    const struct warm_functions *functions;
};

#endif
