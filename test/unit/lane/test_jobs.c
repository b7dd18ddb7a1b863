/* SPDX-License-Identifier: Apache-2.0
 * Work over many seats, and changes of an event that nothing may cross. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "base/limits.h"
#include "stage.h"

/* 700 seats, all held: more than two chunks of a job. */
static struct stage *full_house(void)
{
    struct policy policy = stage_policy();
    policy.max_seats_per_user = 0;
    policy.hold_ttl_seconds = 600;
    policy.hold_max_seconds = 900;
    struct stage *stage = stage_create_large(&policy, 7, 100);
    for (int32_t i = 0; i < 700; i++)
        stage_post(ask_seat(stage, i % STAGE_USER_COUNT, i));
    stage_finish(stage);
    return stage;
}

static int32_t count(struct stage *stage, enum seat_state seat)
{
    int32_t counts[SEAT_STATE_COUNT];
    seatmap_counts(stage_event(stage)->map, counts);
    return counts[seat];
}

/* ---- Releasing and blocking ---- */

static void test_a_whole_event_is_released_in_chunks(void **state)
{
    (void)state;
    struct stage *stage = full_house();
    int64_t commits = sim_store_tables(stage->store)->commit_count;
    struct ask *release = ask_release_event(stage);
    assert_int_equal(stage_do(release), ERR_OK);
    assert_int_equal(release->command.result.hold_count, 700);
    assert_int_equal(release->command.result.failure_count, 0);
    assert_int_equal(release->command.result.holds[0].row.state, HOLD_CANCELLED);
    assert_int_equal(release->command.result.holds[0].row.reason, END_ADMIN_OVERRIDE);
    assert_int_equal(count(stage, SEAT_AVAILABLE), 700);
    assert_true(sim_store_tables(stage->store)->commit_count >= commits + 3);
    stage_check_rest(stage);
    stage_destroy(stage);
}

static void test_reserves_go_on_between_the_chunks(void **state)
{
    (void)state;
    struct stage *stage = full_house();
    struct ask *release = ask_release_event(stage);
    stage_post(release);
    for (int i = 0; i < 20 && count(stage, SEAT_AVAILABLE) == 0; i++) {
        stage->now_ms++;
        stage_turn(stage);
    }
    assert_false(release->done);
    struct ask *other = ask_seat(stage, 1, 0);
    stage_post(other);
    stage->now_ms++;
    stage_turn(stage);
    stage->now_ms++;
    stage_turn(stage);
    assert_true(other->done);
    assert_int_equal(other->command.result.err, ERR_OK);
    stage_finish(stage);
    assert_int_equal(stage_seat(stage, 0), SEAT_HELD); /* the new one was not on the list */
    stage_check_rest(stage);
    stage_destroy(stage);
}

static void test_a_release_ends_pending_checkouts_and_skips_what_is_sold(void **state)
{
    struct stage *stage = *state;
    stage_hold(stage, 0, 0);
    struct uuid sold = stage_checkout(stage, 0);
    stage_pay(stage, 0, &sold);
    stage_post(ask_settled(stage, &sold, PAYMENT_PAID));
    stage_finish(stage);
    stage_hold(stage, 1, 1);
    stage_hold(stage, 1, 2);
    struct uuid pending = stage_checkout(stage, 1);
    struct ask *release = stage_ask(stage, COMMAND_ADMIN_RELEASE, -1);
    release->command.release.seat_count = 4;
    release->command.release.seat_ids = ARENA_ARRAY(&release->arena, struct uuid, 4);
    for (int32_t i = 0; i < 4; i++)
        release->command.release.seat_ids[i] = stage_seat_id(stage, i);
    assert_int_equal(stage_do(release), ERR_OK);
    assert_int_equal(release->command.result.hold_count, 2);
    assert_int_equal(release->command.result.failure_count, 2);
    assert_int_equal(release->command.result.failures[0].err, ERR_SEAT_NOT_AVAILABLE);
    assert_int_equal(release->command.result.failures[1].err, ERR_HOLD_NOT_FOUND);
    assert_int_equal(stage_checkout_row(stage, &pending)->state, CHECKOUT_CANCELLED);
    assert_int_equal(stage_seat(stage, 0), SEAT_SOLD);
    stage_check_rest(stage);
}

