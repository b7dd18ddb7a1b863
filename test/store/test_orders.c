/* SPDX-License-Identifier: Apache-2.0
 * Who decides a partition of the log: it changes hands by compare-and-set, who
 * was replaced writes nothing, and how far its commands are done is written with
 * them and never goes back. */
#include "fixture.h"

enum { PARTITION = 17, NEIGHBOUR = 18 };

static enum unit_result claim(struct fixture *f, const char *topic, int32_t partition, int64_t epoch)
{
    struct store_batch *batch = batch_new(f);
    struct store_unit *unit = unit_new(batch);
    struct order_claim *claimed = unit_order_claim(f, batch, unit, topic, partition, epoch);
    batch_run(f, batch);
    assert_int_equal(batch->outcome, STORE_COMMITTED);
    enum unit_result result = unit->result;
    assert_int_equal(claimed->missed, result == UNIT_MISSED);
    batch_free(batch);
    return result;
}

/* A unit that only relies on the partition, in a batch of its own. */
static enum unit_result note(struct fixture *f, const char *topic, int32_t partition, int64_t epoch,
                             int64_t next_offset)
{
    struct store_batch *batch = batch_new(f);
    struct store_unit *unit = unit_new(batch);
    struct order_check *check = unit_order_check(batch, unit, topic, partition, epoch, next_offset);
    batch_run(f, batch);
    assert_int_equal(batch->outcome, STORE_COMMITTED);
    enum unit_result result = unit->result;
    assert_int_equal(check->missed, result == UNIT_MISSED);
    batch_free(batch);
    return result;
}

static void expect_order(struct fixture *f, const char *topic, int32_t partition, int64_t epoch,
                         int64_t next_offset)
{
    struct store_lookup lookup = lookup_order_run(f, topic, partition);
    assert_true(lookup.found);
    assert_string_equal(lookup.order.topic, topic);
    assert_int_equal(lookup.order.partition, partition);
    assert_int_equal(lookup.order.epoch, epoch);
    assert_int_equal(lookup.order.next_offset, next_offset);
}

/* ---- Claims ---- */

static void test_partition_changes_hands_by_compare_and_set(void **state)
{
    struct fixture *f = *state;
    const char *topic = fixture_name(f);
    assert_false(lookup_order_run(f, topic, PARTITION).found);
    assert_int_equal(claim(f, topic, PARTITION, 2), UNIT_MISSED); /* nobody has it yet */
    assert_false(lookup_order_run(f, topic, PARTITION).found);
    assert_int_equal(claim(f, topic, PARTITION, 1), UNIT_OK);
    struct uuid first = f->node_id;
    f->node_id = fixture_id(f);
    f->now_ms += 7000;
    assert_int_equal(claim(f, topic, PARTITION, 1), UNIT_MISSED); /* another node was first */
    struct store_lookup lookup = lookup_order_run(f, topic, PARTITION);
    assert_true(uuid_equal(&lookup.order.node, &first));
    assert_int_equal(lookup.order.claimed_ms, f->now_ms - 7000);
    expect_order(f, topic, PARTITION, 1, 0);

    assert_int_equal(claim(f, topic, PARTITION, 2), UNIT_OK);
    assert_int_equal(claim(f, topic, PARTITION, 2), UNIT_MISSED);
    assert_int_equal(claim(f, topic, PARTITION, 4), UNIT_MISSED);
    lookup = lookup_order_run(f, topic, PARTITION);
    assert_true(uuid_equal(&lookup.order.node, &f->node_id));
    assert_int_equal(lookup.order.claimed_ms, f->now_ms);
    expect_order(f, topic, PARTITION, 2, 0);
    assert_false(lookup_order_run(f, topic, NEIGHBOUR).found);
    assert_false(lookup_order_run(f, fixture_name(f), PARTITION).found);
}

