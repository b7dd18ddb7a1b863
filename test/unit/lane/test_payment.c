/* SPDX-License-Identifier: Apache-2.0
 * Paying: pinned seats, every answer a gateway can give, and none; money that
 * comes late, twice, or for an event that is no more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/limits.h"
#include "stage.h"

/* Two seats of user 0, ready to be paid for. */
static struct uuid two_seats(struct stage *stage)
{
    stage_hold(stage, 0, 0);
    stage_hold(stage, 0, 1);
    return stage_checkout(stage, 0);
}

static void settle(struct stage *stage, const struct uuid *checkout, enum payment_outcome outcome)
{
    struct ask *ask = ask_settled(stage, checkout, outcome);
    stage_post(ask);
    for (int i = 0; i < 5000 && !ask->done; i++) {
        stage->now_ms++;
        stage_turn(stage);
    }
    assert_true(ask->done);
}

/* Pinned, never answered, failed when its time is over. */
static void pay_in_vain(struct stage *stage, const struct uuid *checkout)
{
    stage_pay(stage, 0, checkout);
    stage_pass(stage, 62 * 1000);
    assert_int_equal(stage_checkout_row(stage, checkout)->state, CHECKOUT_FAILED);
}

static void test_a_paid_checkout_sells_its_seats(void **state)
{
    struct stage *stage = *state;
    struct uuid checkout = two_seats(stage);
    struct ask *pay = stage_pay(stage, 0, &checkout);
    assert_int_equal(stage->charges[0].amount_cents, 9000);
    assert_int_equal(stage->charges[0].attempt, 1);
    assert_string_equal(stage->charges[0].token, "tok_ok");
    assert_int_equal(stage_checkout_row(stage, &checkout)->state, CHECKOUT_PROCESSING);
    settle(stage, &checkout, PAYMENT_PAID);
    assert_true(pay->done);
    assert_int_equal(pay->command.result.err, ERR_OK);
    assert_int_equal(pay->command.result.status, 200);
    assert_int_equal(pay->command.result.ticket_count, 2);
    assert_int_equal(pay->command.result.checkout.state, CHECKOUT_COMPLETED);
    assert_null(pay->command.result.checkout.payment_token);
    assert_int_equal(stage_seat(stage, 0), SEAT_SOLD);
    assert_int_equal(stage_seat(stage, 1), SEAT_SOLD);
    assert_int_equal(stage_ticket_count(stage), 2);
    assert_int_equal(stage_do(ask_seat(stage, 1, 0)), ERR_SEAT_NOT_AVAILABLE);
    stage_pass(stage, 200 * 1000); /* no timer touches what is sold */
    assert_int_equal(stage_seat(stage, 0), SEAT_SOLD);
    stage_check_rest(stage);
}

static void test_completing_again_gives_the_same_tickets(void **state)
{
    struct stage *stage = *state;
    struct uuid checkout = two_seats(stage);
    struct ask *pay = stage_pay(stage, 0, &checkout);
    struct ask *meanwhile = ask_id(stage, COMMAND_CHECKOUT_COMPLETE, 0, &checkout);
    stage_post(meanwhile);
    stage_pass(stage, 10);
    assert_true(meanwhile->done);
    assert_int_equal(meanwhile->command.result.status, 202);
    settle(stage, &checkout, PAYMENT_PAID);
    struct ask *again = ask_id(stage, COMMAND_CHECKOUT_COMPLETE, 0, &checkout);
    assert_int_equal(stage_do(again), ERR_OK);
    assert_int_equal(again->command.result.status, 200);
    assert_int_equal(again->command.result.ticket_count, 2);
    assert_int_equal(stage->charge_count, 1);
    assert_int_equal(pay->command.result.status, 200);
    assert_int_equal(stage_do(ask_id(stage, COMMAND_CHECKOUT_CANCEL, 0, &checkout)),
                     ERR_CHECKOUT_NOT_CANCELLABLE);
    stage_check_rest(stage);
}