static void test_blocking_a_held_seat_releases_its_hold_first(void **state)
{
    struct stage *stage = *state;
    struct uuid hold = stage_hold(stage, 0, 0);
    int32_t seats[] = {0, 1};
    struct ask *block = ask_block(stage, seats, 2);
    assert_int_equal(stage_do(block), ERR_OK);
    assert_int_equal(block->command.result.seat_id_count, 2);
    assert_int_equal(stage_hold_row(stage, &hold)->state, HOLD_CANCELLED);
    assert_int_equal(stage_hold_row(stage, &hold)->reason, END_ADMIN_OVERRIDE);
    assert_int_equal(stage_seat(stage, 0), SEAT_BLOCKED);
    assert_int_equal(stage_do(ask_seat(stage, 0, 0)), ERR_SEAT_NOT_AVAILABLE);
    struct ask *unblock = ask_block(stage, seats, 2);
    unblock->command.kind = COMMAND_SEATS_UNBLOCK;
    assert_int_equal(stage_do(unblock), ERR_OK);
    assert_int_equal(stage_do(ask_seat(stage, 0, 0)), ERR_OK);
    stage_check_rest(stage);
}

static void test_a_job_waits_for_an_uncommitted_seat(void **state)
{
    struct stage *stage = *state;
    struct ask *reserve = ask_seat(stage, 0, 0);
    stage_post(reserve);
    stage_turn(stage);
    int32_t seats[] = {0, 1};
    struct ask *block = ask_block(stage, seats, 2);
    stage_post(block);
    stage_turn(stage);
    stage_finish(stage);
    assert_int_equal(reserve->command.result.err, ERR_OK);
    assert_int_equal(block->command.result.seat_id_count, 2);
    assert_int_equal(stage_seat(stage, 0), SEAT_BLOCKED);
    stage_check_rest(stage);
}

static void test_two_jobs_over_the_same_seats_do_not_meet(void **state)
{
    struct stage *stage = *state;
    for (int32_t i = 0; i < 4; i++)
        stage_hold(stage, 0, i);
    int32_t seats[] = {0, 1, 2, 3, 4};
    struct ask *block = ask_block(stage, seats, 5), *release = ask_release_event(stage);
    stage_post(release);
    stage_post(block);
    stage_finish(stage);
    assert_int_equal(release->command.result.hold_count + release->command.result.failure_count, 4);
    assert_int_equal(block->command.result.seat_id_count, 5);
    assert_int_equal(stage_seat(stage, 0), SEAT_BLOCKED);
    stage_check_rest(stage);
}

static void test_a_job_that_the_store_refuses_is_503(void **state)
{
    struct stage *stage = *state;
    stage_hold(stage, 0, 0);
    stage_faults(stage, (struct sim_faults){.fail = 1000});
    assert_int_equal(stage_do(ask_release_event(stage)), ERR_STORE_UNAVAILABLE);
    stage_calm(stage);
    stage_check_rest(stage);
    assert_int_equal(stage_seat(stage, 0), SEAT_HELD);
    struct ask *again = ask_release_event(stage);
    assert_int_equal(stage_do(again), ERR_OK);
    assert_int_equal(again->command.result.hold_count, 1);
}

/* ---- Emptying an event ---- */

static void test_cancelling_an_event_brings_every_seat_back(void **state)
{
    (void)state;
    struct stage *stage = full_house();
    struct uuid checkout = stage_checkout(stage, 0);
    struct ask *cancel = ask_event_state(stage, EVENT_CANCELLED);
    assert_int_equal(stage_do(cancel), ERR_OK);
    assert_int_equal(count(stage, SEAT_AVAILABLE), 700); /* answered when nothing is held any more */
    assert_int_equal(stage_checkout_row(stage, &checkout)->state, CHECKOUT_CANCELLED);
    assert_int_equal(stage_do(ask_seat(stage, 0, 0)), ERR_EVENT_NOT_AVAILABLE);
    stage_check_rest(stage);
    stage_destroy(stage);
}

static void test_emptying_an_event_survives_a_failing_store(void **state)
{
    (void)state;
    struct stage *stage = full_house();
    struct ask *cancel = ask_event_state(stage, EVENT_CANCELLED);
    stage_post(cancel);
    stage_until_event(stage, EVENT_CANCELLED);
    stage_faults(stage, (struct sim_faults){.fail = 1000});
    stage_pass(stage, 5000);
    assert_true(cancel->done);
    assert_int_equal(cancel->command.result.err, ERR_OK); /* cancelled it is; the rest goes on behind */
    assert_int_equal(count(stage, SEAT_HELD), 700);
    stage_calm(stage);
    stage_pass(stage, 3000);
    assert_int_equal(count(stage, SEAT_AVAILABLE), 700);
    stage_check_rest(stage);
    stage_destroy(stage);
}