static void test_new_owner_goes_on_where_the_last_one_was(void **state)
{
    struct fixture *f = *state;
    const char *topic = fixture_name(f);
    struct store_batch *batch = batch_new(f);
    unit_order_claim(f, batch, unit_new(batch), topic, PARTITION, 1)->row.next_offset = 30;
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
    expect_order(f, topic, PARTITION, 1, 30);
    assert_int_equal(note(f, topic, PARTITION, 1, INT64_MAX / 2), UNIT_OK);
    batch = batch_new(f);
    unit_order_claim(f, batch, unit_new(batch), topic, PARTITION, 2)->row.next_offset = 5;
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
    expect_order(f, topic, PARTITION, 2, INT64_MAX / 2);
}

static void test_claim_that_misses_leaves_its_neighbours_alone(void **state)
{
    struct fixture *f = *state;
    const char *topic = fixture_name(f);
    assert_int_equal(claim(f, topic, PARTITION, 1), UNIT_OK);
    struct store_batch *batch = batch_new(f);
    struct store_unit *units[4];
    for (int i = 0; i < 4; i++)
        units[i] = unit_new(batch);
    struct order_claim *late = unit_order_claim(f, batch, units[0], topic, PARTITION, 1);
    struct order_claim *fresh = unit_order_claim(f, batch, units[1], topic, NEIGHBOUR, 1);
    struct order_claim *next = unit_order_claim(f, batch, units[2], topic, PARTITION, 2);
    (void)unit_hold(f, batch, units[3], 0, 1);
    batch_run(f, batch);
    assert_int_equal(batch->outcome, STORE_COMMITTED);
    assert_int_equal(units[0]->result, UNIT_MISSED);
    assert_true(late->missed);
    assert_false(fresh->missed);
    assert_false(next->missed);
    for (int i = 1; i < 4; i++)
        assert_int_equal(units[i]->result, UNIT_OK);
    batch_free(batch);
    expect_order(f, topic, PARTITION, 2, 0);
    expect_order(f, topic, NEIGHBOUR, 1, 0);
}

static void test_claim_goes_with_its_unit(void **state)
{
    struct fixture *f = *state;
    const char *topic = fixture_name(f);
    assert_int_equal(claim(f, topic, NEIGHBOUR, 1), UNIT_OK);
    struct store_batch *batch = batch_new(f);
    struct store_unit *unit = unit_new(batch);
    struct order_claim *fresh = unit_order_claim(f, batch, unit, topic, PARTITION, 1);
    struct order_claim *next = unit_order_claim(f, batch, unit, topic, NEIGHBOUR, 2);
    (void)unit_hold(f, batch, unit, 0, 7); /* the seat is not so far */
    batch_run(f, batch);
    assert_int_equal(unit->result, UNIT_MISSED);
    assert_false(fresh->missed);
    assert_false(next->missed);
    assert_true(unit->seats->missed);
    batch_free(batch);
    assert_false(lookup_order_run(f, topic, PARTITION).found);
    expect_order(f, topic, NEIGHBOUR, 1, 0);
    assert_int_equal(claim(f, topic, PARTITION, 1), UNIT_OK);
}

/* ---- Checks ---- */

static void test_who_was_replaced_writes_nothing(void **state)
{
    struct fixture *f = *state;
    const char *topic = fixture_name(f);
    assert_int_equal(claim(f, topic, PARTITION, 1), UNIT_OK);
    assert_int_equal(claim(f, topic, PARTITION, 2), UNIT_OK);
    static const int64_t epochs[] = {1, 3, 0};
    for (size_t i = 0; i < COUNT_OF(epochs); i++) {
        struct store_batch *batch = batch_new(f);
        struct store_unit *unit = unit_new(batch), *neighbour = unit_new(batch);
        (void)unit_hold(f, batch, unit, 0, 1);
        (void)unit_key(f, batch, unit, 1);
        struct order_check *check = unit_order_check(batch, unit, topic, PARTITION, epochs[i], 90);
        (void)unit_hold(f, batch, neighbour, 1 + (int32_t)i, 1);
        (void)unit_order_check(batch, neighbour, topic, PARTITION, 2, 0);
        batch_run(f, batch);
        assert_int_equal(unit->result, UNIT_MISSED);
        assert_true(check->missed);
        assert_false(unit->seats->missed);
        assert_int_equal(unit->seats->current.version, 1);
        assert_int_equal(neighbour->result, UNIT_OK);
        assert_false(neighbour->order_checks->missed);
        batch_free(batch);
    }
    assert_false(lookup_key_run(f, 1, f->now_ms).found);
    expect_order(f, topic, PARTITION, 2, 0);
    (void)hold_seat(f, 0, 1); /* it is free */
}

