/* SPDX-License-Identifier: Apache-2.0
 * The simulator's store with several nodes: they share what is committed and
 * nothing else, find locked what another is writing, and see commits late and
 * mixed in the change feed, but never a seat's out of order. The same seed makes
 * the same run. */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#include "store/changes.h"
#include "store/sim/sim.h"

enum { NODE_COUNT = 3, STEP_COUNT = 400, SEAT_COUNT = 6, SEED_COUNT = 20 };

static int setup(void **state)
{
    return fixture_setup_sim(state);
}

/* The fixture's store anew, by a seed. */
static void begin(struct fixture *f, uint64_t seed)
{
    store_close(f->store);
    rng_init_seed(&f->rng, seed);
    f->now_ms = 1700000000000;
    f->sim_ms = f->now_ms;
    f->store = sim_store_create(seed);
    sim_store_set_now(f->store, f->sim_ms);
    fixture_new_tenant(f);
}

static void faults_set(struct store *store, uint32_t locked, int64_t delay_ms, int64_t feed_delay_ms)
{
    struct sim_faults faults = {
        .locked = locked, .delay_ms_max = delay_ms, .feed_delay_ms_max = feed_delay_ms};
    sim_store_set_faults(store, &faults);
}

static void pass(struct fixture *f, struct store **nodes, int count)
{
    sim_store_set_now(f->store, ++f->sim_ms);
    for (int i = 0; i < count; i++)
        store_poll(nodes[i]);
}

static struct store_batch *batch_of_hold(struct fixture *f, int32_t seat, int32_t version)
{
    struct store_batch *batch = batch_new(f);
    (void)unit_hold(f, batch, unit_new(batch), seat, version);
    return batch;
}

static enum unit_result result_of(const struct store_batch *batch)
{
    return CONTAINER_OF(batch->units.next, struct store_unit, node)->result;
}

static void test_nodes_share_what_is_committed(void **state)
{
    struct fixture *f = *state;
    assert_false(store_is_shared(f->store));
    struct store *first = f->store, *second = sim_store_attach(first, 2);
    assert_true(store_is_shared(first));
    assert_true(store_is_shared(second));
    assert_ptr_equal(sim_store_tables(first), sim_store_tables(second));
    struct hold_row hold = hold_seat(f, 0, 1);
    f->store = second;
    assert_true(lookup_run(f, LOOKUP_HOLD, &hold.id).found);
    assert_true(follow_run(f, (struct feed_position){.from = 0}, 100).count >= 2);
    store_close(first); /* the tables stay with whoever is left */
    assert_true(lookup_run(f, LOOKUP_HOLD, &hold.id).found);
}

static void test_seat_is_won_by_one_node(void **state)
{
    struct fixture *f = *state;
    struct store *nodes[] = {f->store, sim_store_attach(f->store, 2)};
    int wins[2] = {0};
    for (int32_t seat = 0; seat < FIXTURE_SEAT_COUNT; seat++) {
        struct store_batch *batches[2];
        for (int i = 0; i < 2; i++) {
            faults_set(nodes[i], 0, 5, 0);
            batches[i] = batch_of_hold(f, seat, 1);
            assert_int_equal(store_submit(nodes[i], batches[i]), ERR_OK);
        }
        while (!*(bool *)batches[0]->context || !*(bool *)batches[1]->context)
            pass(f, nodes, 2);
        bool first = result_of(batches[0]) == UNIT_OK;
        assert_int_equal(result_of(batches[first ? 1 : 0]), UNIT_MISSED);
        assert_int_equal(result_of(batches[first ? 0 : 1]), UNIT_OK);
        wins[first ? 0 : 1]++;
        batch_free(batches[0]);
        batch_free(batches[1]);
    }
    assert_true(wins[0] > 0);
    assert_true(wins[1] > 0);
    store_close(nodes[1]);
}

