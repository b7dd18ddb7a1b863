/* SPDX-License-Identifier: Apache-2.0
 * The rate limit: how many new holds were granted to a user within the last
 * window, exactly: a ring of the times of the grants that still count. */
#ifndef HOLDFAST_HOLD_RATE_H
#define HOLDFAST_HOLD_RATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/model.h"

struct rate_window {
    int64_t *granted_ms; /* ring, oldest at `first` */
    int32_t first;
    int32_t count;
    int32_t capacity;
};

void rate_deinit(struct rate_window *window);
/* Forgets what has left the window; how many are left. */
int32_t rate_count(struct rate_window *window, const struct policy *policy, int64_t now_ms);
void rate_add(struct rate_window *window, int64_t granted_ms);

/* May `adding` more be granted, with `pending` grants not committed yet? If not, *retry_ms is
 * how long until they may, as far as is known. */
bool rate_allows(struct rate_window *window, const struct policy *policy, int32_t pending, int32_t adding,
                 int64_t now_ms, int64_t *retry_ms);

#endif
