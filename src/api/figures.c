/* SPDX-License-Identifier: Apache-2.0
 * The engine's own figures for the box office's dashboard: a part of what
 * /metrics has, as JSON, for admins wherever they are.
 *
 * Invariants: (1) figures are of the whole engine, never of one organization:
 * no id, name or price is in them. (2) Counters count from started_at; whoever
 * wants rates or recent percentiles asks twice and subtracts. (3) Nothing is
 * waited for: it answers while the store is down, and says so.
 *
 * Loops' threads; reads atomics. */
#include "api/api_int.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"

/* What the breaker's gauge says in numbers. */
const char *api_breaker_state(void)
{
    static const char *const names[] = {"closed", "half_open", "open"};
    int64_t value = gauge_get(GAUGE_BREAKER_STATE);
    return value >= 0 && value < (int64_t)COUNT_OF(names) ? names[value] : "none";
}

/* Warm filters only while its breaker is closed. */
const char *api_warm_state(const char *breaker)
{
    if (strcmp(breaker, "none") == 0)
        return "none";
    return strcmp(breaker, "closed") == 0 ? "up" : "down";
}

static void write_tier(struct jsonw *json, const char *tier, const char *state, const char *breaker)
{
    jsonw_key(json, tier);
    jsonw_object_open(json);
    jsonw_key_text(json, "state", state);
    if (breaker != NULL)
        jsonw_key_text(json, "breaker", breaker);
    jsonw_object_close(json);
}

static void write_tiers(struct jsonw *json, bool store_is_up)
{
    const char *breaker = api_breaker_state();
    jsonw_key(json, "tiers");
    jsonw_object_open(json);
    write_tier(json, "hot", "up", NULL);
    write_tier(json, "warm", api_warm_state(breaker), breaker);
    write_tier(json, "store", store_is_up ? "up" : "down", NULL);
    jsonw_object_close(json);
}

static void write_holds(struct jsonw *json)
{
    jsonw_key(json, "holds");
    jsonw_object_open(json);
    jsonw_key_int(json, "granted", (int64_t)counter_sum("holdfast_hold_success_total"));
    jsonw_key_int(json, "conflicts", (int64_t)counter_get(COUNTER_HOLD_CONFLICTS));
    jsonw_key_int(json, "expired", (int64_t)counter_get(COUNTER_HOLD_EXPIRED));
    jsonw_key_int(json, "active", gauge_get(GAUGE_HOLDS_ACTIVE));
    jsonw_object_close(json);
    jsonw_key(json, "releases");
    jsonw_object_open(json);
    jsonw_key_int(json, "ttl_expired", (int64_t)counter_get(COUNTER_RELEASES_A));
    jsonw_key_int(json, "user_cancelled", (int64_t)counter_get(COUNTER_RELEASES_B));
    jsonw_key_int(json, "payment_failed", (int64_t)counter_get(COUNTER_RELEASES_C));
    jsonw_key_int(json, "admin_override", (int64_t)counter_get(COUNTER_RELEASES_D));
    jsonw_object_close(json);
}

static void write_latency(struct jsonw *json)
{
    struct histogram_bucket buckets[HISTOGRAM_BUCKET_COUNT_MAX];
    int count = histogram_read(HISTOGRAM_COMMAND_SECONDS, buckets);
    jsonw_key(json, "latency");
    jsonw_array_open(json);
    for (int i = 0; i < count; i++) {
        jsonw_object_open(json);
        if (isfinite(buckets[i].upper))
            jsonw_key_fixed(json, "seconds", buckets[i].upper, 6);
        else
            jsonw_key_null(json, "seconds");
        jsonw_key_int(json, "count", (int64_t)buckets[i].count);
        jsonw_object_close(json);
    }
    jsonw_array_close(json);
}

static void write_reaper(struct jsonw *json)
{
    int64_t last_run = gauge_get(GAUGE_REAPER_LAST_RUN);
    jsonw_key(json, "reaper");
    jsonw_object_open(json);
    if (last_run > 0)
        jsonw_key_time(json, "last_run_at", last_run * 1000);
    else
        jsonw_key_null(json, "last_run_at");
    jsonw_key_int(json, "runs", (int64_t)counter_get(COUNTER_REAPER_RUNS));
    jsonw_key_int(json, "found", (int64_t)counter_get(COUNTER_REAPER_FOUND));
    jsonw_object_close(json);
}

static void write_queue(struct jsonw *json)
{
    jsonw_key(json, "queue");
    jsonw_object_open(json);
    jsonw_key_int(json, "inbox", gauge_get(GAUGE_QUEUE_DEPTH));
    jsonw_key_int(json, "waiting", gauge_get(GAUGE_QUEUE_WAITING));
    jsonw_key_int(json, "store", gauge_get(GAUGE_QUEUE_STORE));
    jsonw_object_close(json);
}

void api_admin_figures_get(struct http_request *request)
{
    struct api_call *call = api_call(request);
    struct buf out;
    struct jsonw json;
    api_json_open(&out, &json);
    jsonw_object_open(&json);
    jsonw_key_time(&json, "timestamp", clock_now_ms());
    jsonw_key_time(&json, "started_at", gauge_get(GAUGE_START_TIME) * 1000);
    write_holds(&json);
    jsonw_key_int(&json, "open_checkouts", gauge_get(GAUGE_CHECKOUTS_OPEN));
    jsonw_key_int(&json, "stream_readers", gauge_get(GAUGE_STREAM_READERS));
    write_latency(&json);
    write_tiers(&json, store_is_up(call->api->config.store));
    write_reaper(&json);
    write_queue(&json);
    jsonw_object_close(&json);
    api_reply(call, 200, &out, &json);
}
