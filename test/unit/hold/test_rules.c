/* SPDX-License-Identifier: Apache-2.0
 * The rules, from the contract's tables: every move there is, and no other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hold/rules.h"

static const struct uuid mine = {{1}}, yours = {{2}};

static struct policy policy_of_tests(void)
{
    struct policy policy = policy_default();
    policy.hold_ttl_seconds = 300;
    policy.checkout_extension_seconds = 300;
    policy.hold_max_seconds = 1200;
    policy.release_grace_seconds = 10;
    return policy;
}

/* ---- Machines: a move that the diagram lacks ends the process ---- */

static void move_seat(int from, int to)
{
    enum seat_state state = (enum seat_state)from;
    seat_move(&state, (enum seat_state)to);
    _exit(state == (enum seat_state)to ? 0 : 1);
}

static void move_hold(int from, int to)
{
    enum hold_state state = (enum hold_state)from;
    hold_move(&state, (enum hold_state)to);
    _exit(state == (enum hold_state)to ? 0 : 1);
}

static void move_checkout(int from, int to)
{
    enum checkout_state state = (enum checkout_state)from;
    checkout_move(&state, (enum checkout_state)to);
    _exit(state == (enum checkout_state)to ? 0 : 1);
}

static bool is_allowed(void (*move)(int from, int to), int from, int to)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL); /* cmocka's own handler would speak of a failed test */
        if (freopen("/dev/null", "w", stderr) == NULL)
            _exit(2);
        move(from, to);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status))
        return false;
    assert_int_equal(WEXITSTATUS(status), 0);
    return true;
}

static void check_moves(void (*move)(int from, int to), int count, const uint32_t *allowed)
{
    for (int from = 0; from < count; from++) {
        for (int to = 0; to < count; to++) {
            if (is_allowed(move, from, to) != ((allowed[from] >> to & 1) != 0))
                fail_msg("%d to %d", from, to);
        }
    }
}

static void test_seats_move_as_drawn(void **state)
{
    (void)state;
    const uint32_t allowed[SEAT_STATE_COUNT] = {
        [SEAT_AVAILABLE] = BIT(SEAT_HELD) | BIT(SEAT_BLOCKED) | BIT(SEAT_SOLD),
        [SEAT_HELD] = BIT(SEAT_HELD) | BIT(SEAT_SOLD) | BIT(SEAT_AVAILABLE) | BIT(SEAT_BLOCKED),
        [SEAT_SOLD] = BIT(SEAT_AVAILABLE),
        [SEAT_BLOCKED] = BIT(SEAT_AVAILABLE),
    };
    check_moves(move_seat, SEAT_STATE_COUNT, allowed);
}

static void test_holds_move_as_drawn(void **state)
{
    (void)state;
    const uint32_t allowed[HOLD_STATE_COUNT] = {
        [HOLD_ACTIVE] = BIT(HOLD_ACTIVE) | BIT(HOLD_CONVERTED) | BIT(HOLD_EXPIRED) | BIT(HOLD_CANCELLED),
    };
    check_moves(move_hold, HOLD_STATE_COUNT, allowed);
}

static void test_checkouts_move_as_drawn(void **state)
{
    (void)state;
    const uint32_t allowed[CHECKOUT_STATE_COUNT] = {
        [CHECKOUT_PENDING_PAYMENT] = BIT(CHECKOUT_PENDING_PAYMENT) | BIT(CHECKOUT_PROCESSING) |
                                     BIT(CHECKOUT_CANCELLED) | BIT(CHECKOUT_EXPIRED),
        [CHECKOUT_PROCESSING] = BIT(CHECKOUT_PROCESSING) | BIT(CHECKOUT_COMPLETED) | BIT(CHECKOUT_FAILED),
        [CHECKOUT_COMPLETED] = BIT(CHECKOUT_REFUNDED),
        [CHECKOUT_FAILED] = BIT(CHECKOUT_FAILED) | BIT(CHECKOUT_COMPLETED),
        [CHECKOUT_REFUNDED] = BIT(CHECKOUT_REFUNDED),
    };
    check_moves(move_checkout, CHECKOUT_STATE_COUNT, allowed);
}

