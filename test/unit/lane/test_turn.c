/* SPDX-License-Identifier: Apache-2.0
 * The turn: what waits for a commit, what a refusal rests on, and what a
 * batch's outcome means for those who asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "stage.h"

/* ---- Uncommitted things ---- */

static void test_nothing_is_answered_before_its_commit(void **state)
{
    struct stage *stage = *state;
    struct ask *ask = ask_seat(stage, 0, 3);
    stage_post(ask);
    stage_turn(stage);
    assert_false(ask->done);
    assert_int_equal(stage_seat_hot(stage, 3), SEAT_AVAILABLE);
    stage->now_ms++;
    stage_turn(stage);
    assert_true(ask->done);
    assert_int_equal(ask->command.result.status, 201);
    assert_int_equal(stage_seat(stage, 3), SEAT_HELD);
    assert_int_equal(stage_seat_hot(stage, 3), SEAT_HELD);
    stage_check_rest(stage);
}

static void test_a_second_asker_waits_for_the_first_ones_commit(void **state)
{
    struct stage *stage = *state;
    struct ask *first = ask_seat(stage, 0, 3), *second = ask_seat(stage, 1, 3);
    stage_post(first);
    stage_turn(stage);
    stage_post(second);
    stage_turn(stage);
    assert_false(second->done); /* nobody is known to hold it */
    stage_finish(stage);
    assert_int_equal(first->command.result.err, ERR_OK);
    assert_int_equal(second->command.result.err, ERR_SEAT_HELD);
    assert_int_equal(second->command.result.failures[0].expires_ms,
                     first->command.result.holds[0].row.held_until_ms);
    stage_check_rest(stage);
}

static void test_a_second_asker_gets_the_seat_when_the_first_ones_commit_fails(void **state)
{
    struct stage *stage = *state;
    struct ask *first = ask_seat(stage, 0, 3), *second = ask_seat(stage, 1, 3);
    stage_post(first);
    stage_turn(stage);
    stage_post(second);
    stage_turn(stage);
    stage_faults(stage, (struct sim_faults){.fail = 1000});
    stage->now_ms++;
    stage_turn(stage);
    assert_true(first->done);
    assert_int_equal(first->command.result.err, ERR_STORE_UNAVAILABLE);
    stage_calm(stage);
    stage_finish(stage);
    assert_int_equal(second->command.result.err, ERR_OK);
    stage_check_rest(stage);
}

static void test_the_same_user_asking_twice_at_once_gets_one_hold(void **state)
{
    struct stage *stage = *state;
    struct ask *first = ask_seat(stage, 0, 3), *second = ask_seat(stage, 0, 3);
    stage_post(first);
    stage_post(second);
    stage_finish(stage);
    assert_int_equal(first->command.result.status, 201);
    assert_int_equal(second->command.result.status, 200);
    assert_memory_equal(&first->command.result.holds[0].row.id, &second->command.result.holds[0].row.id,
                        sizeof(struct uuid));
    stage_check_rest(stage);
}

static void test_a_release_of_an_uncommitted_extension_waits(void **state)
{
    struct stage *stage = *state;
    struct uuid hold = stage_hold(stage, 0, 3);
    struct ask *extend = ask_id(stage, COMMAND_HOLD_EXTEND, 0, &hold);
    struct ask *release = ask_id(stage, COMMAND_HOLD_RELEASE, 0, &hold);
    stage_post(extend);
    stage_turn(stage);
    stage_post(release);
    stage_turn(stage);
    assert_false(release->done);
    stage_finish(stage);
    assert_int_equal(extend->command.result.err, ERR_OK);
    assert_int_equal(release->command.result.err, ERR_OK);
    assert_int_equal(stage_seat(stage, 3), SEAT_AVAILABLE);
    stage_check_rest(stage);
}

