/* SPDX-License-Identifier: Apache-2.0
 * Memory of an arena: zeroed, aligned, never moved, all gone at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/arena.h"

static int setup(void **state)
{
    static struct arena arena;
    arena_init(&arena);
    *state = &arena;
    return 0;
}

static int teardown(void **state)
{
    arena_deinit(*state);
    return 0;
}

static void test_memory_is_zeroed_after_a_reset_too(void **state)
{
    struct arena *arena = *state;
    memset(arena_alloc(arena, 1000), 0xAB, 1000);
    arena_reset(arena);
    unsigned char *again = arena_alloc(arena, 1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(again[i], 0);
}

static void test_memory_is_aligned_to_16_whatever_came_before(void **state)
{
    struct arena *arena = *state;
    for (size_t size = 0; size < 300; size++)
        assert_int_equal((uintptr_t)arena_alloc(arena, size) % 16, 0);
}

static void test_pieces_never_overlap_across_chunks_and_large_requests(void **state)
{
    enum { PIECE_COUNT = 2000 };
    struct arena *arena = *state;
    unsigned char *pieces[PIECE_COUNT];
    size_t sizes[PIECE_COUNT];
    for (int i = 0; i < PIECE_COUNT; i++) {
        sizes[i] = (size_t)(i * 37 % 700) + (i % 97 == 0 ? 20000 : 0);
        pieces[i] = arena_alloc(arena, sizes[i]);
        memset(pieces[i], i % 251, sizes[i]);
    }
    for (int i = 0; i < PIECE_COUNT; i++) {
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(pieces[i][k], i % 251);
    }
}

static void test_a_large_request_does_not_waste_the_chunk_being_filled(void **state)
{
    struct arena *arena = *state;
    char *before = arena_alloc(arena, 16);
    arena_alloc(arena, 1000000);
    char *after = arena_alloc(arena, 16);
    assert_ptr_equal(after, before + 16);
}

static void test_reset_reuses_a_small_chunk(void **state)
{
    struct arena *arena = *state;
    void *first = arena_alloc(arena, 100);
    arena_reset(arena);
    assert_ptr_equal(arena_alloc(arena, 100), first);
}

static void test_text_is_copied_and_null_stays_null(void **state)
{
    struct arena *arena = *state;
    char source[] = "row A";
    char *copy = arena_text(arena, source);
    source[0] = 'X';
    assert_string_equal(copy, "row A");
    assert_null(arena_text(arena, NULL));
    assert_string_equal(arena_text_n(arena, "block A-1", 5), "block");
    assert_string_equal(arena_text_n(arena, NULL, 0), "");
    assert_memory_equal(arena_copy(arena, "\0\1\2", 3), "\0\1\2", 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_memory_is_zeroed_after_a_reset_too, setup, teardown),
        cmocka_unit_test_setup_teardown(test_memory_is_aligned_to_16_whatever_came_before, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pieces_never_overlap_across_chunks_and_large_requests, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_large_request_does_not_waste_the_chunk_being_filled, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_reset_reuses_a_small_chunk, setup, teardown),
        cmocka_unit_test_setup_teardown(test_text_is_copied_and_null_stays_null, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
