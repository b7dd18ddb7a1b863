/* SPDX-License-Identifier: Apache-2.0
 * Partitions of the log that several nodes over one PostgreSQL claim and rely
 * on: a claim comes after all that have compared before it and is found by all
 * that have not; nobody else waits.
 *
 * Where one order of events matters a third party makes it: see party.h. */
#include "party.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

enum { PARTITION = 5, WAIT_MS_MAX = 20000, RACE_COUNT_MAX = 20 };

/* A statement with "%s" for the topic; the partition is always the same. */
static void party_do_order(PGconn *party, const char *sql, const char *topic)
{
    char statement[512];
    snprintf(statement, sizeof(statement), sql, topic);
    (void)party_ask(party, statement);
}

/* Until so many sessions of this database wait for a lock of anybody. */
static void party_await_waiting(PGconn *party, int64_t count)
{
    int64_t end_us = clock_monotonic_us() + WAIT_MS_MAX * 1000ll;
    while (party_ask(party, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                            "AND wait_event_type = 'Lock'") < count) {
        assert_true(clock_monotonic_us() < end_us);
        usleep(5000);
    }
}

static struct store_batch *batch_of_claim(struct fixture *f, const char *topic, int64_t epoch)
{
    struct store_batch *batch = batch_new(f);
    (void)unit_order_claim(f, batch, unit_new(batch), topic, PARTITION, epoch);
    return batch;
}

/* A hold of a seat that relies on the partition. */
static struct store_batch *batch_of_order(struct fixture *f, const char *topic, int64_t epoch,
                                          int64_t next_offset, int32_t seat)
{
    struct store_batch *batch = batch_new(f);
    struct store_unit *unit = unit_new(batch);
    (void)unit_hold(f, batch, unit, seat, 1);
    (void)unit_order_check(batch, unit, topic, PARTITION, epoch, next_offset);
    return batch;
}

static void await_offset(struct fixture *f, const char *topic, int64_t next_offset)
{
    int64_t end_us = clock_monotonic_us() + WAIT_MS_MAX * 1000ll;
    while (lookup_order_run(f, topic, PARTITION).order.next_offset != next_offset)
        assert_true(clock_monotonic_us() < end_us);
}

/* The first batch has compared and waits for a block; everything else happens meanwhile. */
static void test_claim_waits_for_who_has_compared_and_is_found_by_who_has_not(void **state)
{
    struct fixture *f = *state, other;
    const char *topic = fixture_name(f);
    char broken[256];
    struct block_claim room = {
        .org_id = f->org_id, .event_id = f->event_id, .block_id = f->block_ids[0], .count = 1};
    assert_int_equal(batch_commit(f, batch_of_claim(f, topic, 1)), UNIT_OK);
    node_open(&other, f);
    PGconn *party = party_open(f);
    (void)party_ask(party, "BEGIN");
    party_do(party, "SELECT 1 FROM blocks WHERE id = '%s' FOR NO KEY UPDATE", &f->block_ids[0]);
    struct store_batch *early = batch_of_order(f, topic, 1, 10, 0);
    CONTAINER_OF(early->units.next, struct store_unit, node)->claims = &room;
    batch_start(f, early);
    party_await_waiter(party);

    struct store_batch *beside = batch_of_order(f, topic, 1, 9, 1); /* of the same owner */
    batch_start(f, beside);
    await_offset(&other, topic, 9); /* it did not wait */

    struct store_batch *claim = batch_of_claim(&other, topic, 2);
    batch_start(&other, claim);
    party_await_waiting(party, 2);
    struct store_batch *late = batch_of_order(f, topic, 1, 11, 2);
    batch_start(f, late);
    party_await_waiting(party, 3); /* behind the claim, not before it */
    assert_int_equal(lookup_order_run(f, topic, PARTITION).order.epoch, 1);
    (void)party_ask(party, "COMMIT");

    assert_int_equal(batch_end(f, early), UNIT_OK);
    assert_int_equal(batch_end(f, beside), UNIT_OK);
    assert_int_equal(batch_end(&other, claim), UNIT_OK);
    assert_int_equal(batch_end(f, late), UNIT_MISSED);
    const struct store_unit *missed = CONTAINER_OF(late->units.next, struct store_unit, node);
    assert_true(missed->order_checks->missed);
    assert_false(missed->seats->missed);
    struct order_row order = lookup_order_run(f, topic, PARTITION).order;
    assert_int_equal(order.epoch, 2);
    assert_int_equal(order.next_offset, 10);
    assert_true(uuid_equal(&order.node, &other.node_id));
    batch_free(early);
    batch_free(beside);
    batch_free(claim);
    batch_free(late);
    PQfinish(party);
    node_close(&other);
    if (verify_run(f, broken) != 0)
        fail_msg("broken: %s", broken);
}