static void test_a_declined_payment_releases_the_seats(void **state)
{
    struct stage *stage = *state;
    struct uuid checkout = two_seats(stage);
    struct ask *pay = stage_pay(stage, 0, &checkout);
    settle(stage, &checkout, PAYMENT_DECLINED);
    assert_true(pay->done);
    assert_int_equal(pay->command.result.err, ERR_PAYMENT_FAILED);
    assert_int_equal(stage_checkout_row(stage, &checkout)->state, CHECKOUT_FAILED);
    assert_int_equal(stage_seat(stage, 0), SEAT_AVAILABLE);
    assert_int_equal(stage_ticket_count(stage), 0);
    assert_int_equal(stage_do(ask_id(stage, COMMAND_CHECKOUT_COMPLETE, 0, &checkout)),
                     ERR_CHECKOUT_NOT_PAYABLE);
    assert_int_equal(stage_do(ask_seat(stage, 1, 0)), ERR_OK);
    stage_check_rest(stage);
}

static void test_a_pinned_hold_outlives_its_time_and_nobody_releases_it(void **state)
{
    struct stage *stage = *state;
    struct uuid hold = stage_hold(stage, 0, 0);
    struct uuid checkout = stage_checkout(stage, 0);
    stage_pass(stage, stage_hold_row(stage, &hold)->held_until_ms - stage->now_ms - 1000);
    stage_pay(stage, 0, &checkout);
    stage_pass(stage, 40 * 1000); /* past held_until, grace and a reaper's turn */
    assert_int_equal(stage_seat(stage, 0), SEAT_HELD);
    struct ask *release = ask_id(stage, COMMAND_HOLD_RELEASE, 0, &hold);
    struct ask *extend = ask_id(stage, COMMAND_HOLD_EXTEND, 0, &hold);
    struct ask *cancel = ask_id(stage, COMMAND_CHECKOUT_CANCEL, 0, &checkout);
    struct ask *admin = ask_release_event(stage);
    int32_t seat = 0;
    struct ask *block = ask_block(stage, &seat, 1);
    struct ask *other = ask_seat(stage, 1, 0);
    struct ask *all[] = {release, extend, cancel, admin, block, other};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        stage_post(all[i]);
    stage_pass(stage, 99);
    assert_int_equal(release->command.result.err, ERR_PAYMENT_IN_PROGRESS);
    assert_int_equal(extend->command.result.err, ERR_PAYMENT_IN_PROGRESS);
    assert_int_equal(cancel->command.result.err, ERR_PAYMENT_IN_PROGRESS);
    assert_int_equal(admin->command.result.err, ERR_OK);
    assert_int_equal(admin->command.result.hold_count, 0);
    assert_int_equal(admin->command.result.failures[0].err, ERR_PAYMENT_IN_PROGRESS);
    assert_int_equal(block->command.result.err, ERR_PAYMENT_IN_PROGRESS);
    assert_int_equal(other->command.result.err, ERR_SEAT_HELD);
    settle(stage, &checkout, PAYMENT_PAID);
    assert_int_equal(stage_seat(stage, 0), SEAT_SOLD);
    stage_check_rest(stage);
}

static void test_a_payment_with_a_lapsed_hold_charges_nothing(void **state)
{
    struct stage *stage = *state;
    struct uuid first = stage_hold(stage, 0, 0);
    stage_pass(stage, 20 * 1000);
    struct uuid second = stage_hold(stage, 0, 1);
    struct uuid checkout = stage_checkout(stage, 0);
    stage_pass(stage, stage_hold_row(stage, &first)->held_until_ms - stage->now_ms + 1000);
    assert_int_equal(stage_do(ask_id(stage, COMMAND_CHECKOUT_COMPLETE, 0, &checkout)), ERR_HOLDS_EXPIRED);
    assert_int_equal(stage->charge_count, 0);
    assert_int_equal(stage_checkout_row(stage, &checkout)->state, CHECKOUT_EXPIRED);
    assert_int_equal(stage_hold_row(stage, &second)->state, HOLD_ACTIVE);
    assert_true(uuid_is_nil(&stage_hold_row(stage, &second)->checkout_id));
    stage_check_rest(stage);
    stage_checkout(stage, 0); /* the other one can be paid for on its own */
    stage_check_rest(stage);
}

