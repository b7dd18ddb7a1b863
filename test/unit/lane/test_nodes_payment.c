/* SPDX-License-Identifier: Apache-2.0
 * Checkouts and money among two nodes: what one of them does with a checkout
 * while the other one is at it too, or does not know yet what became of its own
 * part. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/limits.h"
#include "nodes_stage.h"

/* ---- Fixtures ---- */

static struct uuid checkout_of_seat(struct nodes *nodes, int32_t seat)
{
    assert_int_equal(nodes_do(nodes, ask_seat(nodes->a, 0, seat)), ERR_OK);
    struct ask *start = ask_checkout(nodes->a, 0);
    assert_int_equal(nodes_do(nodes, start), ERR_OK);
    return start->command.result.checkout.id;
}

/* The checkout of seat 0 is begun by node a, which does not get to know that it was committed. */
static struct uuid checkout_whose_answer_is_lost(struct nodes *nodes)
{
    assert_int_equal(nodes_do(nodes, ask_seat(nodes->a, 0, 0)), ERR_OK);
    nodes_pass(nodes, 300);
    nodes_lose_answers(nodes->a);
    struct ask *start = ask_checkout(nodes->a, 0);
    stage_post(start);
    nodes_pass(nodes, 300);
    assert_int_equal(start->command.result.err, ERR_OUTCOME_UNKNOWN);
    struct ask *again = ask_checkout(nodes->b, 0);
    assert_int_equal(nodes_do(nodes, again), ERR_OK);
    return again->command.result.checkout.id;
}

/* Declined, and its seat is somebody else's since: money that comes now is owed back. */
static struct uuid checkout_that_failed(struct nodes *nodes)
{
    struct uuid checkout = checkout_of_seat(nodes, 0);
    stage_post(ask_id(nodes->a, COMMAND_CHECKOUT_COMPLETE, 0, &checkout));
    nodes_pass(nodes, 20);
    stage_post(ask_settled(nodes->a, &checkout, PAYMENT_DECLINED));
    nodes_finish(nodes);
    nodes_pass(nodes, 300);
    assert_int_equal(nodes_do(nodes, ask_seat(nodes->b, 1, 0)), ERR_OK);
    nodes_pass(nodes, 300);
    return checkout;
}

/* ---- An answer that comes after what rests on it ---- */

static void test_a_seat_pinned_elsewhere_is_not_expired_by_who_began_its_checkout(void **state)
{
    struct nodes *nodes = *state;
    struct uuid checkout = checkout_whose_answer_is_lost(nodes);
    struct ask *pay = ask_id(nodes->b, COMMAND_CHECKOUT_COMPLETE, 0, &checkout);
    stage_post(pay);
    nodes_pass(nodes, 500);
    assert_int_equal(nodes->b->charge_count, 1);
    stage_calm(nodes->a);
    nodes_pass(nodes, 3000);
    const struct hot_hold *hold = stage_event(nodes->a)->seats[0].hold;
    assert_non_null(hold);
    assert_non_null(hold->checkout); /* of a payment under way: its time does not run out */
    nodes_pass(nodes, 90000);
    assert_int_equal(stage_seat(nodes->a, 0), SEAT_HELD);
    assert_int_equal(stage_checkout_row(nodes->a, &checkout)->state, CHECKOUT_PROCESSING);
    stage_post(ask_settled(nodes->b, &checkout, PAYMENT_PAID));
    nodes_finish(nodes);
    assert_int_equal(stage_seat(nodes->a, 0), SEAT_SOLD);
    assert_int_equal(stage_ticket_count(nodes->a), 1);
    assert_int_equal(nodes->a->charge_count + nodes->b->charge_count, 1);
    nodes_check_rest(nodes);
}

static void test_a_checkout_cancelled_elsewhere_does_not_come_back_with_a_late_answer(void **state)
{
    struct nodes *nodes = *state;
    struct uuid checkout = checkout_whose_answer_is_lost(nodes);
    assert_int_equal(nodes_do(nodes, ask_id(nodes->b, COMMAND_CHECKOUT_CANCEL, 0, &checkout)), ERR_OK);
    nodes_pass(nodes, 300);
    stage_calm(nodes->a);
    nodes_pass(nodes, 3000);
    assert_null(map_get(&nodes->a->lane->hot->checkouts, &checkout));
    struct ask *get = ask_id(nodes->a, COMMAND_CHECKOUT_GET, 0, &checkout);
    assert_int_equal(nodes_do(nodes, get), ERR_OK);
    assert_int_equal(get->command.result.checkout.state, CHECKOUT_CANCELLED);
    nodes_check_rest(nodes);
}

/* ---- The gateway's answer ---- */

/* It may wait for the gateway longer than commands may wait for the lane: that must not count when it is decided
 * again, because what the other node wrote has no tickets in it. */
