/* SPDX-License-Identifier: Apache-2.0
 * UUIDs: their text form, and the order in which they are made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/check.h"
#include "base/rng.h"
#include "base/uuid.h"

static void test_text_reads_back_in_lower_case(void **state)
{
    (void)state;
    struct uuid uuid;
    char text[UUID_TEXT_SIZE];
    assert_true(uuid_parse("0192F0A1-b2C3-7dE4-8f56-789ABCDEF012", 36, &uuid));
    assert_int_equal(uuid.bytes[0], 0x01);
    assert_int_equal(uuid.bytes[15], 0x12);
    uuid_format(&uuid, text);
    assert_string_equal(text, "0192f0a1-b2c3-7de4-8f56-789abcdef012");
}

static void test_other_forms_are_refused_and_change_nothing(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "0192f0a1b2c37de48f56789abcdef012",
        "{0192f0a1-b2c3-7de4-8f56-789abcdef012}",
        "0192f0a1-b2c3-7de4-8f56-789abcdef01",
        "0192f0a1-b2c3-7de4-8f56-789abcdef0123",
        "0192f0a1-b2c3-7de4-8f56-789abcdef01g",
        "0192f0a1-b2c3-7de4-8f56_789abcdef012",
        "0192f0a-1b2c3-7de4-8f56-789abcdef012",
        " 192f0a1-b2c3-7de4-8f56-789abcdef012",
        "0192f0a1-b2c3-7de4-8f56-789abcdef0\xC3\xA9",
    };
    struct uuid uuid = {{7}};
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_false(uuid_parse(wrong[i], strlen(wrong[i]), &uuid));
    assert_int_equal(uuid.bytes[0], 7);
}

static void test_every_other_byte_in_place_of_a_digit_is_refused(void **state)
{
    (void)state;
    static const char hex[] = "0123456789abcdefABCDEF";
    struct uuid uuid;
    for (int c = 1; c < 256; c++) {
        char text[] = "0192f0a1-b2c3-7de4-8f56-789abcdef012";
        text[20] = (char)c;
        assert_int_equal(uuid_parse(text, 36, &uuid), strchr(hex, c) != NULL);
    }
}

static void test_made_ids_are_version_7_with_their_time(void **state)
{
    (void)state;
    struct rng rng;
    rng_init_seed(&rng, 8);
    struct uuid uuid = uuid_make(&rng, 0x0123456789AB);
    assert_memory_equal(uuid.bytes, "\x01\x23\x45\x67\x89\xAB", 6);
    assert_int_equal(uuid.bytes[6] >> 4, 7);
    assert_int_equal(uuid.bytes[8] >> 6, 2);
}

static void test_ids_ascend_within_a_millisecond_and_when_the_clock_goes_back(void **state)
{
    (void)state;
    struct rng rng;
    rng_init_seed(&rng, 9);
    struct uuid last = uuid_make(&rng, 5000);
    for (int i = 0; i < 100000; i++) {
        struct uuid next = uuid_make(&rng, i % 3 == 0 ? 4000 : 5000 + i / 1000);
        assert_true(uuid_compare(&last, &next) < 0);
        last = next;
    }
}

static void test_a_used_up_counter_borrows_from_the_next_millisecond(void **state)
{
    (void)state;
    struct rng rng;
    rng_init_seed(&rng, 10);
    struct uuid before = uuid_make(&rng, 5000);
    rng.uuid_counter = (1u << 26) - 2;
    struct uuid last = uuid_make(&rng, 5000), after = uuid_make(&rng, 5000);
    assert_true(uuid_compare(&before, &last) < 0);
    assert_true(uuid_compare(&last, &after) < 0);
    assert_true(rng.uuid_last_ms == 5001);
}

static void test_two_nodes_make_different_ids_in_the_same_millisecond(void **state)
{
    (void)state;
    struct rng a, b;
    rng_init_seed(&a, 11);
    rng_init_seed(&b, 12);
    struct uuid one = uuid_make(&a, 5000), other = uuid_make(&b, 5000);
    assert_false(uuid_equal(&one, &other));
    assert_memory_not_equal(one.bytes + 10, other.bytes + 10, 6);
}

static void test_nil_is_nil_alone(void **state)
{
    (void)state;
    struct uuid nil = {0}, other = {{0}};
    other.bytes[15] = 1;
    assert_true(uuid_is_nil(&nil));
    assert_false(uuid_is_nil(&other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_reads_back_in_lower_case),
        cmocka_unit_test(test_other_forms_are_refused_and_change_nothing),
        cmocka_unit_test(test_every_other_byte_in_place_of_a_digit_is_refused),
        cmocka_unit_test(test_made_ids_are_version_7_with_their_time),
        cmocka_unit_test(test_ids_ascend_within_a_millisecond_and_when_the_clock_goes_back),
        cmocka_unit_test(test_a_used_up_counter_borrows_from_the_next_millisecond),
        cmocka_unit_test(test_two_nodes_make_different_ids_in_the_same_millisecond),
        cmocka_unit_test(test_nil_is_nil_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