static void test_several_seats_wait_when_one_of_them_is_uncommitted(void **state)
{
    struct stage *stage = *state;
    int32_t seats[] = {1, 2, 3};
    struct ask *one = ask_seat(stage, 0, 3), *all = ask_seats(stage, 1, seats, 3);
    stage_post(one);
    stage_turn(stage);
    stage_post(all);
    stage_turn(stage);
    assert_false(all->done);
    stage_finish(stage);
    assert_int_equal(all->command.result.err, ERR_SEAT_HELD);
    assert_int_equal(all->command.result.failure_count, 1);
    assert_int_equal(stage_seat(stage, 1), SEAT_AVAILABLE); /* all or none */
    stage_check_rest(stage);
}

static void test_those_who_wait_are_decided_in_the_order_they_came(void **state)
{
    struct stage *stage = *state;
    struct uuid hold = stage_hold(stage, 0, 3);
    struct ask *release = ask_id(stage, COMMAND_HOLD_RELEASE, 0, &hold);
    stage_post(release);
    stage_turn(stage);
    struct ask *asks[4];
    for (int i = 0; i < 4; i++) {
        asks[i] = ask_seat(stage, 1 + i, 3);
        stage_post(asks[i]);
        stage_turn(stage);
    }
    stage_finish(stage);
    assert_int_equal(asks[0]->command.result.err, ERR_OK);
    for (int i = 1; i < 4; i++)
        assert_int_equal(asks[i]->command.result.err, ERR_SEAT_HELD);
    stage_check_rest(stage);
}

static void test_the_waiting_are_counted_when_a_batch_is_full(void **state)
{
    (void)state;
    enum { ROW_COUNT = 7, ROW_SIZE = 100, ASK_COUNT = 600 };
    struct policy policy = stage_policy();
    policy.max_seats_per_user = 0;
    struct stage *stage = stage_create_large(&policy, ROW_COUNT, ROW_SIZE);
    /* A reserve and, behind it, a change of the event: everybody else waits for that. */
    stage_post(ask_seat(stage, 0, ROW_COUNT * ROW_SIZE - 1));
    struct ask *patch = ask_id(stage, COMMAND_EVENT_PATCH, -1, &stage->event_id);
    patch->command.event.fields = PATCH_NAME;
    patch->command.event.row.name = "Other";
    stage_post(patch);
    stage_turn(stage);
    for (int i = 0; i < ASK_COUNT; i++)
        stage_post(ask_seat(stage, i % STAGE_USER_COUNT, i));
    stage_turn(stage);
    assert_int_equal(stage->lane->waiting_count, ASK_COUNT + 1);
    for (int i = 0; i < 6; i++) {
        stage->now_ms++;
        stage_turn(stage);
        int32_t waiting = 0;
        LIST_FOR_EACH(node, &stage->lane->waiting)
            waiting++;
        assert_int_equal(stage->lane->waiting_count, waiting);
    }
    stage_finish(stage);
    stage_check_rest(stage);
    stage_destroy(stage);
}

/* ---- Limits rest on what is committed, and count what is not ---- */

static void test_the_hold_limit_counts_uncommitted_holds(void **state)
{
    struct stage *stage = *state;
    for (int32_t i = 0; i < 3; i++)
        stage_hold(stage, 0, i);
    struct ask *fourth = ask_seat(stage, 0, 3), *fifth = ask_seat(stage, 0, 4);
    stage_post(fourth);
    stage_post(fifth);
    stage_turn(stage);
    stage_turn(stage);
    assert_false(fifth->done); /* the fourth may fail yet */
    stage_finish(stage);
    assert_int_equal(fourth->command.result.err, ERR_OK);
    assert_int_equal(fifth->command.result.err, ERR_HOLD_LIMIT_REACHED);
    stage_check_rest(stage);
}

