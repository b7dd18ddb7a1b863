/* SPDX-License-Identifier: Apache-2.0
 * The rate limit: exact over a sliding window, against a plain list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/rng.h"
#include "hold/rate.h"

static struct policy limit(int32_t holds, int32_t seconds)
{
    struct policy policy = policy_default();
    policy.rate_limit_holds = holds;
    policy.rate_limit_window_seconds = seconds;
    return policy;
}

static void test_as_many_as_allowed_and_no_more(void **state)
{
    (void)state;
    struct policy policy = limit(3, 10);
    struct rate_window window = {0};
    int64_t retry_ms = -1;
    for (int i = 0; i < 3; i++) {
        assert_true(rate_allows(&window, &policy, 0, 1, 1000 + i, &retry_ms));
        rate_add(&window, 1000 + i);
    }
    assert_int_equal(retry_ms, -1);
    assert_false(rate_allows(&window, &policy, 0, 1, 2000, &retry_ms));
    assert_int_equal(retry_ms, 9000); /* when the first one leaves the window */
    assert_false(rate_allows(&window, &policy, 0, 2, 2000, &retry_ms));
    assert_int_equal(retry_ms, 9001);
    assert_false(rate_allows(&window, &policy, 0, 1, 10999, &retry_ms));
    assert_true(rate_allows(&window, &policy, 0, 1, 11000, &retry_ms));
    rate_deinit(&window);
}

static void test_uncommitted_grants_count(void **state)
{
    (void)state;
    struct policy policy = limit(3, 10);
    struct rate_window window = {0};
    int64_t retry_ms;
    assert_true(rate_allows(&window, &policy, 2, 1, 0, &retry_ms));
    assert_false(rate_allows(&window, &policy, 2, 2, 0, &retry_ms));
    assert_int_equal(retry_ms, 10000); /* nothing is known yet that could leave */
    rate_deinit(&window);
}

static void test_more_at_once_than_ever_allowed_waits_a_whole_window(void **state)
{
    (void)state;
    struct policy policy = limit(3, 10);
    struct rate_window window = {0};
    int64_t retry_ms;
    rate_add(&window, 0);
    assert_false(rate_allows(&window, &policy, 0, 5, 1000, &retry_ms));
    assert_int_equal(retry_ms, 10000);
    rate_deinit(&window);
}

static void test_zero_is_no_limit(void **state)
{
    (void)state;
    struct policy policy = limit(0, 10);
    struct rate_window window = {0};
    int64_t retry_ms;
    assert_true(rate_allows(&window, &policy, 1000, 50, 0, &retry_ms));
    rate_deinit(&window);
}

static void test_grants_that_come_out_of_order_are_counted_right(void **state)
{
    (void)state;
    struct policy policy = limit(3, 10);
    struct rate_window window = {0};
    /* As after a start, or when a commit's outcome became known late. */
    rate_add(&window, 5000);
    rate_add(&window, 9000);
    rate_add(&window, 1000);
    assert_int_equal(rate_count(&window, &policy, 10000), 3);
    assert_int_equal(rate_count(&window, &policy, 11000), 2);
    assert_int_equal(rate_count(&window, &policy, 15000), 1);
    assert_int_equal(rate_count(&window, &policy, 19000), 0);
    rate_deinit(&window);
}

static void test_a_window_counts_as_a_plain_list_does(void **state)
{
    (void)state;
    enum { STEPS = 5000 };
    static int64_t granted[STEPS];
    struct rng rng;
    rng_init_seed(&rng, 5);
    for (int32_t holds = 1; holds <= 20; holds += 3) {
        struct policy policy = limit(holds, 7);
        struct rate_window window = {0};
        int64_t now_ms = 0, retry_ms;
        int32_t granted_count = 0;
        for (int step = 0; step < STEPS; step++) {
            now_ms += (int64_t)rng_below(&rng, 2000);
            int32_t adding = 1 + (int32_t)rng_below(&rng, 3), inside = 0;
            for (int32_t i = 0; i < granted_count; i++)
                inside += granted[i] > now_ms - 7000;
            bool allowed = rate_allows(&window, &policy, 0, adding, now_ms, &retry_ms);
            assert_int_equal(allowed, inside + adding <= holds);
            if (!allowed) {
                assert_true(retry_ms > 0);
                assert_true(retry_ms <= 7000);
            }
            for (int32_t i = 0; allowed && i < adding && granted_count < STEPS; i++) {
                rate_add(&window, now_ms);
                granted[granted_count++] = now_ms;
            }
            if (granted_count == STEPS)
                break;
        }
        rate_deinit(&window);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_many_as_allowed_and_no_more),
        cmocka_unit_test(test_uncommitted_grants_count),
        cmocka_unit_test(test_more_at_once_than_ever_allowed_waits_a_whole_window),
        cmocka_unit_test(test_zero_is_no_limit),
        cmocka_unit_test(test_grants_that_come_out_of_order_are_counted_right),
        cmocka_unit_test(test_a_window_counts_as_a_plain_list_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
