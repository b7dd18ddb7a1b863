/* SPDX-License-Identifier: Apache-2.0
 * The memory of good tokens: exact, bounded, ends with `exp`, shared by threads. */
#include "forge.h"

#include <pthread.h>

static void hash_make(uint32_t n, uint8_t hash[TOKEN_HASH_SIZE])
{
    memset(hash, 0, TOKEN_HASH_SIZE);
    memcpy(hash, &n, sizeof n);
    memcpy(hash + 16, &n, sizeof n);
}

static struct auth_claims claims_until(int64_t expires_ms)
{
    return (struct auth_claims){.role = ROLE_AGENT, .expires_ms = expires_ms};
}

static int setup(void **state)
{
    struct token_cache *cache = NULL;
    assert_int_equal(token_cache_create(&cache), ERR_OK);
    *state = cache;
    return 0;
}

static int teardown(void **state)
{
    token_cache_destroy(*state);
    return 0;
}

static void test_only_the_whole_hash_is_found(void **state)
{
    uint8_t hash[TOKEN_HASH_SIZE];
    struct auth_claims claims = claims_until(1000), out;
    hash_make(7, hash);
    assert_false(token_cache_find(*state, hash, 10, &out));
    token_cache_put(*state, hash, 10, &claims);
    assert_true(token_cache_find(*state, hash, 10, &out));
    assert_int_equal(out.role, ROLE_AGENT);
    hash[31] ^= 1;
    assert_false(token_cache_find(*state, hash, 10, &out));
}

static void test_nothing_is_found_from_exp_on(void **state)
{
    uint8_t hash[TOKEN_HASH_SIZE];
    struct auth_claims claims = claims_until(1000), out;
    hash_make(7, hash);
    token_cache_put(*state, hash, 10, &claims);
    assert_true(token_cache_find(*state, hash, 999, &out));
    assert_false(token_cache_find(*state, hash, 1000, &out));
}

static void test_full_set_keeps_what_is_still_valid_over_what_expired(void **state)
{
    uint8_t hash[TOKEN_HASH_SIZE];
    struct auth_claims early = claims_until(100), late = claims_until(1000), out;
    enum { SAME_SET = 1 << 20 }; /* a multiple of the number of sets */
    for (uint32_t i = 0; i < 4; i++) {
        hash_make(5 + i * SAME_SET, hash);
        token_cache_put(*state, hash, 10, i == 2 ? &early : &late);
    }
    hash_make(5 + 4 * SAME_SET, hash);
    token_cache_put(*state, hash, 200, &late);
    for (uint32_t i = 0; i < 5; i++) {
        hash_make(5 + i * SAME_SET, hash);
        assert_int_equal(token_cache_find(*state, hash, 200, &out), i != 2);
    }
    hash_make(5 + 5 * SAME_SET, hash); /* one has to go */
    token_cache_put(*state, hash, 200, &late);
    assert_true(token_cache_find(*state, hash, 200, &out));
    int found = 0;
    for (uint32_t i = 0; i < 6; i++) {
        hash_make(5 + i * SAME_SET, hash);
        found += token_cache_find(*state, hash, 200, &out);
    }
    assert_int_equal(found, 4);
}

static void *hammer(void *context)
{
    struct token_cache *cache = context;
    for (uint32_t i = 0; i < 20000; i++) {
        uint8_t hash[TOKEN_HASH_SIZE];
        struct auth_claims claims = claims_until(1000 + i % 97), out;
        hash_make(i % 97, hash);
        if (!token_cache_find(cache, hash, 10, &out))
            token_cache_put(cache, hash, 10, &claims);
        else if (out.expires_ms != 1000 + i % 97)
            return context; /* somebody else's claims */
    }
    return NULL;
}

static void test_threads_share_it_without_mixing_claims(void **state)
{
    pthread_t threads[4];
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, *state), 0);
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        void *wrong = NULL;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_only_the_whole_hash_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_is_found_from_exp_on, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full_set_keeps_what_is_still_valid_over_what_expired, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_threads_share_it_without_mixing_claims, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