static void test_the_hold_limit_is_free_again_when_the_commit_fails(void **state)
{
    struct stage *stage = *state;
    for (int32_t i = 0; i < 3; i++)
        stage_hold(stage, 0, i);
    struct ask *fourth = ask_seat(stage, 0, 3), *fifth = ask_seat(stage, 0, 4);
    stage_post(fourth);
    stage_post(fifth);
    stage_turn(stage);
    stage_faults(stage, (struct sim_faults){.fail = 1000});
    stage->now_ms++;
    stage_turn(stage);
    stage_calm(stage);
    stage_finish(stage);
    assert_int_equal(fourth->command.result.err, ERR_STORE_UNAVAILABLE);
    assert_int_equal(fifth->command.result.err, ERR_OK);
    stage_check_rest(stage);
}

static void test_block_capacity_counts_uncommitted_holds(void **state)
{
    struct stage *stage = *state;
    struct ask *asks[4];
    for (int i = 0; i < 4; i++) {
        asks[i] = ask_seat(stage, i, STAGE_SEAT_B + i);
        stage_post(asks[i]);
    }
    stage_turn(stage);
    stage_turn(stage);
    assert_false(asks[3]->done);
    stage_finish(stage);
    for (int i = 0; i < 3; i++)
        assert_int_equal(asks[i]->command.result.err, ERR_OK);
    assert_int_equal(asks[3]->command.result.err, ERR_BLOCK_AT_CAPACITY);
    stage_check_rest(stage);
}

static void test_several_seats_count_together_against_the_capacity(void **state)
{
    struct stage *stage = *state;
    int32_t seats[] = {STAGE_SEAT_B, STAGE_SEAT_B + 1, STAGE_SEAT_B + 2, STAGE_SEAT_B + 3};
    assert_int_equal(stage_do(ask_seats(stage, 0, seats, 4)), ERR_BLOCK_AT_CAPACITY);
    assert_int_equal(stage_do(ask_seats(stage, 0, seats, 3)), ERR_OK);
    stage_check_rest(stage);
}

static void test_best_available_waits_for_capacity_that_may_come_back(void **state)
{
    struct stage *stage = *state;
    int32_t seats[] = {STAGE_SEAT_B, STAGE_SEAT_B + 1, STAGE_SEAT_B + 2};
    struct ask *three = ask_seats(stage, 0, seats, 3), *best = ask_best(stage, 1, 1, "B");
    stage_post(three);
    stage_turn(stage);
    stage_post(best);
    stage_turn(stage);
    assert_false(best->done);
    stage_faults(stage, (struct sim_faults){.fail = 1000});
    stage->now_ms++;
    stage_turn(stage);
    stage_calm(stage);
    stage_finish(stage);
    assert_int_equal(three->command.result.err, ERR_STORE_UNAVAILABLE);
    assert_int_equal(best->command.result.err, ERR_OK);
    stage_check_rest(stage);
}

static void test_best_available_takes_no_uncommitted_seat(void **state)
{
    struct stage *stage = *state;
    struct ask *asks[5];
    for (int i = 0; i < 5; i++) {
        asks[i] = ask_best(stage, i, 2, "A");
        stage_post(asks[i]);
    }
    stage_turn(stage);
    stage_finish(stage);
    bool taken[STAGE_SEAT_COUNT] = {false};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(asks[i]->command.result.err, ERR_OK);
        assert_true(asks[i]->command.result.has_explanation);
        for (int32_t j = 0; j < 2; j++) {
            int32_t seat = asks[i]->command.result.holds[j].seat_index;
            assert_false(taken[seat]);
            taken[seat] = true;
        }
    }
    assert_int_equal(stage_do(ask_best(stage, 6, 1, "A")), ERR_NOT_ENOUGH_SEATS);
    stage_check_rest(stage);
}

