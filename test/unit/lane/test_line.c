/* SPDX-License-Identifier: Apache-2.0
 * Commands of one partition are decided in their order, whoever of them must ask
 * the store first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "stage.h"
#include "store/store_int.h"

static struct order_fence fences[2];

static void claimed(struct store_batch *batch)
{
    assert_int_equal(batch->outcome, STORE_COMMITTED);
    *(bool *)batch->context = true;
}

/* The partition is this node's, as claim.c would make it. */
static void claim(struct stage *stage, struct order_fence *fence, int32_t partition)
{
    bool is_done = false;
    *fence = (struct order_fence){.topic = "commands", .partition = partition, .epoch = 1};
    list_init(&fence->line);
    struct order_claim row = {
        .row = {.topic = fence->topic, .partition = partition, .epoch = 1, .node = stage->admin_id}};
    struct store_unit unit = {.order_claims = &row};
    struct store_batch batch = {.id = uuid_make(&stage->rng, stage->now_ms),
                                .unit_count = 1,
                                .on_done = claimed,
                                .context = &is_done};
    arena_init(&batch.arena);
    list_init(&batch.node);
    list_init(&batch.units);
    list_append(&batch.units, &unit.node);
    assert_int_equal(store_submit(stage->store, &batch), ERR_OK);
    stage_pass(stage, 20);
    assert_true(is_done);
    arena_deinit(&batch.arena);
}

static int setup(void **state)
{
    if (stage_setup(state) != 0)
        return -1;
    for (int32_t i = 0; i < 2; i++)
        claim(*state, &fences[i], i);
    return 0;
}

static int teardown(void **state)
{
    for (int i = 0; i < 2; i++)
        assert_true(list_empty(&fences[i].line));
    stage_check_rest(*state);
    return stage_teardown(state);
}

/* It comes from the broker. Key 0: nobody gave it one, and it cannot have come before. */
static void take(struct ask *ask, int partition, uint8_t key)
{
    struct stage *stage = ask->stage;
    struct uuid id = uuid_make(&stage->rng, stage->now_ms);
    ask_key(ask, key, 1);
    if (key == 0)
        command_make_key(&id, ask->command.key);
    ask->command.sent =
        (struct sent){.id = id, .is_taken = true, .is_key_made = key == 0, .fence = &fences[partition]};
    stage->waiting_count++;
    lane_take(stage->lane, &ask->command);
}

static struct ask *take_seat(struct stage *stage, int user, int32_t seat, int partition, uint8_t key)
{
    struct ask *ask = ask_seat(stage, user, seat);
    take(ask, partition, key);
    return ask;
}

static void test_one_that_asks_for_its_key_is_not_passed(void **state)
{
    struct stage *stage = *state;
    struct ask *first = take_seat(stage, 0, 3, 0, 1), *second = take_seat(stage, 1, 3, 0, 0);
    stage_finish(stage);
    assert_int_equal(first->command.result.err, ERR_OK);
    assert_int_equal(second->command.result.err, ERR_SEAT_HELD);
}

static void test_one_that_waits_for_a_commit_is_not_passed(void **state)
{
    struct stage *stage = *state;
    struct uuid held = stage_hold(stage, 2, 3);
    struct ask *release = ask_id(stage, COMMAND_HOLD_RELEASE, 2, &held);
    struct ask *both = ask_seats(stage, 0, (int32_t[]){3, 4}, 2);
    take(release, 0, 0);
    take(both, 0, 0);
    struct ask *one = take_seat(stage, 1, 4, 0, 0);
    stage_finish(stage);
    assert_int_equal(release->command.result.err, ERR_OK);
    assert_int_equal(both->command.result.err, ERR_OK);
    assert_int_equal(one->command.result.err, ERR_SEAT_HELD);
}

static void test_those_of_another_partition_do_not_wait(void **state)
{
    struct stage *stage = *state;
    struct ask *first = take_seat(stage, 0, 3, 0, 1), *other = take_seat(stage, 1, 3, 1, 0);
    stage_finish(stage);
    assert_int_equal(first->command.result.err, ERR_SEAT_HELD);
    assert_int_equal(other->command.result.err, ERR_OK);
}

