/* SPDX-License-Identifier: Apache-2.0
 * The values behind the list in metrics.h, and their text form.
 *
 * Invariants:
 *   1. Every value is a relaxed atomic on a cache line of its own: counting
 *      costs one uncontended instruction and orders nothing else.
 *   2. A histogram's buckets are rendered cumulative, and its count is the sum
 *      of the buckets read for that rendering: a scrape taken under load never
 *      shows a bucket above the count.
 *   3. HELP and TYPE come once per name; rows of one name stand together.
 *
 * Any thread. Sums are kept in millionths, as integers, so that adding is
 * exact and needs no loop. */
#include "base/metrics.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum { CACHE_LINE_SIZE = 64, BUCKET_COUNT_MAX = HISTOGRAM_BUCKET_COUNT_MAX - 1 };

#define SUM_SCALE 1e6

struct counter_value {
    _Alignas(CACHE_LINE_SIZE) _Atomic uint64_t value;
};

struct gauge_value {
    _Alignas(CACHE_LINE_SIZE) _Atomic int64_t value;
};

struct histogram_value {
    _Alignas(CACHE_LINE_SIZE) _Atomic uint64_t buckets[BUCKET_COUNT_MAX + 1]; /* the last: above all bounds */
    _Atomic uint64_t sum;
};

struct metric_row {
    const char *name;
    const char *labels;
    const char *help;
};

struct bounds {
    int count;
    double upper[BUCKET_COUNT_MAX];
};

struct histogram_row {
    const char *name;
    const struct bounds *bounds;
    const char *help;
};

static const struct bounds bounds_seconds = {
    17,
    {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}};
static const struct bounds bounds_counts = {11, {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}};
static const struct bounds bounds_lifetimes = {13,
                                               {1, 5, 10, 30, 60, 120, 180, 300, 450, 600, 900, 1200, 3600}};
#define BOUNDS_SECONDS &bounds_seconds
#define BOUNDS_COUNTS &bounds_counts
#define BOUNDS_LIFETIMES &bounds_lifetimes

#define METRIC_ROW(id, name, labels, help) {name, labels, help},
#define HISTOGRAM_ROW(id, name, kind, help) {name, BOUNDS_##kind, help},
static const struct metric_row counter_rows[COUNTER_COUNT] = {COUNTER_MAP(METRIC_ROW)};
static const struct metric_row gauge_rows[GAUGE_COUNT] = {GAUGE_MAP(METRIC_ROW)};
static const struct histogram_row histogram_rows[HISTOGRAM_COUNT] = {HISTOGRAM_MAP(HISTOGRAM_ROW)};

static struct counter_value counters[COUNTER_COUNT];
static struct gauge_value gauges[GAUGE_COUNT];
static struct histogram_value histograms[HISTOGRAM_COUNT];

void counter_add(enum counter counter, uint64_t by)
{
    atomic_fetch_add_explicit(&counters[counter].value, by, memory_order_relaxed);
}

uint64_t counter_get(enum counter counter)
{
    return atomic_load_explicit(&counters[counter].value, memory_order_relaxed);
}

uint64_t counter_sum(const char *name)
{
    uint64_t sum = 0;
    for (int i = 0; i < COUNTER_COUNT; i++)
        if (strcmp(counter_rows[i].name, name) == 0)
            sum += counter_get((enum counter)i);
    return sum;
}

void gauge_set(enum gauge gauge, int64_t value)
{
    atomic_store_explicit(&gauges[gauge].value, value, memory_order_relaxed);
}

void gauge_add(enum gauge gauge, int64_t by)
{
    atomic_fetch_add_explicit(&gauges[gauge].value, by, memory_order_relaxed);
}

int64_t gauge_get(enum gauge gauge)
{
    return atomic_load_explicit(&gauges[gauge].value, memory_order_relaxed);
}

void histogram_observe(enum histogram histogram, double value)
{
    if (!(value >= 0)) /* a clock that went back, or not a number: zero is the nearest truth */
        value = 0;
    const struct bounds *bounds = histogram_rows[histogram].bounds;
    int bucket = 0;
    while (bucket < bounds->count && value > bounds->upper[bucket])
        bucket++;
    struct histogram_value *to = &histograms[histogram];
    atomic_fetch_add_explicit(&to->buckets[bucket], 1, memory_order_relaxed);
    double scaled = fmin(value * SUM_SCALE + 0.5, 1e18);
    atomic_fetch_add_explicit(&to->sum, (uint64_t)scaled, memory_order_relaxed);
}

int histogram_read(enum histogram histogram, struct histogram_bucket out[HISTOGRAM_BUCKET_COUNT_MAX])
{
    const struct bounds *bounds = histogram_rows[histogram].bounds;
    const struct histogram_value *from = &histograms[histogram];
    uint64_t count = 0;
    for (int i = 0; i <= bounds->count; i++) {
        count += atomic_load_explicit(&from->buckets[i], memory_order_relaxed);
        out[i] = (struct histogram_bucket){i < bounds->count ? bounds->upper[i] : INFINITY, count};
    }
    return bounds->count + 1;
}

static void render_head(struct buf *out, const char *name, const char *help, const char *type)
{
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* The head stands before the first row of a name only. */
static void render_name(struct buf *out, const struct metric_row *rows, int i, const char *type)
{
    if (i == 0 || strcmp(rows[i].name, rows[i - 1].name) != 0)
        render_head(out, rows[i].name, rows[i].help, type);
    buf_put_text(out, rows[i].name);
    if (rows[i].labels[0] != '\0')
        buf_printf(out, "{%s}", rows[i].labels);
    buf_put_char(out, ' ');
}

static void render_histogram(struct buf *out, enum histogram histogram)
{
    const struct histogram_row *row = &histogram_rows[histogram];
    struct histogram_bucket buckets[HISTOGRAM_BUCKET_COUNT_MAX];
    int last = histogram_read(histogram, buckets) - 1;
    uint64_t sum = atomic_load_explicit(&histograms[histogram].sum, memory_order_relaxed);
    render_head(out, row->name, row->help, "histogram");
    for (int i = 0; i < last; i++)
        buf_printf(out, "%s_bucket{le=\"%g\"} %llu\n", row->name, buckets[i].upper,
                   (unsigned long long)buckets[i].count);
    buf_printf(out, "%s_bucket{le=\"+Inf\"} %llu\n", row->name, (unsigned long long)buckets[last].count);
    buf_printf(out, "%s_sum %.6f\n", row->name, (double)sum / SUM_SCALE);
    buf_printf(out, "%s_count %llu\n", row->name, (unsigned long long)buckets[last].count);
}

void metrics_render(struct buf *out)
{
    for (int i = 0; i < COUNTER_COUNT; i++) {
        render_name(out, counter_rows, i, "counter");
        buf_printf(out, "%llu\n", (unsigned long long)counter_get((enum counter)i));
    }
    for (int i = 0; i < GAUGE_COUNT; i++) {
        render_name(out, gauge_rows, i, "gauge");
        buf_put_int(out, gauge_get((enum gauge)i));
        buf_put_char(out, '\n');
    }
    for (int i = 0; i < HISTOGRAM_COUNT; i++)
        render_histogram(out, (enum histogram)i);
}