static void test_what_another_node_is_writing_is_missed_as_it_was(void **state)
{
    struct fixture *f = *state;
    struct store *nodes[] = {f->store, sim_store_attach(f->store, 2)};
    faults_set(nodes[0], 1000, 0, 0);
    faults_set(nodes[1], 1000, 1000, 0);
    struct store_batch *slow = batch_of_hold(f, 0, 1), *quick = batch_of_hold(f, 0, 1);
    struct store_batch *other = batch_of_hold(f, 1, 1);
    assert_int_equal(store_submit(nodes[1], slow), ERR_OK);
    assert_true(sim_store_next_ms(nodes[1]) > f->sim_ms + 2);
    assert_int_equal(store_submit(nodes[0], quick), ERR_OK);
    assert_int_equal(store_submit(nodes[0], other), ERR_OK);
    while (!*(bool *)other->context)
        pass(f, nodes, 1);
    const struct store_unit *missed = CONTAINER_OF(quick->units.next, struct store_unit, node);
    assert_int_equal(missed->result, UNIT_MISSED);
    assert_true(missed->seats->missed);
    assert_int_equal(missed->seats->current.version, 1); /* what can be seen, and it was expected */
    assert_int_equal(result_of(other), UNIT_OK);
    while (!*(bool *)slow->context)
        pass(f, nodes, 2);
    assert_int_equal(result_of(slow), UNIT_OK);
    batch_free(slow);
    batch_free(quick);
    batch_free(other);
    store_close(nodes[1]);
}

static void test_event_being_written_is_missed_by_those_who_rely_on_it(void **state)
{
    struct fixture *f = *state;
    struct store *nodes[] = {f->store, sim_store_attach(f->store, 2)};
    faults_set(nodes[0], 1000, 0, 0);
    faults_set(nodes[1], 1000, 1000, 0);
    for (int writes = 0; writes < 2; writes++) {
        struct store_batch *slow = batch_new(f), *quick = batch_of_hold(f, writes, 1);
        struct event_write write = {.row = fixture_event(f)};
        struct event_check checks[2] = {{.org_id = f->org_id, .event_id = f->event_id, .version = 1},
                                        {.org_id = f->org_id, .event_id = f->event_id, .version = 1}};
        write.row.version = 2;
        struct store_unit *unit = unit_new(slow);
        if (writes)
            unit->events = &write;
        else
            unit->checks = &checks[0];
        CONTAINER_OF(quick->units.next, struct store_unit, node)->checks = &checks[1];
        assert_int_equal(store_submit(nodes[1], slow), ERR_OK);
        assert_int_equal(store_submit(nodes[0], quick), ERR_OK);
        while (!*(bool *)quick->context)
            pass(f, nodes, 1);
        assert_int_equal(result_of(quick), writes ? UNIT_MISSED : UNIT_OK);
        assert_int_equal(checks[1].missed, writes);
        while (!*(bool *)slow->context)
            pass(f, nodes, 2);
        assert_int_equal(result_of(slow), UNIT_OK);
        batch_free(slow);
        batch_free(quick);
    }
    store_close(nodes[1]);
}

static void test_crash_is_of_one_node_alone(void **state)
{
    struct fixture *f = *state;
    struct store *nodes[] = {f->store, sim_store_attach(f->store, 2)};
    struct store_batch *lost = batch_of_hold(f, 0, 1), *kept = batch_of_hold(f, 1, 1);
    assert_int_equal(store_submit(nodes[1], lost), ERR_OK);
    assert_int_equal(store_submit(nodes[0], kept), ERR_OK);
    sim_store_crash(nodes[1]);
    assert_true(*(bool *)lost->context);
    assert_int_equal(lost->outcome, STORE_UNKNOWN);
    assert_false(*(bool *)kept->context);
    while (!*(bool *)kept->context)
        pass(f, nodes, 1);
    assert_int_equal(kept->outcome, STORE_COMMITTED);
    batch_free(lost);
    batch_free(kept);
    store_close(nodes[1]);
}

/* ---- A partition that changes hands while answers are lost ---- */

struct owner {
    struct store *store;
    struct store_batch *batch; /* under way, or unknown and asked for */
    int64_t epoch;             /* as it believes */
};

struct hands {
    struct owner owners[NODE_COUNT];
    int64_t claims, noted; /* that were committed */
    int32_t unknown, missed_claims, missed_checks;
};

