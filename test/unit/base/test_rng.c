/* SPDX-License-Identifier: Apache-2.0
 * Random numbers: replayable, even, and different when they must be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

#include "base/rng.h"

static void test_a_seed_replays_exactly(void **state)
{
    (void)state;
    struct rng a, b, c;
    rng_init_seed(&a, 42);
    rng_init_seed(&b, 42);
    rng_init_seed(&c, 43);
    bool differs = false;
    for (int i = 0; i < 1000; i++) {
        uint64_t value = rng_next(&a);
        assert_true(value == rng_next(&b));
        differs |= value != rng_next(&c);
    }
    assert_true(differs);
}

/* A replay must give the same on every machine and in every version. */
static void test_the_first_numbers_of_a_seed_are_fixed(void **state)
{
    (void)state;
    struct rng rng;
    rng_init_seed(&rng, 0);
    assert_true(rng_next(&rng) == 0x99EC5F36CB75F2B4ull);
    assert_true(rng_next(&rng) == 0xBF6E1F784956452Aull);
}

static void test_below_is_even_over_its_range(void **state)
{
    (void)state;
    struct rng rng;
    int counts[7] = {0};
    rng_init_seed(&rng, 7);
    for (int i = 0; i < 70000; i++)
        counts[rng_below(&rng, 7)]++;
    for (int i = 0; i < 7; i++)
        assert_in_range(counts[i], 9500, 10500);
    for (int i = 0; i < 100; i++) {
        assert_true(rng_below(&rng, 1) == 0);
        assert_true(rng_below(&rng, UINT64_MAX) < UINT64_MAX);
    }
}

/* Where a plain product would give every third value twice its share. */
static void test_below_is_even_for_huge_bounds(void **state)
{
    (void)state;
    struct rng rng;
    int counts[3] = {0};
    rng_init_seed(&rng, 13);
    for (int i = 0; i < 30000; i++)
        counts[rng_below(&rng, 3ull << 62) % 3]++;
    for (int i = 0; i < 3; i++)
        assert_in_range(counts[i], 9500, 10500);
}

static void test_secrets_and_system_seeds_differ(void **state)
{
    (void)state;
    unsigned char a[300] = {0}, b[300] = {0}, zero[16] = {0};
    struct rng first, second;
    random_secret(a, sizeof(a));
    random_secret(b, sizeof(b));
    assert_memory_not_equal(a, b, sizeof(a));
    assert_memory_not_equal(a + sizeof(a) - 16, zero, 16);
    rng_init_system(&first);
    rng_init_system(&second);
    assert_true(rng_next(&first) != rng_next(&second));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_seed_replays_exactly),
        cmocka_unit_test(test_the_first_numbers_of_a_seed_are_fixed),
        cmocka_unit_test(test_below_is_even_over_its_range),
        cmocka_unit_test(test_below_is_even_for_huge_bounds),
        cmocka_unit_test(test_secrets_and_system_seeds_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