/* The rows themselves are locked too, whatever the gates before them do. */
static void test_epoch_is_read_from_the_row_that_was_waited_for(void **state)
{
    struct fixture *f = *state;
    const char *topic = fixture_name(f);
    assert_int_equal(batch_commit(f, batch_of_claim(f, topic, 1)), UNIT_OK);
    PGconn *party = party_open(f);
    (void)party_ask(party, "BEGIN");
    party_do_order(party, "UPDATE order_partitions SET next_offset = 4 WHERE topic = '%s'", topic);
    party_do_order(party, "SELECT 1 FROM order_partitions WHERE topic = '%s' FOR UPDATE", topic);
    party_do_order(party, "UPDATE order_partitions SET epoch = 2 WHERE topic = '%s'", topic);
    struct store_batch *batch = batch_of_order(f, topic, 1, 10, 0);
    batch_start(f, batch);
    party_await_waiter(party);
    (void)party_ask(party, "COMMIT");
    assert_int_equal(batch_end(f, batch), UNIT_MISSED);
    batch_free(batch);
    assert_int_equal(lookup_order_run(f, topic, PARTITION).order.next_offset, 4);

    (void)party_ask(party, "BEGIN");
    party_do_order(party, "SELECT 1 FROM order_partitions WHERE topic = '%s' FOR KEY SHARE", topic);
    batch = batch_of_claim(f, topic, 3);
    batch_start(f, batch);
    party_await_waiter(party);
    assert_int_equal(lookup_order_run(f, topic, PARTITION).order.epoch, 2);
    (void)party_ask(party, "COMMIT");
    assert_int_equal(batch_end(f, batch), UNIT_OK);
    batch_free(batch);
    PQfinish(party);
}

static void test_who_relies_on_a_partition_does_not_wait_for_its_offset(void **state)
{
    struct fixture *f = *state;
    const char *topic = fixture_name(f);
    assert_int_equal(batch_commit(f, batch_of_claim(f, topic, 1)), UNIT_OK);
    PGconn *party = party_open(f);
    (void)party_ask(party, "BEGIN");
    party_do_order(party, "SELECT 1 FROM order_partitions WHERE topic = '%s' FOR KEY SHARE", topic);
    assert_int_equal(batch_commit(f, batch_of_order(f, topic, 1, 3, 0)), UNIT_OK);
    party_do_order(party, "UPDATE order_partitions SET next_offset = 7 WHERE topic = '%s'", topic);
    assert_int_equal(batch_commit(f, batch_of_order(f, topic, 1, 0, 1)), UNIT_OK);
    struct store_batch *batch = batch_of_order(f, topic, 1, 5, 2); /* one offset after the other … */
    batch_start(f, batch);
    party_await_waiter(party);
    (void)party_ask(party, "COMMIT");
    assert_int_equal(batch_end(f, batch), UNIT_OK);
    batch_free(batch);
    PQfinish(party);
    assert_int_equal(lookup_order_run(f, topic, PARTITION).order.next_offset, 7); /* … and none goes back */
}

