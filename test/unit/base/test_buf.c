/* SPDX-License-Identifier: Apache-2.0
 * The growing buffer, and that its failure sticks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

static void test_pieces_are_joined_in_order(void **state)
{
    (void)state;
    struct buf buf;
    buf_init(&buf);
    buf_put(&buf, "ab\0c", 4);
    buf_put_text(&buf, "def");
    buf_put_char(&buf, '!');
    assert_int_equal(buf.size, 8);
    assert_memory_equal(buf_text(&buf), "ab\0cdef!", 9);
    buf_deinit(&buf);
}

static void test_integers_of_every_size_are_written(void **state)
{
    (void)state;
    struct buf buf;
    buf_init(&buf);
    const int64_t values[] = {0, 7, -1, 10, 1234567890123, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        buf_put_int(&buf, values[i]);
        buf_put_char(&buf, ' ');
    }
    assert_string_equal(buf_text(&buf), "0 7 -1 10 1234567890123 9223372036854775807 -9223372036854775808 ");
    buf_deinit(&buf);
}

static void test_printf_grows_past_its_first_guess(void **state)
{
    (void)state;
    struct buf buf;
    char long_text[5000];
    memset(long_text, 'x', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    buf_init(&buf);
    buf_put_text(&buf, "<");
    buf_printf(&buf, "%s|%d", long_text, 42);
    buf_put_text(&buf, ">");
    assert_int_equal(buf.size, 1 + 4999 + 3 + 1);
    assert_string_equal(buf_text(&buf) + 5000, "|42>");
    buf_deinit(&buf);
}

static void test_text_has_room_for_its_end_at_every_size(void **state)
{
    (void)state;
    struct buf buf;
    buf_init(&buf);
    for (size_t size = 1; size <= 1024; size++) {
        buf_put_char(&buf, 'x');
        assert_int_equal(strlen(buf_text(&buf)), size);
    }
    buf_deinit(&buf);
}

static void test_failure_sticks_until_cleared(void **state)
{
    (void)state;
    struct buf buf;
    buf_init(&buf);
    buf_put_text(&buf, "kept");
    assert_false(buf_reserve(&buf, SIZE_MAX));
    assert_false(buf_ok(&buf));
    buf_put_text(&buf, "lost");
    buf_put_char(&buf, 'x');
    buf_put_int(&buf, 5);
    buf_printf(&buf, "%d", 5);
    assert_int_equal(buf.size, 4);
    assert_string_equal(buf_text(&buf), "");
    buf_clear(&buf);
    buf_put_text(&buf, "again");
    assert_true(buf_ok(&buf));
    assert_string_equal(buf_text(&buf), "again");
    buf_deinit(&buf);
}

static void test_an_endless_writer_fails_instead_of_taking_all_memory(void **state)
{
    (void)state;
    struct buf buf;
    buf_init(&buf);
    assert_false(buf_reserve(&buf, (size_t)1 << 30));
    assert_null(buf.data);
    /* As if almost a gigabyte were in it. */
    struct buf large = {.size = ((size_t)1 << 30) - 10, .capacity = ((size_t)1 << 30) - 9};
    assert_false(buf_reserve(&large, 20));
    assert_false(buf_ok(&large));
    buf_deinit(&buf);
}

static void test_stealing_hands_over_the_memory_and_empties_the_buffer(void **state)
{
    (void)state;
    struct buf buf;
    size_t size;
    buf_init(&buf);
    buf_put_text(&buf, "mine");
    char *data = buf_steal(&buf, &size);
    assert_int_equal(size, 4);
    assert_string_equal(data, "mine");
    assert_int_equal(buf.size, 0);
    assert_null(buf.data);
    free(data);
    assert_string_equal(buf_text(&buf), "");
    buf_deinit(&buf);
}

static void test_clearing_keeps_the_memory(void **state)
{
    (void)state;
    struct buf buf;
    buf_init(&buf);
    buf_put_text(&buf, "text");
    const char *data = buf.data;
    buf_clear(&buf);
    buf_put_text(&buf, "more");
    assert_ptr_equal(buf.data, data);
    buf_deinit(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_are_joined_in_order),
        cmocka_unit_test(test_integers_of_every_size_are_written),
        cmocka_unit_test(test_printf_grows_past_its_first_guess),
        cmocka_unit_test(test_text_has_room_for_its_end_at_every_size),
        cmocka_unit_test(test_failure_sticks_until_cleared),
        cmocka_unit_test(test_an_endless_writer_fails_instead_of_taking_all_memory),
        cmocka_unit_test(test_stealing_hands_over_the_memory_and_empties_the_buffer),
        cmocka_unit_test(test_clearing_keeps_the_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
