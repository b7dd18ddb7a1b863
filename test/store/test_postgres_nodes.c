/* SPDX-License-Identifier: Apache-2.0
 * Several nodes over one PostgreSQL: what they rely on is compared under locks
 * that the others respect, and the change feed loses and disorders nothing.
 *
 * Races are run for real by two stores, and, where one order of events matters,
 * by a third party: a plain connection that holds a lock or a transaction open
 * until the store is seen to wait for it.
 *
 * Over HOLDFAST_TEST_STORE if that is a PostgreSQL, else over one of its own,
 * which is started by test/lib/postgres.sh: run it from the project's folder. */
#include "party.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/embed.h"
#include "store/changes.h"

extern const struct embed postgres_sql[];
extern const struct embed postgres_migrations[];

enum { WAIT_MS_MAX = 20000, RACE_COUNT_MAX = 20 };

static struct event_check *unit_check(struct fixture *f, struct store_batch *batch, struct store_unit *unit,
                                      int32_t version)
{
    struct event_check *check = ARENA_NEW(&batch->arena, struct event_check);
    *check = (struct event_check){.org_id = f->org_id, .event_id = f->event_id, .version = version};
    unit->checks = check;
    return check;
}

static struct block_claim *unit_claim(struct fixture *f, struct store_batch *batch, struct store_unit *unit,
                                      int32_t block, int32_t count)
{
    struct block_claim *claim = ARENA_NEW(&batch->arena, struct block_claim);
    *claim = (struct block_claim){
        .org_id = f->org_id, .event_id = f->event_id, .block_id = f->block_ids[block], .count = count};
    claim->next = unit->claims;
    unit->claims = claim;
    return claim;
}

/* A batch that holds one seat of the first block and claims room for it. */
static struct store_batch *batch_claiming(struct fixture *f, int32_t seat)
{
    struct store_batch *batch = batch_new(f);
    struct store_unit *unit = unit_new(batch);
    (void)unit_hold(f, batch, unit, seat, 1);
    (void)unit_check(f, batch, unit, 2);
    (void)unit_claim(f, batch, unit, 0, 1);
    return batch;
}

static struct event_write *unit_event(struct fixture *f, struct store_batch *batch, struct store_unit *unit,
                                      int32_t version)
{
    struct event_write *event = ARENA_NEW(&batch->arena, struct event_write);
    event->row = fixture_event(f);
    event->row.version = version;
    unit->events = event;
    return event;
}

/* The first block takes no more than this; the event is at version 2 then. */
static void limit_block(struct fixture *f, int32_t capacity)
{
    struct store_batch *batch = batch_new(f);
    struct store_unit *unit = unit_new(batch);
    (void)unit_event(f, batch, unit, 2);
    unit->blocks = ARENA_NEW(&batch->arena, struct block_write);
    unit->blocks->row = (struct block_row){.org_id = f->org_id,
                                           .event_id = f->event_id,
                                           .id = f->block_ids[0],
                                           .name = "Stalls",
                                           .capacity = capacity,
                                           .price_cents = FIXTURE_PRICE};
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
}

static void expect_sound(struct fixture *f)
{
    char claim[256];
    int broken = verify_run(f, claim);
    if (broken != 0)
        fail_msg("broken: %s", claim);
}

/* ---- Room in blocks ---- */

static void test_two_nodes_never_take_more_than_a_block_has(void **state)
{
    enum { CAPACITY = 7, EACH = 10 };
    struct fixture *f = *state, other;
    struct store_batch *batches[2 * EACH];
    int won = 0;
    limit_block(f, CAPACITY);
    node_open(&other, f);
    for (int i = 0; i < 2 * EACH; i++) {
        struct fixture *side = i % 2 == 0 ? f : &other;
        batches[i] = batch_claiming(side, i);
        batch_start(side, batches[i]);
    }
    for (int i = 0; i < 2 * EACH; i++) {
        enum unit_result result = batch_end(i % 2 == 0 ? f : &other, batches[i]);
        const struct store_unit *unit = CONTAINER_OF(batches[i]->units.next, struct store_unit, node);
        won += result == UNIT_OK;
        if (result != UNIT_OK) {
            assert_int_equal(result, UNIT_MISSED);
            assert_true(unit->claims->missed);
            assert_false(unit->checks->missed);
            assert_false(unit->seats->missed);
            assert_int_equal(unit->seats->current.version, 1);
        }
        batch_free(batches[i]);
    }
    assert_int_equal(won, CAPACITY);
    node_close(&other);
    expect_sound(f);
}