static void test_the_rate_limit_counts_uncommitted_holds(void **state)
{
    (void)state;
    struct policy policy = stage_policy();
    policy.rate_limit_holds = 2;
    policy.rate_limit_window_seconds = 30;
    struct stage *stage = stage_create(&policy, NULL);
    struct ask *asks[3];
    for (int i = 0; i < 3; i++) {
        asks[i] = ask_seat(stage, 0, i);
        stage_post(asks[i]);
    }
    stage_finish(stage);
    assert_int_equal(asks[1]->command.result.err, ERR_OK);
    assert_int_equal(asks[2]->command.result.err, ERR_RATE_LIMITED);
    assert_int_equal(asks[2]->command.result.retry_after_seconds, 30);
    /* Giving seats back does not help: it is new holds that are counted. */
    stage_do(ask_id(stage, COMMAND_HOLD_RELEASE, 0, &asks[0]->command.result.holds[0].row.id));
    assert_int_equal(stage_do(ask_seat(stage, 0, 2)), ERR_RATE_LIMITED);
    assert_int_equal(stage_do(ask_seat(stage, 1, 2)), ERR_OK);
    stage_pass(stage, 30000);
    assert_int_equal(stage_do(ask_seat(stage, 0, 3)), ERR_OK);
    stage_check_rest(stage);
    stage_destroy(stage);
}

static void test_asking_for_ones_own_seat_costs_nothing(void **state)
{
    (void)state;
    struct policy policy = stage_policy();
    policy.rate_limit_holds = 1;
    policy.max_seats_per_user = 1;
    struct stage *stage = stage_create(&policy, NULL);
    struct uuid hold = stage_hold(stage, 0, 0);
    for (int i = 0; i < 3; i++) {
        struct ask *again = ask_seat(stage, 0, 0);
        assert_int_equal(stage_do(again), ERR_OK);
        assert_int_equal(again->command.result.status, 200);
        assert_memory_equal(&again->command.result.holds[0].row.id, &hold, sizeof(hold));
    }
    stage_check_rest(stage);
    stage_destroy(stage);
}

/* ---- Outcomes ---- */

static void test_a_failed_batch_leaves_nothing_behind(void **state)
{
    struct stage *stage = *state;
    struct uuid hold = stage_hold(stage, 0, 0);
    int64_t until_ms = stage_hold_row(stage, &hold)->held_until_ms;
    stage_faults(stage, (struct sim_faults){.fail = 1000});
    assert_int_equal(stage_do(ask_seat(stage, 1, 3)), ERR_STORE_UNAVAILABLE);
    assert_int_equal(stage_do(ask_id(stage, COMMAND_HOLD_EXTEND, 0, &hold)), ERR_STORE_UNAVAILABLE);
    assert_int_equal(stage_do(ask_id(stage, COMMAND_HOLD_RELEASE, 0, &hold)), ERR_STORE_UNAVAILABLE);
    assert_int_equal(stage_do(ask_checkout(stage, 0)), ERR_STORE_UNAVAILABLE);
    stage_calm(stage);
    assert_int_equal(stage_seat_hot(stage, 3), SEAT_AVAILABLE);
    struct hot_hold *hot = hot_hold(stage->lane->hot, &stage->org_id, &hold);
    assert_non_null(hot);
    assert_int_equal(hot->held_until_ms, until_ms);
    assert_null(hot->checkout);
    stage_check_rest(stage);
    assert_int_equal(stage_do(ask_seat(stage, 1, 3)), ERR_OK);
}

/* Somebody else wrote to the store: what a second node will do. */
static void move_in_store(struct stage *stage, int32_t seat)
{
    struct sim_event *event = map_get(&sim_store_tables(stage->store)->events, &stage->event_id);
    event->seats[seat].row.version += 3;
}

static void test_a_missed_seat_is_decided_again_on_what_is_there(void **state)
{
    struct stage *stage = *state;
    struct ask *ask = ask_seat(stage, 0, 3);
    move_in_store(stage, 3);
    assert_int_equal(stage_do(ask), ERR_OK);
    assert_int_equal(sim_store_tables(stage->store)->miss_count, 1);
    assert_int_equal(ask->command.try_count, 1);
    stage_check_rest(stage);
}