static void test_emptying_an_event_goes_on_after_a_restart(void **state)
{
    (void)state;
    struct stage *stage = full_house();
    stage_post(ask_event_state(stage, EVENT_CANCELLED));
    stage_until_event(stage, EVENT_CANCELLED);
    stage_restart(stage);
    stage_pass(stage, 1000);
    assert_int_equal(count(stage, SEAT_AVAILABLE), 700);
    stage_check_rest(stage);
    stage_destroy(stage);
}

/* ---- The gate ---- */

static struct ask *ask_policy(struct stage *stage, int32_t max_seats)
{
    struct ask *patch = ask_id(stage, COMMAND_EVENT_PATCH, -1, &stage->event_id);
    patch->command.event.policy_fields = BIT(5); /* max_seats_per_user */
    patch->command.event.row.policy.max_seats_per_user = max_seats;
    return patch;
}

static void test_a_change_of_an_event_is_never_crossed(void **state)
{
    struct stage *stage = *state;
    struct ask *before = ask_seat(stage, 0, 0);
    stage_post(before);
    stage_turn(stage); /* uncommitted: the change has to wait */
    struct ask *patch = ask_policy(stage, 1);
    struct ask *after = ask_seat(stage, 0, 1);
    stage_post(patch);
    stage_turn(stage);
    stage_post(after);
    stage_turn(stage);
    assert_false(patch->done);
    assert_false(after->done);
    stage_finish(stage);
    assert_int_equal(before->command.result.err, ERR_OK);
    assert_int_equal(patch->command.result.err, ERR_OK);
    assert_int_equal(after->command.result.err, ERR_HOLD_LIMIT_REACHED); /* by the new policy */
    stage_check_rest(stage);
}

static void test_a_failed_change_of_an_event_lets_the_others_go_on(void **state)
{
    struct stage *stage = *state;
    struct ask *patch = ask_policy(stage, 1);
    stage_post(patch);
    stage_turn(stage);
    struct ask *first = ask_seat(stage, 0, 0);
    stage_post(first);
    stage_faults(stage, (struct sim_faults){.fail = 1000});
    stage->now_ms++;
    stage_turn(stage);
    stage_calm(stage);
    stage_finish(stage);
    assert_int_equal(patch->command.result.err, ERR_STORE_UNAVAILABLE);
    assert_int_equal(first->command.result.err, ERR_OK);
    assert_int_equal(stage_event(stage)->row.policy.max_seats_per_user, 4);
    stage_check_rest(stage);
}

static void test_a_wrong_change_does_not_close_the_gate(void **state)
{
    struct stage *stage = *state;
    stage_post(ask_seat(stage, 0, 0));
    stage_turn(stage);
    struct ask *wrong = ask_event_state(stage, EVENT_DRAFT);
    stage_post(wrong);
    stage_finish(stage);
    assert_int_equal(wrong->command.result.err, ERR_INVALID_TRANSITION);
    stage_check_rest(stage);
    assert_int_equal(stage_do(ask_seat(stage, 0, 1)), ERR_OK);
}

static void test_a_change_that_waited_too_long_opens_the_gate_again(void **state)
{
    struct stage *stage = *state;
    stage_faults(stage, (struct sim_faults){.lose_before = 1000, .stay_unknown = 1000});
    assert_int_equal(stage_do(ask_seat(stage, 0, 0)), ERR_OUTCOME_UNKNOWN);
    struct ask *patch = ask_policy(stage, 1);
    stage_post(patch);
    stage_pass(stage, COMMAND_WAIT_MS_MAX + 100);
    assert_int_equal(patch->command.result.err, ERR_OVERLOADED);
    assert_false(stage_event(stage)->exclusive);
    stage_calm(stage);
    stage_pass(stage, 2000);
    assert_int_equal(stage_do(ask_seat(stage, 0, 1)), ERR_OK);
    stage_check_rest(stage);
}

static void test_a_refused_change_lets_those_go_on_who_waited_before_it(void **state)
{
    struct stage *stage = *state;
    stage_hold(stage, 2, STAGE_SEAT_B);
    stage_hold(stage, 2, STAGE_SEAT_B + 1);
    struct ask *first = ask_seat(stage, 0, 3), *second = ask_seat(stage, 1, 3);
    struct ask *patch = ask_id(stage, COMMAND_BLOCK_PATCH, -1, &stage->event_id);
    patch->command.block.block_id = stage_event(stage)->map->blocks[1].id;
    patch->command.block.fields = PATCH_CAPACITY;
    patch->command.block.capacity = 1; /* less than is taken: refused, when its turn comes */
    stage_post(first);
    stage_turn(stage);
    stage_post(second); /* waits for the first one's commit … */
    stage_turn(stage);
    stage_post(patch); /* … and so does the change, with the gate closed */
    stage_turn(stage);
    stage_pass(stage, 20);
    assert_int_equal(patch->command.result.err, ERR_BLOCK_AT_CAPACITY);
    assert_true(second->done);
    assert_int_equal(second->command.result.err, ERR_SEAT_HELD);
    stage_check_rest(stage);
}