static void test_claim_sees_what_it_waited_for(void **state)
{
    struct fixture *f = *state;
    limit_block(f, 1);
    PGconn *party = party_open(f);
    (void)party_ask(party, "BEGIN");
    party_do(party, "SELECT 1 FROM blocks WHERE id = '%s' FOR NO KEY UPDATE", &f->block_ids[0]);
    party_do(party, "UPDATE subsection_stats SET held = 1, available = available - 1 WHERE block_id = '%s'",
             &f->block_ids[0]);
    struct store_batch *batch = batch_claiming(f, 0);
    batch_start(f, batch);
    party_await_waiter(party);
    (void)party_ask(party, "COMMIT");
    assert_int_equal(batch_end(f, batch), UNIT_MISSED);
    batch_free(batch);
    party_do(party, "UPDATE subsection_stats SET held = 0, available = available + 1 WHERE block_id = '%s'",
             &f->block_ids[0]);
    PQfinish(party);
}

static void test_claims_count_what_earlier_units_of_the_batch_did(void **state)
{
    enum { UNIT_COUNT = 6 };
    static const enum unit_result expected[] = {UNIT_OK, UNIT_OK, UNIT_MISSED, UNIT_OK, UNIT_OK, UNIT_MISSED};
    struct fixture *f = *state;
    limit_block(f, 2);
    struct hold_row held = hold_seat(f, 0, 1);
    struct store_batch *batch = batch_new(f);
    struct store_unit *units[UNIT_COUNT];
    for (int i = 0; i < UNIT_COUNT; i++)
        units[i] = unit_new(batch);
    struct hold_row last = *unit_hold(f, batch, units[0], 1, 1); /* the last place … */
    (void)unit_claim(f, batch, units[0], 0, 1);
    struct seat_write *again = unit_seat(f, batch, units[1], 1, 2, SEAT_HELD, SEAT_HELD); /* a new wave */
    again->row.hold_id = last.id;
    again->row.held_until_ms = last.held_until_ms;
    again->row.locked_ms = f->now_ms;
    (void)unit_hold(f, batch, units[2], 2, 1); /* … is gone */
    (void)unit_claim(f, batch, units[2], 0, 1);
    unit_end(f, batch, units[3], &held, 0, 2, HOLD_CANCELLED, END_USER_CANCELLED);
    (void)unit_hold(f, batch, units[4], 0, 3); /* a new wave: in the place that came free */
    (void)unit_claim(f, batch, units[4], 0, 1);
    (void)unit_hold(f, batch, units[5], 3, 1); /* and now it is gone again */
    (void)unit_claim(f, batch, units[5], 0, 1);
    batch_run(f, batch);
    assert_int_equal(batch->outcome, STORE_COMMITTED);
    for (int i = 0; i < UNIT_COUNT; i++)
        assert_int_equal(units[i]->result, expected[i]);
    batch_free(batch);
    expect_sound(f);
}

/* ---- Events ---- */

static void test_check_sees_the_change_it_waited_for(void **state)
{
    struct fixture *f = *state;
    PGconn *party = party_open(f);
    (void)party_ask(party, "BEGIN");
    party_do(party, "SELECT 1 FROM events WHERE id = '%s' FOR UPDATE", &f->event_id);
    party_do(party, "UPDATE events SET version = 2 WHERE id = '%s'", &f->event_id);
    struct store_batch *batch = batch_new(f);
    struct store_unit *unit = unit_new(batch);
    (void)unit_hold(f, batch, unit, 0, 1);
    (void)unit_check(f, batch, unit, 1);
    batch_start(f, batch);
    party_await_waiter(party);
    (void)party_ask(party, "COMMIT");
    assert_int_equal(batch_end(f, batch), UNIT_MISSED);
    assert_true(unit->checks->missed);
    assert_false(unit->seats->missed);
    batch_free(batch);
    PQfinish(party);
}