static void test_an_unknown_answer_is_202_and_settled_later(void **state)
{
    struct stage *stage = *state;
    struct uuid checkout = two_seats(stage);
    struct ask *pay = stage_pay(stage, 0, &checkout);
    settle(stage, &checkout, PAYMENT_UNKNOWN);
    assert_true(pay->done);
    assert_int_equal(pay->command.result.err, ERR_OK);
    assert_int_equal(pay->command.result.status, 202);
    assert_int_equal(stage_seat(stage, 0), SEAT_HELD);
    settle(stage, &checkout, PAYMENT_PAID);
    assert_int_equal(stage_checkout_row(stage, &checkout)->state, CHECKOUT_COMPLETED);
    stage_check_rest(stage);
}

static void test_a_gateway_that_says_nothing_is_202_after_a_while(void **state)
{
    struct stage *stage = *state;
    struct uuid checkout = two_seats(stage);
    struct ask *pay = stage_pay(stage, 0, &checkout);
    stage_pass(stage, PAYMENT_WAIT_MS_MAX + 1100);
    assert_true(pay->done);
    assert_int_equal(pay->command.result.status, 202);
    stage_pass(stage, 55 * 1000);
    assert_int_equal(stage_checkout_row(stage, &checkout)->state, CHECKOUT_FAILED);
    assert_int_equal(stage_seat(stage, 0), SEAT_AVAILABLE);
    stage_check_rest(stage);
}

static void test_the_end_of_a_payment_is_tried_until_the_store_takes_it(void **state)
{
    struct stage *stage = *state;
    struct uuid checkout = two_seats(stage);
    stage_pay(stage, 0, &checkout);
    stage_faults(stage, (struct sim_faults){.fail = 1000});
    stage_pass(stage, 65 * 1000); /* its time is over, and nothing can be written */
    assert_int_equal(stage_checkout_row(stage, &checkout)->state, CHECKOUT_PROCESSING);
    stage_calm(stage);
    stage_pass(stage, 3000);
    assert_int_equal(stage_checkout_row(stage, &checkout)->state, CHECKOUT_FAILED);
    stage_check_rest(stage);
}

static void test_a_settlement_is_not_lost_when_the_store_is_away(void **state)
{
    struct stage *stage = *state;
    struct uuid checkout = two_seats(stage);
    struct ask *pay = stage_pay(stage, 0, &checkout);
    stage_faults(stage, (struct sim_faults){.fail = 1000});
    stage_post(ask_settled(stage, &checkout, PAYMENT_PAID));
    stage_pass(stage, 5000);
    assert_false(pay->done);
    stage_calm(stage);
    stage_finish(stage);
    assert_int_equal(pay->command.result.status, 200);
    assert_int_equal(stage_ticket_count(stage), 2);
    stage_check_rest(stage);
}

static void test_a_settlement_told_twice_sells_once(void **state)
{
    struct stage *stage = *state;
    struct uuid checkout = two_seats(stage);
    stage_pay(stage, 0, &checkout);
    for (int i = 0; i < 3; i++)
        stage_post(ask_settled(stage, &checkout, PAYMENT_PAID));
    stage_turn(stage);
    stage_post(ask_settled(stage, &checkout, PAYMENT_PAID));
    stage_post(ask_settled(stage, &checkout, PAYMENT_DECLINED));
    stage_finish(stage);
    assert_int_equal(stage_ticket_count(stage), 2);
    assert_int_equal(stage_checkout_row(stage, &checkout)->state, CHECKOUT_COMPLETED);
    assert_int_equal(stage_checkout_row(stage, &checkout)->refund, REFUND_NONE);
    assert_int_equal(stage->refund_count, 0);
    stage_check_rest(stage);
}