static void test_events_move_as_drawn(void **state)
{
    (void)state;
    const uint32_t allowed[EVENT_STATE_COUNT] = {
        [EVENT_DRAFT] = BIT(EVENT_PUBLISHED) | BIT(EVENT_CANCELLED),
        [EVENT_PUBLISHED] = BIT(EVENT_LIVE) | BIT(EVENT_CANCELLED),
        [EVENT_LIVE] = BIT(EVENT_ARCHIVED) | BIT(EVENT_CANCELLED),
    };
    for (int from = 0; from < EVENT_STATE_COUNT; from++) {
        for (int to = 0; to < EVENT_STATE_COUNT; to++) {
            bool expected = from == to || (allowed[from] >> to & 1);
            assert_int_equal(event_move((enum event_state)from, (enum event_state)to),
                             expected ? ERR_OK : ERR_INVALID_TRANSITION);
        }
    }
}

static void test_seats_are_held_only_while_published_or_live(void **state)
{
    (void)state;
    for (int at = 0; at < EVENT_STATE_COUNT; at++) {
        struct event_row event = {.state = (enum event_state)at};
        bool open = at == EVENT_PUBLISHED || at == EVENT_LIVE;
        assert_int_equal(event_is_open(event.state), open);
        assert_int_equal(event_check_open(&event), open ? ERR_OK : ERR_EVENT_NOT_AVAILABLE);
    }
}

static void test_the_sale_window_includes_both_ends(void **state)
{
    (void)state;
    struct event_row event = {.sale_start_ms = 1000, .sale_end_ms = 2000};
    assert_int_equal(event_check_window(&event, 999), ERR_EVENT_SALES_CLOSED);
    assert_int_equal(event_check_window(&event, 1000), ERR_OK);
    assert_int_equal(event_check_window(&event, 2000), ERR_OK);
    assert_int_equal(event_check_window(&event, 2001), ERR_EVENT_SALES_CLOSED);
    event = (struct event_row){.sale_start_ms = INT64_MIN, .sale_end_ms = INT64_MAX};
    assert_int_equal(event_check_window(&event, 0), ERR_OK);
}

/* ---- Asking for a seat ---- */

static void test_a_free_seat_is_granted(void **state)
{
    (void)state;
    struct policy policy = policy_of_tests();
    assert_int_equal(rule_reserve(SEAT_AVAILABLE, NULL, &mine, &policy, 5).verdict, RESERVE_GRANT);
}

static void test_sold_and_blocked_seats_are_not_available(void **state)
{
    (void)state;
    struct policy policy = policy_of_tests();
    const enum seat_state states[] = {SEAT_SOLD, SEAT_BLOCKED};
    for (size_t i = 0; i < COUNT_OF(states); i++) {
        struct reserve_decision decision = rule_reserve(states[i], NULL, &mine, &policy, 5);
        assert_int_equal(decision.verdict, RESERVE_REFUSE);
        assert_int_equal(decision.err, ERR_SEAT_NOT_AVAILABLE);
        assert_int_equal(decision.expires_ms, 0);
    }
}

static void test_ones_own_hold_is_the_answer_until_it_runs_out(void **state)
{
    (void)state;
    struct policy policy = policy_of_tests();
    struct holder holder = {.user_id = mine, .held_until_ms = 10000};
    assert_int_equal(rule_reserve(SEAT_HELD, &holder, &mine, &policy, 9999).verdict, RESERVE_MINE);
    assert_int_equal(rule_reserve(SEAT_HELD, &holder, &mine, &policy, 10000).verdict, RESERVE_RENEW);
    assert_int_equal(rule_reserve(SEAT_HELD, &holder, &mine, &policy, 99999).verdict, RESERVE_RENEW);
    holder.paying = true; /* a payment pins it, however late it is */
    assert_int_equal(rule_reserve(SEAT_HELD, &holder, &mine, &policy, 99999).verdict, RESERVE_MINE);
}