static void test_event_changes_only_after_those_who_rely_on_it(void **state)
{
    struct fixture *f = *state;
    PGconn *party = party_open(f);
    (void)party_ask(party, "BEGIN");
    party_do(party, "SELECT 1 FROM events WHERE id = '%s' FOR KEY SHARE", &f->event_id);
    struct store_batch *batch = batch_new(f);
    (void)unit_event(f, batch, unit_new(batch), 2);
    batch_start(f, batch);
    party_await_waiter(party);
    assert_int_equal(lookup_run(f, LOOKUP_EVENT, &f->event_id).event.version, 1);
    (void)party_ask(party, "COMMIT");
    assert_int_equal(batch_end(f, batch), UNIT_OK);
    batch_free(batch);
    PQfinish(party);
}

static void test_of_two_nodes_that_change_an_event_one_does(void **state)
{
    struct fixture *f = *state, other;
    node_open(&other, f);
    struct store_batch *mine = batch_new(f), *theirs = batch_new(&other);
    (void)unit_event(f, mine, unit_new(mine), 2);
    (void)unit_event(&other, theirs, unit_new(theirs), 2);
    batch_start(f, mine);
    batch_start(&other, theirs);
    enum unit_result here = batch_end(f, mine), there = batch_end(&other, theirs);
    assert_int_equal((here == UNIT_OK) + (there == UNIT_OK), 1);
    assert_int_equal((here == UNIT_MISSED) + (there == UNIT_MISSED), 1);
    batch_free(mine);
    batch_free(theirs);
    node_close(&other);
    assert_int_equal(lookup_run(f, LOOKUP_EVENT, &f->event_id).event.version, 2);
}

static void test_layout_is_kept_if_a_hold_was_waited_for(void **state)
{
    struct fixture *f = *state;
    PGconn *party = party_open(f);
    struct store_batch *batch = batch_new(f);
    struct store_unit *unit = unit_new(batch);
    struct block_row *block = ARENA_NEW(&batch->arena, struct block_row);
    *block = (struct block_row){
        .id = fixture_id(f), .section = "X", .subsection = 1, .name = "New", .capacity = 1, .price_cents = 1};
    struct layout_seat *seat = ARENA_NEW(&batch->arena, struct layout_seat);
    *seat =
        (struct layout_seat){.id = fixture_id(f), .row = 1, .seat = 1, .row_label = "A", .seat_label = "1"};
    unit->layouts = ARENA_NEW(&batch->arena, struct layout_write);
    *unit->layouts = (struct layout_write){.org_id = f->org_id,
                                           .event_id = f->event_id,
                                           .document = "{}",
                                           .blocks = block,
                                           .block_count = 1,
                                           .seats = seat,
                                           .seat_count = 1};
    (void)party_ask(party, "BEGIN");
    party_do(party, "SELECT 1 FROM events WHERE id = '%s' FOR KEY SHARE", &f->event_id);
    party_do(party, "UPDATE subsection_stats SET holds_created = 1 WHERE block_id = '%s'", &f->block_ids[0]);
    batch_start(f, batch);
    party_await_waiter(party);
    (void)party_ask(party, "COMMIT");
    assert_int_equal(batch_end(f, batch), UNIT_MISSED);
    assert_true(unit->layouts->missed);
    batch_free(batch);
    struct store_lookup event = lookup_run(f, LOOKUP_EVENT, &f->event_id);
    assert_int_equal(event.seat_count, FIXTURE_SEAT_COUNT);
    assert_int_equal(event.holds_ever, 1);
    party_do(party, "UPDATE subsection_stats SET holds_created = 0 WHERE block_id = '%s'", &f->block_ids[0]);
    PQfinish(party);
}

/* ---- Checkouts, deliveries, users ---- */

static struct checkout_row checkout_make(struct fixture *f)
{
    struct checkout_row row = {.org_id = f->org_id,
                               .event_id = f->event_id,
                               .id = fixture_id(f),
                               .user_id = f->user_id,
                               .currency = "EUR",
                               .created_ms = f->now_ms,
                               .expires_ms = f->now_ms + 1000,
                               .version = 1};
    struct store_batch *batch = batch_new(f);
    (void)unit_checkout(batch, unit_new(batch), &row, true);
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
    return row;
}