static void test_partition_that_nobody_has_is_missed(void **state)
{
    struct fixture *f = *state;
    const char *topic = fixture_name(f);
    assert_int_equal(note(f, topic, PARTITION, 1, 4), UNIT_MISSED);
    assert_int_equal(note(f, topic, PARTITION, 0, 4), UNIT_MISSED);
    assert_false(lookup_order_run(f, topic, PARTITION).found);
    assert_int_equal(claim(f, topic, NEIGHBOUR, 1), UNIT_OK);
    assert_int_equal(note(f, topic, PARTITION, 1, 4), UNIT_MISSED);
    assert_int_equal(note(f, fixture_name(f), NEIGHBOUR, 1, 4), UNIT_MISSED);
    expect_order(f, topic, NEIGHBOUR, 1, 0);
}

/* Whose new owner may have done the command already: it is none of the old one's business. */
static void test_who_was_replaced_is_told_so_even_if_the_key_is_taken(void **state)
{
    struct fixture *f = *state;
    const char *topic = fixture_name(f);
    assert_int_equal(claim(f, topic, PARTITION, 1), UNIT_OK);
    assert_int_equal(claim(f, topic, PARTITION, 2), UNIT_OK);
    static const enum unit_result expected[] = {UNIT_OK, UNIT_MISSED, UNIT_KEY_TAKEN};
    for (int i = 0; i < 3; i++) {
        struct store_batch *batch = batch_new(f);
        struct store_unit *unit = unit_new(batch);
        (void)unit_key(f, batch, unit, 9);
        (void)unit_order_check(batch, unit, topic, PARTITION, i == 1 ? 1 : 2, 10 + i);
        assert_int_equal(batch_commit(f, batch), expected[i]);
        expect_order(f, topic, PARTITION, 2, 10);
    }
}

static void test_units_of_a_batch_see_the_claims_before_them(void **state)
{
    enum { UNIT_COUNT = 6 };
    static const enum unit_result expected[] = {UNIT_MISSED, UNIT_OK, UNIT_OK, UNIT_OK, UNIT_MISSED, UNIT_OK};
    struct fixture *f = *state;
    const char *topic = fixture_name(f);
    struct store_batch *batch = batch_new(f);
    struct store_unit *units[UNIT_COUNT];
    for (int i = 0; i < UNIT_COUNT; i++)
        units[i] = unit_new(batch);
    (void)unit_order_check(batch, units[0], topic, PARTITION, 1, 1);
    (void)unit_order_claim(f, batch, units[1], topic, PARTITION, 1);
    (void)unit_order_check(batch, units[2], topic, PARTITION, 1, 2);
    (void)unit_order_claim(f, batch, units[3], topic, PARTITION, 2);
    (void)unit_order_check(batch, units[4], topic, PARTITION, 1, 9);
    (void)unit_order_check(batch, units[5], topic, PARTITION, 2, 3);
    batch_run(f, batch);
    assert_int_equal(batch->outcome, STORE_COMMITTED);
    for (int i = 0; i < UNIT_COUNT; i++)
        assert_int_equal(units[i]->result, expected[i]);
    batch_free(batch);
    expect_order(f, topic, PARTITION, 2, 3);
}

