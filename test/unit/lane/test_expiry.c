/* SPDX-License-Identifier: Apache-2.0
 * Time: notices, releases, renewals, and the reaper behind them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/limits.h"
#include "base/metrics.h"
#include "stage.h"

static struct hot_hold *hot_of(struct stage *stage, const struct uuid *hold)
{
    return hot_hold(stage->lane->hot, &stage->org_id, hold);
}

/* To the last moment before `at_ms`. */
static void pass_until(struct stage *stage, int64_t at_ms)
{
    stage_pass(stage, at_ms - stage->now_ms);
}

static void test_the_owner_is_told_before_the_end_and_the_seat_is_free_after_the_grace(void **state)
{
    struct stage *stage = *state;
    struct uuid hold = stage_hold(stage, 0, 3);
    int64_t until_ms = stage_hold_row(stage, &hold)->held_until_ms;
    pass_until(stage, until_ms - HOLD_EXPIRING_NOTICE_MS - 1);
    assert_false(hot_of(stage, &hold)->noticed);
    pass_until(stage, until_ms - HOLD_EXPIRING_NOTICE_MS + 1000);
    assert_true(hot_of(stage, &hold)->noticed);
    pass_until(stage, until_ms + 4999);
    assert_int_equal(stage_seat(stage, 3), SEAT_HELD);
    pass_until(stage, until_ms + 5010);
    assert_int_equal(stage_seat(stage, 3), SEAT_AVAILABLE);
    assert_int_equal(stage_hold_row(stage, &hold)->state, HOLD_EXPIRED);
    assert_int_equal(stage_hold_row(stage, &hold)->reason, END_TTL_EXPIRED);
    stage_check_rest(stage);
}

static void test_an_extension_puts_the_release_off(void **state)
{
    struct stage *stage = *state;
    struct uuid hold = stage_hold(stage, 0, 3);
    int64_t first_ms = stage_hold_row(stage, &hold)->held_until_ms;
    pass_until(stage, first_ms - 1000);
    assert_true(hot_of(stage, &hold)->noticed);
    assert_int_equal(stage_do(ask_id(stage, COMMAND_HOLD_EXTEND, 0, &hold)), ERR_OK);
    assert_int_equal(stage_hold_row(stage, &hold)->held_until_ms, first_ms + 60000);
    assert_false(hot_of(stage, &hold)->noticed); /* they will be told again */
    pass_until(stage, first_ms + 60000 + 4990);
    assert_int_equal(stage_seat(stage, 3), SEAT_HELD);
    assert_true(hot_of(stage, &hold)->noticed);
    pass_until(stage, first_ms + 60000 + 5010);
    assert_int_equal(stage_seat(stage, 3), SEAT_AVAILABLE);
    stage_check_rest(stage);
}

static void test_extensions_end_at_the_cap(void **state)
{
    struct stage *stage = *state;
    struct uuid hold = stage_hold(stage, 0, 3);
    int64_t first_ms = stage_hold_row(stage, &hold)->held_until_ms;
    assert_int_equal(stage_do(ask_id(stage, COMMAND_HOLD_EXTEND, 0, &hold)), ERR_OK);
    assert_int_equal(stage_do(ask_id(stage, COMMAND_HOLD_EXTEND, 0, &hold)), ERR_OK);
    assert_int_equal(stage_hold_row(stage, &hold)->held_until_ms, first_ms + 90000); /* 60 + 60 + 30 */
    assert_int_equal(stage_do(ask_id(stage, COMMAND_HOLD_EXTEND, 0, &hold)), ERR_EXTENSION_LIMIT_REACHED);
    /* A checkout at the cap still starts. */
    struct uuid checkout = stage_checkout(stage, 0);
    assert_int_equal(stage_hold_row(stage, &hold)->held_until_ms, first_ms + 90000);
    assert_int_equal(stage_checkout_row(stage, &checkout)->state, CHECKOUT_PENDING_PAYMENT);
    stage_check_rest(stage);
}