static void test_a_restart_asks_the_gateway_again(void **state)
{
    struct stage *stage = *state;
    struct uuid checkout = two_seats(stage);
    stage_pay(stage, 0, &checkout);
    stage_restart(stage);
    assert_int_equal(stage->charge_count, 2);
    assert_memory_equal(&stage->charges[1].checkout_id, &checkout, sizeof(checkout));
    assert_int_equal(stage->charges[1].attempt, 2);
    assert_string_equal(stage->charges[1].token, "tok_ok");
    stage_pass(stage, 20 * 1000);
    assert_int_equal(stage_seat(stage, 0), SEAT_HELD); /* pinned as before */
    settle(stage, &checkout, PAYMENT_PAID);
    assert_int_equal(stage_ticket_count(stage), 2);
    stage_check_rest(stage);
}

static void test_nothing_is_charged_when_the_pin_is_not_committed(void **state)
{
    struct stage *stage = *state;
    struct uuid checkout = two_seats(stage);
    stage_faults(stage, (struct sim_faults){.fail = 1000});
    assert_int_equal(stage_do(ask_id(stage, COMMAND_CHECKOUT_COMPLETE, 0, &checkout)), ERR_STORE_UNAVAILABLE);
    assert_int_equal(stage->charge_count, 0);
    stage_faults(stage, (struct sim_faults){.lose_after = 1000, .stay_unknown = 1000});
    assert_int_equal(stage_do(ask_id(stage, COMMAND_CHECKOUT_COMPLETE, 0, &checkout)), ERR_OUTCOME_UNKNOWN);
    assert_int_equal(stage->charge_count, 0); /* not before it is known to be pinned */
    stage_calm(stage);
    stage_pass(stage, 2000);
    assert_int_equal(stage->charge_count, 1);
    settle(stage, &checkout, PAYMENT_PAID);
    stage_check_rest(stage);
}

/* ---- Late money ---- */

static void test_late_money_takes_the_seats_if_all_are_free(void **state)
{
    struct stage *stage = *state;
    struct uuid checkout = two_seats(stage);
    pay_in_vain(stage, &checkout);
    settle(stage, &checkout, PAYMENT_PAID);
    assert_int_equal(stage_checkout_row(stage, &checkout)->state, CHECKOUT_COMPLETED);
    assert_int_equal(stage_seat(stage, 0), SEAT_SOLD);
    assert_int_equal(stage_seat(stage, 1), SEAT_SOLD);
    assert_int_equal(stage_ticket_count(stage), 2);
    struct ask *get = ask_id(stage, COMMAND_CHECKOUT_GET, 0, &checkout);
    assert_int_equal(stage_do(get), ERR_OK);
    assert_int_equal(get->command.result.ticket_count, 2);
    assert_int_equal(get->command.result.checkout_hold_count, 2);
    stage_check_rest(stage);
}

static void test_late_money_is_given_back_if_a_seat_is_taken(void **state)
{
    struct stage *stage = *state;
    struct uuid checkout = two_seats(stage);
    pay_in_vain(stage, &checkout);
    stage_hold(stage, 1, 1);
    settle(stage, &checkout, PAYMENT_PAID);
    assert_int_equal(stage_checkout_row(stage, &checkout)->state, CHECKOUT_FAILED);
    assert_int_equal(stage_checkout_row(stage, &checkout)->refund, REFUND_OWED);
    assert_int_equal(stage_seat(stage, 0), SEAT_AVAILABLE);
    assert_int_equal(stage->refund_count, 1);
    assert_int_equal(stage->refunds[0].amount_cents, 9000);
    /* A refund that is owed survives a restart. */
    stage_restart(stage);
    assert_int_equal(stage->refund_count, 2);
    struct ask *done = ask_id(stage, COMMAND_REFUND_SETTLED, -1, &checkout);
    done->command.actor.role = ROLE_SYSTEM;
    done->command.payment.outcome = PAYMENT_PAID;
    assert_int_equal(stage_do(done), ERR_OK);
    assert_int_equal(stage_checkout_row(stage, &checkout)->refund, REFUND_DONE);
    stage_restart(stage);
    assert_int_equal(stage->refund_count, 2);
    stage_check_rest(stage);
}

