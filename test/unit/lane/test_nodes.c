/* SPDX-License-Identifier: Apache-2.0
 * Two nodes that write to one store: holds, users, best available and long work,
 * when the other node was there first or is at it too, and what a node does that
 * cannot follow any more. Money is test_nodes_payment.c's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "base/limits.h"
#include "nodes_stage.h"
#include "store/sim/sim_int.h"

/* ---- What a node did itself, and what others did after it ---- */

static void test_a_hold_released_here_does_not_stay_when_another_node_has_the_seat_first(void **state)
{
    struct nodes *nodes = *state;
    struct ask *hold = ask_seat(nodes->a, 0, 0);
    assert_int_equal(nodes_do(nodes, hold), ERR_OK);
    struct uuid id = hold->command.result.holds[0].row.id;
    nodes_pass(nodes, 300);
    nodes_lose_answers(nodes->a);
    struct ask *release = ask_id(nodes->a, COMMAND_HOLD_RELEASE, 0, &id);
    stage_post(release);
    nodes_pass(nodes, 300);
    assert_int_equal(release->command.result.err, ERR_OUTCOME_UNKNOWN);
    assert_int_equal(nodes_do(nodes, ask_seat(nodes->b, 1, 0)), ERR_OK);
    nodes_pass(nodes, 300); /* the feed has it, and node a its own answer not yet */
    stage_calm(nodes->a);
    nodes_pass(nodes, 3000);
    assert_null(map_get(&nodes->a->lane->hot->holds, &id));
    nodes_check_rest(nodes);
}

static struct ask *ask_disabled(struct stage *stage, bool disabled)
{
    struct ask *ask = ask_id(stage, COMMAND_USER_PATCH, -1, &stage->users[0]);
    ask->command.admin.disabled = disabled;
    return ask;
}

/* Users have no version: whose change is newer cannot be seen from what the feed brings. */
static void test_of_two_changes_of_a_user_the_last_one_stays_on_both_nodes(void **state)
{
    struct nodes *nodes = *state;
    assert_int_equal(nodes_do(nodes, ask_seat(nodes->a, 0, 0)), ERR_OK);
    nodes_pass(nodes, 300);
    stage_faults(nodes->b, (struct sim_faults){.feed_delay_ms_max = 400}); /* a hears of it after its own */
    assert_int_equal(nodes_do(nodes, ask_disabled(nodes->b, false)), ERR_OK);
    assert_int_equal(nodes_do(nodes, ask_disabled(nodes->a, true)), ERR_OK);
    nodes_pass(nodes, 3000);
    const struct uuid *org_id = &nodes->a->org_id, *user_id = &nodes->a->users[0];
    assert_int_equal(directory_user(nodes->a->directory, org_id, user_id), USER_DISABLED);
    assert_int_equal(directory_user(nodes->b->directory, org_id, user_id), USER_DISABLED);
    nodes_check_rest(nodes);
}

/* ---- Best available ---- */

static void nothing_to_do(struct warm_round *round)
{
    (void)round;
}

/* A node that dies before its commit leaves its lock in Redis, for as long as the hold would have lasted. */
static void test_best_available_passes_over_a_lock_that_a_dead_node_left(void **state)
{
    (void)state;
    struct nodes *nodes = nodes_create_with_redis(stage_create(NULL, NULL));
    struct stage *b = nodes->b;
    for (int i = 0; i < 10000 && warm_state(nodes->warm) != WARM_CLOSED; i++)
        nodes_pass(nodes, 1);
    assert_int_equal(warm_state(nodes->warm), WARM_CLOSED);
    struct ask *first = ask_best(b, 0, 1, "A"); /* which one would it be? */
    assert_int_equal(nodes_do(nodes, first), ERR_OK);
    const struct hold_view chosen = first->command.result.holds[0];
    assert_int_equal(nodes_do(nodes, ask_id(b, COMMAND_HOLD_RELEASE, 0, &chosen.row.id)), ERR_OK);
    nodes_pass(nodes, 300);

    struct arena arena;
    arena_init(&arena);
    struct warm *dead = warm_sim_attach(nodes->redis, 2, NULL, NULL);
    warm_rebuilt(dead);
    struct warm_lock lock = {.org_id = b->org_id,
                             .event_id = b->event_id,
                             .seat_id = chosen.row.seat_id,
                             .hold_id = b->admin_id, /* any that is nobody's */
                             .user_id = b->users[7],
                             .cart_token = "left",
                             .held_at_ms = b->now_ms,
                             .held_until_ms = b->now_ms + 60000};
    struct warm_round round = {.arena = &arena, .locks = &lock, .count = 1, .on_done = nothing_to_do};
    list_init(&round.node);
    assert_int_equal(warm_lock(dead, &round), ERR_OK);
    nodes_pass(nodes, 20);
    assert_non_null(map_get(&warm_sim_tables(nodes->redis)->locks, &chosen.row.seat_id));

    struct ask *ask = ask_best(b, 1, 1, "A");
    assert_int_equal(nodes_do(nodes, ask), ERR_OK);
    assert_int_not_equal(ask->command.result.holds[0].seat_index, chosen.seat_index);
    warm_destroy(dead);
    arena_deinit(&arena);
    nodes_destroy(nodes);
}

