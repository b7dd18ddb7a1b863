/* SPDX-License-Identifier: Apache-2.0
 * See rate.h. The ring grows to the policy's limit at most: what was granted
 * never exceeds it while the limit is on. */
#include "hold/rate.h"

#include <stdlib.h>

#include "base/check.h"

static int64_t rate_at(const struct rate_window *window, int32_t position)
{
    return window->granted_ms[(window->first + position) % window->capacity];
}

void rate_deinit(struct rate_window *window)
{
    free(window->granted_ms);
    *window = (struct rate_window){0};
}

int32_t rate_count(struct rate_window *window, const struct policy *policy, int64_t now_ms)
{
    int64_t left_ms = now_ms - policy->rate_limit_window_seconds * 1000ll;
    while (window->count > 0 && window->granted_ms[window->first] <= left_ms) {
        window->first = (window->first + 1) % window->capacity;
        window->count--;
    }
    return window->count;
}

static void rate_grow(struct rate_window *window)
{
    int32_t capacity = window->capacity ? window->capacity * 2 : 4;
    int64_t *ring = malloc(sizeof(*ring) * (size_t)capacity);
    CHECK(ring != NULL);
    for (int32_t i = 0; i < window->count; i++)
        ring[i] = rate_at(window, i);
    free(window->granted_ms);
    window->granted_ms = ring;
    window->first = 0;
    window->capacity = capacity;
}

void rate_add(struct rate_window *window, int64_t granted_ms)
{
    if (window->count == window->capacity)
        rate_grow(window);
    /* Nearly always the latest; but a start, or an outcome that was unknown for a while, brings older ones. */
    int32_t position = window->count++;
    for (; position > 0 && rate_at(window, position - 1) > granted_ms; position--)
        window->granted_ms[(window->first + position) % window->capacity] = rate_at(window, position - 1);
    window->granted_ms[(window->first + position) % window->capacity] = granted_ms;
}

bool rate_allows(struct rate_window *window, const struct policy *policy, int32_t pending, int32_t adding,
                 int64_t now_ms, int64_t *retry_ms)
{
    if (policy->rate_limit_holds == 0)
        return true;
    int32_t count = rate_count(window, policy, now_ms);
    int32_t over = count + pending + adding - policy->rate_limit_holds;
    if (over <= 0)
        return true;
    int64_t window_ms = policy->rate_limit_window_seconds * 1000ll;
    /* The grant whose leaving makes room, or a whole window where even that is not enough. */
    *retry_ms = over <= count ? rate_at(window, over - 1) + window_ms - now_ms : window_ms;
    return false;
}