static void test_a_lapsed_hold_is_worth_nothing(void **state)
{
    struct stage *stage = *state;
    struct uuid hold = stage_hold(stage, 0, 3);
    int64_t until_ms = stage_hold_row(stage, &hold)->held_until_ms;
    pass_until(stage, until_ms + 1000);
    assert_int_equal(stage_do(ask_id(stage, COMMAND_HOLD_EXTEND, 0, &hold)), ERR_HOLDS_EXPIRED);
    assert_int_equal(stage_do(ask_checkout(stage, 0)), ERR_HOLDS_EXPIRED);
    struct ask *other = ask_seat(stage, 1, 3);
    assert_int_equal(stage_do(other), ERR_SEAT_HELD);
    assert_int_equal(other->command.result.failures[0].expires_ms, until_ms + 5000); /* come back then */
    stage_check_rest(stage);
}

static void test_the_owner_of_a_lapsed_hold_gets_a_new_one_at_once(void **state)
{
    struct stage *stage = *state;
    struct uuid hold = stage_hold(stage, 0, 3);
    pass_until(stage, stage_hold_row(stage, &hold)->held_until_ms + 1000);
    struct ask *again = ask_seat(stage, 0, 3);
    assert_int_equal(stage_do(again), ERR_OK);
    assert_int_equal(again->command.result.status, 201);
    struct uuid renewed = again->command.result.holds[0].row.id;
    assert_memory_not_equal(&renewed, &hold, sizeof(hold));
    assert_int_equal(stage_hold_row(stage, &hold)->state, HOLD_EXPIRED);
    assert_int_equal(stage_hold_row(stage, &renewed)->state, HOLD_ACTIVE);
    stage_pass(stage, 30000); /* the old one's timer must not take the new one */
    assert_int_equal(stage_seat(stage, 3), SEAT_HELD);
    stage_check_rest(stage);
}

static void test_a_renewed_hold_leaves_its_checkout(void **state)
{
    struct stage *stage = *state;
    stage_hold(stage, 0, 3);
    struct uuid checkout = stage_checkout(stage, 0);
    pass_until(stage, stage_checkout_row(stage, &checkout)->expires_ms + 1000);
    assert_int_equal(stage_do(ask_seat(stage, 0, 3)), ERR_OK);
    assert_int_equal(stage_checkout_row(stage, &checkout)->state, CHECKOUT_EXPIRED);
    assert_int_equal(stage_checkout_row(stage, &checkout)->total_cents, 0);
    stage_check_rest(stage);
}

static void test_a_renewal_that_fails_leaves_the_old_hold_to_its_timer(void **state)
{
    struct stage *stage = *state;
    struct uuid hold = stage_hold(stage, 0, 3);
    int64_t until_ms = stage_hold_row(stage, &hold)->held_until_ms;
    pass_until(stage, until_ms + 1000);
    stage_faults(stage, (struct sim_faults){.fail = 1000});
    assert_int_equal(stage_do(ask_seat(stage, 0, 3)), ERR_STORE_UNAVAILABLE);
    stage_calm(stage);
    stage_check_rest(stage);
    pass_until(stage, until_ms + 6000);
    assert_int_equal(stage_seat(stage, 3), SEAT_AVAILABLE);
}

static void test_the_holds_of_a_checkout_expire_together_with_it(void **state)
{
    struct stage *stage = *state;
    struct uuid holds[3];
    for (int32_t i = 0; i < 3; i++)
        holds[i] = stage_hold(stage, 0, i);
    struct uuid checkout = stage_checkout(stage, 0);
    pass_until(stage, stage_checkout_row(stage, &checkout)->expires_ms + 4990);
    int64_t before = sim_store_tables(stage->store)->commit_count;
    pass_until(stage, stage_checkout_row(stage, &checkout)->expires_ms + 5003);
    for (int32_t i = 0; i < 3; i++)
        assert_int_equal(stage_hold_row(stage, &holds[i])->state, HOLD_EXPIRED);
    assert_int_equal(stage_checkout_row(stage, &checkout)->state, CHECKOUT_EXPIRED);
    assert_int_equal(sim_store_tables(stage->store)->commit_count, before + 1);
    stage_check_rest(stage);
}

