/* SPDX-License-Identifier: Apache-2.0
 * Idempotency-Keys: the same question has the same answer, whatever happened
 * to the first one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "base/limits.h"
#include "stage.h"

static struct ask *keyed_seat(struct stage *stage, int user, int32_t seat, uint8_t key, uint8_t body)
{
    struct ask *ask = ask_seat(stage, user, seat);
    ask_key(ask, key, body);
    return ask;
}

static void test_the_same_key_is_answered_as_before(void **state)
{
    struct stage *stage = *state;
    struct ask *first = keyed_seat(stage, 0, 3, 1, 1);
    first->command.hold_seats.cart_token = arena_text(&first->arena, "basket");
    assert_int_equal(stage_do(first), ERR_OK);
    stage_do(ask_id(stage, COMMAND_HOLD_RELEASE, 0, &first->command.result.holds[0].row.id));
    struct ask *again = keyed_seat(stage, 0, 3, 1, 1);
    assert_int_equal(stage_do(again), ERR_OK);
    assert_int_equal(again->command.result.status, 201);
    const struct hold_row *a = &first->command.result.holds[0].row, *b = &again->command.result.holds[0].row;
    assert_memory_equal(&a->id, &b->id, sizeof(a->id));
    assert_int_equal(a->held_until_ms, b->held_until_ms);
    assert_string_equal(b->cart_token, "basket");
    assert_int_equal(first->command.result.now_ms, again->command.result.now_ms);
    assert_int_equal(stage_seat(stage, 3), SEAT_AVAILABLE); /* nothing was done */
    stage_check_rest(stage);
}

static void test_the_same_key_with_another_body_is_refused(void **state)
{
    struct stage *stage = *state;
    assert_int_equal(stage_do(keyed_seat(stage, 0, 3, 1, 1)), ERR_OK);
    assert_int_equal(stage_do(keyed_seat(stage, 0, 4, 1, 2)), ERR_IDEMPOTENCY_KEY_REUSED);
    assert_int_equal(stage_seat(stage, 4), SEAT_AVAILABLE);
    stage_check_rest(stage);
}

static void test_the_same_key_meanwhile_is_in_progress(void **state)
{
    struct stage *stage = *state;
    struct ask *first = keyed_seat(stage, 0, 3, 1, 1), *second = keyed_seat(stage, 0, 3, 1, 1);
    struct ask *third = keyed_seat(stage, 0, 4, 1, 2);
    stage_post(first);
    stage_turn(stage);
    stage_post(second);
    stage_post(third);
    stage_turn(stage);
    assert_true(second->done);
    assert_int_equal(second->command.result.err, ERR_REQUEST_IN_PROGRESS);
    assert_int_equal(third->command.result.err, ERR_IDEMPOTENCY_KEY_REUSED);
    stage_finish(stage);
    assert_int_equal(first->command.result.err, ERR_OK);
    stage_check_rest(stage);
}

static void test_another_organizations_key_is_another_key(void **state)
{
    struct stage *stage = *state;
    assert_int_equal(stage_do(keyed_seat(stage, 0, 3, 1, 1)), ERR_OK);
    struct ask *other = keyed_seat(stage, 0, 3, 1, 9);
    other->command.actor.org_id = stage->admin_id;
    assert_int_equal(stage_do(other), ERR_EVENT_NOT_FOUND);
    stage_check_rest(stage);
}

static void test_a_refusal_is_kept(void **state)
{
    struct stage *stage = *state;
    struct uuid hold = stage_hold(stage, 1, 3);
    struct ask *first = keyed_seat(stage, 0, 3, 1, 1);
    assert_int_equal(stage_do(first), ERR_SEAT_HELD);
    assert_int_equal(stage_do(ask_id(stage, COMMAND_HOLD_RELEASE, 1, &hold)), ERR_OK);
    struct ask *again = keyed_seat(stage, 0, 3, 1, 1);
    assert_int_equal(stage_do(again), ERR_SEAT_HELD);
    assert_int_equal(again->command.result.failure_count, 1);
    assert_int_equal(again->command.result.failures[0].expires_ms,
                     first->command.result.failures[0].expires_ms);
    stage_check_rest(stage);
}

static void test_a_failure_of_the_store_is_not_kept(void **state)
{
    struct stage *stage = *state;
    stage_faults(stage, (struct sim_faults){.fail = 1000});
    assert_int_equal(stage_do(keyed_seat(stage, 0, 3, 1, 1)), ERR_STORE_UNAVAILABLE);
    stage_faults(stage, (struct sim_faults){.lookup_fail = 1000});
    assert_int_equal(stage_do(keyed_seat(stage, 0, 3, 1, 1)), ERR_STORE_UNAVAILABLE);
    stage_calm(stage);
    struct ask *again = keyed_seat(stage, 0, 3, 1, 1);
    assert_int_equal(stage_do(again), ERR_OK);
    assert_int_equal(again->command.result.status, 201);
    stage_check_rest(stage);
}

