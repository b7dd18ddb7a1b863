/* SPDX-License-Identifier: Apache-2.0
 * The pool of equal objects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/pool.h"

static void test_objects_are_zeroed_when_reused(void **state)
{
    (void)state;
    struct pool pool;
    pool_init(&pool, 100);
    unsigned char *object = pool_acquire(&pool);
    memset(object, 0xAB, 100);
    pool_release(&pool, object);
    unsigned char *again = pool_acquire(&pool);
    assert_ptr_equal(again, object);
    for (int i = 0; i < 100; i++)
        assert_int_equal(again[i], 0);
    pool_deinit(&pool);
}

static void test_objects_never_overlap(void **state)
{
    (void)state;
    enum { OBJECT_COUNT = 5000, OBJECT_SIZE = 24 };
    static unsigned char *objects[OBJECT_COUNT];
    struct pool pool;
    pool_init(&pool, OBJECT_SIZE);
    for (int i = 0; i < OBJECT_COUNT; i++) {
        objects[i] = pool_acquire(&pool);
        assert_int_equal((uintptr_t)objects[i] % 16, 0);
        memset(objects[i], i % 251, OBJECT_SIZE);
    }
    assert_int_equal(pool.used_count, OBJECT_COUNT);
    for (int i = 0; i < OBJECT_COUNT; i++) {
        for (int k = 0; k < OBJECT_SIZE; k++)
            assert_int_equal(objects[i][k], i % 251);
    }
    for (int i = 0; i < OBJECT_COUNT; i++)
        pool_release(&pool, objects[i]);
    assert_int_equal(pool.used_count, 0);
    pool_deinit(&pool);
}

static void test_released_objects_are_used_before_new_memory(void **state)
{
    (void)state;
    struct pool pool;
    pool_init(&pool, 1);
    void *objects[32];
    for (int i = 0; i < 32; i++)
        objects[i] = pool_acquire(&pool);
    struct pool_slab *slabs = pool.slabs;
    for (int round = 0; round < 100; round++) {
        pool_release(&pool, objects[round % 32]);
        objects[round % 32] = pool_acquire(&pool);
    }
    assert_ptr_equal(pool.slabs, slabs);
    pool_deinit(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objects_are_zeroed_when_reused),
        cmocka_unit_test(test_objects_never_overlap),
        cmocka_unit_test(test_released_objects_are_used_before_new_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