static void test_a_complete_that_waited_long_gets_its_tickets_from_the_node_that_was_told(void **state)
{
    struct nodes *nodes = *state;
    struct uuid checkout = checkout_of_seat(nodes, 0);
    struct ask *pay = ask_id(nodes->a, COMMAND_CHECKOUT_COMPLETE, 0, &checkout);
    stage_post(pay);
    _Static_assert(COMMAND_WAIT_MS_MAX + 1000 < PAYMENT_WAIT_MS_MAX, "it waits still");
    nodes_pass(nodes, COMMAND_WAIT_MS_MAX + 500);
    assert_false(pay->done);
    assert_int_equal(nodes->a->charge_count, 1);
    stage_post(ask_settled(nodes->b, &checkout, PAYMENT_PAID));
    nodes_finish(nodes);
    assert_int_equal(pay->command.result.err, ERR_OK);
    assert_int_equal(pay->command.result.status, 200);
    assert_int_equal(pay->command.result.ticket_count, 1);
    assert_int_equal(stage_ticket_count(nodes->a), 1);
    nodes_check_rest(nodes);
}

/* Nobody pinned it, so nobody will, and there is nothing to wait for. */
static void test_money_for_a_checkout_that_nobody_pinned_is_answered(void **state)
{
    struct nodes *nodes = *state;
    struct uuid checkout = checkout_of_seat(nodes, 0);
    struct ask *paid = ask_settled(nodes->a, &checkout, PAYMENT_PAID);
    stage_post(paid);
    nodes_pass(nodes, 1000);
    assert_true(paid->done);
    assert_int_equal(stage_checkout_row(nodes->a, &checkout)->state, CHECKOUT_PENDING_PAYMENT);
    assert_int_equal(stage_seat(nodes->a, 0), SEAT_HELD);
    nodes_check_rest(nodes);
}

/* ---- Late money ---- */

static void test_late_money_that_both_nodes_hear_of_is_given_back_once(void **state)
{
    struct nodes *nodes = *state;
    struct uuid checkout = checkout_that_failed(nodes);
    /* Node a has a commit under way that takes long: what it decides about the money gathers behind it. */
    stage_faults(nodes->a, (struct sim_faults){.delay_ms_max = 4000});
    struct ask *slow = ask_seat(nodes->a, 2, 5);
    stage_post(slow);
    nodes_pass(nodes, 1);
    stage_calm(nodes->a);
    struct ask *one = ask_settled(nodes->a, &checkout, PAYMENT_PAID);
    stage_post(one);
    for (int i = 0; i < 100 && nodes->a->lane->settling.count == 0; i++)
        nodes_pass(nodes, 1);
    assert_int_equal(nodes->a->lane->settling.count, 1);
    /* Meanwhile the other node is told, and its change comes into a's memory before a's own is tried. */
    struct ask *two = ask_settled(nodes->b, &checkout, PAYMENT_PAID);
    assert_int_equal(nodes_do_alone(nodes, two), ERR_OK);
    nodes_pass(nodes, 2 * FOLLOW_INTERVAL_MS);
    assert_false(slow->done);
    assert_false(one->done);
    nodes_finish(nodes);
    assert_int_equal(stage_checkout_row(nodes->a, &checkout)->refund, REFUND_OWED);
    assert_int_equal(nodes->a->refund_count + nodes->b->refund_count, 1);
    assert_int_equal(nodes->a->lane->settling.count, 0);
    nodes_check_rest(nodes);
}

/* The node that asks renews its lease again and again: each time the same row with the same debt. */
static void test_an_owed_refund_is_asked_for_once_however_long_it_takes(void **state)
{
    struct nodes *nodes = *state;
    struct uuid checkout = checkout_that_failed(nodes);
    assert_int_equal(nodes_do(nodes, ask_settled(nodes->a, &checkout, PAYMENT_PAID)), ERR_OK);
    assert_int_equal(nodes->a->refund_count, 1);
    int32_t version = stage_checkout_row(nodes->a, &checkout)->version;
    nodes_pass(nodes, 3 * PAYER_LEASE_MS);
    assert_true(stage_checkout_row(nodes->a, &checkout)->version >= version + 3);
    assert_int_equal(nodes->a->refund_count, 1);
    assert_int_equal(nodes->b->refund_count, 0);
}

int main(void)
{
#define ON_NODES(test) cmocka_unit_test_setup_teardown(test, nodes_setup, nodes_teardown)
    const struct CMUnitTest tests[] = {
        ON_NODES(test_a_seat_pinned_elsewhere_is_not_expired_by_who_began_its_checkout),
        ON_NODES(test_a_checkout_cancelled_elsewhere_does_not_come_back_with_a_late_answer),
        ON_NODES(test_a_complete_that_waited_long_gets_its_tickets_from_the_node_that_was_told),
        ON_NODES(test_money_for_a_checkout_that_nobody_pinned_is_answered),
        ON_NODES(test_late_money_that_both_nodes_hear_of_is_given_back_once),
        ON_NODES(test_an_owed_refund_is_asked_for_once_however_long_it_takes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