static void test_late_money_is_given_back_if_the_block_is_full(void **state)
{
    struct stage *stage = *state;
    stage_hold(stage, 0, STAGE_SEAT_B);
    struct uuid checkout = stage_checkout(stage, 0);
    pay_in_vain(stage, &checkout);
    for (int32_t i = 1; i <= 3; i++)
        stage_hold(stage, 1, STAGE_SEAT_B + i); /* three are all that this block may have */
    settle(stage, &checkout, PAYMENT_PAID);
    assert_int_equal(stage_seat(stage, STAGE_SEAT_B), SEAT_AVAILABLE);
    assert_int_equal(stage_checkout_row(stage, &checkout)->refund, REFUND_OWED);
    stage_check_rest(stage);
}

static void test_late_money_told_twice_is_taken_once(void **state)
{
    struct stage *stage = *state;
    struct uuid checkout = two_seats(stage);
    pay_in_vain(stage, &checkout);
    stage_post(ask_settled(stage, &checkout, PAYMENT_PAID));
    stage_post(ask_settled(stage, &checkout, PAYMENT_PAID));
    stage_finish(stage);
    assert_int_equal(stage_checkout_row(stage, &checkout)->state, CHECKOUT_COMPLETED);
    assert_int_equal(stage_checkout_row(stage, &checkout)->refund, REFUND_NONE);
    assert_int_equal(stage->refund_count, 0);
    assert_int_equal(stage_ticket_count(stage), 2);
    stage_check_rest(stage);
}

static void test_late_money_told_twice_is_given_back_once(void **state)
{
    struct stage *stage = *state;
    struct uuid checkout = two_seats(stage);
    pay_in_vain(stage, &checkout);
    stage_hold(stage, 1, 1);
    stage_post(ask_settled(stage, &checkout, PAYMENT_PAID));
    stage_post(ask_settled(stage, &checkout, PAYMENT_PAID));
    stage_finish(stage);
    assert_int_equal(stage_checkout_row(stage, &checkout)->refund, REFUND_OWED);
    assert_int_equal(stage->refund_count, 1);
    stage_check_rest(stage);
}

static void test_late_money_waits_for_an_uncommitted_seat(void **state)
{
    struct stage *stage = *state;
    struct uuid checkout = two_seats(stage);
    pay_in_vain(stage, &checkout);
    struct ask *late = ask_settled(stage, &checkout, PAYMENT_PAID);
    stage_post(late);
    stage_turn(stage); /* being looked up */
    stage->now_ms++;
    struct ask *other = ask_seat(stage, 1, 1);
    stage_post(other);
    stage_faults(stage, (struct sim_faults){.fail = 1000});
    stage_pass(stage, 2);
    stage_calm(stage);
    stage_finish(stage);
    /* Whoever came first: the seat is sold or held, never both, and the money is accounted for. */
    bool completed = stage_checkout_row(stage, &checkout)->state == CHECKOUT_COMPLETED;
    assert_int_equal(completed, stage_ticket_count(stage) == 2);
    assert_int_equal(completed, stage->refund_count == 0);
    stage_check_rest(stage);
}

/* ---- The event is cancelled meanwhile ---- */

static void test_a_payment_for_a_cancelled_event_is_given_back(void **state)
{
    struct stage *stage = *state;
    struct uuid checkout = two_seats(stage);
    stage_hold(stage, 1, 5);
    struct ask *pay = stage_pay(stage, 0, &checkout);
    struct ask *cancel = ask_event_state(stage, EVENT_CANCELLED);
    stage_post(cancel);
    stage_pass(stage, 99);
    assert_true(cancel->done);
    assert_int_equal(cancel->command.result.err, ERR_OK);
    assert_int_equal(stage_seat(stage, 5), SEAT_AVAILABLE);
    assert_int_equal(stage_seat(stage, 0), SEAT_HELD); /* the payment may finish */
    settle(stage, &checkout, PAYMENT_PAID);
    assert_true(pay->done);
    assert_int_equal(pay->command.result.err, ERR_CHECKOUT_NOT_PAYABLE);
    assert_int_equal(stage_checkout_row(stage, &checkout)->state, CHECKOUT_REFUNDED);
    assert_int_equal(stage_seat(stage, 0), SEAT_AVAILABLE);
    assert_int_equal(stage_ticket_count(stage), 0);
    assert_int_equal(stage->refund_count, 1);
    stage_check_rest(stage);
}

