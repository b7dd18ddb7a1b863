/* SPDX-License-Identifier: Apache-2.0
 * The breaker: counts failures in a row, opens at the fifth, and says when the
 * next try is due. It moves between warm.h's three states in one function, and
 * tells operators of each move.
 *
 * What is written while REBUILDING may be lost with its connection, and then
 * "everything stands again" would be a lie; so a failure while REBUILDING opens
 * it at once, and the lane begins anew. */
#include "warm/breaker.h"

#include "base/check.h"
#include "base/log.h"
#include "base/metrics.h"

static void breaker_move(struct breaker *breaker, enum warm_state to)
{
    static const uint32_t moves[] = {
        [WARM_CLOSED] = BIT(WARM_OPEN) | BIT(WARM_REBUILDING),
        [WARM_REBUILDING] = BIT(WARM_OPEN) | BIT(WARM_CLOSED),
        [WARM_OPEN] = BIT(WARM_REBUILDING),
    };
    CHECK(moves[breaker->state] & BIT(to));
    breaker->state = to;
    gauge_set(GAUGE_WARM_UP, to == WARM_CLOSED);
    gauge_set(GAUGE_BREAKER_STATE, to == WARM_CLOSED ? 0 : to == WARM_REBUILDING ? 1 : 2);
}

void breaker_init(struct breaker *breaker, int64_t retry_ms)
{
    *breaker = (struct breaker){.state = WARM_REBUILDING,
                                .retry_us = (retry_ms > 0 ? retry_ms : BREAKER_RETRY_MS) * 1000};
    gauge_set(GAUGE_WARM_UP, 0);
    gauge_set(GAUGE_BREAKER_STATE, 1);
}

void breaker_failed(struct breaker *breaker, int64_t now_us, const char *why)
{
    breaker->failures++;
    bool enough = breaker->failures >= BREAKER_FAILURE_COUNT;
    if (breaker->state == WARM_OPEN)
        return;
    if (breaker->state == WARM_CLOSED && !enough)
        return;
    breaker_wait(breaker, now_us);
    breaker_move(breaker, WARM_OPEN);
    counter_add(COUNTER_BREAKER_OPENED, 1);
    char quoted[256];
    log_quote(why, quoted, sizeof(quoted));
    log_write(enough ? LOG_ERROR : LOG_WARN, "Redis is not used until it answers again",
              "\"reason\":\"%s\",\"failures\":%d,\"retry_ms\":%lld", quoted, breaker->failures,
              (long long)(breaker->retry_at_us - now_us) / 1000);
}

void breaker_worked(struct breaker *breaker)
{
    breaker->failures = 0;
}

void breaker_rebuild(struct breaker *breaker, const char *why)
{
    if (breaker->state == WARM_REBUILDING)
        return;
    breaker_move(breaker, WARM_REBUILDING);
    char quoted[256];
    log_quote(why, quoted, sizeof(quoted));
    log_write(LOG_INFO, "Redis is being rebuilt from the store", "\"reason\":\"%s\"", quoted);
}

void breaker_rebuilt(struct breaker *breaker)
{
    if (breaker->state != WARM_REBUILDING)
        return;
    breaker_move(breaker, WARM_CLOSED);
    log_write(LOG_INFO, "Redis filters", NULL);
}

/* Opened before its time, to begin a rebuild anew, it tries again soon. */
void breaker_wait(struct breaker *breaker, int64_t now_us)
{
    int64_t soon_us = BREAKER_SOON_MS * 1000;
    bool soon = breaker->failures < BREAKER_FAILURE_COUNT && soon_us < breaker->retry_us;
    breaker->retry_at_us = now_us + (soon ? soon_us : breaker->retry_us);
}

bool breaker_may_connect(const struct breaker *breaker, int64_t now_us)
{
    return breaker->state != WARM_OPEN || now_us >= breaker->retry_at_us;
}
