/* SPDX-License-Identifier: Apache-2.0
 * The clock, and times as text in both directions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/rng.h"

static int64_t parsed(const char *text)
{
    int64_t time_ms = TIME_NONE;
    if (!time_parse(text, strlen(text), &time_ms))
        fail_msg("not parsed: %s", text);
    return time_ms;
}

static void test_clock_starts_at_the_wall_clock_and_moves_on(void **state)
{
    (void)state;
    int64_t now_ms = clock_now_ms();
    int64_t difference = now_ms - (int64_t)time(NULL) * 1000;
    assert_true(difference > -2000 && difference < 2000);
    int64_t before = clock_monotonic_us();
    assert_true(clock_now_ms() >= now_ms);
    assert_true(clock_monotonic_us() >= before);
}

static void test_offset_moves_the_clock(void **state)
{
    (void)state;
    clock_set_offset_ms(INT64_C(5000000000000));
    int64_t now_ms = clock_now_ms(), monotonic_ms = clock_monotonic_us() / 1000;
    assert_in_range(monotonic_ms + INT64_C(5000000000000) - now_ms, 0, 1000);
}

static void test_format_agrees_with_the_c_library(void **state)
{
    (void)state;
    struct rng rng;
    rng_init_seed(&rng, 1);
    for (int i = 0; i < 20000; i++) {
        /* The years 0 to 9999. */
        time_t seconds = (time_t)rng_below(&rng, 315569519999ull) - 62167219200;
        char ours[TIME_TEXT_SIZE], theirs[64];
        struct tm parts;
        gmtime_r(&seconds, &parts);
        snprintf(theirs, sizeof(theirs), "%04d-%02d-%02dT%02d:%02d:%02dZ", parts.tm_year + 1900,
                 parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
        time_format((int64_t)seconds * 1000 + (int64_t)rng_below(&rng, 1000), ours);
        assert_string_equal(ours, theirs);
    }
}

static void test_format_of_the_extremes_fits(void **state)
{
    (void)state;
    char text[TIME_TEXT_SIZE];
    time_format(TIME_MAX, text);
    assert_string_equal(text, "292278994-08-17T07:12:55Z");
    time_format(TIME_NONE, text);
    assert_string_equal(text, "-292275055-05-16T16:47:04Z");
}

static void test_parse_reads_back_what_format_wrote(void **state)
{
    (void)state;
    struct rng rng;
    rng_init_seed(&rng, 2);
    for (int i = 0; i < 20000; i++) {
        int64_t seconds = (int64_t)rng_below(&rng, 253402300800);
        char text[TIME_TEXT_SIZE];
        time_format(seconds * 1000, text);
        assert_true(parsed(text) == seconds * 1000);
    }
}

static void test_parse_applies_offsets_and_fractions(void **state)
{
    (void)state;
    int64_t noon = parsed("2026-01-31T12:00:00Z");
    assert_true(noon == INT64_C(1769860800000));
    assert_true(parsed("2026-01-31T14:30:00+02:30") == noon);
    assert_true(parsed("2026-01-31T07:00:00-0500") == noon);
    assert_true(parsed("2026-01-31T13:00:00+01") == noon);
    assert_true(parsed("2026-01-31t12:00:00z") == noon);
    assert_true(parsed("2026-01-31T12:00Z") == noon);
    assert_true(parsed("2026-01-31T12:00:00.5Z") == noon + 500);
    assert_true(parsed("2026-01-31T12:00:00.1239999999999Z") == noon + 123);
    assert_true(parsed("2024-02-29T00:00:00Z") == INT64_C(1709164800000));
    assert_true(parsed("1970-01-01T00:00:00Z") == 0);
}

static void test_parse_refuses_what_is_not_a_full_time(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "Z",
        "2026",
        "2026-01-31",
        "2026-01-31T12:00:00",
        "2026-01-31 12:00:00Z",
        "2026-1-31T12:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2026-04-31T00:00:00Z",
        "2026-01-00T00:00:00Z",
        "2026-01-31T24:00:00Z",
        "2026-01-31T12:60:00Z",
        "2026-01-31T12:00:60Z",
        "2026-01-31T12:00:00.Z",
        "2026-01-31T12:00:00+24:00",
        "2026-01-31T12:00:00+1",
        "2026-01-31T12:00:00+01:",
        "2026-01-31T12:00:00+01:6",
        "2026-01-31T12:00:00ZZ",
        " 2026-01-31T12:00:00Z",
        "+026-01-31T12:00:00Z",
        "0000-12-31T12:00:00Z",
        "9999-12-31T23:59:59-01:00",
        "2026-01-31T-1:00:00Z",
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        int64_t time_ms = 77;
        if (time_parse(wrong[i], strlen(wrong[i]), &time_ms))
            fail_msg("accepted: %s", wrong[i]);
        assert_true(time_ms == 77);
    }
}

static void test_ceil_second_keeps_whole_seconds(void **state)
{
    (void)state;
    assert_true(time_ceil_second(1000) == 1000);
    assert_true(time_ceil_second(1001) == 2000);
    assert_true(time_ceil_second(1999) == 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clock_starts_at_the_wall_clock_and_moves_on),
        cmocka_unit_test(test_offset_moves_the_clock),
        cmocka_unit_test(test_format_agrees_with_the_c_library),
        cmocka_unit_test(test_format_of_the_extremes_fits),
        cmocka_unit_test(test_parse_reads_back_what_format_wrote),
        cmocka_unit_test(test_parse_applies_offsets_and_fractions),
        cmocka_unit_test(test_parse_refuses_what_is_not_a_full_time),
        cmocka_unit_test(test_ceil_second_keeps_whole_seconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
