/* SPDX-License-Identifier: Apache-2.0
 * The change feed: what was committed comes out of it, from the beginning or
 * from where a load left off, each seat's changes in their order, and whoever
 * follows knows when everything was shown. Nothing is purged here. */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#include "store/changes.h"

enum { LIMIT = 100 };

/* What came of the fixture's organization: of one seat, the versions in order. */
struct seen {
    int32_t versions[256];
    int32_t version_count;
    int32_t orgs, users, events, layouts, holds;
    int32_t changes; /* rows of the organization */
};

static void see_change(struct fixture *f, const struct store_change *row, int32_t seat, struct seen *seen)
{
    struct changes_reader reader;
    struct change change;
    bool ours = false;
    changes_read_begin(&reader, row->data, row->size, &f->arena);
    while (changes_read_next(&reader, &change)) {
        if (change.kind == CHANGE_SEAT && uuid_equal(&change.seat.id, &f->seat_ids[seat])) {
            assert_true(seen->version_count < 256);
            seen->versions[seen->version_count++] = change.seat.version;
        }
        ours = ours || (change.kind == CHANGE_SEAT && uuid_equal(&change.seat.org_id, &f->org_id));
        seen->orgs += change.kind == CHANGE_ORGANIZATION && uuid_equal(&change.mark.id, &f->org_id);
        seen->events += change.kind == CHANGE_EVENT && uuid_equal(&change.mark.id, &f->event_id);
        seen->layouts += change.kind == CHANGE_LAYOUT && uuid_equal(&change.mark.id, &f->event_id);
        seen->users += change.kind == CHANGE_USER && uuid_equal(&change.user.id, &f->user_id);
        seen->holds += change.kind == CHANGE_HOLD && uuid_equal(&change.hold.org_id, &f->org_id);
    }
    assert_false(reader.failed);
    if (ours) {
        seen->changes++;
        assert_true(uuid_equal(&reader.node_id, &f->node_id));
        assert_int_equal(row->created_ms, f->now_ms);
    }
}

static struct seen see(struct fixture *f, const struct followed *all, int32_t seat)
{
    struct seen seen = {.version_count = 0};
    for (int32_t i = 0; i < all->count; i++)
        see_change(f, &all->changes[i], seat, &seen);
    return seen;
}

static void hold_and_release(struct fixture *f, int32_t seat)
{
    struct hold_row hold = hold_seat(f, seat, 1);
    struct store_batch *batch = batch_new(f);
    unit_end(f, batch, unit_new(batch), &hold, seat, 2, HOLD_CANCELLED, END_USER_CANCELLED);
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
}

/* A batch that blocks the seat, or makes it free again. */
static struct store_batch *batch_toggle(struct fixture *f, int32_t seat, int32_t version)
{
    struct store_batch *batch = batch_new(f);
    bool blocks = version % 2 == 1;
    (void)unit_seat(f, batch, unit_new(batch), seat, version, blocks ? SEAT_AVAILABLE : SEAT_BLOCKED,
                    blocks ? SEAT_BLOCKED : SEAT_AVAILABLE);
    return batch;
}

static void test_everything_comes_from_the_beginning(void **state)
{
    struct fixture *f = *state;
    hold_and_release(f, 0);
    struct followed all = follow_run(f, (struct feed_position){.id = 0}, LIMIT);
    assert_false(all.lost);
    struct seen seen = see(f, &all, 0);
    assert_int_equal(seen.orgs, 1);
    assert_int_equal(seen.users, 1);
    assert_int_equal(seen.events, 1);
    assert_int_equal(seen.layouts, 1);
    assert_int_equal(seen.holds, 2);
    assert_int_equal(seen.version_count, 2);
    assert_int_equal(seen.versions[0], 2);
    assert_int_equal(seen.versions[1], 3);
}

static void test_what_comes_after_a_load_is_followed_from_its_position(void **state)
{
    struct fixture *f = *state;
    hold_and_release(f, 0);
    struct feed_position position = fixture_position(f);
    hold_and_release(f, 1);
    struct followed all = follow_run(f, position, LIMIT);
    struct seen seen = see(f, &all, 1);
    assert_int_equal(seen.version_count, 2);
    all = follow_run(f, all.position, LIMIT);
    assert_int_equal(see(f, &all, 1).version_count, 0); /* each once */
}

static void test_position_of_a_load_leaves_out_what_was_shown_before(void **state)
{
    struct fixture *f = *state;
    hold_and_release(f, 0);
    (void)follow_run(f, (struct feed_position){.id = 0}, LIMIT); /* until it can be seen */
    struct followed all = follow_run(f, fixture_position(f), LIMIT);
    assert_int_equal(see(f, &all, 0).version_count, 0);
}

static void test_at_the_end_there_is_nothing_more(void **state)
{
    struct fixture *f = *state;
    hold_and_release(f, 0);
    struct followed all = follow_run(f, (struct feed_position){.id = 0}, LIMIT);
    struct store_follow follow = follow_once(f, all.position, LIMIT);
    assert_false(follow.more);
    assert_false(follow.lost);
    struct followed none = {.changes = follow.changes, .count = follow.count};
    assert_int_equal(see(f, &none, 0).changes, 0);
    assert_true(follow.reached <= follow.horizon);
}