static void test_of_two_nodes_that_change_a_checkout_one_does(void **state)
{
    struct fixture *f = *state, other;
    node_open(&other, f);
    for (int round = 0; round < RACE_COUNT_MAX; round++) {
        struct checkout_row row = checkout_make(f);
        row.version = 2;
        row.payer_until_ms = f->now_ms + 5000;
        struct store_batch *batches[2];
        int won = 0, missed = 0;
        for (int i = 0; i < 2; i++) {
            struct fixture *side = i == 0 ? f : &other;
            batches[i] = batch_new(side);
            row.payer = side->node_id;
            (void)unit_checkout(batches[i], unit_new(batches[i]), &row, false);
            batch_start(side, batches[i]);
        }
        for (int i = 0; i < 2; i++) {
            struct fixture *side = i == 0 ? f : &other;
            enum unit_result result = batch_end(side, batches[i]);
            won += result == UNIT_OK;
            missed += result == UNIT_MISSED;
            struct store_lookup found = lookup_run(f, LOOKUP_CHECKOUT, &row.id);
            if (result == UNIT_OK)
                assert_true(uuid_equal(&found.checkout.payer, &side->node_id));
            batch_free(batches[i]);
        }
        assert_int_equal(won, 1);
        assert_int_equal(missed, 1);
    }
    node_close(&other);
}

static struct store_batch *batch_delivering(struct fixture *f, const char *name, int32_t version)
{
    struct store_batch *batch = batch_new(f);
    struct delivery_write *write = ARENA_NEW(&batch->arena, struct delivery_write);
    write->row = (struct delivery_row){
        .name = name, .node = f->node_id, .lease_until_ms = f->now_ms + 1000, .version = version};
    unit_new(batch)->deliveries = write;
    return batch;
}

static void test_of_two_nodes_that_take_a_delivery_one_does(void **state)
{
    struct fixture *f = *state, other;
    char name[64];
    node_open(&other, f);
    snprintf(name, sizeof(name), "race-%llx", (unsigned long long)rng_next(&f->rng));
    for (int32_t version = 1; version < RACE_COUNT_MAX; version++) {
        struct store_batch *mine = batch_delivering(f, name, version),
                           *theirs = batch_delivering(&other, name, version);
        batch_start(f, mine);
        batch_start(&other, theirs);
        enum unit_result here = batch_end(f, mine), there = batch_end(&other, theirs);
        assert_int_equal((here == UNIT_OK) + (there == UNIT_OK), 1);
        assert_int_equal((here == UNIT_MISSED) + (there == UNIT_MISSED), 1);
        struct store_lookup found = lookup_delivery_run(f, name);
        assert_int_equal(found.delivery.version, version);
        assert_true(uuid_equal(&found.delivery.node, here == UNIT_OK ? &f->node_id : &other.node_id));
        batch_free(mine);
        batch_free(theirs);
    }
    node_close(&other);
    PGconn *party = party_open(f);
    char statement[128];
    snprintf(statement, sizeof(statement), "DELETE FROM deliveries WHERE name = '%s'", name);
    (void)party_ask(party, statement); /* it would keep changes from being purged */
    PQfinish(party);
}

/* What was taken by inserting it is given back by a unit that does not get to write. */
static void test_unit_that_misses_leaves_no_user_and_no_delivery(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = batch_new(f);
    struct store_unit *unit = unit_new(batch);
    struct uuid user_id = fixture_id(f);
    unit->users = ARENA_NEW(&batch->arena, struct user_write);
    *unit->users = (struct user_write){.seen = true,
                                       .row = {.org_id = f->org_id, .id = user_id, .created_ms = f->now_ms}};
    unit->deliveries = ARENA_NEW(&batch->arena, struct delivery_write);
    unit->deliveries->row = (struct delivery_row){.name = "never", .version = 1};
    (void)unit_hold(f, batch, unit, 0, 7);
    batch_run(f, batch);
    assert_int_equal(unit->result, UNIT_MISSED);
    assert_false(unit->deliveries->missed);
    batch_free(batch);
    assert_false(lookup_run(f, LOOKUP_USER, &user_id).found);
    assert_false(lookup_delivery_run(f, "never").found);
}

