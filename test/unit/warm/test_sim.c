/* SPDX-License-Identifier: Apache-2.0
 * The simulated Redis keeps the contract of warm.h, and a seed repeats its
 * troubles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs the four above */
#include <cmocka.h>

#include "base/rng.h"
#include "warm/sim/sim.h"

enum { NODE_COUNT = 2, HELD_MS = 300000 };

struct world {
    struct warm_sim *sim;
    struct warm *nodes[NODE_COUNT];
    int nudges[NODE_COUNT];
    struct arena arena;
    struct rng rng;
    int64_t now_ms;
    struct uuid event_id;
};

static struct world world;

static void on_nudge(void *context)
{
    (*(int *)context)++;
}

static void start(uint64_t seed)
{
    memset(&world, 0, sizeof(world));
    arena_init(&world.arena);
    rng_init_seed(&world.rng, seed);
    world.sim = warm_sim_create(seed);
    world.now_ms = 1000000;
    warm_sim_set_now(world.sim, world.now_ms);
    world.event_id = uuid_make(&world.rng, world.now_ms);
    for (int i = 0; i < NODE_COUNT; i++) {
        world.nodes[i] = warm_sim_attach(world.sim, seed + 1 + (uint64_t)i, on_nudge, &world.nudges[i]);
        warm_rebuilt(world.nodes[i]);
    }
}

static void stop(void)
{
    for (int i = 0; i < NODE_COUNT; i++)
        warm_destroy(world.nodes[i]);
    warm_sim_destroy(world.sim);
    arena_deinit(&world.arena);
}

static int setup(void **state)
{
    (void)state;
    start(7);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    stop();
    return 0;
}

static void pass(int64_t ms)
{
    world.now_ms += ms;
    warm_sim_set_now(world.sim, world.now_ms);
    for (int i = 0; i < NODE_COUNT; i++)
        warm_turn(world.nodes[i], world.now_ms * 1000);
}

static struct warm_write make_hold(void)
{
    return (struct warm_write){.kind = WARM_HELD,
                               .event_id = world.event_id,
                               .seat_id = uuid_make(&world.rng, world.now_ms),
                               .state = SEAT_HELD,
                               .version = 2,
                               .section = "A",
                               .subsection = 1,
                               .hold_id = uuid_make(&world.rng, world.now_ms),
                               .user_id = uuid_make(&world.rng, world.now_ms),
                               .cart_token = "cart",
                               .created_ms = world.now_ms,
                               .held_until_ms = world.now_ms + HELD_MS,
                               .locked = true};
}

static void on_round(struct warm_round *round)
{
    *(bool *)round->context = true;
}

static enum warm_outcome take(int node, struct warm_lock *lock, const struct warm_write *hold)
{
    bool done = false;
    *lock = (struct warm_lock){.event_id = hold->event_id,
                               .seat_id = hold->seat_id,
                               .hold_id = hold->hold_id,
                               .user_id = hold->user_id,
                               .cart_token = hold->cart_token,
                               .held_at_ms = hold->created_ms,
                               .held_until_ms = hold->held_until_ms};
    struct warm_round round = {
        .arena = &world.arena, .locks = lock, .count = 1, .on_done = on_round, .context = &done};
    assert_int_equal(warm_lock(world.nodes[node], &round), ERR_OK);
    for (int i = 0; i <= WARM_ROUND_MS_MAX + 1 && !done; i++)
        pass(1);
    assert_true(done);
    return round.outcome;
}

