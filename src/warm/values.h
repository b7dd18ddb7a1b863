/* SPDX-License-Identifier: Apache-2.0
 * What stands in Redis' keys: locks, holds, members. Written in one place, and
 * read as if a stranger had written it. */
#ifndef HOLDFAST_WARM_VALUES_H
#define HOLDFAST_WARM_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/uuid.h"
#include "warm/warm.h"

struct value_time {
    int64_t second;
    char text[TIME_TEXT_SIZE];
    size_t size; /* 0: none yet */
};

/* Times as text, remembered: the holds of a batch end in the same few seconds. */
struct value_times {
    struct value_time slots[8];
};

struct value_time value_time(struct value_times *times, int64_t time_ms);

/* Each writes one argument of a command. */
struct value_lock {
    const char *hold; /* KEY_ID_SIZE characters … */
    const char *user;
    const char *cart_token;
    int64_t held_at_ms;
    int64_t held_until_ms;
};
void value_put_lock(struct buf *out, struct value_times *times, const struct value_lock *lock);
void value_put_hold(struct buf *out, const char *hold, const char *user, int64_t held_until_ms);
void value_put_member(struct buf *out, struct value_times *times, const char *seat, const char *hold,
                      const char *user, int64_t held_until_ms);

/* Fills in what was found; what makes no sense is not readable. */
void value_read_lock(const char *text, size_t size, struct warm_lock *lock);
void value_read_member(const char *text, size_t size, struct warm_member *member);

#endif