static void test_late_money_for_a_cancelled_event_is_given_back(void **state)
{
    struct stage *stage = *state;
    struct uuid checkout = two_seats(stage);
    pay_in_vain(stage, &checkout);
    assert_int_equal(stage_do(ask_event_state(stage, EVENT_CANCELLED)), ERR_OK);
    settle(stage, &checkout, PAYMENT_PAID);
    assert_int_equal(stage_checkout_row(stage, &checkout)->refund, REFUND_OWED);
    assert_int_equal(stage->refund_count, 1);
    stage_check_rest(stage);
}

static void test_nothing_is_charged_for_an_event_that_is_being_emptied(void **state)
{
    struct stage *stage = *state;
    struct uuid checkout = two_seats(stage);
    struct ask *cancel = ask_event_state(stage, EVENT_CANCELLED);
    stage_post(cancel);
    stage_until_event(stage, EVENT_CANCELLED); /* its seats come back next */
    stage_faults(stage, (struct sim_faults){.fail = 1000});
    stage_pass(stage, 5); /* … but the store takes nothing more */
    stage_calm(stage);
    assert_int_equal(stage_seat(stage, 0), SEAT_HELD);
    struct ask *pay = ask_id(stage, COMMAND_CHECKOUT_COMPLETE, 0, &checkout);
    stage_post(pay);
    stage_pass(stage, 50);
    assert_true(pay->done);
    assert_int_not_equal(pay->command.result.err, ERR_OK);
    assert_int_equal(stage->charge_count, 0);
    stage_pass(stage, 2000);
    assert_int_equal(stage_seat(stage, 0), SEAT_AVAILABLE);
    assert_int_equal(stage_checkout_row(stage, &checkout)->state, CHECKOUT_CANCELLED);
    stage_check_rest(stage);
}

/* ---- Checkouts ---- */

static void test_a_checkout_extends_its_holds_once(void **state)
{
    struct stage *stage = *state;
    struct uuid hold = stage_hold(stage, 0, 0);
    int64_t until_ms = stage_hold_row(stage, &hold)->held_until_ms;
    struct uuid first = stage_checkout(stage, 0), second = stage_checkout(stage, 0);
    assert_memory_equal(&first, &second, sizeof(first));
    assert_int_equal(stage_hold_row(stage, &hold)->held_until_ms, until_ms + 60000);
    stage_check_rest(stage);
}

static void test_a_hold_named_in_another_checkout_moves_there(void **state)
{
    struct stage *stage = *state;
    struct uuid hold = stage_hold(stage, 0, 0);
    stage_hold(stage, 0, STAGE_SEAT_B);
    struct uuid both = stage_checkout(stage, 0);
    struct ask *one = ask_checkout(stage, 0);
    one->command.checkout_start.hold_ids = arena_copy(&one->arena, &hold, sizeof(hold));
    one->command.checkout_start.hold_count = 1;
    assert_int_equal(stage_do(one), ERR_OK);
    assert_int_equal(one->command.result.status, 201);
    assert_int_equal(one->command.result.checkout.total_cents, 4500);
    assert_int_equal(stage_checkout_row(stage, &both)->state, CHECKOUT_PENDING_PAYMENT);
    assert_int_equal(stage_checkout_row(stage, &both)->total_cents, 2500);
    stage_check_rest(stage);
    /* And back, all of them: both old ones are empty, and over. */
    struct uuid all = stage_checkout(stage, 0);
    assert_int_equal(stage_checkout_row(stage, &both)->state, CHECKOUT_CANCELLED);
    assert_int_equal(stage_checkout_row(stage, &one->command.result.checkout.id)->state, CHECKOUT_CANCELLED);
    assert_int_equal(stage_checkout_row(stage, &all)->total_cents, 7000);
    stage_check_rest(stage);
}