static const struct order_row *order_now(struct fixture *f)
{
    const struct sim_order *order = sim_store_tables(f->store)->orders;
    return order != NULL ? &order->row : NULL;
}

/* A miss means one thing only: it is somebody else's. */
static void hands_settle(struct fixture *f, struct hands *hands, struct owner *owner)
{
    const struct store_unit *unit = CONTAINER_OF(owner->batch->units.next, struct store_unit, node);
    int64_t epoch = order_now(f) != NULL ? order_now(f)->epoch : 0;
    if (owner->batch->outcome != STORE_COMMITTED) {
        assert_int_equal(owner->batch->outcome, STORE_FAILED);
    } else if (unit->order_claims != NULL) {
        const struct order_claim *claim = unit->order_claims;
        assert_int_equal(unit->result, claim->missed ? UNIT_MISSED : UNIT_OK);
        assert_true(epoch >= claim->row.epoch);
        owner->epoch = claim->missed ? 0 : claim->row.epoch;
        hands->claims += !claim->missed;
        hands->missed_claims += claim->missed;
    } else {
        const struct order_check *check = unit->order_checks;
        assert_int_equal(unit->result, check->missed ? UNIT_MISSED : UNIT_OK);
        assert_true(check->missed ? epoch > check->epoch : epoch >= check->epoch);
        owner->epoch = check->missed ? 0 : owner->epoch;
        if (!check->missed && check->next_offset > hands->noted)
            hands->noted = check->next_offset;
        hands->missed_checks += check->missed;
    }
    batch_free(owner->batch);
    owner->batch = NULL;
}

static void hands_step(struct fixture *f, struct hands *hands, struct owner *owner, int64_t next_offset,
                       bool begins)
{
    struct store_batch *batch = owner->batch;
    if (batch != NULL && *(bool *)batch->context && batch->outcome == STORE_UNKNOWN) {
        *(bool *)batch->context = false;
        hands->unknown++;
        assert_int_equal(store_resolve(owner->store, batch), ERR_OK);
    } else if (batch != NULL && *(bool *)batch->context) {
        hands_settle(f, hands, owner);
    } else if (batch == NULL && begins) {
        batch = owner->batch = batch_new(f);
        const struct order_row *order = order_now(f);
        if (owner->epoch == 0)
            (void)unit_order_claim(f, batch, unit_new(batch), "commands", 3,
                                   order != NULL ? order->epoch + 1 : 1);
        else
            (void)unit_order_check(batch, unit_new(batch), "commands", 3, owner->epoch, next_offset);
        assert_int_equal(store_submit(owner->store, batch), ERR_OK);
    }
}

static void test_partition_changes_hands_though_answers_are_lost(void **state)
{
    struct fixture *f = *state;
    struct hands all = {.claims = 0};
    for (uint64_t seed = 1; seed <= SEED_COUNT; seed++) {
        struct hands hands = {.claims = 0};
        struct sim_faults faults = {.fail = 50,
                                    .lose_before = 50,
                                    .lose_after = 100,
                                    .stay_unknown = 300,
                                    .locked = 500,
                                    .delay_ms_max = 6};
        begin(f, seed);
        for (int i = 0; i < NODE_COUNT; i++) {
            hands.owners[i].store = i == 0 ? f->store : sim_store_attach(f->store, seed + (uint64_t)i);
            sim_store_set_faults(hands.owners[i].store, &faults);
        }
        bool busy = true;
        for (int64_t step = 1; step < STEP_COUNT || busy; step++) {
            sim_store_set_now(f->store, ++f->sim_ms);
            for (int i = 0; i < NODE_COUNT; i++)
                store_poll(hands.owners[i].store);
            busy = false;
            for (int i = 0; i < NODE_COUNT; i++) {
                struct owner *owner = &hands.owners[i];
                bool begins = step < STEP_COUNT && (owner->epoch != 0 || rng_below(&f->rng, 20) == 0);
                hands_step(f, &hands, owner, step, begins);
                busy = busy || owner->batch != NULL;
            }
        }
        assert_int_equal(order_now(f)->epoch, hands.claims);
        assert_int_equal(order_now(f)->next_offset, hands.noted);
        for (int i = 1; i < NODE_COUNT; i++)
            store_close(hands.owners[i].store);
        all.claims += hands.claims;
        all.unknown += hands.unknown;
        all.missed_claims += hands.missed_claims;
        all.missed_checks += hands.missed_checks;
    }
    assert_true(all.claims > 5 * SEED_COUNT); /* otherwise this would show nothing */
    assert_true(all.unknown > 5 * SEED_COUNT);
    assert_true(all.missed_claims > 0);
    assert_true(all.missed_checks > 5 * SEED_COUNT);
}

