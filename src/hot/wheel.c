/* SPDX-License-Identifier: Apache-2.0
 * See wheel.h. A timer due at 12.3 s stands in slot 12 and is looked at again
 * in every advance during second 12, because the slot of the running second is
 * never called finished. */
#include "hot/wheel.h"

static struct list *wheel_slot(struct wheel *wheel, int64_t second)
{
    return &wheel->slots[(uint64_t)second % WHEEL_SLOT_COUNT];
}

void wheel_init(struct wheel *wheel, int64_t now_ms)
{
    wheel->second = now_ms / 1000 - 1;
    for (int i = 0; i < WHEEL_SLOT_COUNT; i++)
        list_init(&wheel->slots[i]);
}

void wheel_timer_init(struct wheel_timer *timer)
{
    list_init(&timer->node);
    timer->due_ms = 0;
}

void wheel_set(struct wheel *wheel, struct wheel_timer *timer, int64_t due_ms)
{
    list_remove(&timer->node);
    timer->due_ms = due_ms;
    int64_t second = due_ms / 1000;
    /* What is due already goes into the next slot that will be looked at. */
    if (second <= wheel->second)
        second = wheel->second + 1;
    list_append(wheel_slot(wheel, second), &timer->node);
}

void wheel_cancel(struct wheel_timer *timer)
{
    list_remove(&timer->node);
}

void wheel_advance(struct wheel *wheel, int64_t now_ms, struct list *due)
{
    int64_t last = now_ms / 1000;
    int64_t first = wheel->second + 1;
    if (last - first >= WHEEL_SLOT_COUNT)
        first = last - WHEEL_SLOT_COUNT + 1; /* after a long pause every slot once is enough */
    for (int64_t second = first; second <= last; second++) {
        LIST_FOR_EACH_SAFE(node, wheel_slot(wheel, second)) {
            struct wheel_timer *timer = CONTAINER_OF(node, struct wheel_timer, node);
            if (timer->due_ms > now_ms)
                continue;
            list_remove(node);
            list_append(due, node);
        }
    }
    wheel->second = last - 1;
}
