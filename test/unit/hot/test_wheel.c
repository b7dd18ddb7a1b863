/* SPDX-License-Identifier: Apache-2.0
 * The timer wheel: on time, once, and nothing forgotten, against a plain list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/rng.h"
#include "hot/wheel.h"

static const int64_t begin_ms = 1700000000123;

struct clockwork {
    struct wheel wheel;
    struct list due;
};

static int setup(void **state)
{
    struct clockwork *clockwork = malloc(sizeof(*clockwork));
    assert_non_null(clockwork);
    wheel_init(&clockwork->wheel, begin_ms);
    list_init(&clockwork->due);
    *state = clockwork;
    return 0;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

static int due_count(struct clockwork *clockwork, int64_t now_ms)
{
    wheel_advance(&clockwork->wheel, now_ms, &clockwork->due);
    int count = 0;
    while (list_pop(&clockwork->due) != NULL)
        count++;
    return count;
}

static void test_a_timer_fires_at_its_millisecond_and_once(void **state)
{
    struct clockwork *clockwork = *state;
    struct wheel_timer timer;
    wheel_timer_init(&timer);
    wheel_set(&clockwork->wheel, &timer, begin_ms + 4500);
    assert_int_equal(due_count(clockwork, begin_ms + 4000), 0);
    assert_int_equal(due_count(clockwork, begin_ms + 4499), 0);
    assert_int_equal(due_count(clockwork, begin_ms + 4500), 1);
    assert_int_equal(due_count(clockwork, begin_ms + 99999), 0);
}

static void test_a_timer_in_the_past_fires_at_the_next_advance(void **state)
{
    struct clockwork *clockwork = *state;
    struct wheel_timer timers[3];
    const int64_t past[] = {begin_ms - 100000, begin_ms, -5};
    due_count(clockwork, begin_ms + 10000);
    for (int i = 0; i < 3; i++) {
        wheel_timer_init(&timers[i]);
        wheel_set(&clockwork->wheel, &timers[i], past[i]);
    }
    assert_int_equal(due_count(clockwork, begin_ms + 10000), 3); /* even without a tick */
}

static void test_a_moved_timer_fires_at_its_new_time_only(void **state)
{
    struct clockwork *clockwork = *state;
    struct wheel_timer timer;
    wheel_timer_init(&timer);
    wheel_set(&clockwork->wheel, &timer, begin_ms + 2000);
    wheel_set(&clockwork->wheel, &timer, begin_ms + 8000);
    assert_int_equal(due_count(clockwork, begin_ms + 7999), 0);
    wheel_set(&clockwork->wheel, &timer, begin_ms + 7000);
    assert_int_equal(due_count(clockwork, begin_ms + 7999), 1);
    assert_int_equal(due_count(clockwork, begin_ms + 9000), 0);
}

static void test_a_cancelled_timer_does_not_fire(void **state)
{
    struct clockwork *clockwork = *state;
    struct wheel_timer timer, never_set;
    wheel_timer_init(&timer);
    wheel_timer_init(&never_set);
    wheel_cancel(&never_set);
    wheel_set(&clockwork->wheel, &timer, begin_ms + 2000);
    wheel_cancel(&timer);
    wheel_cancel(&timer);
    assert_int_equal(due_count(clockwork, begin_ms + 3000), 0);
    wheel_set(&clockwork->wheel, &timer, begin_ms + 4000);
    wheel_advance(&clockwork->wheel, begin_ms + 5000, &clockwork->due);
    wheel_cancel(&timer); /* also when it is due already */
    assert_true(list_empty(&clockwork->due));
}

static void test_a_timer_further_than_the_wheel_is_long_stays_for_a_round(void **state)
{
    struct clockwork *clockwork = *state;
    struct wheel_timer timer;
    wheel_timer_init(&timer);
    int64_t far_ms = begin_ms + (2 * WHEEL_SLOT_COUNT + 10) * 1000ll;
    wheel_set(&clockwork->wheel, &timer, far_ms);
    for (int64_t now_ms = begin_ms; now_ms < far_ms; now_ms += 700)
        assert_int_equal(due_count(clockwork, now_ms), 0);
    assert_int_equal(due_count(clockwork, far_ms), 1);
}

