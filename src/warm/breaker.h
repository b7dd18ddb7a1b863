/* SPDX-License-Identifier: Apache-2.0
 * When to stop asking Redis, and when to try again. The diagram is in warm.h. */
#ifndef HOLDFAST_WARM_BREAKER_H
#define HOLDFAST_WARM_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

#include "warm/warm.h"

enum {
    BREAKER_FAILURE_COUNT = 5, /* in a row: it opens */
    BREAKER_RETRY_MS = 30000,  /* while open */
    BREAKER_SOON_MS = 100,     /* while open after fewer failures than that */
};

struct breaker {
    enum warm_state state;
    int32_t failures; /* in a row */
    int64_t retry_us; /* between tries while open */
    int64_t retry_at_us;
};

void breaker_init(struct breaker *breaker, int64_t retry_ms); /* 0: BREAKER_RETRY_MS */
/* A connection broke or could not be made, or a round took too long; an answer that is an error is none of these. */
void breaker_failed(struct breaker *breaker, int64_t now_us, const char *why);
void breaker_worked(struct breaker *breaker); /* a round was answered */
/* Redis may have lost what was written: it does not filter until everything was written again. */
void breaker_rebuild(struct breaker *breaker, const char *why);
void breaker_rebuilt(struct breaker *breaker);
/* While open: everything was tried, wait. */
void breaker_wait(struct breaker *breaker, int64_t now_us);
bool breaker_may_connect(const struct breaker *breaker, int64_t now_us);

#endif