static void test_a_seat_missed_again_and_again_is_given_up(void **state)
{
    struct stage *stage = *state;
    struct ask *ask = ask_seat(stage, 0, 3);
    stage_post(ask);
    for (int i = 0; i < 200 && !ask->done; i++) {
        stage->now_ms++;
        stage_turn(stage);
        if (stage->lane->in_flight > 0)
            move_in_store(stage, 3);
    }
    assert_true(ask->done);
    assert_int_equal(ask->command.result.err, ERR_SEAT_RESERVATION_FAILED);
    assert_int_equal(sim_store_tables(stage->store)->miss_count, 1 + RETRY_COUNT_MAX);
    assert_int_equal(stage_do(ask_seat(stage, 0, 3)), ERR_OK);
    stage_check_rest(stage);
}

static void test_one_missed_command_does_not_fail_its_neighbours(void **state)
{
    struct stage *stage = *state;
    move_in_store(stage, 3);
    struct ask *missed = ask_seat(stage, 0, 3), *other = ask_seat(stage, 1, 4);
    stage_post(missed);
    stage_post(other);
    stage_turn(stage);
    stage->now_ms++;
    stage_turn(stage);
    assert_true(other->done);
    assert_int_equal(other->command.result.err, ERR_OK);
    assert_false(missed->done);
    stage_finish(stage);
    assert_int_equal(missed->command.result.err, ERR_OK);
    stage_check_rest(stage);
}

static void test_a_lost_answer_is_looked_up(void **state)
{
    struct stage *stage = *state;
    stage_faults(stage, (struct sim_faults){.lose_after = 1000});
    struct ask *kept = ask_seat(stage, 0, 3);
    assert_int_equal(stage_do(kept), ERR_OK);
    assert_int_equal(stage_seat(stage, 3), SEAT_HELD);
    stage_faults(stage, (struct sim_faults){.lose_before = 1000});
    assert_int_equal(stage_do(ask_seat(stage, 0, 4)), ERR_STORE_UNAVAILABLE);
    assert_int_equal(stage_seat(stage, 4), SEAT_AVAILABLE);
    stage_calm(stage);
    stage_check_rest(stage);
}

/* The asker is gone, and so is all that was theirs. */
static void forget(struct ask *ask)
{
    assert_true(ask->done);
    command_deinit(&ask->command);
    arena_deinit(&ask->arena);
    arena_init(&ask->arena);
}

static void test_an_outcome_that_stays_unknown_is_told_and_resolved_later(void **state)
{
    struct stage *stage = *state;
    stage_faults(stage, (struct sim_faults){.lose_after = 1000, .stay_unknown = 1000});
    struct ask *ask = ask_seat(stage, 0, 3);
    ask->command.hold_seats.cart_token = arena_text(&ask->arena, "a basket of a certain length");
    assert_int_equal(stage_do(ask), ERR_OUTCOME_UNKNOWN);
    forget(ask);
    /* Until it is known nothing is decided against it. */
    struct ask *other = ask_seat(stage, 1, 3);
    stage_post(other);
    stage_pass(stage, 1000);
    assert_false(other->done);
    assert_int_equal(stage_seat_hot(stage, 3), SEAT_AVAILABLE);
    stage_calm(stage);
    stage_finish(stage);
    assert_int_equal(other->command.result.err, ERR_SEAT_HELD);
    assert_int_equal(stage_seat_hot(stage, 3), SEAT_HELD);
    assert_string_equal(stage_event(stage)->seats[3].hold->cart_token, "a basket of a certain length");
    stage_check_rest(stage);
}

static void test_an_unknown_outcome_that_did_not_happen_frees_the_seat(void **state)
{
    struct stage *stage = *state;
    stage_faults(stage, (struct sim_faults){.lose_before = 1000, .stay_unknown = 1000});
    struct ask *ask = ask_seat(stage, 0, 3);
    assert_int_equal(stage_do(ask), ERR_OUTCOME_UNKNOWN);
    forget(ask);
    stage_calm(stage);
    stage_pass(stage, 3000);
    stage_check_rest(stage);
    assert_int_equal(stage_do(ask_seat(stage, 1, 3)), ERR_OK);
}