static void test_one_that_came_again_is_not_in_the_way_of_others(void **state)
{
    struct stage *stage = *state;
    struct ask *first = take_seat(stage, 0, 3, 0, 1);
    stage_finish(stage);
    struct ask *again = take_seat(stage, 0, 3, 0, 1), *behind = take_seat(stage, 1, 4, 0, 0);
    stage_finish(stage);
    assert_int_equal(again->command.result.err, ERR_OK);
    assert_memory_equal(&again->command.result.holds[0].row.id, &first->command.result.holds[0].row.id,
                        sizeof(struct uuid));
    assert_int_equal(behind->command.result.err, ERR_OK);
}

static void test_one_buyers_many_changes_do_not_keep_others_from_other_seats(void **state)
{
    enum { CHANGES = 60 };
    struct stage *stage = *state;
    struct uuid held[2] = {stage_hold(stage, 2, 3), stage_hold(stage, 2, 2)};
    struct ask *changes[CHANGES];
    for (int i = 0; i < CHANGES; i++) { /* each waits for the one before to be committed */
        changes[i] = ask_checkout(stage, 2);
        changes[i]->command.checkout_start.hold_ids = arena_copy(&changes[i]->arena, held, sizeof(held));
        changes[i]->command.checkout_start.hold_count = 1 + i % 2;
        take(changes[i], 0, 0);
    }
    struct ask *other = take_seat(stage, 0, 5, 0, 0);
    while (!other->done) {
        stage->now_ms++;
        stage_turn(stage);
    }
    assert_false(changes[CHANGES / 4]->done);
    stage_finish(stage);
    for (int i = 0; i < CHANGES; i++)
        assert_int_equal(changes[i]->command.result.err, ERR_OK);
    stage_pass(stage, 3000);
}

/* The broker has it twice. */
static struct ask *take_again(const struct ask *first, bool is_expected)
{
    struct stage *stage = first->stage;
    struct ask *again = stage_ask(stage, COMMAND_HOLD_SEATS, 0);
    again->command.hold_seats = first->command.hold_seats;
    take(again, 0, 0);
    again->command.sent.id = first->command.sent.id;
    again->command.sent.deadline_ms = first->command.sent.deadline_ms;
    again->command.sent.may_be_again = is_expected;
    memcpy(again->command.key, first->command.key, sizeof(again->command.key));
    return again;
}

static void test_a_hold_that_has_the_commands_id_answers_it_when_it_comes_again(void **state)
{
    struct stage *stage = *state;
    struct ask *first = take_seat(stage, 0, 3, 0, 0);
    stage_finish(stage);
    const struct hold_row *made = &first->command.result.holds[0].row;
    assert_memory_equal(&made->id, &first->command.sent.id, sizeof(made->id));
    assert_int_equal(sim_store_tables(stage->store)->keys.count, 0); /* there is no other trace of it */
    for (int i = 0; i < 4; i++) {
        if (i == 2)
            assert_int_equal(stage_do(ask_id(stage, COMMAND_HOLD_RELEASE, 0, &made->id)), ERR_OK);
        struct ask *again = take_again(first, i % 2 == 0);
        stage_finish(stage);
        assert_int_equal(again->command.result.err, ERR_OK);
        assert_int_equal(again->command.result.status, 201);
        const struct hold_row *row = &again->command.result.holds[0].row;
        assert_memory_equal(&row->id, &made->id, sizeof(row->id));
        assert_int_equal(row->state, HOLD_ACTIVE); /* as the first was told */
        assert_int_equal(row->held_until_ms, made->held_until_ms);
    }
    assert_int_equal(stage_seat(stage, 3), SEAT_AVAILABLE); /* nothing was done again */
}

/* ---- A commit that hangs in the store, and comes through in the end ---- */

static const struct store_functions *plain;
static struct store_batch *hanging;
static bool hangs_next, hangs;

static enum err submit_hanging(struct store *store, struct store_batch *batch)
{
    if (!hangs_next)
        return plain->submit(store, batch);
    hangs_next = false;
    hanging = batch;
    batch->outcome = STORE_UNKNOWN;
    batch->on_done(batch);
    return ERR_OK;
}