/* The store keeps their order, though it may run several at a time. */
static void test_batches_behind_a_claim_come_after_it(void **state)
{
    enum { ROUND_COUNT = 10 };
    struct fixture *f = *state;
    const char *topic = fixture_name(f);
    struct store_batch *batches[2 * ROUND_COUNT];
    for (int i = 0; i < ROUND_COUNT; i++) {
        struct store_batch *claiming = batches[2 * i] = batch_new(f);
        struct store_batch *checking = batches[2 * i + 1] = batch_new(f);
        (void)unit_order_claim(f, claiming, unit_new(claiming), topic, PARTITION, i + 1);
        (void)unit_order_check(checking, unit_new(checking), topic, PARTITION, i + 1, i + 1);
    }
    for (int i = 0; i < 2 * ROUND_COUNT; i++)
        assert_int_equal(store_submit(f->store, batches[i]), ERR_OK);
    for (int i = 0; i < 2 * ROUND_COUNT; i++) {
        assert_true(fixture_wait(f, batches[i]->context));
        assert_int_equal(batches[i]->outcome, STORE_COMMITTED);
        assert_int_equal(CONTAINER_OF(batches[i]->units.next, struct store_unit, node)->result, UNIT_OK);
        batch_free(batches[i]);
    }
    expect_order(f, topic, PARTITION, ROUND_COUNT, ROUND_COUNT);
}

/* ---- Offsets ---- */

static void test_offset_never_goes_back(void **state)
{
    struct fixture *f = *state;
    const char *topic = fixture_name(f);
    assert_int_equal(claim(f, topic, PARTITION, 1), UNIT_OK);
    static const struct {
        int64_t noted, expected;
    } steps[] = {{0, 0}, {7, 7}, {0, 7}, {5, 7}, {7, 7}, {8, 8}, {INT64_MAX, INT64_MAX}, {9, INT64_MAX}};
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        assert_int_equal(note(f, topic, PARTITION, 1, steps[i].noted), UNIT_OK);
        expect_order(f, topic, PARTITION, 1, steps[i].expected);
    }
}

static void test_offset_is_written_with_its_unit_only(void **state)
{
    struct fixture *f = *state;
    const char *topic = fixture_name(f);
    assert_int_equal(claim(f, topic, PARTITION, 1), UNIT_OK);
    assert_int_equal(claim(f, topic, NEIGHBOUR, 1), UNIT_OK);
    struct store_batch *batch = batch_new(f);
    struct store_unit *units[4];
    for (int i = 0; i < 4; i++)
        units[i] = unit_new(batch);
    (void)unit_hold(f, batch, units[0], 0, 1);
    (void)unit_order_check(batch, units[0], topic, PARTITION, 1, 12);
    (void)unit_hold(f, batch, units[1], 1, 7); /* the seat is not so far */
    (void)unit_order_check(batch, units[1], topic, PARTITION, 1, 50);
    (void)unit_hold(f, batch, units[2], 2, 7);
    (void)unit_order_check(batch, units[2], topic, NEIGHBOUR, 1, 60);
    (void)unit_hold(f, batch, units[3], 3, 1);
    (void)unit_order_check(batch, units[3], topic, PARTITION, 1, 11);
    batch_run(f, batch);
    assert_int_equal(units[0]->result, UNIT_OK);
    assert_int_equal(units[1]->result, UNIT_MISSED);
    assert_false(units[1]->order_checks->missed);
    assert_int_equal(units[2]->result, UNIT_MISSED);
    assert_int_equal(units[3]->result, UNIT_OK);
    batch_free(batch);
    expect_order(f, topic, PARTITION, 1, 12);
    expect_order(f, topic, NEIGHBOUR, 1, 0);
}

static void test_large_batch_over_many_partitions(void **state)
{
    enum { UNIT_COUNT = 500, PARTITION_COUNT = 100, STALE = 41 };
    struct fixture *f = *state;
    const char *topic = fixture_name(f);
    struct store_batch *batch = batch_new(f);
    for (int i = 0; i < PARTITION_COUNT; i++)
        (void)unit_order_claim(f, batch, unit_new(batch), topic, i, 1);
    batch_run(f, batch);
    LIST_FOR_EACH(node, &batch->units)
        assert_int_equal(CONTAINER_OF(node, struct store_unit, node)->result, UNIT_OK);
    batch_free(batch);
    assert_int_equal(claim(f, topic, STALE, 2), UNIT_OK);

    struct store_unit *units[UNIT_COUNT];
    batch = batch_new(f);
    for (int i = 0; i < UNIT_COUNT; i++) {
        units[i] = unit_new(batch);
        (void)unit_order_check(batch, units[i], topic, i % PARTITION_COUNT, 1, 1000 + i);
    }
    batch_run(f, batch);
    assert_int_equal(batch->outcome, STORE_COMMITTED);
    for (int i = 0; i < UNIT_COUNT; i++)
        assert_int_equal(units[i]->result, i % PARTITION_COUNT == STALE ? UNIT_MISSED : UNIT_OK);
    batch_free(batch);
    for (int i = 0; i < PARTITION_COUNT; i++)
        expect_order(f, topic, i, i == STALE ? 2 : 1,
                     i == STALE ? 0 : 1000 + UNIT_COUNT - PARTITION_COUNT + i);
}