static void test_limit_makes_pages_that_give_each_change_once(void **state)
{
    struct fixture *f = *state;
    for (int32_t seat = 0; seat < 7; seat++)
        (void)hold_seat(f, seat, 1);
    struct followed whole = follow_run(f, (struct feed_position){.id = 0}, 10000);
    assert_true(see(f, &whole, 0).changes == 7);
    for (int32_t limit = 1; limit <= 3; limit++) {
        struct feed_position position = {.id = 0};
        struct followed all = {.count = 0};
        struct store_change *changes = ARENA_ARRAY(&f->arena, struct store_change, whole.count + 3 * LIMIT);
        struct store_follow page;
        do { /* `more` alone leads through what one call could have given */
            page = follow_once(f, position, limit);
            assert_true(all.count + page.count <= whole.count + 3 * LIMIT);
            memcpy(changes + all.count, page.changes, (size_t)page.count * sizeof(*changes));
            all.count += page.count;
            position = page.position;
            if (page.more)
                assert_int_equal(page.count, limit);
        } while (page.more ||
                 see(f, &(struct followed){.changes = changes, .count = all.count}, 0).changes < 7);
        assert_true(all.count >= whole.count);
        for (int32_t i = 0; i < whole.count;
             i++) { /* of a PostgreSQL others may be writing to the same feed */
            int32_t times = 0;
            for (int32_t k = 0; k < all.count; k++)
                times += changes[k].id == whole.changes[i].id;
            assert_int_equal(times, 1);
        }
    }
}

/* A call that comes after a commit, and a later one whose `reached` is not below its horizon, have shown it. */
static void test_horizon_and_reached_say_when_a_commit_was_shown(void **state)
{
    struct fixture *f = *state;
    struct feed_position position = {.id = 0};
    int64_t horizon_before = INT64_MIN;
    for (int32_t version = 1; version <= 20; version++) {
        assert_int_equal(batch_commit(f, batch_toggle(f, 0, version)), UNIT_OK);
        struct store_follow first = follow_once(f, position, LIMIT);
        assert_true(first.horizon >= horizon_before);
        horizon_before = first.horizon;
        struct followed rest =
            follow_run(f, first.position, LIMIT); /* until its own horizon, which is later still */
        struct followed shown = {.changes = first.changes, .count = first.count};
        struct seen a = see(f, &shown, 0), b = see(f, &rest, 0);
        assert_int_equal(a.version_count + b.version_count, 1);
        assert_int_equal(a.version_count == 1 ? a.versions[0] : b.versions[0], version + 1);
        if (first.reached >= first.horizon)
            assert_int_equal(a.version_count, 1);
        position = rest.position;
    }
}

static void test_changes_of_a_seat_come_in_their_order_while_they_are_made(void **state)
{
    struct fixture *f = *state;
    enum { COUNT = 60 };
    struct store_batch *batches[COUNT];
    struct feed_position position = fixture_position(f);
    struct seen seen = {.version_count = 0};
    for (int i = 0; i < COUNT; i++) {
        batches[i] = batch_toggle(f, 5, i + 1);
        assert_int_equal(store_submit(f->store, batches[i]), ERR_OK);
        if (i % 7 == 0) {
            struct store_follow page = follow_once(f, position, 3);
            for (int32_t k = 0; k < page.count; k++)
                see_change(f, &page.changes[k], 5, &seen);
            position = page.position;
        }
    }
    for (int i = 0; i < COUNT; i++) {
        assert_true(fixture_wait(f, batches[i]->context));
        assert_int_equal(CONTAINER_OF(batches[i]->units.next, struct store_unit, node)->result, UNIT_OK);
        batch_free(batches[i]);
    }
    struct followed all = follow_run(f, position, 3);
    for (int32_t k = 0; k < all.count; k++)
        see_change(f, &all.changes[k], 5, &seen);
    assert_int_equal(seen.version_count, COUNT);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(seen.versions[i], i + 2);
}

static void test_unit_that_missed_is_not_in_the_feed(void **state)
{
    struct fixture *f = *state;
    struct feed_position position = fixture_position(f);
    struct store_batch *batch = batch_new(f);
    (void)unit_hold(f, batch, unit_new(batch), 0, 9);
    (void)unit_hold(f, batch, unit_new(batch), 1, 1);
    batch_run(f, batch);
    batch_free(batch);
    struct followed all = follow_run(f, position, LIMIT);
    assert_int_equal(see(f, &all, 0).version_count, 0);
    assert_int_equal(see(f, &all, 1).version_count, 1);
}

static void test_feed_goes_on_after_the_store_was_opened_again(void **state)
{
    struct fixture *f = *state;
    hold_and_release(f, 0);
    struct followed all = follow_run(f, (struct feed_position){.id = 0}, LIMIT);
    fixture_reopen(f);
    (void)hold_seat(f, 1, 1);
    struct followed rest = follow_run(f, all.position, LIMIT);
    assert_int_equal(see(f, &rest, 1).version_count, 1);
    assert_int_equal(see(f, &rest, 0).version_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER_EVERY_STORE(test_everything_comes_from_the_beginning),
        OVER_EVERY_STORE(test_what_comes_after_a_load_is_followed_from_its_position),
        OVER_EVERY_STORE(test_position_of_a_load_leaves_out_what_was_shown_before),
        OVER_EVERY_STORE(test_at_the_end_there_is_nothing_more),
        OVER_EVERY_STORE(test_limit_makes_pages_that_give_each_change_once),
        OVER_EVERY_STORE(test_horizon_and_reached_say_when_a_commit_was_shown),
        OVER_EVERY_STORE(test_changes_of_a_seat_come_in_their_order_while_they_are_made),
        OVER_EVERY_STORE(test_unit_that_missed_is_not_in_the_feed),
        OVER_EVERY_STORE(test_feed_goes_on_after_the_store_was_opened_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