static void test_after_an_unknown_outcome_the_same_key_tells_what_happened(void **state)
{
    struct stage *stage = *state;
    stage_faults(stage, (struct sim_faults){.lose_after = 1000, .stay_unknown = 1000});
    assert_int_equal(stage_do(keyed_seat(stage, 0, 3, 1, 1)), ERR_OUTCOME_UNKNOWN);
    struct ask *again = keyed_seat(stage, 0, 3, 1, 1);
    stage_post(again);
    stage_pass(stage, 100);
    stage_calm(stage);
    stage_finish(stage);
    assert_int_equal(again->command.result.err, ERR_OK);
    assert_int_equal(again->command.result.status, 201);
    stage_pass(stage, 3000);
    assert_memory_equal(&again->command.result.holds[0].row.id, &stage_event(stage)->seats[3].hold->id,
                        sizeof(struct uuid));
    stage_check_rest(stage);
}

static void test_a_key_that_was_looked_for_too_early_is_found_at_the_commit(void **state)
{
    struct stage *stage = *state;
    /* Lost before it happened, as far as the second one can read; the first is found to have happened. */
    stage_faults(stage, (struct sim_faults){.lose_after = 1000, .stay_unknown = 1000, .delay_ms_max = 0});
    struct ask *first = keyed_seat(stage, 0, 3, 1, 1);
    stage_post(first);
    stage_turn(stage);
    stage->now_ms++;
    stage_turn(stage); /* looked up, decided, submitted */
    first->command.has_key = false;
    key_done(stage->lane, &first->command); /* as if it had been told already */
    struct ask *second = keyed_seat(stage, 0, 3, 1, 1);
    stage_post(second);
    stage_turn(stage);
    stage_pass(stage, 50);
    stage_calm(stage);
    stage_finish(stage);
    assert_int_equal(second->command.result.err, ERR_OK);
    assert_int_equal(second->command.result.status, 201); /* the first one's answer, word for word */
    stage_pass(stage, 2000);
    stage_check_rest(stage);
}

static void test_a_key_is_forgotten_after_a_day(void **state)
{
    struct stage *stage = *state;
    struct ask *first = keyed_seat(stage, 0, 3, 1, 1);
    assert_int_equal(stage_do(first), ERR_OK);
    stage->now_ms += IDEMPOTENCY_HOURS * 3600 * 1000ll + 1000;
    stage_pass(stage, 2000);
    struct ask *again = keyed_seat(stage, 0, 4, 1, 2);
    assert_int_equal(stage_do(again), ERR_OK);
    stage_check_rest(stage);
}

static void test_a_paid_checkout_is_answered_again_with_its_tickets(void **state)
{
    struct stage *stage = *state;
    stage_hold(stage, 0, 0);
    struct uuid checkout = stage_checkout(stage, 0);
    struct ask *pay = ask_id(stage, COMMAND_CHECKOUT_COMPLETE, 0, &checkout);
    ask_key(pay, 1, 1);
    stage_post(pay);
    stage_pass(stage, 20);
    struct ask *meanwhile = ask_id(stage, COMMAND_CHECKOUT_COMPLETE, 0, &checkout);
    ask_key(meanwhile, 1, 1);
    stage_post(meanwhile);
    stage_pass(stage, 20);
    assert_int_equal(meanwhile->command.result.err, ERR_REQUEST_IN_PROGRESS);
    stage_post(ask_settled(stage, &checkout, PAYMENT_PAID));
    stage_finish(stage);
    assert_int_equal(pay->command.result.status, 200);
    struct ask *again = ask_id(stage, COMMAND_CHECKOUT_COMPLETE, 0, &checkout);
    ask_key(again, 1, 1);
    assert_int_equal(stage_do(again), ERR_OK);
    assert_int_equal(again->command.result.status, 200);
    assert_int_equal(again->command.result.ticket_count, 1);
    assert_string_equal(again->command.result.tickets[0].code, pay->command.result.tickets[0].code);
    stage_check_rest(stage);
}

static void test_an_unfinished_payment_is_not_kept(void **state)
{
    struct stage *stage = *state;
    stage_hold(stage, 0, 0);
    struct uuid checkout = stage_checkout(stage, 0);
    struct ask *pay = ask_id(stage, COMMAND_CHECKOUT_COMPLETE, 0, &checkout);
    ask_key(pay, 1, 1);
    stage_post(pay);
    stage_pass(stage, 20);
    stage_post(ask_settled(stage, &checkout, PAYMENT_UNKNOWN));
    stage_finish(stage);
    assert_int_equal(pay->command.result.status, 202);
    stage_post(ask_settled(stage, &checkout, PAYMENT_PAID));
    stage_finish(stage);
    struct ask *again = ask_id(stage, COMMAND_CHECKOUT_COMPLETE, 0, &checkout);
    ask_key(again, 1, 1);
    assert_int_equal(stage_do(again), ERR_OK);
    assert_int_equal(again->command.result.status, 200);
    assert_int_equal(again->command.result.ticket_count, 1);
    stage_check_rest(stage);
}