/* ---- Many commits of several nodes, and one that follows ---- */

struct run {
    struct store *nodes[NODE_COUNT];
    struct store_batch *batches[NODE_COUNT]; /* under way */
    int32_t versions[SEAT_COUNT];            /* committed */
    int32_t shown[SEAT_COUNT];               /* came out of the feed */
    int64_t commits;
    int64_t order[STEP_COUNT * NODE_COUNT]; /* per seat and version: which commit it was */
    int64_t last_shown;
    int32_t mixed; /* came before a commit that was made earlier */
    int32_t late;  /* calls that could not show everything */
    uint64_t trace;
    bool follows;
    struct store_follow follow;
    int32_t expected[SEAT_COUNT]; /* committed before the call that looks for them … */
    int64_t expected_horizon;     /* … and its horizon; −1: none looks */
    bool asked;
};

static void run_note(struct run *run, int64_t value)
{
    run->trace = (run->trace ^ (uint64_t)value) * 0x100000001b3ull;
}

static void follow_on_done(struct store_follow *follow)
{
    ((struct run *)follow->context)->follows = false;
}

static void run_show(struct fixture *f, struct run *run, const struct store_change *row)
{
    struct changes_reader reader;
    struct change change;
    changes_read_begin(&reader, row->data, row->size, &f->arena);
    while (changes_read_next(&reader, &change)) {
        if (change.kind != CHANGE_SEAT)
            continue;
        int32_t seat = change.seat.index;
        assert_int_equal(change.seat.version, run->shown[seat] + 1); /* each once, in order */
        run->shown[seat]++;
        int64_t commit = run->order[(change.seat.version - 2) * SEAT_COUNT + seat];
        run->mixed += commit < run->last_shown;
        run->last_shown = commit;
        run_note(run, row->id);
        run_note(run, seat);
    }
}

static void run_follow(struct fixture *f, struct run *run)
{
    if (run->follows)
        return;
    if (run->asked) {
        run->asked = false;
        assert_int_equal(run->follow.err, ERR_OK);
        assert_false(run->follow.lost);
        for (int32_t i = 0; i < run->follow.count; i++)
            run_show(f, run, &run->follow.changes[i]);
        if (run->expected_horizon < 0)
            run->expected_horizon = run->follow.horizon;
        run->late += run->follow.reached < run->follow.horizon;
        if (run->follow.reached >= run->expected_horizon) {
            for (int32_t i = 0; i < SEAT_COUNT; i++)
                assert_true(run->shown[i] >= run->expected[i]);
            run->expected_horizon = -1;
        }
    }
    if (run->expected_horizon < 0)
        memcpy(run->expected, run->versions, sizeof(run->expected));
    struct feed_position after = run->follow.position;
    run->follow = (struct store_follow){.after = after,
                                        .limit = 1 + (int32_t)rng_below(&f->rng, 4),
                                        .arena = &f->arena,
                                        .on_done = follow_on_done,
                                        .context = run};
    run->follows = run->asked = true;
    assert_int_equal(store_follow(run->nodes[0], &run->follow), ERR_OK);
}

