/* SPDX-License-Identifier: Apache-2.0
 * One clock: the monotonic clock plus an offset to UTC that is learned once at
 * start (from the store, where it has one). A step of the wall clock expires
 * nothing. Only loops read it; everything below is given `now_ms`. */
#ifndef HOLDFAST_BASE_CLOCK_H
#define HOLDFAST_BASE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIME_TEXT_SIZE 32
#define TIME_NONE INT64_MIN /* no limit below, or not set */
#define TIME_MAX INT64_MAX  /* no limit above */

int64_t clock_now_ms(void);       /* UTC, as this process counts it */
int64_t clock_monotonic_us(void); /* for durations */
void clock_set_offset_ms(int64_t utc_minus_monotonic_ms);

void time_format(int64_t time_ms, char out[TIME_TEXT_SIZE]);        /* 2026-01-31T12:00:00Z, rounded down */
bool time_parse(const char *text, size_t length, int64_t *time_ms); /* ISO 8601; offset or Z required */

/* The next whole second, or this one if it is whole. */
static inline int64_t time_ceil_second(int64_t time_ms)
{
    return (time_ms + 999) / 1000 * 1000;
}

#endif
