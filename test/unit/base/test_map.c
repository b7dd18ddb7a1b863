/* SPDX-License-Identifier: Apache-2.0
 * The hash map against a plain model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/map.h"
#include "base/rng.h"

enum { KEY_COUNT = 300 };

static void test_an_empty_map_has_nothing(void **state)
{
    (void)state;
    struct map map;
    struct uuid key = {{1}};
    size_t position = 0;
    map_init(&map);
    assert_null(map_get(&map, &key));
    assert_null(map_remove(&map, &key));
    assert_null(map_next(&map, &position));
    map_deinit(&map);
}

static void test_put_replaces(void **state)
{
    (void)state;
    struct map map;
    struct uuid key = {{1}};
    int a, b;
    map_init(&map);
    map_put(&map, &key, &a);
    map_put(&map, &key, &b);
    assert_int_equal(map.count, 1);
    assert_ptr_equal(map_get(&map, &key), &b);
    assert_ptr_equal(map_remove(&map, &key), &b);
    assert_null(map_get(&map, &key));
    map_deinit(&map);
}

/* All ids have the same time, as those of one batch do. */
static void test_random_operations_agree_with_a_plain_array(void **state)
{
    (void)state;
    struct map map;
    struct rng rng;
    struct uuid keys[KEY_COUNT];
    int values[2 * KEY_COUNT];
    int *model[KEY_COUNT] = {0};
    rng_init_seed(&rng, 4);
    map_init(&map);
    for (int i = 0; i < KEY_COUNT; i++)
        keys[i] = uuid_make(&rng, 1000);
    for (int round = 0; round < 200000; round++) {
        /* The number of keys in use swells and shrinks, so that growth and long shifts both happen. */
        uint64_t in_use = 1 + (uint64_t)(round / 100 % KEY_COUNT);
        int i = (int)rng_below(&rng, in_use);
        if (rng_below(&rng, 2) == 0) {
            model[i] = &values[rng_below(&rng, 2 * KEY_COUNT)];
            map_put(&map, &keys[i], model[i]);
        } else {
            assert_ptr_equal(map_remove(&map, &keys[i]), model[i]);
            model[i] = NULL;
        }
        int other = (int)rng_below(&rng, KEY_COUNT);
        assert_ptr_equal(map_get(&map, &keys[other]), model[other]);
        if (round % 1000 == 0) {
            for (int k = 0; k < KEY_COUNT; k++)
                assert_ptr_equal(map_get(&map, &keys[k]), model[k]);
        }
    }
    map_deinit(&map);
}

/* Keys made so that their homes are the last slot: shifting back must wrap around. */
static void test_removal_works_across_the_end_of_the_table(void **state)
{
    (void)state;
    enum { SAME_HOME_COUNT = 6 };
    struct map map;
    struct rng rng;
    struct uuid keys[SAME_HOME_COUNT];
    int values[SAME_HOME_COUNT];
    rng_init_seed(&rng, 5);
    map_init(&map);
    for (int i = 0; i < SAME_HOME_COUNT;) {
        keys[i] = uuid_make(&rng, 1000);
        i += (uuid_hash(&keys[i]) & 15) >= 14;
    }
    for (int gone = 0; gone < SAME_HOME_COUNT; gone++) {
        for (int i = 0; i < SAME_HOME_COUNT; i++)
            map_put(&map, &keys[i], &values[i]);
        assert_int_equal(map.capacity, 16);
        assert_ptr_equal(map_remove(&map, &keys[gone]), &values[gone]);
        for (int i = 0; i < SAME_HOME_COUNT; i++)
            assert_ptr_equal(map_get(&map, &keys[i]), i == gone ? NULL : &values[i]);
    }
    map_deinit(&map);
}

static void test_walking_visits_every_value_once(void **state)
{
    (void)state;
    struct map map;
    struct rng rng;
    int visits[1000] = {0};
    rng_init_seed(&rng, 6);
    map_init(&map);
    for (int i = 0; i < 1000; i++) {
        struct uuid key = uuid_make(&rng, i);
        map_put(&map, &key, &visits[i]);
    }
    int *value;
    for (size_t i = 0; (value = map_next(&map, &i)) != NULL;)
        ++*value;
    for (int i = 0; i < 1000; i++)
        assert_int_equal(visits[i], 1);
    map_deinit(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_empty_map_has_nothing),
        cmocka_unit_test(test_put_replaces),
        cmocka_unit_test(test_random_operations_agree_with_a_plain_array),
        cmocka_unit_test(test_removal_works_across_the_end_of_the_table),
        cmocka_unit_test(test_walking_visits_every_value_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