static void test_a_layout_whose_outcome_was_unknown_is_put_in_place(void **state)
{
    struct stage *stage = *state;
    stage_faults(stage, (struct sim_faults){.lose_after = 1000, .stay_unknown = 1000});
    struct ask *put = ask_id(stage, COMMAND_LAYOUT_PUT, -1, &stage->event_id);
    put->command.layout.document = arena_text(
        &put->arena, "{\"blocks\":[{\"section\":\"C\",\"subsection\":1,\"name\":\"C\",\"price_cents\":1,"
                     "\"rows\":[{\"label\":\"1\",\"seats\":2}]}]}");
    put->command.layout.size = strlen(put->command.layout.document);
    assert_int_equal(stage_do(put), ERR_OUTCOME_UNKNOWN);
    forget(put);
    stage_calm(stage);
    stage_pass(stage, 3000);
    assert_int_equal(stage_event(stage)->map->layout->seat_count, 2);
    stage_check_rest(stage);
}

static void test_others_are_served_while_an_outcome_stays_unknown(void **state)
{
    struct stage *stage = *state;
    stage_faults(stage, (struct sim_faults){.lose_before = 1000, .stay_unknown = 1000});
    assert_int_equal(stage_do(ask_seat(stage, 0, 3)), ERR_OUTCOME_UNKNOWN);
    stage_faults(stage, (struct sim_faults){.stay_unknown = 1000});
    struct ask *other = ask_seat(stage, 1, 4);
    stage_post(other);
    stage_pass(stage, COMMAND_WAIT_MS_MAX + 1000);
    assert_true(other->done); /* granted, or refused in time: never left waiting */
    stage_calm(stage);
    stage_pass(stage, 3000);
    stage_check_rest(stage);
}

/* ---- Bounds ---- */

static void test_a_command_that_waited_too_long_is_refused(void **state)
{
    struct stage *stage = *state;
    stage_faults(stage, (struct sim_faults){.lose_before = 1000, .stay_unknown = 1000});
    assert_int_equal(stage_do(ask_seat(stage, 0, 3)), ERR_OUTCOME_UNKNOWN);
    struct ask *waits = ask_seat(stage, 1, 3);
    stage_post(waits);
    stage_pass(stage, COMMAND_WAIT_MS_MAX);
    assert_false(waits->done);
    stage_pass(stage, 100);
    assert_true(waits->done);
    assert_int_equal(waits->command.result.err, ERR_OVERLOADED);
    assert_int_equal(waits->command.result.retry_after_seconds, 1);
    stage_calm(stage);
    stage_pass(stage, 3000);
    stage_check_rest(stage);
}

static void test_a_decided_command_is_withdrawn_when_the_store_takes_nothing(void **state)
{
    struct stage *stage = *state;
    stage_faults(stage, (struct sim_faults){.lose_before = 1000, .stay_unknown = 1000});
    for (int i = 0; i < BATCH_COUNT_IN_FLIGHT_MAX; i++)
        assert_int_equal(stage_do(ask_seat(stage, i, i)), ERR_OUTCOME_UNKNOWN);
    struct ask *decided = ask_seat(stage, 5, STAGE_SEAT_B);
    stage_post(decided);
    stage_pass(stage, COMMAND_WAIT_MS_MAX);
    assert_false(decided->done);
    stage_pass(stage, 100);
    assert_true(decided->done);
    assert_int_equal(decided->command.result.err, ERR_OVERLOADED);
    struct hot_event *event = stage_event(stage);
    assert_false(event->seats[STAGE_SEAT_B].busy);
    assert_int_equal(event->pending_by_block[1], 0);
    assert_int_equal(event->unit_count, BATCH_COUNT_IN_FLIGHT_MAX);
    stage_calm(stage);
    stage_pass(stage, 3000);
    stage_check_rest(stage);
    assert_int_equal(stage_seat(stage, STAGE_SEAT_B), SEAT_AVAILABLE);
    assert_int_equal(stage_do(ask_seat(stage, 5, STAGE_SEAT_B)), ERR_OK);
}