static void test_a_long_pause_loses_nothing(void **state)
{
    struct clockwork *clockwork = *state;
    enum { COUNT = 500 };
    struct wheel_timer timers[COUNT];
    for (int i = 0; i < COUNT; i++) {
        wheel_timer_init(&timers[i]);
        wheel_set(&clockwork->wheel, &timers[i], begin_ms + i * 30000ll);
    }
    assert_int_equal(due_count(clockwork, begin_ms + 20000000), COUNT);
}

static void test_a_clock_that_stands_still_or_goes_back_does_no_harm(void **state)
{
    struct clockwork *clockwork = *state;
    struct wheel_timer timer;
    wheel_timer_init(&timer);
    due_count(clockwork, begin_ms + 9000);
    wheel_set(&clockwork->wheel, &timer, begin_ms + 9500);
    assert_int_equal(due_count(clockwork, begin_ms + 5000), 0);
    assert_int_equal(due_count(clockwork, begin_ms + 9499), 0);
    assert_int_equal(due_count(clockwork, begin_ms + 9500), 1);
}

static void test_a_wheel_agrees_with_a_plain_list(void **state)
{
    struct clockwork *clockwork = *state;
    enum { COUNT = 200, STEPS = 20000 };
    static struct wheel_timer timers[COUNT];
    static int64_t expected_ms[COUNT]; /* 0: not set */
    struct rng rng;
    rng_init_seed(&rng, 9);
    for (int i = 0; i < COUNT; i++) {
        wheel_timer_init(&timers[i]);
        expected_ms[i] = 0;
    }
    int64_t now_ms = begin_ms;
    for (int step = 0; step < STEPS; step++) {
        int i = (int)rng_below(&rng, COUNT);
        uint64_t what = rng_below(&rng, 10);
        if (what < 5) {
            expected_ms[i] = now_ms - 2000 + (int64_t)rng_below(&rng, rng_below(&rng, 2) ? 10000 : 9000000);
            wheel_set(&clockwork->wheel, &timers[i], expected_ms[i]);
        } else if (what < 6) {
            expected_ms[i] = 0;
            wheel_cancel(&timers[i]);
        } else {
            now_ms += (int64_t)rng_below(&rng, rng_below(&rng, 50) == 0 ? 9000000 : 1500);
            wheel_advance(&clockwork->wheel, now_ms, &clockwork->due);
            struct list *node;
            while ((node = list_pop(&clockwork->due)) != NULL) {
                int64_t index = CONTAINER_OF(node, struct wheel_timer, node) - timers;
                assert_true(expected_ms[index] != 0);
                assert_true(expected_ms[index] <= now_ms);
                expected_ms[index] = 0;
            }
            for (int j = 0; j < COUNT; j++)
                assert_true(expected_ms[j] == 0 || expected_ms[j] > now_ms);
        }
    }
}

int main(void)
{
#define WITH_WHEEL(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_WHEEL(test_a_timer_fires_at_its_millisecond_and_once),
        WITH_WHEEL(test_a_timer_in_the_past_fires_at_the_next_advance),
        WITH_WHEEL(test_a_moved_timer_fires_at_its_new_time_only),
        WITH_WHEEL(test_a_cancelled_timer_does_not_fire),
        WITH_WHEEL(test_a_timer_further_than_the_wheel_is_long_stays_for_a_round),
        WITH_WHEEL(test_a_long_pause_loses_nothing),
        WITH_WHEEL(test_a_clock_that_stands_still_or_goes_back_does_no_harm),
        WITH_WHEEL(test_a_wheel_agrees_with_a_plain_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