static void test_others_are_told_when_to_come_back(void **state)
{
    (void)state;
    struct policy policy = policy_of_tests();
    struct holder holder = {.user_id = yours, .held_until_ms = 10000};
    struct reserve_decision before = rule_reserve(SEAT_HELD, &holder, &mine, &policy, 9999);
    assert_int_equal(before.verdict, RESERVE_REFUSE);
    assert_int_equal(before.err, ERR_SEAT_HELD);
    assert_int_equal(before.expires_ms, 10000);
    struct reserve_decision after = rule_reserve(SEAT_HELD, &holder, &mine, &policy, 10000);
    assert_int_equal(after.err, ERR_SEAT_HELD); /* until it is released */
    assert_int_equal(after.expires_ms, 20000);
}

/* ---- Time ---- */

static void test_a_hold_lasts_its_time_from_the_next_whole_second(void **state)
{
    (void)state;
    struct policy policy = policy_of_tests();
    assert_int_equal(rule_hold_until(&policy, 5000), 305000);
    assert_int_equal(rule_hold_until(&policy, 5001), 306000);
}

static void test_a_hold_lapses_at_its_time_unless_pinned(void **state)
{
    (void)state;
    struct policy policy = policy_of_tests();
    assert_false(hold_is_lapsed(10000, false, 9999));
    assert_true(hold_is_lapsed(10000, false, 10000));
    assert_false(hold_is_lapsed(10000, true, 10000));
    assert_int_equal(hold_release_ms(10000, &policy), 20000);
}

static void test_an_extension_adds_up_to_the_cap(void **state)
{
    (void)state;
    struct policy policy = policy_of_tests();
    int64_t until = 0;
    assert_int_equal(rule_extend(0, 300000, false, &policy, 299999, &until), ERR_OK);
    assert_int_equal(until, 600000);
    assert_int_equal(rule_extend(0, 1100000, false, &policy, 5, &until), ERR_OK);
    assert_int_equal(until, 1200000);
    until = -1;
    assert_int_equal(rule_extend(0, 1200000, false, &policy, 5, &until), ERR_EXTENSION_LIMIT_REACHED);
    assert_int_equal(rule_extend(0, 300000, false, &policy, 300000, &until), ERR_HOLDS_EXPIRED);
    assert_int_equal(rule_extend(0, 300000, true, &policy, 5, &until), ERR_PAYMENT_IN_PROGRESS);
    assert_int_equal(until, -1);
}

static void test_an_extension_never_shortens(void **state)
{
    (void)state;
    struct policy policy = policy_of_tests();
    policy.hold_ttl_seconds = 300;
    policy.hold_max_seconds = 300; /* an admin lowered the cap meanwhile */
    int64_t until = -1;
    assert_int_equal(rule_checkout_until(0, 900000, &policy), 900000);
    assert_int_equal(rule_extend(0, 900000, false, &policy, 5, &until), ERR_EXTENSION_LIMIT_REACHED);
    policy = policy_of_tests();
    policy.checkout_extension_seconds = 0;
    assert_int_equal(rule_checkout_until(0, 300000, &policy), 300000);
}

static void test_a_checkout_at_the_cap_still_starts(void **state)
{
    (void)state;
    struct policy policy = policy_of_tests();
    assert_int_equal(rule_checkout_until(0, 1200000, &policy), 1200000);
    assert_int_equal(rule_checkout_until(0, 300000, &policy), 600000);
}

/* ---- Checkouts, ends, limits ---- */

static void test_what_may_be_paid_and_cancelled(void **state)
{
    (void)state;
    const enum err pay[CHECKOUT_STATE_COUNT] = {
        [CHECKOUT_PENDING_PAYMENT] = ERR_OK,
        [CHECKOUT_PROCESSING] = ERR_OK,
        [CHECKOUT_COMPLETED] = ERR_OK,
        [CHECKOUT_FAILED] = ERR_CHECKOUT_NOT_PAYABLE,
        [CHECKOUT_CANCELLED] = ERR_CHECKOUT_NOT_PAYABLE,
        [CHECKOUT_EXPIRED] = ERR_CHECKOUT_NOT_PAYABLE,
        [CHECKOUT_REFUNDED] = ERR_CHECKOUT_NOT_PAYABLE,
    };
    const enum err cancel[CHECKOUT_STATE_COUNT] = {
        [CHECKOUT_PENDING_PAYMENT] = ERR_OK,
        [CHECKOUT_PROCESSING] = ERR_PAYMENT_IN_PROGRESS,
        [CHECKOUT_COMPLETED] = ERR_CHECKOUT_NOT_CANCELLABLE,
        [CHECKOUT_FAILED] = ERR_CHECKOUT_NOT_CANCELLABLE,
        [CHECKOUT_CANCELLED] = ERR_OK,
        [CHECKOUT_EXPIRED] = ERR_CHECKOUT_NOT_CANCELLABLE,
        [CHECKOUT_REFUNDED] = ERR_CHECKOUT_NOT_CANCELLABLE,
    };
    for (int i = 0; i < CHECKOUT_STATE_COUNT; i++) {
        assert_int_equal(rule_checkout_pay((enum checkout_state)i), pay[i]);
        assert_int_equal(rule_checkout_cancel((enum checkout_state)i), cancel[i]);
    }
}