static enum err resolve_hanging(struct store *store, struct store_batch *batch)
{
    if (batch != hanging)
        return plain->resolve(store, batch);
    if (!hangs)
        return plain->submit(store, batch);
    batch->outcome = STORE_UNKNOWN;
    batch->on_done(batch);
    return ERR_OK;
}

static void test_one_that_may_still_be_done_is_not_refused_meanwhile(void **state)
{
    struct stage *stage = *state;
    static struct store_functions functions;
    plain = stage->store->functions;
    functions = *plain;
    functions.submit = submit_hanging;
    functions.resolve = resolve_hanging;
    stage->store->functions = &functions;
    hangs = hangs_next = true;
    struct ask *first = take_seat(stage, 0, 3, 0, 0);
    first->command.sent.deadline_ms = stage->now_ms + 500;
    stage_finish(stage);
    assert_int_equal(first->command.result.err, ERR_OUTCOME_UNKNOWN);
    stage_pass(stage, 1000);
    struct ask *again = take_again(first, true); /* too late by now, but for the first try */
    stage_pass(stage, 500);
    assert_false(again->done);
    hangs = false;
    stage_finish(stage);
    assert_int_equal(again->command.result.err, ERR_OK);
    assert_int_equal(again->command.result.status, 201);
    assert_int_equal(stage_seat(stage, 3), SEAT_HELD);
    stage->store->functions = plain;
    stage_pass(stage, 3000);
}

static void test_a_question_that_fails_lets_the_others_go_on(void **state)
{
    struct stage *stage = *state;
    stage_faults(stage, (struct sim_faults){.lookup_fail = 1000});
    struct ask *first = take_seat(stage, 0, 3, 0, 1), *second = take_seat(stage, 1, 3, 0, 0);
    struct ask *third = take_seat(stage, 2, 3, 0, 2);
    stage_turn(stage);
    stage->now_ms++;
    stage_turn(stage);
    assert_int_equal(first->command.result.err, ERR_STORE_UNAVAILABLE);
    assert_int_equal(third->command.result.err, ERR_STORE_UNAVAILABLE);
    stage_calm(stage);
    stage_finish(stage);
    assert_int_equal(second->command.result.err, ERR_OK);
}

static void test_the_first_of_many_gets_the_seat_however_long_each_must_ask(void **state)
{
    struct stage *stage = *state;
    stage_faults(stage, (struct sim_faults){.delay_ms_max = 50});
    uint8_t key = 0;
    for (int round = 0; round < 30; round++) {
        struct ask *asks[STAGE_USER_COUNT];
        for (int i = 0; i < STAGE_USER_COUNT; i++) {
            asks[i] = take_seat(stage, i, 3, 0, rng_below(&stage->rng, 2) == 0 ? ++key : 0);
            if (i % 3 == 0)
                stage_turn(stage);
        }
        stage_finish(stage);
        assert_int_equal(asks[0]->command.result.err, ERR_OK);
        for (int i = 1; i < STAGE_USER_COUNT; i++)
            assert_int_not_equal(asks[i]->command.result.err, ERR_OK);
        assert_int_equal(
            stage_do(ask_id(stage, COMMAND_HOLD_RELEASE, 0, &asks[0]->command.result.holds[0].row.id)),
            ERR_OK);
    }
    stage_calm(stage);
    stage_pass(stage, 3000);
}

int main(void)
{
#define IN_LINE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        IN_LINE(test_one_that_asks_for_its_key_is_not_passed),
        IN_LINE(test_one_that_waits_for_a_commit_is_not_passed),
        IN_LINE(test_those_of_another_partition_do_not_wait),
        IN_LINE(test_one_that_came_again_is_not_in_the_way_of_others),
        IN_LINE(test_one_buyers_many_changes_do_not_keep_others_from_other_seats),
        IN_LINE(test_a_hold_that_has_the_commands_id_answers_it_when_it_comes_again),
        IN_LINE(test_one_that_may_still_be_done_is_not_refused_meanwhile),
        IN_LINE(test_a_question_that_fails_lets_the_others_go_on),
        IN_LINE(test_the_first_of_many_gets_the_seat_however_long_each_must_ask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