static void test_a_declined_payment_is_kept(void **state)
{
    struct stage *stage = *state;
    stage_hold(stage, 0, 0);
    struct uuid checkout = stage_checkout(stage, 0);
    for (int i = 0; i < 2; i++) {
        struct ask *pay = ask_id(stage, COMMAND_CHECKOUT_COMPLETE, 0, &checkout);
        ask_key(pay, 1, 1);
        stage_post(pay);
        stage_pass(stage, 20);
        if (i == 0)
            stage_post(ask_settled(stage, &checkout, PAYMENT_DECLINED));
        stage_finish(stage);
        assert_int_equal(pay->command.result.err, ERR_PAYMENT_FAILED);
    }
    stage_check_rest(stage);
}

static void test_an_admins_long_work_is_answered_again(void **state)
{
    struct stage *stage = *state;
    int32_t seats[] = {0, 1, 2};
    for (int i = 0; i < 2; i++) {
        struct ask *block = ask_block(stage, seats, 3);
        ask_key(block, 1, 1);
        assert_int_equal(stage_do(block), ERR_OK);
        assert_int_equal(block->command.result.status, 200);
        assert_int_equal(block->command.result.seat_id_count, 3);
    }
    stage_check_rest(stage);
}

static void test_a_long_change_of_an_event_is_answered_as_done(void **state)
{
    (void)state;
    struct policy policy = stage_policy();
    policy.max_seats_per_user = 0;
    struct stage *stage = stage_create_large(&policy, 20, 100);
    for (int32_t i = 0; i < 2000; i++)
        stage_post(ask_seat(stage, i % STAGE_USER_COUNT, i));
    stage_finish(stage);
    stage_faults(stage, (struct sim_faults){.delay_ms_max = 1500 * PATIENCE});
    struct ask *cancel = ask_event_state(stage, EVENT_CANCELLED);
    ask_key(cancel, 1, 1);
    int64_t since_ms = stage->now_ms;
    assert_int_equal(stage_do(cancel), ERR_OK);
    assert_true(stage->now_ms - since_ms > COMMAND_WAIT_MS_MAX);
    int32_t counts[SEAT_STATE_COUNT];
    seatmap_counts(stage_event(stage)->map, counts);
    assert_int_equal(counts[SEAT_AVAILABLE], 2000);
    stage_calm(stage);
    stage_pass(stage, 3000);
    stage_check_rest(stage);
    stage_destroy(stage);
}

static void test_a_damaged_answer_is_an_internal_error(void **state)
{
    struct stage *stage = *state;
    assert_int_equal(stage_do(keyed_seat(stage, 0, 3, 1, 1)), ERR_OK);
    size_t position = 0;
    struct damaged { /* as the simulated store keeps it */
        uint8_t key[32], body[32];
        struct uuid org_id;
        uint8_t *result;
        size_t result_size;
    } *kept = map_next(&sim_store_tables(stage->store)->keys, &position);
    assert_non_null(kept);
    kept->result[0] ^= 0xff;
    assert_int_equal(stage_do(keyed_seat(stage, 0, 3, 1, 1)), ERR_INTERNAL);
    stage_check_rest(stage);
}

int main(void)
{
#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, stage_setup, stage_teardown)
    const struct CMUnitTest tests[] = {
        ON_STAGE(test_the_same_key_is_answered_as_before),
        ON_STAGE(test_the_same_key_with_another_body_is_refused),
        ON_STAGE(test_the_same_key_meanwhile_is_in_progress),
        ON_STAGE(test_another_organizations_key_is_another_key),
        ON_STAGE(test_a_refusal_is_kept),
        ON_STAGE(test_a_failure_of_the_store_is_not_kept),
        ON_STAGE(test_after_an_unknown_outcome_the_same_key_tells_what_happened),
        ON_STAGE(test_a_key_that_was_looked_for_too_early_is_found_at_the_commit),
        ON_STAGE(test_a_key_is_forgotten_after_a_day),
        ON_STAGE(test_a_paid_checkout_is_answered_again_with_its_tickets),
        ON_STAGE(test_an_unfinished_payment_is_not_kept),
        ON_STAGE(test_a_declined_payment_is_kept),
        ON_STAGE(test_an_admins_long_work_is_answered_again),
        cmocka_unit_test(test_a_long_change_of_an_event_is_answered_as_done),
        ON_STAGE(test_a_damaged_answer_is_an_internal_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