static void test_a_checkout_goes_on_without_the_hold_that_ended(void **state)
{
    struct stage *stage = *state;
    struct uuid first = stage_hold(stage, 0, 0);
    stage_hold(stage, 0, STAGE_SEAT_B);
    struct uuid checkout = stage_checkout(stage, 0);
    assert_int_equal(stage_checkout_row(stage, &checkout)->total_cents, 4500 + 2500);
    assert_int_equal(stage_do(ask_id(stage, COMMAND_HOLD_RELEASE, 0, &first)), ERR_OK);
    assert_int_equal(stage_checkout_row(stage, &checkout)->state, CHECKOUT_PENDING_PAYMENT);
    assert_int_equal(stage_checkout_row(stage, &checkout)->total_cents, 2500);
    assert_true(uuid_is_nil(&stage_hold_row(stage, &first)->checkout_id));
    stage_check_rest(stage);
}

static void test_a_release_that_the_store_refuses_is_tried_again(void **state)
{
    struct stage *stage = *state;
    struct uuid hold = stage_hold(stage, 0, 3);
    int64_t release_ms = stage_hold_row(stage, &hold)->held_until_ms + 5000;
    pass_until(stage, release_ms - 100);
    stage_faults(stage, (struct sim_faults){.fail = 1000, .lookup_fail = 1000}); /* the reaper is blind too */
    pass_until(stage, release_ms + 5000);
    assert_int_equal(stage_seat(stage, 3), SEAT_HELD);
    stage_calm(stage);
    pass_until(stage, release_ms + 11100); /* 10 s after the first try */
    assert_int_equal(stage_seat(stage, 3), SEAT_AVAILABLE);
    stage_check_rest(stage);
}

static void test_the_reaper_goes_on_when_the_tries_are_used_up(void **state)
{
    struct stage *stage = *state;
    struct uuid hold = stage_hold(stage, 0, 3);
    int64_t release_ms = stage_hold_row(stage, &hold)->held_until_ms + 5000;
    uint64_t exhausted = counter_get(COUNTER_RELEASE_EXHAUSTED);
    stage_faults(stage, (struct sim_faults){.fail = 1000, .lookup_fail = 1000});
    pass_until(stage, release_ms + 90000); /* 10 + 20 + 40 s are over */
    assert_true(counter_get(COUNTER_RELEASE_EXHAUSTED) > exhausted);
    assert_int_equal(stage_seat(stage, 3), SEAT_HELD);
    stage_calm(stage);
    stage_pass(stage, REAPER_INTERVAL_MS + 2000);
    assert_int_equal(stage_seat(stage, 3), SEAT_AVAILABLE);
    assert_int_equal(stage_hold_row(stage, &hold)->state, HOLD_EXPIRED);
    stage_check_rest(stage);
}

static void test_what_the_reaper_read_may_have_ended_meanwhile(void **state)
{
    struct stage *stage = *state;
    /* Whatever the moment at which the reaper reads, and the moment at which it is answered: the hold
     * that its timer releases meanwhile is not released a second time, though the seat is taken anew. */
    for (int round = 0; round < 60; round++) {
        struct uuid hold = stage_hold(stage, 0, 3);
        int64_t release_ms = stage_hold_row(stage, &hold)->held_until_ms + 5000;
        pass_until(stage, release_ms - 1);
        stage->lane->reaper_at_ms = release_ms; /* its turn comes with the timer's */
        stage_faults(stage, (struct sim_faults){.delay_ms_max = 3});
        struct ask *other = ask_seat(stage, 1, 3);
        stage->now_ms = release_ms;
        stage_turn(stage);
        stage_post(other);
        stage_finish(stage);
        stage_pass(stage, 50);
        stage_calm(stage);
        struct uuid taken = stage_hold(stage, 1, 3);
        stage_pass(stage, 1100);
        assert_int_equal(stage_hold_row(stage, &taken)->state, HOLD_ACTIVE);
        assert_int_equal(stage_do(ask_id(stage, COMMAND_HOLD_RELEASE, 1, &taken)), ERR_OK);
        stage_check_rest(stage);
    }
}

