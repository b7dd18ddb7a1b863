/* SPDX-License-Identifier: Apache-2.0
 * Old changes are purged, but not past a delivery that still needs them, unless
 * they are older than a week; whoever followed from before is told. Everything
 * here happens a month ago, so that tests that share a store do not purge each
 * other's. */
#include "fixture.h"

#include <string.h>

#define DAY_MS ((int64_t)24 * 3600 * 1000)

enum { LIMIT = 100, DAYS_AGO = 30 };

static int setup(void **state)
{
    return fixture_setup_past(state, false, DAYS_AGO);
}

static int setup_sim(void **state)
{
    return fixture_setup_past(state, true, DAYS_AGO);
}

/* Commits a batch, `days` later, that purges what is older than a day then. What the purge deletes at a time is
 * bounded, and what it may delete can depend on others: a few batches see to it. */
static void purge_after(struct fixture *f, int days)
{
    for (int i = 0; i < 3; i++) {
        struct store_batch *batch = batch_new(f);
        batch->now_ms = f->now_ms + days * DAY_MS;
        batch->purge_before_ms = batch->now_ms - DAY_MS;
        struct snapshot_write *write = ARENA_NEW(&batch->arena, struct snapshot_write);
        *write =
            (struct snapshot_write){.org_id = f->org_id, .event_id = f->event_id, .at_ms = batch->now_ms + i};
        unit_new(batch)->snapshots = write;
        assert_int_equal(batch_commit(f, batch), UNIT_OK);
    }
}

static void deliver(struct fixture *f, const char *name, int32_t version, struct feed_position position)
{
    struct store_batch *batch = batch_new(f);
    struct delivery_write *write = ARENA_NEW(&batch->arena, struct delivery_write);
    write->row = (struct delivery_row){.name = name,
                                       .position = position,
                                       .node = f->node_id,
                                       .lease_until_ms = f->now_ms,
                                       .version = version};
    unit_new(batch)->deliveries = write;
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
}

static const char *name_new(struct fixture *f)
{
    char text[UUID_TEXT_SIZE];
    struct uuid id = fixture_id(f);
    uuid_format(&id, text);
    return arena_text(&f->arena, text);
}

/* So far that it holds back nobody, in any store. */
static const struct feed_position far_ahead = {.from = INT64_MAX / 2, .id = INT64_MAX / 2};

/* Three changes; the position before them, until which everything was given out. */
static struct feed_position make_changes(struct fixture *f)
{
    struct feed_position before = follow_run(f, fixture_position(f), LIMIT).position;
    for (int32_t seat = 0; seat < 3; seat++)
        (void)hold_seat(f, seat, 1);
    (void)follow_run(f, before, LIMIT); /* until they can be seen */
    return before;
}

static void test_old_changes_are_purged_and_whoever_needs_them_is_told(void **state)
{
    struct fixture *f = *state;
    struct feed_position before = make_changes(f);
    struct feed_position end = follow_run(f, before, LIMIT).position;
    purge_after(f, 2);
    struct store_follow follow = follow_once(f, before, LIMIT);
    assert_true(follow.lost);
    assert_int_equal(follow.count, 0);
    assert_true(follow_once(f, (struct feed_position){.id = 0}, LIMIT).lost);
    assert_false(follow_once(f, end, LIMIT).lost);
    (void)hold_seat(f, 10, 1); /* and it goes on from there */
    struct followed rest = follow_run(f, end, LIMIT);
    assert_false(rest.lost);
    assert_true(rest.count >= 1);
    assert_false(follow_run(f, fixture_position(f), LIMIT).lost);
}

static void test_young_changes_are_kept(void **state)
{
    struct fixture *f = *state;
    struct feed_position before = make_changes(f);
    purge_after(f, 1); /* they are exactly a day old */
    struct followed all = follow_run(f, before, LIMIT);
    assert_false(all.lost);
    assert_true(all.count >= 3);
}

static void test_delivery_that_has_not_passed_keeps_changes(void **state)
{
    struct fixture *f = *state;
    const char *name = name_new(f);
    struct feed_position before = make_changes(f);
    deliver(f, name, 1, before);
    purge_after(f, 3);
    struct followed all = follow_run(f, before, LIMIT);
    assert_false(all.lost);
    assert_true(all.count >= 3);
    deliver(f, name, 2, all.position);
    purge_after(f, 3);
    assert_true(follow_once(f, before, LIMIT).lost);
    assert_false(follow_once(f, all.position, LIMIT).lost);
    deliver(f, name, 3, far_ahead);
}

static void test_delivery_keeps_nothing_longer_than_a_week(void **state)
{
    struct fixture *f = *state;
    const char *name = name_new(f);
    struct feed_position before = make_changes(f);
    deliver(f, name, 1, before);
    purge_after(f, 7);
    assert_false(follow_once(f, before, LIMIT).lost);
    purge_after(f, 8);
    assert_true(follow_once(f, before, LIMIT).lost);
    deliver(f, name, 2, far_ahead);
}

int main(void)
{
#define PURGE_TEST(test)                                                                                     \
    {#test, test, setup, fixture_teardown, NULL},                                                            \
    {                                                                                                        \
        "sim: " #test, test, setup_sim, fixture_teardown, NULL                                               \
    }
    const struct CMUnitTest tests[] = {
        PURGE_TEST(test_young_changes_are_kept),
        PURGE_TEST(test_delivery_that_has_not_passed_keeps_changes),
        PURGE_TEST(test_delivery_keeps_nothing_longer_than_a_week),
        PURGE_TEST(test_old_changes_are_purged_and_whoever_needs_them_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