static void test_best_available_passes_over_a_seat_that_another_nodes_commit_has_locked(void **state)
{
    struct nodes *nodes = *state;
    struct ask *slow = ask_best(nodes->a, 0, 1, "A");
    stage_post(slow);
    stage_turn(nodes->a); /* at the store; node a does not turn for a while */
    stage_faults(nodes->b, (struct sim_faults){.locked = 1000});
    struct ask *ask = ask_best(nodes->b, 1, 1, "A");
    int64_t misses = sim_store_tables(nodes->b->store)->miss_count;
    assert_int_equal(nodes_do_alone(nodes, ask), ERR_OK);
    assert_true(sim_store_tables(nodes->b->store)->miss_count > misses); /* it wanted the same one */
    stage_calm(nodes->b);
    nodes_finish(nodes);
    assert_int_equal(slow->command.result.err, ERR_OK);
    assert_int_not_equal(ask->command.result.holds[0].seat_index, slow->command.result.holds[0].seat_index);
    nodes_check_rest(nodes);
}

/* ---- Long work ---- */

enum { HOUSE_SEAT_COUNT = 700, SEAT_RELEASED = 300, SEAT_EXTENDED = 301 }; /* both in the second chunk */

static struct nodes *full_house(struct uuid *holds)
{
    struct policy policy = stage_policy();
    policy.max_seats_per_user = 0;
    policy.hold_ttl_seconds = 600;
    policy.hold_max_seconds = 900;
    struct stage *stage = stage_create_large(&policy, 7, 100);
    struct ask *asks[HOUSE_SEAT_COUNT];
    for (int32_t i = 0; i < HOUSE_SEAT_COUNT; i++)
        stage_post(asks[i] = ask_seat(stage, i % STAGE_USER_COUNT, i));
    stage_finish(stage);
    for (int32_t i = 0; i < HOUSE_SEAT_COUNT; i++)
        holds[i] = asks[i]->command.result.holds[0].row.id;
    return nodes_create(stage);
}

static void check_each_once(const struct result *result, int32_t but)
{
    bool seen[HOUSE_SEAT_COUNT] = {false};
    for (int32_t i = 0; i < result->hold_count; i++) {
        assert_false(seen[result->holds[i].seat_index]);
        seen[result->holds[i].seat_index] = true;
    }
    for (int32_t i = 0; i < HOUSE_SEAT_COUNT; i++)
        assert_int_equal(seen[i], i != but);
}

/* Its chunk is taken back as a whole, and done again on what the other node left of it. */
static void test_a_release_that_another_node_crosses_counts_each_hold_once(void **state)
{
    (void)state;
    struct uuid holds[HOUSE_SEAT_COUNT];
    struct nodes *nodes = full_house(holds);
    struct ask *release = ask_release_event(nodes->a);
    stage_post(release);
    for (int i = 0; i < 1000 && stage_seat(nodes->a, 0) == SEAT_HELD; i++)
        nodes_pass(nodes, 1);
    assert_int_equal(stage_seat(nodes->a, 0), SEAT_AVAILABLE);        /* the first chunk is committed … */
    assert_int_equal(stage_seat(nodes->a, SEAT_RELEASED), SEAT_HELD); /* … the second one under way */
    struct stage *b = nodes->b;
    int user = SEAT_RELEASED % STAGE_USER_COUNT;
    struct ask *own = ask_id(b, COMMAND_HOLD_RELEASE, user, &holds[SEAT_RELEASED]);
    assert_int_equal(nodes_do_alone(nodes, own), ERR_OK);
    struct ask *extend = ask_id(b, COMMAND_HOLD_EXTEND, user + 1, &holds[SEAT_EXTENDED]);
    assert_int_equal(nodes_do_alone(nodes, extend), ERR_OK);
    int64_t misses = sim_store_tables(b->store)->miss_count;
    nodes_finish(nodes);
    assert_true(sim_store_tables(b->store)->miss_count > misses);

    const struct result *result = &release->command.result;
    assert_int_equal(result->err, ERR_OK);
    assert_int_equal(result->hold_count, HOUSE_SEAT_COUNT - 1);
    check_each_once(result, SEAT_RELEASED);
    assert_int_equal(result->failure_count, 1);
    assert_memory_equal(&result->failures[0].id, &holds[SEAT_RELEASED], sizeof(struct uuid));
    assert_int_equal(result->failures[0].err, ERR_HOLD_NOT_FOUND);
    assert_int_equal(stage_hold_row(b, &holds[SEAT_RELEASED])->reason, END_USER_CANCELLED);
    assert_int_equal(stage_hold_row(b, &holds[SEAT_EXTENDED])->reason, END_ADMIN_OVERRIDE);
    for (int32_t i = 0; i < HOUSE_SEAT_COUNT; i++)
        assert_int_equal(stage_seat(b, i), SEAT_AVAILABLE);
    nodes_check_rest(nodes);
    nodes_destroy(nodes);
}