static void test_why_it_ended_says_what_it_becomes(void **state)
{
    (void)state;
    assert_int_equal(rule_hold_ended(END_TTL_EXPIRED), HOLD_EXPIRED);
    assert_int_equal(rule_hold_ended(END_USER_CANCELLED), HOLD_CANCELLED);
    assert_int_equal(rule_hold_ended(END_PAYMENT_FAILED), HOLD_CANCELLED);
    assert_int_equal(rule_hold_ended(END_ADMIN_OVERRIDE), HOLD_CANCELLED);
    assert_int_equal(rule_checkout_emptied(END_TTL_EXPIRED), CHECKOUT_EXPIRED);
    assert_int_equal(rule_checkout_emptied(END_USER_CANCELLED), CHECKOUT_CANCELLED);
    assert_int_equal(rule_checkout_emptied(END_ADMIN_OVERRIDE), CHECKOUT_CANCELLED);
    assert_string_equal(end_reason_scenario(END_TTL_EXPIRED), "A");
    assert_string_equal(end_reason_scenario(END_USER_CANCELLED), "B");
    assert_string_equal(end_reason_scenario(END_PAYMENT_FAILED), "C");
    assert_string_equal(end_reason_scenario(END_ADMIN_OVERRIDE), "D");
    assert_null(end_reason_scenario(END_NONE));
}

static void test_the_hold_limit_is_exact_and_zero_is_none(void **state)
{
    (void)state;
    struct policy policy = policy_of_tests();
    policy.max_seats_per_user = 4;
    assert_true(rule_hold_limit_allows(&policy, 3, 1));
    assert_false(rule_hold_limit_allows(&policy, 4, 1));
    assert_false(rule_hold_limit_allows(&policy, 2, 3));
    assert_true(rule_hold_limit_allows(&policy, 4, 0)); /* nothing new */
    policy.max_seats_per_user = 0;
    assert_true(rule_hold_limit_allows(&policy, 100000, 50));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seats_move_as_drawn),
        cmocka_unit_test(test_holds_move_as_drawn),
        cmocka_unit_test(test_checkouts_move_as_drawn),
        cmocka_unit_test(test_events_move_as_drawn),
        cmocka_unit_test(test_seats_are_held_only_while_published_or_live),
        cmocka_unit_test(test_the_sale_window_includes_both_ends),
        cmocka_unit_test(test_a_free_seat_is_granted),
        cmocka_unit_test(test_sold_and_blocked_seats_are_not_available),
        cmocka_unit_test(test_ones_own_hold_is_the_answer_until_it_runs_out),
        cmocka_unit_test(test_others_are_told_when_to_come_back),
        cmocka_unit_test(test_a_hold_lasts_its_time_from_the_next_whole_second),
        cmocka_unit_test(test_a_hold_lapses_at_its_time_unless_pinned),
        cmocka_unit_test(test_an_extension_adds_up_to_the_cap),
        cmocka_unit_test(test_an_extension_never_shortens),
        cmocka_unit_test(test_a_checkout_at_the_cap_still_starts),
        cmocka_unit_test(test_what_may_be_paid_and_cancelled),
        cmocka_unit_test(test_why_it_ended_says_what_it_becomes),
        cmocka_unit_test(test_the_hold_limit_is_exact_and_zero_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