static void test_nodes_share_locks_and_members(void **state)
{
    (void)state;
    struct warm_write hold = make_hold(), other = hold;
    struct warm_lock lock = {0};
    other.hold_id = uuid_make(&world.rng, world.now_ms);
    assert_int_equal(take(0, &lock, &hold), WARM_ANSWERED);
    assert_int_equal(lock.result, WARM_LOCK_TAKEN);
    assert_int_equal(take(1, &lock, &other), WARM_ANSWERED);
    assert_int_equal(lock.result, WARM_LOCK_FOUND);
    assert_true(lock.readable);
    assert_true(uuid_equal(&lock.found_hold_id, &hold.hold_id));
    warm_write(world.nodes[0], &hold, 1);
    pass(1);
    assert_int_equal(warm_sim_tables(world.sim)->members.count, 1);
    assert_int_equal(world.nudges[0], 0);
    assert_int_equal(world.nudges[1], 1);

    other.kind = WARM_RELEASED; /* not the owner: nothing goes */
    other.version = 1;
    warm_write(world.nodes[1], &other, 1);
    pass(1);
    assert_int_equal(warm_sim_tables(world.sim)->locks.count, 1);
    assert_int_equal(warm_sim_tables(world.sim)->members.count, 1);
    hold.kind = WARM_RELEASED;
    hold.state = SEAT_AVAILABLE;
    hold.version = 3;
    warm_write(world.nodes[1], &hold, 1);
    pass(1);
    assert_int_equal(warm_sim_tables(world.sim)->locks.count, 0);
    assert_int_equal(warm_sim_tables(world.sim)->members.count, 0);
    const struct warm_sim_seat *seat = map_get(&warm_sim_tables(world.sim)->seats, &hold.seat_id);
    assert_false(seat->taken);
}

static void test_a_repair_does_not_bring_back_an_ended_hold(void **state)
{
    (void)state;
    struct warm_write hold = make_hold(), release = hold;
    release.kind = WARM_RELEASED;
    release.state = SEAT_AVAILABLE;
    release.version = 3;
    warm_write(world.nodes[0], &release, 1);
    hold.repair = true;
    warm_write(world.nodes[1], &hold, 1);
    pass(1);
    assert_int_equal(warm_sim_tables(world.sim)->locks.count, 0);
    assert_int_equal(warm_sim_tables(world.sim)->members.count, 0);
}

static void test_locks_die(void **state)
{
    (void)state;
    struct warm_write hold = make_hold(), other = hold;
    struct warm_lock lock = {0};
    take(0, &lock, &hold);
    other.hold_id = uuid_make(&world.rng, world.now_ms);
    take(1, &lock, &other);
    assert_int_equal(lock.result, WARM_LOCK_FOUND);
    pass(HELD_MS + WARM_LOCK_EXTRA_MS);
    struct warm_lock last = {0};
    take(0, &last, &hold);
    assert_int_equal(last.result, WARM_LOCK_TAKEN);
}

static void test_late_rounds_time_out_and_five_open_the_breaker(void **state)
{
    (void)state;
    warm_sim_set_faults(world.sim, &(struct warm_sim_faults){.late = 1000, .open_ms_max = 100});
    struct warm_write hold = make_hold();
    for (int i = 0; i < 5; i++) {
        struct warm_lock lock = {0};
        assert_int_equal(warm_state(world.nodes[0]), WARM_CLOSED);
        assert_int_equal(take(0, &lock, &hold), WARM_TIMED_OUT);
    }
    assert_int_equal(warm_sim_tables(world.sim)->locks.count, 1); /* taken all the same */
    assert_int_equal(warm_state(world.nodes[0]), WARM_OPEN);
    for (int i = 0; i < 102; i++)
        pass(1);
    assert_int_equal(warm_state(world.nodes[0]), WARM_REBUILDING);
}

static void test_a_flush_makes_every_node_rebuild(void **state)
{
    (void)state;
    struct warm_write hold = make_hold();
    struct warm_lock lock = {0};
    take(0, &lock, &hold);
    warm_sim_flush(world.sim);
    assert_int_equal(warm_sim_tables(world.sim)->locks.count, 0);
    pass(5001);
    for (int i = 0; i < NODE_COUNT; i++)
        assert_int_equal(warm_state(world.nodes[i]), WARM_REBUILDING);
}