static void test_cancelling_twice_is_answered_alike(void **state)
{
    struct stage *stage = *state;
    struct uuid checkout = two_seats(stage);
    for (int i = 0; i < 2; i++) {
        struct ask *cancel = ask_id(stage, COMMAND_CHECKOUT_CANCEL, 0, &checkout);
        assert_int_equal(stage_do(cancel), ERR_OK);
        assert_int_equal(cancel->command.result.status, 200);
        assert_int_equal(cancel->command.result.checkout.state, CHECKOUT_CANCELLED);
        assert_int_equal(cancel->command.result.checkout.total_cents, 9000);
        assert_int_equal(cancel->command.result.checkout_hold_count, 2);
    }
    assert_int_equal(stage_seat(stage, 0), SEAT_AVAILABLE);
    assert_int_equal(stage_do(ask_id(stage, COMMAND_CHECKOUT_COMPLETE, 0, &checkout)),
                     ERR_CHECKOUT_NOT_PAYABLE);
    stage_check_rest(stage);
}

static void test_somebody_elses_checkout_is_not_found(void **state)
{
    struct stage *stage = *state;
    struct uuid checkout = two_seats(stage);
    static const enum command_kind kinds[] = {COMMAND_CHECKOUT_GET, COMMAND_CHECKOUT_CANCEL,
                                              COMMAND_CHECKOUT_COMPLETE};
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        assert_int_equal(stage_do(ask_id(stage, kinds[i], 1, &checkout)), ERR_CHECKOUT_NOT_FOUND);
    assert_int_equal(stage_checkout_row(stage, &checkout)->state, CHECKOUT_PENDING_PAYMENT);
    stage_check_rest(stage);
}

int main(void)
{
#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, stage_setup, stage_teardown)
    const struct CMUnitTest tests[] = {
        ON_STAGE(test_a_paid_checkout_sells_its_seats),
        ON_STAGE(test_completing_again_gives_the_same_tickets),
        ON_STAGE(test_a_declined_payment_releases_the_seats),
        ON_STAGE(test_a_pinned_hold_outlives_its_time_and_nobody_releases_it),
        ON_STAGE(test_a_payment_with_a_lapsed_hold_charges_nothing),
        ON_STAGE(test_an_unknown_answer_is_202_and_settled_later),
        ON_STAGE(test_a_gateway_that_says_nothing_is_202_after_a_while),
        ON_STAGE(test_the_end_of_a_payment_is_tried_until_the_store_takes_it),
        ON_STAGE(test_a_settlement_is_not_lost_when_the_store_is_away),
        ON_STAGE(test_a_settlement_told_twice_sells_once),
        ON_STAGE(test_a_restart_asks_the_gateway_again),
        ON_STAGE(test_nothing_is_charged_when_the_pin_is_not_committed),
        ON_STAGE(test_late_money_takes_the_seats_if_all_are_free),
        ON_STAGE(test_late_money_is_given_back_if_a_seat_is_taken),
        ON_STAGE(test_late_money_is_given_back_if_the_block_is_full),
        ON_STAGE(test_late_money_told_twice_is_taken_once),
        ON_STAGE(test_late_money_told_twice_is_given_back_once),
        ON_STAGE(test_late_money_waits_for_an_uncommitted_seat),
        ON_STAGE(test_a_payment_for_a_cancelled_event_is_given_back),
        ON_STAGE(test_late_money_for_a_cancelled_event_is_given_back),
        ON_STAGE(test_nothing_is_charged_for_an_event_that_is_being_emptied),
        ON_STAGE(test_a_checkout_extends_its_holds_once),
        ON_STAGE(test_a_hold_named_in_another_checkout_moves_there),
        ON_STAGE(test_cancelling_twice_is_answered_alike),
        ON_STAGE(test_somebody_elses_checkout_is_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