/* Batches of several waves that want the same checkouts in opposite orders. */
static void test_batches_of_several_waves_do_not_wait_for_each_other_in_a_circle(void **state)
{
    struct fixture *f = *state, other;
    node_open(&other, f);
    PGconn *party = party_open(f);
    int64_t before =
        party_ask(party, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()");
    for (int round = 0; round < RACE_COUNT_MAX; round++) {
        struct checkout_row rows[2] = {checkout_make(f), checkout_make(f)};
        struct store_batch *batches[2];
        rows[0].version = rows[1].version = 2;
        for (int i = 0; i < 2; i++) {
            struct fixture *side = i == 0 ? f : &other;
            batches[i] = batch_new(side);
            for (int j = 0; j < 2; j++) {
                struct store_unit *unit = unit_new(batches[i]);
                (void)unit_checkout(batches[i], unit, &rows[i ^ j], false);
                /* The same user in both units: each is a wave. */
                unit->users = ARENA_NEW(&batches[i]->arena, struct user_write);
                unit->users->row =
                    (struct user_row){.org_id = f->org_id, .id = side->node_id, .created_ms = f->now_ms};
            }
            batch_start(side, batches[i]);
        }
        for (int i = 0; i < 2; i++) {
            (void)batch_end(i == 0 ? f : &other, batches[i]);
            batch_free(batches[i]);
        }
    }
    node_close(&other);
    /* Sessions report when they end, so the other node's have. */
    int64_t after =
        party_ask(party, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()");
    assert_int_equal(after - before, 0);
    PQfinish(party);
}

/* ---- The change feed ---- */

/* Versions of the fixture's seats, as the feed gives them: each must follow the one before. */
struct feed_seats {
    int32_t versions[FIXTURE_SEAT_COUNT];
    int32_t count;
};

static void feed_read(struct fixture *f, const struct followed *followed, struct feed_seats *seats)
{
    for (int32_t i = 0; i < followed->count; i++) {
        struct changes_reader reader;
        struct change change;
        changes_read_begin(&reader, followed->changes[i].data, followed->changes[i].size, &f->arena);
        while (changes_read_next(&reader, &change)) {
            if (change.kind != CHANGE_SEAT || !uuid_equal(&change.seat.event_id, &f->event_id))
                continue;
            int32_t *version = &seats->versions[change.seat.index];
            assert_int_equal(change.seat.version, *version + 1);
            *version = change.seat.version;
            seats->count++;
        }
        assert_false(reader.failed);
    }
}

static void feed_begin(struct feed_seats *seats)
{
    memset(seats, 0, sizeof(*seats));
    for (int i = 0; i < FIXTURE_SEAT_COUNT; i++)
        seats->versions[i] = 1; /* as the layout made them */
}

/* As any other session of the server; `as_node`: as one that nodes must wait for. */
static int64_t party_begin(PGconn *party, bool as_node)
{
    (void)party_ask(party, as_node ? "SET application_name = 'holdfast'" : "SET application_name = 'psql'");
    (void)party_ask(party, "BEGIN");
    return party_ask(party, "SELECT pg_current_xact_id()");
}

static void test_open_transaction_holds_the_feed_back_and_nothing_is_skipped(void **state)
{
    struct fixture *f = *state;
    struct feed_seats seats;
    struct feed_position start = follow_run(f, fixture_position(f), 100).position;
    feed_begin(&seats);
    PGconn *party = party_open(f);
    int64_t number = party_begin(party, true);
    (void)hold_seat(f, 0, 1);
    struct store_follow page = follow_once(f, start, 100);
    assert_int_equal(page.count, 0);
    assert_false(page.more);
    assert_false(page.lost);
    assert_true(page.reached <= number);
    assert_true(page.horizon > number);
    (void)hold_seat(f, 1, 1);
    page = follow_once(f, page.position, 100);
    assert_int_equal(page.count, 0);
    (void)party_ask(party, "COMMIT");
    struct followed followed = follow_run(f, page.position, 100);
    feed_read(f, &followed, &seats);
    assert_int_equal(seats.count, 2);
    PQfinish(party);
}

static void test_strangers_open_transaction_does_not_hold_the_feed_back(void **state)
{
    struct fixture *f = *state;
    struct feed_seats seats;
    feed_begin(&seats);
    PGconn *party = party_open(f);
    int64_t number = party_begin(party, false);
    struct feed_position start = fixture_position(f);
    (void)hold_seat(f, 0, 1);
    struct followed followed = follow_run(f, start, 100); /* comes to an end */
    assert_true(followed.position.from > number);
    feed_read(f, &followed, &seats);
    assert_int_equal(seats.count, 1);
    assert_true(fixture_position(f).from > number);
    (void)party_ask(party, "COMMIT");
    PQfinish(party);
}

/* Two nodes hand seats to and fro while a third party keeps opening transactions that hold the feed back. */
static void test_each_seats_changes_come_in_order_and_once(void **state)
{
    enum { ROUND_COUNT = 12, SEAT_COUNT = 8 };
    struct fixture *f = *state, other;
    struct hold_row holds[SEAT_COUNT];
    struct feed_seats seats;
    struct followed followed = {.position = fixture_position(f), .changes = NULL};
    node_open(&other, f);
    feed_begin(&seats);
    PGconn *party = party_open(f);
    for (int round = 0; round < ROUND_COUNT; round++) {
        struct store_batch *batches[SEAT_COUNT];
        if (round % 3 == 0)
            (void)party_begin(party, round % 2 == 0);
        for (int i = 0; i < SEAT_COUNT; i++) {
            struct fixture *side = (round + i) % 2 == 0 ? f : &other;
            batches[i] = batch_new(side);
            if (round % 2 == 0)
                holds[i] = *unit_hold(side, batches[i], unit_new(batches[i]), i, round + 1);
            else
                unit_end(side, batches[i], unit_new(batches[i]), &holds[i], i, round + 1, HOLD_CANCELLED,
                         END_USER_CANCELLED);
            batch_start(side, batches[i]);
        }
        for (int i = 0; i < SEAT_COUNT; i++) {
            assert_int_equal(batch_end((round + i) % 2 == 0 ? f : &other, batches[i]), UNIT_OK);
            batch_free(batches[i]);
        }
        struct store_follow page = follow_once(&other, followed.position, 3);
        followed = (struct followed){.position = page.position, .changes = page.changes, .count = page.count};
        feed_read(f, &followed, &seats);
        if (round % 3 == 1)
            (void)party_ask(party, "COMMIT");
    }
    followed = follow_run(&other, followed.position, 60); /* several changes of a seat on a page */
    feed_read(f, &followed, &seats);
    assert_int_equal(seats.count, ROUND_COUNT * SEAT_COUNT);
    PQfinish(party);
    node_close(&other);
}

static void test_position_of_another_server_is_lost(void **state)
{
    struct fixture *f = *state;
    struct feed_position elsewhere = {.from = fixture_position(f).from + 1000000};
    assert_true(follow_once(f, elsewhere, 10).lost);
    assert_false(follow_once(f, fixture_position(f), 10).lost);
}

static enum unit_result purge(struct fixture *f)
{
    struct store_batch *batch = batch_new(f);
    (void)unit_new(batch);
    batch->purge_before_ms = f->now_ms + 1000;
    return batch_commit(f, batch);
}

static void test_only_one_node_purges_and_nobody_waits_for_it(void **state)
{
    struct fixture *f = *state;
    struct feed_position before = fixture_position(f);
    (void)hold_seat(f, 0, 1);
    PGconn *party = party_open(f);
    (void)party_ask(party, "BEGIN");
    (void)party_ask(party, "SELECT 1 FROM feed_floor FOR UPDATE");
    assert_int_equal(purge(f), UNIT_OK); /* would be lost if it waited */
    assert_false(follow_once(f, before, 10).lost);
    (void)party_ask(party, "COMMIT");
    assert_int_equal(purge(f), UNIT_OK);
    struct store_follow page = follow_once(f, before, 10);
    assert_true(page.lost);
    assert_int_equal(page.count, 0);
    assert_false(follow_once(f, page.position, 10).lost);
    assert_false(follow_once(f, fixture_position(f), 10).lost);
    PQfinish(party);
}

/* A database that was restored into a server that counts lower has changes of a future that never comes. */
static void test_feed_begins_anew_in_another_server(void **state)
{
    struct fixture *f = *state;
    PGconn *party = party_open(f);
    (void)party_ask(party, "UPDATE feed_floor SET transaction = '9000000000000'");
    (void)party_ask(party, "INSERT INTO changes (transaction, created_at, data) "
                           "VALUES ('9000000000001', now(), '\\x00')");
    assert_true(follow_once(f, fixture_position(f), 10).lost);
    fixture_reopen(f);
    struct feed_position position = fixture_position(f);
    assert_false(follow_once(f, position, 10).lost);
    assert_int_equal(
        party_ask(party, "SELECT count(*) FROM changes WHERE transaction >= '9000000000000'::xid8"), 0);
    (void)hold_seat(f, 0, 1);
    assert_true(follow_run(f, position, 10).count > 0);
    PQfinish(party);
}

/* ---- Upgrades ---- */

static void test_rows_from_before_have_their_first_version(void **state)
{
    struct fixture *f = *state;
    PGconn *party = party_open(f);
    struct fixture old = *f;
    char name[64], statement[128], why[512] = "";
    arena_init(&old.arena);
    snprintf(name, sizeof(name), "old_%llx", (unsigned long long)rng_next(&f->rng));
    snprintf(statement, sizeof(statement), "CREATE DATABASE %s", name);
    (void)party_ask(party, statement);
    snprintf(strrchr(old.url, '/') + 1, 64, "%s", name);
    PGconn *first = party_open(&old);
    (void)party_ask(first, postgres_migrations[0].data);
    (void)party_ask(first, "CREATE TABLE schema_migrations (version integer PRIMARY KEY, name text NOT NULL, "
                           "applied_at timestamptz NOT NULL DEFAULT now())");
    (void)party_ask(first, "INSERT INTO schema_migrations (version, name) VALUES (1, '0001_initial.sql')");
    party_do(first,
             "INSERT INTO checkouts (organization_id, id, event_id, user_id, status, refund, currency, "
             "total_cents, created_at, expires_at) SELECT w.id, w.id, w.id, w.id, 'processing', 'none', "
             "'EUR', 1, now(), now() FROM (VALUES ('%s'::uuid)) AS w (id)",
             &f->org_id);
    PQfinish(first);
    if (store_open(old.url, NULL, &old.store, why, sizeof(why)) != ERR_OK)
        fail_msg("%s", why);
    struct store_lookup found = lookup_run(&old, LOOKUP_CHECKOUT, &f->org_id);
    assert_true(found.found);
    assert_int_equal(found.checkout.version, 1);
    assert_true(uuid_is_nil(&found.checkout.payer));
    assert_int_equal(found.checkout.payer_until_ms, 0);
    assert_false(follow_once(&old, (struct feed_position){.from = 0}, 10).lost);
    node_close(&old);
    snprintf(statement, sizeof(statement), "DROP DATABASE %s", name);
    (void)party_ask(party, statement);
    PQfinish(party);
}

/* ---- Time ---- */

/* A node that does not go on after its locks were taken is not waited for. */
static void test_sessions_of_writers_end_by_themselves(void **state)
{
    struct fixture *f = *state;
    PGconn *frozen = party_open(f);
    (void)party_ask(frozen, embed_find(postgres_sql, "session_write.sql")->data);
    (void)party_ask(frozen, "BEGIN");
    party_do(frozen, "SELECT 1 FROM blocks WHERE id = '%s' FOR NO KEY UPDATE", &f->block_ids[0]);
    limit_block(f, 5); /* waits for the frozen one, and gets the lock before its own time is up */
    PGresult *result = PQexec(frozen, "COMMIT");
    assert_int_not_equal(PQresultStatus(result), PGRES_COMMAND_OK);
    PQclear(result);
    PQfinish(frozen);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_two_nodes_never_take_more_than_a_block_has),
        TEST(test_claim_sees_what_it_waited_for),
        TEST(test_claims_count_what_earlier_units_of_the_batch_did),
        TEST(test_check_sees_the_change_it_waited_for),
        TEST(test_event_changes_only_after_those_who_rely_on_it),
        TEST(test_of_two_nodes_that_change_an_event_one_does),
        TEST(test_layout_is_kept_if_a_hold_was_waited_for),
        TEST(test_of_two_nodes_that_change_a_checkout_one_does),
        TEST(test_of_two_nodes_that_take_a_delivery_one_does),
        TEST(test_unit_that_misses_leaves_no_user_and_no_delivery),
        TEST(test_batches_of_several_waves_do_not_wait_for_each_other_in_a_circle),
        TEST(test_open_transaction_holds_the_feed_back_and_nothing_is_skipped),
        TEST(test_strangers_open_transaction_does_not_hold_the_feed_back),
        TEST(test_each_seats_changes_come_in_order_and_once),
        TEST(test_position_of_another_server_is_lost),
        TEST(test_only_one_node_purges_and_nobody_waits_for_it),
        TEST(test_feed_begins_anew_in_another_server),
        TEST(test_rows_from_before_have_their_first_version),
        TEST(test_sessions_of_writers_end_by_themselves),
    };
    return cmocka_run_group_tests(tests, server_start, server_stop);
}