static void test_a_restart_releases_what_ran_out_meanwhile(void **state)
{
    struct stage *stage = *state;
    struct uuid hold = stage_hold(stage, 0, 3);
    int64_t until_ms = stage_hold_row(stage, &hold)->held_until_ms;
    stage->now_ms = until_ms + 60000;
    stage_restart(stage);
    stage_pass(stage, 10);
    assert_int_equal(stage_seat(stage, 3), SEAT_AVAILABLE);
    assert_int_equal(stage_hold_row(stage, &hold)->state, HOLD_EXPIRED);
    stage_check_rest(stage);
}

static void test_a_restart_keeps_holds_and_checkouts(void **state)
{
    struct stage *stage = *state;
    struct uuid hold = stage_hold(stage, 0, 3);
    struct uuid checkout = stage_checkout(stage, 0);
    int64_t until_ms = stage_hold_row(stage, &hold)->held_until_ms;
    stage_restart(stage);
    struct ask *again = ask_seat(stage, 0, 3);
    assert_int_equal(stage_do(again), ERR_OK);
    assert_int_equal(again->command.result.status, 200);
    assert_memory_equal(&again->command.result.holds[0].row.id, &hold, sizeof(hold));
    assert_int_equal(again->command.result.holds[0].row.held_until_ms, until_ms);
    struct ask *start = ask_checkout(stage, 0);
    assert_int_equal(stage_do(start), ERR_OK);
    assert_int_equal(start->command.result.status, 200);
    assert_memory_equal(&start->command.result.checkout.id, &checkout, sizeof(checkout));
    stage_check_rest(stage);
}

static void test_many_holds_due_at_once_are_all_released(void **state)
{
    (void)state;
    enum { SEAT_COUNT = 3000 };
    struct policy policy = stage_policy();
    policy.max_seats_per_user = 0;
    struct stage *stage = stage_create_large(&policy, SEAT_COUNT / 100, 100);
    for (int32_t i = 0; i < SEAT_COUNT; i++)
        stage_post(ask_seat(stage, i % STAGE_USER_COUNT, i));
    stage_finish(stage);
    int32_t counts[SEAT_STATE_COUNT];
    seatmap_counts(stage_event(stage)->map, counts);
    assert_int_equal(counts[SEAT_HELD], SEAT_COUNT);
    stage_pass(stage, 70 * 1000);
    seatmap_counts(stage_event(stage)->map, counts);
    assert_int_equal(counts[SEAT_AVAILABLE], SEAT_COUNT);
    stage_check_rest(stage);
    stage_destroy(stage);
}

int main(void)
{
#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, stage_setup, stage_teardown)
    const struct CMUnitTest tests[] = {
        ON_STAGE(test_the_owner_is_told_before_the_end_and_the_seat_is_free_after_the_grace),
        ON_STAGE(test_an_extension_puts_the_release_off),
        ON_STAGE(test_extensions_end_at_the_cap),
        ON_STAGE(test_a_lapsed_hold_is_worth_nothing),
        ON_STAGE(test_the_owner_of_a_lapsed_hold_gets_a_new_one_at_once),
        ON_STAGE(test_a_renewed_hold_leaves_its_checkout),
        ON_STAGE(test_a_renewal_that_fails_leaves_the_old_hold_to_its_timer),
        ON_STAGE(test_the_holds_of_a_checkout_expire_together_with_it),
        ON_STAGE(test_a_checkout_goes_on_without_the_hold_that_ended),
        ON_STAGE(test_a_release_that_the_store_refuses_is_tried_again),
        ON_STAGE(test_the_reaper_goes_on_when_the_tries_are_used_up),
        ON_STAGE(test_what_the_reaper_read_may_have_ended_meanwhile),
        ON_STAGE(test_a_restart_releases_what_ran_out_meanwhile),
        ON_STAGE(test_a_restart_keeps_holds_and_checkouts),
        cmocka_unit_test(test_many_holds_due_at_once_are_all_released),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