static void test_a_release_is_never_refused_for_waiting(void **state)
{
    struct stage *stage = *state;
    struct uuid hold = stage_hold(stage, 0, 3);
    stage_faults(stage, (struct sim_faults){.lose_before = 1000, .stay_unknown = 1000});
    assert_int_equal(stage_do(ask_id(stage, COMMAND_HOLD_EXTEND, 0, &hold)), ERR_OUTCOME_UNKNOWN);
    struct ask *release = ask_id(stage, COMMAND_HOLD_RELEASE, 0, &hold);
    stage_post(release);
    stage_pass(stage, 2 * COMMAND_WAIT_MS_MAX);
    assert_false(release->done);
    stage_calm(stage);
    stage_finish(stage);
    assert_int_equal(release->command.result.err, ERR_OK);
    assert_int_equal(stage_seat(stage, 3), SEAT_AVAILABLE);
    stage_check_rest(stage);
}

static void test_a_full_inbox_refuses_reserves_and_takes_releases(void **state)
{
    struct stage *stage = *state;
    struct uuid hold = stage_hold(stage, 0, 3);
    struct uuid checkout = stage_checkout(stage, 0);
    static struct ask *asks[INBOX_COUNT_MAX];
    for (int32_t i = 0; i < INBOX_COUNT_MAX; i++) {
        asks[i] = ask_id(stage, COMMAND_HOLD_GET, 0, &hold);
        stage_post(asks[i]);
    }
    struct ask *refused = ask_seat(stage, 1, 4);
    assert_int_equal(lane_post(stage->lane, &refused->command), ERR_OVERLOADED);
    struct ask *release = ask_id(stage, COMMAND_HOLD_RELEASE, 1, &hold); /* not theirs: any answer will do */
    struct ask *cancel = ask_id(stage, COMMAND_CHECKOUT_CANCEL, 0, &checkout);
    struct ask *admin = ask_release_event(stage);
    struct ask *settled = ask_settled(stage, &checkout, PAYMENT_DECLINED);
    stage_post(release);
    stage_post(cancel);
    stage_post(admin);
    stage_post(settled);
    stage_finish(stage);
    assert_false(refused->done); /* on_done never runs for what was not taken */
    assert_int_equal(cancel->command.result.err, ERR_OK);
    assert_int_equal(stage_do(ask_seat(stage, 1, 4)), ERR_OK); /* and there is room again */
    stage_check_rest(stage);
}

static void test_expiries_go_on_while_reserves_fill_every_batch(void **state)
{
    (void)state;
    enum { ROW_COUNT = 100, ROW_SIZE = 100, PER_TURN = 700 };
    struct policy policy = stage_policy();
    policy.max_seats_per_user = 0;
    struct stage *stage = stage_create_large(&policy, ROW_COUNT, ROW_SIZE);
    struct uuid hold = stage_hold(stage, 0, 9999);
    stage_pass(stage, 64 * 1000);
    int32_t seat = 0;
    for (int turn = 0; turn < 14; turn++) { /* beyond the store's pace from first to last */
        for (int i = 0; i < PER_TURN && seat < 9900; i++, seat++)
            stage_post(ask_seat(stage, seat % STAGE_USER_COUNT, seat));
        stage->now_ms += 200;
        stage_turn(stage);
    }
    assert_false(list_empty(&stage->lane->ready));                       /* the flood is not over … */
    assert_int_equal(stage_hold_row(stage, &hold)->state, HOLD_EXPIRED); /* … and time ran on */
    stage_finish(stage);
    stage_check_rest(stage);
    stage_destroy(stage);
}