/* Releases are never refused for being late, but for this: nobody knows what there is to be released. */
static void test_a_release_is_answered_though_the_feed_cannot_be_read(void **state)
{
    struct nodes *nodes = *state;
    assert_int_equal(nodes_do(nodes, ask_seat(nodes->a, 0, 0)), ERR_OK);
    stage_faults(nodes->a, (struct sim_faults){.lookup_fail = 1000, .fail = 1000});
    struct ask *release = ask_release_event(nodes->a);
    stage_post(release);
    nodes_pass(nodes, COMMAND_WAIT_MS_MAX + 1000);
    assert_true(release->done);
    assert_int_equal(release->command.result.err, ERR_OVERLOADED);
    stage_calm(nodes->a);
    assert_int_equal(stage_seat(nodes->a, 0), SEAT_HELD);
    nodes_check_rest(nodes);
}

/* ---- A node that cannot follow ---- */

static void test_a_change_of_another_node_that_cannot_be_read_is_the_end_of_following(void **state)
{
    struct nodes *nodes = *state;
    assert_int_equal(nodes_do_alone(nodes, ask_seat(nodes->a, 0, 0)), ERR_OK);
    struct sim_feed *feed = &((struct sim_store *)nodes->b->store)->database->feed;
    uint8_t *data = feed->changes[feed->count - 1].data;
    assert_int_equal(data[0], CHANGES_VERSION);
    data[0]++; /* by a node that is newer */
    assert_int_equal(nodes_lost_count(nodes), 0);
    nodes_pass(nodes, 300);
    assert_int_equal(nodes_lost_count(nodes), 1);
}

static void test_a_node_that_fell_behind_the_feed_says_so(void **state)
{
    struct nodes *nodes = *state;
    assert_int_equal(nodes_do_alone(nodes, ask_seat(nodes->a, 0, 0)), ERR_OK); /* b sleeps from here on */
    nodes->a->now_ms += (IDEMPOTENCY_HOURS + 1) * 3600 * 1000ll;
    assert_int_equal(nodes_do_alone(nodes, ask_seat(nodes->a, 1, 1)), ERR_OK); /* the first is purged */
    assert_int_equal(nodes_lost_count(nodes), 0);
    nodes_pass(nodes, 300);
    assert_true(nodes_lost_count(nodes) > 0);
}

int main(void)
{
#define ON_NODES(test) cmocka_unit_test_setup_teardown(test, nodes_setup, nodes_teardown)
    const struct CMUnitTest tests[] = {
        ON_NODES(test_a_hold_released_here_does_not_stay_when_another_node_has_the_seat_first),
        ON_NODES(test_of_two_changes_of_a_user_the_last_one_stays_on_both_nodes),
        cmocka_unit_test(test_best_available_passes_over_a_lock_that_a_dead_node_left),
        ON_NODES(test_best_available_passes_over_a_seat_that_another_nodes_commit_has_locked),
        cmocka_unit_test(test_a_release_that_another_node_crosses_counts_each_hold_once),
        ON_NODES(test_a_release_is_answered_though_the_feed_cannot_be_read),
        ON_NODES(test_a_change_of_another_node_that_cannot_be_read_is_the_end_of_following),
        ON_NODES(test_a_node_that_fell_behind_the_feed_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