static void run_commit(struct fixture *f, struct run *run, int node)
{
    struct store_batch *batch = run->batches[node];
    if (batch != NULL && !*(bool *)batch->context)
        return;
    if (batch != NULL) {
        run_note(run, result_of(batch));
        batch_free(batch);
        run->batches[node] = NULL;
        return;
    }
    int32_t seat = (int32_t)rng_below(&f->rng, SEAT_COUNT);
    const struct sim_event *event = map_get(&sim_store_tables(f->store)->events, &f->event_id);
    int32_t version = event->seats[seat].row.version;
    batch = batch_new(f);
    bool blocks = event->seats[seat].row.state == SEAT_AVAILABLE;
    (void)unit_seat(f, batch, unit_new(batch), seat, version, blocks ? SEAT_AVAILABLE : SEAT_BLOCKED,
                    blocks ? SEAT_BLOCKED : SEAT_AVAILABLE);
    assert_int_equal(store_submit(run->nodes[node], batch), ERR_OK);
    run->batches[node] = batch;
}

/* What the tables say now: which commits were made since. */
static void run_look(struct fixture *f, struct run *run)
{
    const struct sim_event *event = map_get(&sim_store_tables(f->store)->events, &f->event_id);
    for (int32_t i = 0; i < SEAT_COUNT; i++) {
        while (run->versions[i] < event->seats[i].row.version) {
            run->versions[i]++;
            assert_true((run->versions[i] - 2) * SEAT_COUNT + i < STEP_COUNT * NODE_COUNT);
            run->order[(run->versions[i] - 2) * SEAT_COUNT + i] = ++run->commits;
        }
    }
}

static struct run run_whole(struct fixture *f, uint64_t seed)
{
    struct run run = {.expected_horizon = -1};
    begin(f, seed);
    for (int i = 0; i < SEAT_COUNT; i++)
        run.versions[i] = run.shown[i] = 1;
    for (int i = 0; i < NODE_COUNT; i++) {
        run.nodes[i] = i == 0 ? f->store : sim_store_attach(f->store, seed + (uint64_t)i);
        faults_set(run.nodes[i], 300, 4, 12);
    }
    for (int step = 0; step < STEP_COUNT; step++) {
        sim_store_set_now(f->store, ++f->sim_ms);
        for (int i = 0; i < NODE_COUNT; i++) {
            store_poll(run.nodes[i]);
            run_look(f, &run);
        }
        for (int i = 0; i < NODE_COUNT; i++)
            run_commit(f, &run, i);
        run_follow(f, &run);
    }
    for (int i = 0; i < 200; i++) { /* nothing new: all of it comes out */
        pass(f, run.nodes, NODE_COUNT);
        run_look(f, &run);
        run_follow(f, &run);
    }
    while (run.follows)
        pass(f, run.nodes, NODE_COUNT);
    for (int i = 0; i < SEAT_COUNT; i++)
        assert_int_equal(run.shown[i], run.versions[i]);
    for (int i = NODE_COUNT - 1; i >= 0; i--) {
        if (run.batches[i] != NULL)
            batch_free(run.batches[i]);
        if (i > 0)
            store_close(run.nodes[i]);
    }
    return run;
}

static void test_feed_is_late_and_mixed_but_keeps_each_seats_order(void **state)
{
    struct fixture *f = *state;
    int32_t mixed = 0, late = 0;
    int64_t commits = 0;
    for (uint64_t seed = 1; seed <= SEED_COUNT; seed++) {
        struct run run = run_whole(f, seed);
        mixed += run.mixed;
        late += run.late;
        commits += run.commits;
    }
    assert_true(commits > 50 * SEED_COUNT);
    assert_true(mixed > SEED_COUNT); /* otherwise this would show nothing */
    assert_true(late > SEED_COUNT);
}

static void test_same_seed_makes_the_same_run(void **state)
{
    struct fixture *f = *state;
    struct run first = run_whole(f, 77), second = run_whole(f, 77), other = run_whole(f, 78);
    assert_true(first.trace == second.trace);
    assert_true(first.trace != other.trace);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_nodes_share_what_is_committed),
        TEST(test_seat_is_won_by_one_node),
        TEST(test_what_another_node_is_writing_is_missed_as_it_was),
        TEST(test_event_being_written_is_missed_by_those_who_rely_on_it),
        TEST(test_crash_is_of_one_node_alone),
        TEST(test_partition_changes_hands_though_answers_are_lost),
        TEST(test_feed_is_late_and_mixed_but_keeps_each_seats_order),
        TEST(test_same_seed_makes_the_same_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