/* Its batches overlap, so that there is no moment at which nobody shares the partition. */
static void test_busy_owner_is_replaced_between_two_of_its_batches(void **state)
{
    enum { OPEN_COUNT = 4, AFTER_COUNT = 8, BATCH_COUNT_MAX = 5000 };
    struct fixture *f = *state, other;
    const char *topic = fixture_name(f);
    assert_int_equal(batch_commit(f, batch_of_claim(f, topic, 1)), UNIT_OK);
    node_open(&other, f);
    struct store_batch *open[OPEN_COUNT], *claim = NULL;
    int64_t begun = 0, ended = 0, highest = 0, at_claim = -1;
    int after = 0;
    while (after < AFTER_COUNT) {
        while (begun - ended < OPEN_COUNT) {
            struct store_batch *batch = open[begun % OPEN_COUNT] = batch_new(f);
            struct store_unit *unit = unit_new(batch);
            begun++;
            (void)unit_order_check(batch, unit, topic, PARTITION, 1, begun);
            batch_start(f, batch);
        }
        if (ended == 2 * OPEN_COUNT)
            batch_start(&other, claim = batch_of_claim(&other, topic, 2));
        struct store_batch *batch = open[ended % OPEN_COUNT];
        ended++;
        if (batch_end(f, batch) == UNIT_OK)
            highest = ended;
        batch_free(batch);
        store_poll(other.store);
        if (at_claim < 0 && claim != NULL && *(bool *)claim->context) {
            assert_int_equal(batch_end(&other, claim), UNIT_OK); /* at its first try */
            at_claim = lookup_order_run(&other, topic, PARTITION).order.next_offset;
        }
        after += at_claim >= 0;
        assert_true(ended < BATCH_COUNT_MAX);
    }
    for (; ended < begun; ended++) {
        assert_int_equal(batch_end(f, open[ended % OPEN_COUNT]), UNIT_MISSED);
        batch_free(open[ended % OPEN_COUNT]);
    }
    struct order_row order = lookup_order_run(&other, topic, PARTITION).order;
    assert_int_equal(order.epoch, 2);
    assert_int_equal(order.next_offset, at_claim); /* nothing of the old owner came after the claim … */
    assert_int_equal(order.next_offset, highest);  /* … and nothing that came before it was lost */
    batch_free(claim);
    node_close(&other);
}

/* The first of two batches is held up before it has locked anything; the other must not pass it. */
static void expect_in_order(struct fixture *f, PGconn *party, const char *topic, struct store_batch *first,
                            struct store_batch *second)
{
    int64_t epoch = lookup_order_run(f, topic, PARTITION).order.epoch;
    (void)party_ask(party, "BEGIN");
    party_do(party, "INSERT INTO batches (id, created_at) VALUES ('%s', now())", &first->id);
    batch_start(f, first);
    party_await_waiter(party);
    batch_start(f, second);
    for (int i = 0; i < 20; i++) /* time enough for what must not happen */
        assert_int_equal(lookup_order_run(f, topic, PARTITION).order.epoch, epoch);
    (void)party_ask(party, "ROLLBACK");
    assert_int_equal(batch_end(f, first), UNIT_OK);
    assert_int_equal(batch_end(f, second), UNIT_OK);
    batch_free(first);
    batch_free(second);
}

static void test_claims_and_those_who_rely_on_them_keep_their_order(void **state)
{
    struct fixture *f = *state;
    const char *topic = fixture_name(f);
    assert_int_equal(batch_commit(f, batch_of_claim(f, topic, 1)), UNIT_OK);
    PGconn *party = party_open(f);
    expect_in_order(f, party, topic, batch_of_claim(f, topic, 2), batch_of_order(f, topic, 2, 8, 0));
    expect_in_order(f, party, topic, batch_of_order(f, topic, 2, 9, 1), batch_of_claim(f, topic, 3));
    PQfinish(party);
    struct order_row order = lookup_order_run(f, topic, PARTITION).order;
    assert_int_equal(order.epoch, 3);
    assert_int_equal(order.next_offset, 9);
}

static void test_of_two_nodes_that_claim_a_partition_one_does(void **state)
{
    struct fixture *f = *state, other;
    const char *topic = fixture_name(f);
    node_open(&other, f);
    for (int64_t epoch = 1; epoch <= RACE_COUNT_MAX; epoch++) {
        struct store_batch *mine = batch_of_claim(f, topic, epoch);
        struct store_batch *theirs = batch_of_claim(&other, topic, epoch);
        batch_start(f, mine);
        batch_start(&other, theirs);
        bool won = batch_end(f, mine) == UNIT_OK;
        assert_int_equal(batch_end(&other, theirs), won ? UNIT_MISSED : UNIT_OK);
        struct order_row order = lookup_order_run(f, topic, PARTITION).order;
        assert_int_equal(order.epoch, epoch);
        assert_true(uuid_equal(&order.node, won ? &f->node_id : &other.node_id));
        batch_free(mine);
        batch_free(theirs);
    }
    node_close(&other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_claim_waits_for_who_has_compared_and_is_found_by_who_has_not),
        TEST(test_epoch_is_read_from_the_row_that_was_waited_for),
        TEST(test_who_relies_on_a_partition_does_not_wait_for_its_offset),
        TEST(test_busy_owner_is_replaced_between_two_of_its_batches),
        TEST(test_claims_and_those_who_rely_on_them_keep_their_order),
        TEST(test_of_two_nodes_that_claim_a_partition_one_does),
    };
    return cmocka_run_group_tests(tests, server_start, server_stop);
}
