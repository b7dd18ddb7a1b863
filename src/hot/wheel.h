/* SPDX-License-Identifier: Apache-2.0
 * A timer wheel of one-second slots. Adding, moving and removing cost the same
 * however many timers there are; a timer further away than the wheel is long
 * simply stays in its slot for another round. One thread. */
#ifndef HOLDFAST_HOT_WHEEL_H
#define HOLDFAST_HOT_WHEEL_H

#include <stdint.h>

#include "base/list.h"

enum { WHEEL_SLOT_COUNT = 4096 };

struct wheel_timer {
    struct list node;
    int64_t due_ms;
};

struct wheel {
    int64_t second; /* slots up to and including this second were looked at */
    struct list slots[WHEEL_SLOT_COUNT];
};

void wheel_init(struct wheel *wheel, int64_t now_ms);
void wheel_timer_init(struct wheel_timer *timer);
void wheel_set(struct wheel *wheel, struct wheel_timer *timer, int64_t due_ms); /* adds or moves */
void wheel_cancel(struct wheel_timer *timer); /* also one that was never set */

/* Moves every timer due at `now_ms` to the end of `due`; there wheel_cancel() works as ever. */
void wheel_advance(struct wheel *wheel, int64_t now_ms, struct list *due);

#endif
