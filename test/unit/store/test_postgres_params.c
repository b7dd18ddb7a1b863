/* SPDX-License-Identifier: Apache-2.0
 * Parameters in PostgreSQL's binary format, byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "store/postgres/params.h"

static const char *values[PG_PARAM_COUNT_MAX];
static int lengths[PG_PARAM_COUNT_MAX], formats[PG_PARAM_COUNT_MAX];

static int setup(void **state)
{
    static struct pg_params params;
    pg_params_init(&params);
    *state = &params;
    return 0;
}

static int teardown(void **state)
{
    pg_params_deinit(*state);
    return 0;
}

static void test_array_has_a_head_and_a_length_before_each_element(void **state)
{
    struct pg_params *p = *state;
    pg_add_int(p, 0, 5);
    pg_add_int(p, 0, -1);
    assert_true(pg_params_finish(p, values, lengths, formats));
    static const uint8_t expected[] = {0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 23, 0, 0, 0,    2,    0,    0,
                                       0, 1, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0,  0, 4, 0xff, 0xff, 0xff, 0xff};
    assert_int_equal(p->count, 1);
    assert_int_equal(formats[0], 1);
    assert_int_equal(lengths[0], sizeof(expected));
    assert_memory_equal(values[0], expected, sizeof(expected));
}

static void test_null_element_has_no_bytes_and_is_told_in_the_head(void **state)
{
    struct pg_params *p = *state;
    pg_add_text(p, 0, NULL);
    pg_add_text(p, 0, "");
    pg_add_text(p, 0, "é");
    assert_true(pg_params_finish(p, values, lengths, formats));
    static const uint8_t expected[] = {0, 0, 0, 1,    0,    0,    0,    1, 0, 0, 0, 25, 0, 0, 0, 3,    0,
                                       0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0,  0, 0, 2, 0xc3, 0xa9};
    assert_int_equal(lengths[0], sizeof(expected));
    assert_memory_equal(values[0], expected, sizeof(expected));
}

static void test_nil_id_no_text_and_no_time_are_null(void **state)
{
    struct pg_params *p = *state;
    struct uuid nil = {{0}};
    pg_set_uuid(p, 0, &nil);
    pg_set_text(p, 1, NULL);
    pg_set_time_or_null(p, 2, 0);
    pg_set_text(p, 3, "");
    assert_true(pg_params_finish(p, values, lengths, formats));
    for (int i = 0; i < 3; i++)
        assert_null(values[i]);
    assert_non_null(values[3]); /* empty is not NULL */
    assert_int_equal(lengths[3], 0);
}

static void test_times_are_microseconds_since_2000(void **state)
{
    struct pg_params *p = *state;
    pg_set_time(p, 0, PG_EPOCH_MS + 1);
    pg_set_time(p, 1, PG_EPOCH_MS - 1);
    assert_true(pg_params_finish(p, values, lengths, formats));
    assert_memory_equal(values[0], "\0\0\0\0\0\0\x03\xe8", 8);
    assert_memory_equal(values[1], "\xff\xff\xff\xff\xff\xff\xfc\x18", 8);
}

static void test_cleared_parameters_begin_anew(void **state)
{
    struct pg_params *p = *state;
    pg_add_text(p, 0, NULL);
    pg_add_int(p, 1, 1);
    pg_params_clear(p);
    pg_set_int(p, 0, 7);
    assert_true(pg_params_finish(p, values, lengths, formats));
    assert_int_equal(p->count, 1);
    assert_int_equal(lengths[0], 4);
    assert_memory_equal(values[0], "\0\0\0\x07", 4);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_array_has_a_head_and_a_length_before_each_element),
        TEST(test_null_element_has_no_bytes_and_is_told_in_the_head),
        TEST(test_nil_id_no_text_and_no_time_are_null),
        TEST(test_times_are_microseconds_since_2000),
        TEST(test_cleared_parameters_begin_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