static void test_a_lane_that_ends_answers_everybody(void **state)
{
    struct stage *stage = *state;
    struct uuid hold = stage_hold(stage, 0, 0);
    struct uuid checkout = stage_checkout(stage, 0);
    stage_pay(stage, 0, &checkout);
    stage_post(ask_seat(stage, 1, 3)); /* in flight */
    stage_turn(stage);
    stage_post(ask_seat(stage, 2, 3)); /* waiting */
    stage_turn(stage);
    stage_post(ask_seat(stage, 2, 4));    /* gathering */
    stage_post(ask_release_event(stage)); /* a job */
    struct uuid nobody = stage->admin_id;
    stage_post(ask_id(stage, COMMAND_HOLD_RELEASE, 2, &nobody)); /* looked up */
    stage_turn(stage);
    stage_post(ask_seat(stage, 2, 5)); /* in the inbox */
    stage_restart(stage);              /* asserts that nobody is left waiting */
    (void)hold;
    stage_pass(stage, 200 * 1000);
    stage_check_rest(stage);
}

int main(void)
{
#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, stage_setup, stage_teardown)
    const struct CMUnitTest tests[] = {
        ON_STAGE(test_nothing_is_answered_before_its_commit),
        ON_STAGE(test_a_second_asker_waits_for_the_first_ones_commit),
        ON_STAGE(test_a_second_asker_gets_the_seat_when_the_first_ones_commit_fails),
        ON_STAGE(test_the_same_user_asking_twice_at_once_gets_one_hold),
        ON_STAGE(test_a_release_of_an_uncommitted_extension_waits),
        ON_STAGE(test_several_seats_wait_when_one_of_them_is_uncommitted),
        ON_STAGE(test_those_who_wait_are_decided_in_the_order_they_came),
        cmocka_unit_test(test_the_waiting_are_counted_when_a_batch_is_full),
        ON_STAGE(test_the_hold_limit_counts_uncommitted_holds),
        ON_STAGE(test_the_hold_limit_is_free_again_when_the_commit_fails),
        ON_STAGE(test_block_capacity_counts_uncommitted_holds),
        ON_STAGE(test_several_seats_count_together_against_the_capacity),
        ON_STAGE(test_best_available_waits_for_capacity_that_may_come_back),
        ON_STAGE(test_best_available_takes_no_uncommitted_seat),
        cmocka_unit_test(test_the_rate_limit_counts_uncommitted_holds),
        cmocka_unit_test(test_asking_for_ones_own_seat_costs_nothing),
        ON_STAGE(test_a_failed_batch_leaves_nothing_behind),
        ON_STAGE(test_a_missed_seat_is_decided_again_on_what_is_there),
        ON_STAGE(test_a_seat_missed_again_and_again_is_given_up),
        ON_STAGE(test_one_missed_command_does_not_fail_its_neighbours),
        ON_STAGE(test_a_lost_answer_is_looked_up),
        ON_STAGE(test_an_outcome_that_stays_unknown_is_told_and_resolved_later),
        ON_STAGE(test_an_unknown_outcome_that_did_not_happen_frees_the_seat),
        ON_STAGE(test_a_layout_whose_outcome_was_unknown_is_put_in_place),
        ON_STAGE(test_others_are_served_while_an_outcome_stays_unknown),
        ON_STAGE(test_a_command_that_waited_too_long_is_refused),
        ON_STAGE(test_a_decided_command_is_withdrawn_when_the_store_takes_nothing),
        ON_STAGE(test_a_release_is_never_refused_for_waiting),
        ON_STAGE(test_a_full_inbox_refuses_reserves_and_takes_releases),
        cmocka_unit_test(test_expiries_go_on_while_reserves_fill_every_batch),
        ON_STAGE(test_a_lane_that_ends_answers_everybody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
