/* SPDX-License-Identifier: Apache-2.0
 * Who may deliver, and for how long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "publish/delivery_lease.h"

static const struct uuid us = {{1}}, them = {{2}};

static void test_nobodys_and_run_out_leases_are_free_and_others_are_not(void **state)
{
    struct delivery_row row = {.version = 0};

    (void)state;
    assert_true(lease_is_free(&row, &us, false, 1000));
    row = (struct delivery_row){.node = them, .lease_until_ms = 5000, .version = 3};
    assert_false(lease_is_free(&row, &us, false, 4999));
    assert_true(lease_is_free(&row, &us, false, 5000));
    assert_true(lease_is_free(&row, &us, true, 1000)); /* nobody else has the store: they are dead */
    row.node = us;
    assert_true(lease_is_free(&row, &us, false, 1000)); /* ours: a write of which we did not hear */
}

static void test_a_lease_that_was_taken_is_ours_until_its_time_and_nobody_elses(void **state)
{
    struct delivery_row row = {.name = "webhook", .position = {.id = 7}, .version = 3}, taken;

    (void)state;
    taken = lease_hold(&row, &us, 1000);
    assert_int_equal(taken.version, 4);
    assert_true(taken.position.id == 7);
    assert_true(lease_is_ours(&taken, &us, 1000 + DELIVERY_LEASE_MS - 1));
    assert_false(lease_is_ours(&taken, &us, 1000 + DELIVERY_LEASE_MS));
    assert_false(lease_is_ours(&taken, &them, 1000));
    assert_false(lease_is_free(&taken, &them, false, 1000 + DELIVERY_LEASE_MS - 1));
}

static void test_a_lease_that_is_given_back_is_free_at_once_and_keeps_the_position(void **state)
{
    struct delivery_row row = {.node = us, .lease_until_ms = 99999, .position = {.id = 7}, .version = 3},
                        given;

    (void)state;
    given = lease_give_back(&row);
    assert_int_equal(given.version, 4);
    assert_true(given.position.id == 7);
    assert_true(lease_is_free(&given, &them, false, 1));
    assert_false(lease_is_ours(&given, &us, 1));
}

static void test_others_look_when_it_runs_out_or_in_a_while(void **state)
{
    struct delivery_row row = {.node = them, .lease_until_ms = 5000};

    (void)state;
    assert_true(lease_look_ms(&row, 4900) == 5000);
    assert_true(lease_look_ms(&row, 1000) == 1000 + DELIVERY_LOOK_MS);
    assert_true(lease_look_ms(&row, 6000) == 6000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobodys_and_run_out_leases_are_free_and_others_are_not),
        cmocka_unit_test(test_a_lease_that_was_taken_is_ours_until_its_time_and_nobody_elses),
        cmocka_unit_test(test_a_lease_that_is_given_back_is_free_at_once_and_keeps_the_position),
        cmocka_unit_test(test_others_look_when_it_runs_out_or_in_a_while),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