/* ---- A batch that is run again because a unit of it is bad ---- */

static void test_bad_unit_takes_no_partition_with_it(void **state)
{
    enum { UNIT_COUNT = 6 };
    static const enum unit_result expected[] = {UNIT_OK, UNIT_BAD, UNIT_BAD, UNIT_OK, UNIT_MISSED, UNIT_OK};
    struct fixture *f = *state;
    const char *topic = fixture_name(f), *other = fixture_name(f);
    (void)hold_seat(f, 0, 1);
    assert_int_equal(claim(f, topic, PARTITION, 1), UNIT_OK);
    struct store_batch *batch = batch_new(f);
    struct store_unit *units[UNIT_COUNT];
    for (int i = 0; i < UNIT_COUNT; i++)
        units[i] = unit_new(batch);
    (void)unit_order_check(batch, units[0], topic, PARTITION, 1, 5);
    for (int i = 1; i <= 2; i++) /* a second active hold of a seat */
        unit_hold(f, batch, units[i], i, 1)->seat_id = f->seat_ids[0];
    (void)unit_order_check(batch, units[1], topic, PARTITION, 1, 99);
    (void)unit_order_claim(f, batch, units[2], topic, PARTITION, 2);
    (void)unit_order_claim(f, batch, units[2], other, PARTITION, 1);
    (void)unit_order_claim(f, batch, units[3], topic, NEIGHBOUR, 1);
    (void)unit_order_check(batch, units[4], topic, PARTITION, 2, 77);
    (void)unit_order_check(batch, units[5], topic, NEIGHBOUR, 1, 6);
    batch_run(f, batch);
    assert_int_equal(batch->outcome, STORE_COMMITTED);
    for (int i = 0; i < UNIT_COUNT; i++)
        assert_int_equal(units[i]->result, expected[i]);
    batch_free(batch);
    expect_order(f, topic, PARTITION, 1, 5);
    expect_order(f, topic, NEIGHBOUR, 1, 6);
    assert_false(lookup_order_run(f, other, PARTITION).found);
}

static void test_sound_after_all_this(void **state)
{
    struct fixture *f = *state;
    char broken[256];
    assert_int_equal(claim(f, fixture_name(f), PARTITION, 1), UNIT_OK);
    if (verify_run(f, broken) != 0)
        fail_msg("broken: %s", broken);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        OVER_EVERY_STORE(test_partition_changes_hands_by_compare_and_set),
        OVER_EVERY_STORE(test_new_owner_goes_on_where_the_last_one_was),
        OVER_EVERY_STORE(test_claim_that_misses_leaves_its_neighbours_alone),
        OVER_EVERY_STORE(test_claim_goes_with_its_unit),
        OVER_EVERY_STORE(test_who_was_replaced_writes_nothing),
        OVER_EVERY_STORE(test_partition_that_nobody_has_is_missed),
        OVER_EVERY_STORE(test_who_was_replaced_is_told_so_even_if_the_key_is_taken),
        OVER_EVERY_STORE(test_units_of_a_batch_see_the_claims_before_them),
        OVER_EVERY_STORE(test_batches_behind_a_claim_come_after_it),
        OVER_EVERY_STORE(test_offset_never_goes_back),
        OVER_EVERY_STORE(test_offset_is_written_with_its_unit_only),
        OVER_EVERY_STORE(test_large_batch_over_many_partitions),
        TEST(test_bad_unit_takes_no_partition_with_it),
        TEST(test_sound_after_all_this),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
