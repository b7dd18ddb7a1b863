/* SPDX-License-Identifier: Apache-2.0
 * Packed bytes: what was put is taken, and nothing else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/rng.h"

enum { SIZE_MAX_TRIED = 64 };

static bool take_squeezed(const void *data, size_t size, size_t size_max, struct buf *out)
{
    /* A copy of exactly this size: what reads beyond it is caught. */
    char *copy = malloc(size > 0 ? size : 1);
    memcpy(copy, data, size);
    struct bytes bytes = {.data = copy, .left = size};
    buf_init(out);
    bool is_good = bytes_take_squeezed(&bytes, size_max, out);
    free(copy);
    return is_good;
}

static void test_texts_come_back(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "seat", NULL};
    struct arena arena;
    struct buf out;
    arena_init(&arena);
    buf_init(&out);
    for (size_t i = 0; i < 3; i++)
        bytes_put_text(&out, texts[i]);
    struct bytes bytes = {.data = out.data, .left = out.size};
    const char *text;
    assert_true(bytes_take_text(&bytes, &arena, &text));
    assert_string_equal(text, "");
    assert_true(bytes_take_text(&bytes, &arena, &text));
    assert_string_equal(text, "seat");
    assert_true(bytes_take_text(&bytes, &arena, &text));
    assert_null(text);
    assert_false(bytes_take_text(&bytes, &arena, &text));
    buf_deinit(&out);
    arena_deinit(&arena);
}

static void test_squeezed_comes_back_whatever_its_length(void **state)
{
    (void)state;
    struct rng rng;
    rng_init_seed(&rng, 1);
    for (size_t size = 0; size <= SIZE_MAX_TRIED; size++) {
        uint8_t data[SIZE_MAX_TRIED + 1];
        for (size_t i = 0; i < size; i++)
            data[i] = rng_below(&rng, 2) == 0 ? 0 : (uint8_t)rng_next(&rng);
        struct buf out, back;
        buf_init(&out);
        bytes_put_squeezed(&out, data, size);
        assert_true(take_squeezed(out.data, out.size, SIZE_MAX_TRIED, &back));
        assert_int_equal(back.size, size);
        if (size > 0)
            assert_memory_equal(back.data, data, size);
        buf_deinit(&back);
        for (size_t cut = 0; cut < out.size; cut++) {
            assert_false(take_squeezed(out.data, cut, SIZE_MAX_TRIED, &back));
            buf_deinit(&back);
        }
        if (size > 0) {
            assert_false(take_squeezed(out.data, out.size, size - 1, &back));
            buf_deinit(&back);
        }
        buf_deinit(&out);
    }
}

static void test_zeros_cost_an_eighth(void **state)
{
    (void)state;
    static const uint8_t zeros[800];
    struct buf out;
    buf_init(&out);
    bytes_put_squeezed(&out, zeros, sizeof(zeros));
    assert_int_equal(out.size, sizeof(uint32_t) + sizeof(zeros) / 8);
    buf_deinit(&out);
}

static void test_bytes_behind_the_end_are_refused(void **state)
{
    (void)state;
    /* Three bytes, of which the fourth is said to be there; and one too many. */
    static const uint8_t beyond[] = {3, 0, 0, 0, 1 << 3, 9}, more[] = {1, 0, 0, 0, 1, 9, 9};
    struct buf back;
    assert_false(take_squeezed(beyond, sizeof(beyond), SIZE_MAX_TRIED, &back));
    buf_deinit(&back);
    assert_false(take_squeezed(more, sizeof(more), SIZE_MAX_TRIED, &back));
    buf_deinit(&back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts_come_back),
        cmocka_unit_test(test_squeezed_comes_back_whatever_its_length),
        cmocka_unit_test(test_zeros_cost_an_eighth),
        cmocka_unit_test(test_bytes_behind_the_end_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