static void test_away_everything_times_out_until_it_is_back(void **state)
{
    (void)state;
    warm_sim_set_away(world.sim, true);
    struct warm_write hold = make_hold();
    warm_write(world.nodes[0], &hold, 1); /* stands before the rounds in the queue */
    for (int i = 0; i < 5; i++) {
        struct warm_lock lock = {0};
        assert_int_equal(take(0, &lock, &hold), WARM_TIMED_OUT);
    }
    pass(60000);
    assert_int_equal(warm_state(world.nodes[0]), WARM_OPEN);
    assert_int_equal(warm_sim_tables(world.sim)->locks.count, 0);
    warm_sim_set_away(world.sim, false);
    pass(1);
    assert_int_equal(warm_state(world.nodes[0]), WARM_REBUILDING);
}

static void count_outcome(struct warm_round *round)
{
    int64_t *outcomes = round->context;
    outcomes[round->outcome]++;
}

/* Many rounds in every kind of trouble; what became of them, and of Redis. */
static void run(uint64_t seed, int64_t figures[8])
{
    start(seed);
    warm_sim_set_faults(world.sim, &(struct warm_sim_faults){.late = 60,
                                                             .lost = 60,
                                                             .fail = 60,
                                                             .error = 30,
                                                             .lose_write = 100,
                                                             .lose_nudge = 300,
                                                             .spoil = 50,
                                                             .delay_ms_max = 20,
                                                             .nudge_delay_ms_max = 50,
                                                             .open_ms_max = 300});
    memset(figures, 0, 8 * sizeof(figures[0]));
    for (int i = 0; i < 3000; i++) {
        int node = (int)rng_below(&world.rng, NODE_COUNT);
        struct warm_write hold = make_hold();
        struct {
            struct warm_round round;
            struct warm_lock lock;
        } *ask = arena_alloc(&world.arena, sizeof(*ask));
        ask->lock.seat_id = hold.seat_id;
        ask->lock.hold_id = hold.hold_id;
        ask->lock.user_id = hold.user_id;
        ask->lock.held_until_ms = hold.held_until_ms;
        ask->round = (struct warm_round){.arena = &world.arena,
                                         .locks = &ask->lock,
                                         .count = 1,
                                         .on_done = count_outcome,
                                         .context = figures};
        figures[3]++;
        if (warm_lock(world.nodes[node], &ask->round) != ERR_OK)
            figures[4]++;
        warm_write(world.nodes[node], &hold, 1);
        pass((int64_t)rng_below(&world.rng, 30));
        for (int j = 0; j < NODE_COUNT; j++)
            warm_rebuilt(world.nodes[j]);
        if (i == 2000)
            warm_sim_crash(world.nodes[0]);
    }
    figures[5] = (int64_t)warm_sim_tables(world.sim)->locks.count;
    figures[6] = (int64_t)warm_sim_tables(world.sim)->members.count;
    figures[7] = world.nudges[0] * 100000 + world.nudges[1];
    pass(2000);
    stop();
}

static void test_a_seed_repeats_its_run_and_every_round_ends_once(void **state)
{
    (void)state;
    int64_t first[8], second[8], other[8];
    run(3, first);
    run(3, second);
    run(4, other);
    assert_memory_equal(first, second, sizeof(first));
    assert_memory_not_equal(first, other, sizeof(first));
    for (int i = 0; i <= WARM_FAILED; i++)
        assert_true(first[i] > 0);
    /* But for those that died with their node. */
    assert_in_range(first[0] + first[1] + first[2] + first[4], first[3] - 8, first[3]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nodes_share_locks_and_members, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_repair_does_not_bring_back_an_ended_hold, setup, teardown),
        cmocka_unit_test_setup_teardown(test_locks_die, setup, teardown),
        cmocka_unit_test_setup_teardown(test_late_rounds_time_out_and_five_open_the_breaker, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_flush_makes_every_node_rebuild, setup, teardown),
        cmocka_unit_test_setup_teardown(test_away_everything_times_out_until_it_is_back, setup, teardown),
        cmocka_unit_test(test_a_seed_repeats_its_run_and_every_round_ends_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
