/* SPDX-License-Identifier: Apache-2.0
 * How often something took how long: counts in steps of fixed width, so that
 * the longest run needs no more room than the shortest. */
#include "cli/bench.h"

void bench_steps_add(uint32_t *steps, int64_t us)
{
    int64_t step = us > 0 ? us / BENCH_LATENCY_STEP_US : 0;
    steps[step < BENCH_LATENCY_STEP_COUNT ? step : BENCH_LATENCY_STEP_COUNT]++;
}

int64_t bench_steps_share_us(const uint32_t *steps, int64_t max_us, double share)
{
    int64_t total = 0, seen = 0;

    for (int i = 0; i <= BENCH_LATENCY_STEP_COUNT; i++)
        total += steps[i];
    for (int i = 0; i < BENCH_LATENCY_STEP_COUNT; i++) {
        seen += steps[i];
        if ((double)seen >= share * (double)total)
            return (int64_t)(i + 1) * BENCH_LATENCY_STEP_US < max_us
                       ? (int64_t)(i + 1) * BENCH_LATENCY_STEP_US
                       : max_us;
    }
    return max_us;
}
