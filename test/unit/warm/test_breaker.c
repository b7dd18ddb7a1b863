/* SPDX-License-Identifier: Apache-2.0
 * The breaker: five in a row, and when the next try is due. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka needs the four above */
#include <cmocka.h>

#include "base/log.h"
#include "base/metrics.h"
#include "warm/breaker.h"

static struct breaker breaker;

static int setup(void **state)
{
    (void)state;
    log_set_level(LOG_ERROR);
    breaker_init(&breaker, 0);
    breaker_rebuilt(&breaker);
    return 0;
}

static void fail_times(int count, int64_t now_us)
{
    for (int i = 0; i < count; i++)
        breaker_failed(&breaker, now_us, "a test");
}

static void test_begins_rebuilding(void **state)
{
    (void)state;
    breaker_init(&breaker, 0);
    assert_int_equal(breaker.state, WARM_REBUILDING);
    assert_int_equal(gauge_get(GAUGE_WARM_UP), 0);
    breaker_rebuilt(&breaker);
    assert_int_equal(breaker.state, WARM_CLOSED);
    assert_int_equal(gauge_get(GAUGE_WARM_UP), 1);
    assert_int_equal(gauge_get(GAUGE_BREAKER_STATE), 0);
}

static void test_opens_at_the_fifth_failure_in_a_row(void **state)
{
    (void)state;
    uint64_t opened = counter_get(COUNTER_BREAKER_OPENED);
    fail_times(4, 1000);
    assert_int_equal(breaker.state, WARM_CLOSED);
    fail_times(1, 1000);
    assert_int_equal(breaker.state, WARM_OPEN);
    assert_int_equal(counter_get(COUNTER_BREAKER_OPENED), opened + 1);
    assert_int_equal(gauge_get(GAUGE_BREAKER_STATE), 2);
}

static void test_a_success_between_begins_the_count_anew(void **state)
{
    (void)state;
    fail_times(4, 1000);
    breaker_worked(&breaker);
    fail_times(4, 1000);
    assert_int_equal(breaker.state, WARM_CLOSED);
}

static void test_open_waits_thirty_seconds(void **state)
{
    (void)state;
    fail_times(5, 1000);
    assert_false(breaker_may_connect(&breaker, 1000 + 29999999));
    assert_true(breaker_may_connect(&breaker, 1000 + 30000000));
}

static void test_closes_only_by_way_of_a_rebuild(void **state)
{
    (void)state;
    fail_times(5, 1000);
    breaker_rebuilt(&breaker); /* of a rebuild that was under way: too late */
    assert_int_equal(breaker.state, WARM_OPEN);
    breaker_rebuild(&breaker, "a test");
    assert_int_equal(breaker.state, WARM_REBUILDING);
    assert_int_equal(gauge_get(GAUGE_BREAKER_STATE), 1);
    breaker_rebuilt(&breaker);
    assert_int_equal(breaker.state, WARM_CLOSED);
}

static void test_one_failure_ends_a_rebuild(void **state)
{
    (void)state;
    breaker_init(&breaker, 0);
    fail_times(1, 1000);
    assert_int_equal(breaker.state, WARM_OPEN);
    assert_true(breaker_may_connect(&breaker, 1000 + BREAKER_SOON_MS * 1000));
    breaker_rebuild(&breaker, "a test");
    fail_times(4, 1000); /* the fifth in a row: now it waits */
    assert_int_equal(breaker.state, WARM_OPEN);
    breaker_wait(&breaker, 1000);
    assert_false(breaker_may_connect(&breaker, 1000 + 29999999));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_begins_rebuilding, setup),
        cmocka_unit_test_setup(test_opens_at_the_fifth_failure_in_a_row, setup),
        cmocka_unit_test_setup(test_a_success_between_begins_the_count_anew, setup),
        cmocka_unit_test_setup(test_open_waits_thirty_seconds, setup),
        cmocka_unit_test_setup(test_closes_only_by_way_of_a_rebuild, setup),
        cmocka_unit_test_setup(test_one_failure_ends_a_rebuild, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
