/* SPDX-License-Identifier: Apache-2.0
 * Counting, and the text that Prometheus reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"

static struct buf rendered;

static const char *render(void)
{
    buf_clear(&rendered);
    metrics_render(&rendered);
    return buf_text(&rendered);
}

static void assert_has(const char *line)
{
    if (strstr(render(), line) == NULL)
        fail_msg("missing: %s", line);
}

static int occurrences(const char *text, const char *part)
{
    int count = 0;
    for (; (text = strstr(text, part)) != NULL; text++)
        count++;
    return count;
}

static void test_counters_and_gauges_are_rendered_with_their_labels(void **state)
{
    (void)state;
    counter_add(COUNTER_HOLD_CONFLICTS, 41);
    counter_add(COUNTER_HOLD_CONFLICTS, 1);
    counter_add(COUNTER_RELEASES_C, 7);
    gauge_set(GAUGE_HOLDS_ACTIVE, 10);
    gauge_add(GAUGE_HOLDS_ACTIVE, -13);
    assert_int_equal(counter_get(COUNTER_HOLD_CONFLICTS), 42);
    assert_has("\nholdfast_hold_conflict_total 42\n");
    assert_has("\nholdfast_releases_total{scenario=\"C\",reason=\"payment_failed\"} 7\n");
    assert_has("\nholdfast_holds_active -3\n");
    assert_has("\n# TYPE holdfast_holds_active gauge\n");
}

static void test_help_and_type_come_once_per_name(void **state)
{
    (void)state;
    const char *text = render();
    for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
        char name[200], head[256];
        if (sscanf(line, "# TYPE %199s", name) != 1)
            continue;
        snprintf(head, sizeof(head), "# TYPE %s ", name);
        assert_int_equal(occurrences(text, head), 1);
    }
    assert_int_equal(occurrences(text, "# HELP holdfast_releases_total "), 1);
    assert_int_equal(occurrences(text, "\nholdfast_releases_total{"), 4);
}

static void test_every_line_is_a_comment_or_a_sample(void **state)
{
    (void)state;
    const char *text = render();
    assert_int_equal(text[strlen(text) - 1], '\n');
    for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
        if (strncmp(line, "# HELP holdfast_", 16) == 0 || strncmp(line, "# TYPE holdfast_", 16) == 0)
            continue;
        assert_memory_equal(line, "holdfast_", 9);
        const char *end = strchr(line, '\n');
        const char *value = end;
        while (value[-1] != ' ')
            value--;
        char *after;
        strtod(value, &after);
        assert_ptr_equal(after, end);
    }
}

static void test_histogram_is_cumulative_and_sums(void **state)
{
    (void)state;
    histogram_observe(HISTOGRAM_BATCH_SIZE, 1);
    histogram_observe(HISTOGRAM_BATCH_SIZE, 2);
    histogram_observe(HISTOGRAM_BATCH_SIZE, 3);
    histogram_observe(HISTOGRAM_BATCH_SIZE, 512);
    histogram_observe(HISTOGRAM_BATCH_SIZE, 5000);
    assert_has("holdfast_batch_size_bucket{le=\"1\"} 1\n");
    assert_has("holdfast_batch_size_bucket{le=\"2\"} 2\n");
    assert_has("holdfast_batch_size_bucket{le=\"4\"} 3\n");
    assert_has("holdfast_batch_size_bucket{le=\"256\"} 3\n");
    assert_has("holdfast_batch_size_bucket{le=\"512\"} 4\n");
    assert_has("holdfast_batch_size_bucket{le=\"+Inf\"} 5\n");
    assert_has("holdfast_batch_size_sum 5518.000000\n");
    assert_has("holdfast_batch_size_count 5\n");
}

static void test_values_can_be_read_back(void **state)
{
    (void)state;
    struct histogram_bucket buckets[HISTOGRAM_BUCKET_COUNT_MAX];
    uint64_t released = counter_sum("holdfast_releases_total");
    counter_add(COUNTER_RELEASES_A, 2);
    counter_add(COUNTER_RELEASES_D, 3);
    assert_int_equal(counter_sum("holdfast_releases_total"), released + 5);
    assert_int_equal(counter_sum("holdfast_no_such_counter"), 0);
    gauge_set(GAUGE_STREAM_READERS, 12);
    assert_int_equal(gauge_get(GAUGE_STREAM_READERS), 12);
    histogram_observe(HISTOGRAM_REAPER_SECONDS, 0.0002);
    histogram_observe(HISTOGRAM_REAPER_SECONDS, 99);
    int count = histogram_read(HISTOGRAM_REAPER_SECONDS, buckets);
    assert_in_range(count, 2, HISTOGRAM_BUCKET_COUNT_MAX);
    assert_int_equal(buckets[0].count, 0);
    assert_true(buckets[1].upper >= 0.0002);
    assert_int_equal(buckets[1].count, 1);
    assert_int_equal(buckets[count - 2].count, 1);
    assert_true(isinf(buckets[count - 1].upper));
    assert_int_equal(buckets[count - 1].count, 2);
}

static void test_strange_durations_do_no_harm(void **state)
{
    (void)state;
    histogram_observe(HISTOGRAM_COMMIT_SECONDS, -1);
    histogram_observe(HISTOGRAM_COMMIT_SECONDS, NAN);
    histogram_observe(HISTOGRAM_COMMIT_SECONDS, 0.0000005);
    assert_has("holdfast_commit_seconds_bucket{le=\"0.0001\"} 3\n");
    assert_has("holdfast_commit_seconds_sum 0.000001\n");
    histogram_observe(HISTOGRAM_COMMIT_SECONDS, INFINITY);
    assert_has("holdfast_commit_seconds_bucket{le=\"+Inf\"} 4\n");
}

static void *count_up(void *argument)
{
    (void)argument;
    for (int i = 0; i < 20000; i++) {
        counter_add(COUNTER_RETRIES, 1);
        gauge_add(GAUGE_QUEUE_DEPTH, 1);
        histogram_observe(HISTOGRAM_REQUEST_SECONDS, 0.25);
    }
    return NULL;
}

static void test_no_count_of_several_threads_is_lost(void **state)
{
    (void)state;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_up, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(counter_get(COUNTER_RETRIES), 80000);
    assert_has("\nholdfast_queue_depth{queue=\"inbox\"} 80000\n");
    assert_has("\nholdfast_http_request_seconds_count 80000\n");
    assert_has("\nholdfast_http_request_seconds_sum 20000.000000\n");
}

static int teardown(void **state)
{
    (void)state;
    buf_deinit(&rendered);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counters_and_gauges_are_rendered_with_their_labels),
        cmocka_unit_test(test_help_and_type_come_once_per_name),
        cmocka_unit_test(test_every_line_is_a_comment_or_a_sample),
        cmocka_unit_test(test_histogram_is_cumulative_and_sums),
        cmocka_unit_test(test_values_can_be_read_back),
        cmocka_unit_test(test_strange_durations_do_no_harm),
        cmocka_unit_test(test_no_count_of_several_threads_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, teardown);
}