static void test_changes_of_an_event_go_one_after_another(void **state)
{
    struct stage *stage = *state;
    struct ask *first = ask_policy(stage, 1), *second = ask_policy(stage, 2), *third = ask_policy(stage, 3);
    stage_post(first);
    stage_post(second);
    stage_turn(stage);
    stage_post(third);
    stage_finish(stage);
    assert_int_equal(first->command.result.err, ERR_OK);
    assert_int_equal(second->command.result.err, ERR_OK);
    assert_int_equal(third->command.result.err, ERR_OK);
    assert_int_equal(stage_event(stage)->row.policy.max_seats_per_user, 3);
    stage_check_rest(stage);
}

static void test_a_layout_in_use_stays(void **state)
{
    struct stage *stage = *state;
    struct uuid hold = stage_hold(stage, 0, 0);
    stage_do(ask_id(stage, COMMAND_HOLD_RELEASE, 0, &hold));
    for (int i = 0; i < 2; i++) {
        struct ask *put = ask_id(stage, COMMAND_LAYOUT_PUT, -1, &stage->event_id);
        put->command.layout.document =
            arena_text(&put->arena, "{\"blocks\":[{\"section\":\"C\",\"subsection\":1,\"name\":\"C\","
                                    "\"price_cents\":1,\"rows\":[{\"label\":\"1\",\"seats\":2}]}]}");
        put->command.layout.size = strlen(put->command.layout.document);
        assert_int_equal(stage_do(put), ERR_LAYOUT_IN_USE);
        stage_check_rest(stage);
        stage_restart(stage); /* and it is remembered */
    }
}

static void test_a_block_does_not_shrink_below_what_is_taken(void **state)
{
    struct stage *stage = *state;
    stage_hold(stage, 0, STAGE_SEAT_B);
    stage_hold(stage, 0, STAGE_SEAT_B + 1);
    struct ask *patch = ask_id(stage, COMMAND_BLOCK_PATCH, -1, &stage->event_id);
    patch->command.block.block_id = stage_event(stage)->map->blocks[1].id;
    patch->command.block.fields = PATCH_CAPACITY;
    patch->command.block.capacity = 1;
    assert_int_equal(stage_do(patch), ERR_BLOCK_AT_CAPACITY);
    stage_check_rest(stage);
    struct ask *fits = ask_id(stage, COMMAND_BLOCK_PATCH, -1, &stage->event_id);
    fits->command.block = patch->command.block;
    fits->command.block.capacity = 2;
    assert_int_equal(stage_do(fits), ERR_OK);
    assert_int_equal(stage_do(ask_seat(stage, 1, STAGE_SEAT_B + 2)), ERR_BLOCK_AT_CAPACITY);
    stage_check_rest(stage);
}

int main(void)
{
#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, stage_setup, stage_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_whole_event_is_released_in_chunks),
        cmocka_unit_test(test_reserves_go_on_between_the_chunks),
        ON_STAGE(test_a_release_ends_pending_checkouts_and_skips_what_is_sold),
        ON_STAGE(test_blocking_a_held_seat_releases_its_hold_first),
        ON_STAGE(test_a_job_waits_for_an_uncommitted_seat),
        ON_STAGE(test_two_jobs_over_the_same_seats_do_not_meet),
        ON_STAGE(test_a_job_that_the_store_refuses_is_503),
        cmocka_unit_test(test_cancelling_an_event_brings_every_seat_back),
        cmocka_unit_test(test_emptying_an_event_survives_a_failing_store),
        cmocka_unit_test(test_emptying_an_event_goes_on_after_a_restart),
        ON_STAGE(test_a_change_of_an_event_is_never_crossed),
        ON_STAGE(test_a_failed_change_of_an_event_lets_the_others_go_on),
        ON_STAGE(test_a_wrong_change_does_not_close_the_gate),
        ON_STAGE(test_a_change_that_waited_too_long_opens_the_gate_again),
        ON_STAGE(test_a_refused_change_lets_those_go_on_who_waited_before_it),
        ON_STAGE(test_changes_of_an_event_go_one_after_another),
        ON_STAGE(test_a_layout_in_use_stays),
        ON_STAGE(test_a_block_does_not_shrink_below_what_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
