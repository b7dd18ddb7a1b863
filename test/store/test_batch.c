/* SPDX-License-Identifier: Apache-2.0
 * What a store does with batches: compare-and-set, units all or nothing, keys,
 * bad data, order, outcomes. */
#include "fixture.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"

static struct store_unit *unit_at(struct store_batch *batch, int position)
{
    struct list *node = batch->units.next;
    while (position-- > 0)
        node = node->next;
    return CONTAINER_OF(node, struct store_unit, node);
}

static void expect_sound(struct fixture *f)
{
    char claim[256];
    if (verify_run(f, claim) != 0)
        fail_msg("broken: %s", claim);
}

static void test_hold_at_expected_version_is_written(void **state)
{
    struct fixture *f = *state;
    struct hold_row hold = hold_seat(f, 0, 1);
    struct store_lookup lookup = lookup_run(f, LOOKUP_HOLD, &hold.id);
    assert_true(lookup.found);
    assert_int_equal(lookup.holds[0].state, HOLD_ACTIVE);
    assert_int_equal(lookup.holds[0].source, SOURCE_SCANNER);
    assert_string_equal(lookup.holds[0].cart_token, "cart");
    assert_int_equal(lookup.holds[0].held_until_ms, hold.held_until_ms);
    expect_sound(f);
}

/* None of them has anything to be compared with, so nothing makes the writer wait for an answer. */
static void test_many_new_events_in_one_batch_are_all_written(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = batch_new(f);
    struct uuid last = {{0}};
    for (int i = 0; i < TURN_COMMAND_COUNT_MAX; i++) {
        struct event_write *event = ARENA_NEW(&batch->arena, struct event_write);
        event->insert = true;
        event->row = fixture_event(f);
        event->row.id = last = fixture_id(f);
        unit_new(batch)->events = event;
    }
    batch_run(f, batch);
    assert_int_equal(batch->outcome, STORE_COMMITTED);
    for (int i = 0; i < TURN_COMMAND_COUNT_MAX; i++)
        assert_int_equal(unit_at(batch, i)->result, UNIT_OK);
    assert_true(lookup_run(f, LOOKUP_EVENT, &last).found);
    batch_free(batch);
    expect_sound(f);
}

static void test_miss_brings_the_current_row_and_leaves_neighbours_alone(void **state)
{
    struct fixture *f = *state;
    struct hold_row winner = hold_seat(f, 3, 1);
    struct store_batch *batch = batch_new(f);
    struct hold_row *before = unit_hold(f, batch, unit_new(batch), 2, 1);
    struct hold_row *late = unit_hold(f, batch, unit_new(batch), 3, 1);
    struct hold_row *after = unit_hold(f, batch, unit_new(batch), 4, 1);
    batch_run(f, batch);
    assert_int_equal(batch->outcome, STORE_COMMITTED);
    assert_int_equal(unit_at(batch, 0)->result, UNIT_OK);
    assert_int_equal(unit_at(batch, 1)->result, UNIT_MISSED);
    assert_int_equal(unit_at(batch, 2)->result, UNIT_OK);
    const struct seat_write *missed = unit_at(batch, 1)->seats;
    assert_true(missed->missed);
    assert_int_equal(missed->current.version, 2);
    assert_int_equal(missed->current.state, SEAT_HELD);
    assert_int_equal(missed->current.index, 3);
    assert_true(uuid_equal(&missed->current.hold_id, &winner.id));
    assert_int_equal(missed->current.held_until_ms, winner.held_until_ms);
    assert_true(lookup_run(f, LOOKUP_HOLD, &before->id).found);
    assert_false(lookup_run(f, LOOKUP_HOLD, &late->id).found);
    assert_true(lookup_run(f, LOOKUP_HOLD, &after->id).found);
    batch_free(batch);
    expect_sound(f);
}

static void test_unit_of_several_seats_is_all_or_none(void **state)
{
    struct fixture *f = *state;
    (void)hold_seat(f, 11, 1);
    struct store_batch *batch = batch_new(f);
    struct store_unit *unit = unit_new(batch);
    struct hold_row *first = unit_hold(f, batch, unit, 10, 1);
    (void)unit_hold(f, batch, unit, 11, 1);
    (void)unit_hold(f, batch, unit, 12, 1);
    struct store_unit *other = unit_new(batch);
    (void)unit_hold(f, batch, other, 12, 1);
    batch_run(f, batch);
    assert_int_equal(unit->result, UNIT_MISSED);
    assert_int_equal(other->result, UNIT_OK);
    for (const struct seat_write *w = unit->seats; w != NULL; w = w->next)
        assert_int_equal(w->missed, w->row.index == 11);
    assert_false(lookup_run(f, LOOKUP_HOLD, &first->id).found);
    batch_free(batch);
    expect_sound(f);
}

static void test_second_unit_of_a_batch_sees_the_first(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = batch_new(f);
    struct store_unit *first = unit_new(batch), *second = unit_new(batch);
    (void)unit_hold(f, batch, first, 5, 1);
    (void)unit_hold(f, batch, second, 5, 1);
    batch_run(f, batch);
    assert_int_equal(first->result, UNIT_OK);
    assert_int_equal(second->result, UNIT_MISSED);
    assert_int_equal(second->seats->current.version, 2);
    batch_free(batch);
}

static void test_seat_of_another_organization_is_never_written(void **state)
{
    struct fixture *f = *state;
    struct uuid seat = f->seat_ids[0], event = f->event_id;
    fixture_new_tenant(f);
    struct store_batch *batch = batch_new(f);
    struct store_unit *unit = unit_new(batch);
    (void)unit_hold(f, batch, unit, 0, 1);
    unit->seats->row.id = seat;
    unit->seats->row.event_id = event;
    assert_int_equal(batch_commit(f, batch), UNIT_MISSED);
}

static void test_seat_that_does_not_exist_misses(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = batch_new(f);
    struct store_unit *unit = unit_new(batch);
    (void)unit_hold(f, batch, unit, 0, 1);
    unit->seats->row.index = FIXTURE_SEAT_COUNT;
    batch_run(f, batch);
    assert_int_equal(unit->result, UNIT_MISSED);
    assert_int_equal(unit->seats->current.version, 0);
    batch_free(batch);
}

static void test_key_is_taken_by_an_earlier_batch(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = batch_new(f);
    struct store_unit *unit = unit_new(batch);
    (void)unit_hold(f, batch, unit, 0, 1);
    (void)unit_key(f, batch, unit, 7);
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
    batch = batch_new(f);
    unit = unit_new(batch);
    struct uuid refused = unit_hold(f, batch, unit, 1, 1)->id;
    (void)unit_key(f, batch, unit, 7);
    assert_int_equal(batch_commit(f, batch), UNIT_KEY_TAKEN);
    assert_false(lookup_run(f, LOOKUP_HOLD, &refused).found);
    struct store_lookup lookup = lookup_key_run(f, 7, f->now_ms);
    assert_true(lookup.found);
    assert_int_equal(lookup.body[31], 0x55);
    assert_int_equal(lookup.result_size, 6);
    assert_memory_equal(lookup.result, "result", 6);
    assert_int_equal(hold_seat(f, 1, 1).state, HOLD_ACTIVE); /* the seat was left alone */
}

static void test_key_is_taken_by_a_neighbour_in_the_batch(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = batch_new(f);
    struct store_unit *first = unit_new(batch), *second = unit_new(batch);
    (void)unit_hold(f, batch, first, 0, 1);
    (void)unit_key(f, batch, first, 9);
    (void)unit_hold(f, batch, second, 1, 1);
    (void)unit_key(f, batch, second, 9);
    batch_run(f, batch);
    assert_int_equal(first->result, UNIT_OK);
    assert_int_equal(second->result, UNIT_KEY_TAKEN);
    batch_free(batch);
    expect_sound(f);
}

/* Which nobody has, it says. If that is wrong the unit is told so, and its neighbours are written. */
static void test_new_key_that_is_there_after_all_is_taken(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = batch_new(f);
    struct store_unit *unit = unit_new(batch);
    (void)unit_hold(f, batch, unit, 0, 1);
    unit_key(f, batch, unit, 7)->is_new = true;
    unit_key(f, batch, unit_new(batch), 8)->is_new = true;
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
    assert_true(lookup_key_run(f, 7, f->now_ms).found);
    assert_true(lookup_key_run(f, 8, f->now_ms).found);
    batch = batch_new(f);
    struct store_unit *again = unit_new(batch), *other = unit_new(batch), *missing = unit_new(batch);
    (void)unit_hold(f, batch, again, 1, 1);
    unit_key(f, batch, again, 7)->is_new = true;
    (void)unit_hold(f, batch, other, 2, 1);
    unit_key(f, batch, other, 9)->is_new = true;
    (void)unit_hold(f, batch, missing, 0, 1); /* which is held by now */
    unit_key(f, batch, missing, 10)->is_new = true;
    batch_run(f, batch);
    assert_int_equal(batch->outcome, STORE_COMMITTED);
    assert_int_equal(again->result, UNIT_KEY_TAKEN);
    assert_int_equal(other->result, UNIT_OK);
    assert_int_equal(missing->result, UNIT_MISSED);
    batch_free(batch);
    assert_true(lookup_key_run(f, 9, f->now_ms).found);
    assert_false(lookup_key_run(f, 10, f->now_ms).found);
    assert_int_equal(hold_seat(f, 1, 1).state, HOLD_ACTIVE); /* nobody took it */
}

static void test_unit_that_misses_leaves_its_key_free(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = batch_new(f);
    struct store_unit *unit = unit_new(batch);
    (void)unit_hold(f, batch, unit, 0, 9);
    (void)unit_key(f, batch, unit, 3);
    assert_int_equal(batch_commit(f, batch), UNIT_MISSED);
    assert_false(lookup_key_run(f, 3, f->now_ms).found);
}

static void test_key_older_than_a_day_is_absent_and_replaced(void **state)
{
    struct fixture *f = *state;
    int64_t day_ms = (int64_t)IDEMPOTENCY_HOURS * 3600 * 1000;
    struct store_batch *batch = batch_new(f);
    unit_key(f, batch, unit_new(batch), 1)->created_ms = f->now_ms - day_ms;
    unit_key(f, batch, unit_new(batch), 2)->created_ms = f->now_ms - day_ms + 1;
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
    assert_false(lookup_key_run(f, 1, f->now_ms).found);
    assert_true(lookup_key_run(f, 2, f->now_ms).found);
    batch = batch_new(f);
    (void)unit_key(f, batch, unit_new(batch), 1);
    struct store_unit *young = unit_new(batch);
    (void)unit_key(f, batch, young, 2);
    batch_run(f, batch);
    assert_int_equal(unit_at(batch, 0)->result, UNIT_OK);
    assert_int_equal(young->result, UNIT_KEY_TAKEN);
    batch_free(batch);
    assert_true(lookup_key_run(f, 1, f->now_ms).found);
}

static void test_key_of_another_organization_is_not_taken(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = batch_new(f);
    (void)unit_key(f, batch, unit_new(batch), 4);
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
    fixture_new_tenant(f);
    assert_false(lookup_key_run(f, 4, f->now_ms).found);
    batch = batch_new(f);
    (void)unit_key(f, batch, unit_new(batch), 4);
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
}

/* Two active holds of one seat: what the unique index is there for. */
static void unit_bad(struct fixture *f, struct store_batch *batch, struct store_unit *unit, int32_t held_seat,
                     int32_t seat)
{
    struct hold_row *row = unit_hold(f, batch, unit, seat, 1);
    row->seat_id = f->seat_ids[held_seat];
}

static void test_bad_unit_is_left_out_alone(void **state)
{
    struct fixture *f = *state;
    (void)hold_seat(f, 0, 1);
    struct store_batch *batch = batch_new(f);
    struct store_unit *units[5];
    for (int i = 0; i < 5; i++)
        units[i] = unit_new(batch);
    (void)unit_hold(f, batch, units[0], 1, 1);
    unit_bad(f, batch, units[1], 0, 2);
    (void)unit_hold(f, batch, units[2], 0, 1);
    unit_bad(f, batch, units[3], 0, 3);
    (void)unit_hold(f, batch, units[4], 2, 1); /* the seat a bad unit had wanted */
    batch_run(f, batch);
    assert_int_equal(batch->outcome, STORE_COMMITTED);
    assert_int_equal(units[0]->result, UNIT_OK);
    assert_int_equal(units[1]->result, UNIT_BAD);
    assert_int_equal(units[2]->result, UNIT_MISSED);
    assert_int_equal(units[3]->result, UNIT_BAD);
    assert_int_equal(units[4]->result, UNIT_OK);
    batch_free(batch);
    expect_sound(f);
}

/* With the commands that name their holds this is how one that came again is found. */
static void test_hold_whose_id_is_there_is_refused_alone(void **state)
{
    struct fixture *f = *state;
    struct hold_row first = hold_seat(f, 0, 1);
    struct store_batch *batch = batch_new(f);
    struct store_unit *again = unit_new(batch), *other = unit_new(batch);
    struct hold_row *row = unit_hold(f, batch, again, 1, 1);
    again->seats->row.hold_id = row->id = first.id;
    (void)unit_hold(f, batch, other, 2, 1);
    batch_run(f, batch);
    assert_int_equal(again->result, UNIT_BAD);
    assert_int_equal(other->result, UNIT_OK);
    batch_free(batch);
    expect_sound(f);
}

static void test_batch_of_bad_units_only_is_committed_empty(void **state)
{
    struct fixture *f = *state;
    (void)hold_seat(f, 0, 1);
    struct store_batch *batch = batch_new(f);
    for (int i = 1; i < 30; i++)
        unit_bad(f, batch, unit_new(batch), 0, i);
    batch_run(f, batch);
    assert_int_equal(batch->outcome, STORE_COMMITTED);
    LIST_FOR_EACH(node, &batch->units) {
        assert_int_equal(CONTAINER_OF(node, struct store_unit, node)->result, UNIT_BAD);
    }
    batch_free(batch);
    expect_sound(f);
}

static void test_hold_ends_once(void **state)
{
    struct fixture *f = *state;
    struct hold_row hold = hold_seat(f, 0, 1);
    struct store_batch *batch = batch_new(f);
    unit_end(f, batch, unit_new(batch), &hold, 0, 2, HOLD_EXPIRED, END_TTL_EXPIRED);
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
    batch = batch_new(f);
    struct store_unit *unit = unit_new(batch);
    unit_end(f, batch, unit, &hold, 0, 3, HOLD_CANCELLED, END_USER_CANCELLED);
    unit->seats = NULL;
    assert_int_equal(batch_commit(f, batch), UNIT_BAD);
    struct store_lookup lookup = lookup_run(f, LOOKUP_HOLD, &hold.id);
    assert_int_equal(lookup.holds[0].state, HOLD_EXPIRED);
    assert_int_equal(lookup.holds[0].reason, END_TTL_EXPIRED);
    assert_int_equal(lookup.holds[0].ended_ms, f->now_ms + 12000);
    expect_sound(f);
}

static void test_unit_may_end_a_hold_and_make_another_on_the_seat(void **state)
{
    struct fixture *f = *state;
    struct hold_row old = hold_seat(f, 0, 1);
    struct store_batch *batch = batch_new(f);
    struct store_unit *unit = unit_new(batch);
    unit_end(f, batch, unit, &old, 0, 2, HOLD_EXPIRED, END_TTL_EXPIRED);
    unit->seats = NULL;
    (void)unit_hold(f, batch, unit, 0, 2);
    unit->seats->before = SEAT_HELD;
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
    expect_sound(f);
}

static void test_full_batch_is_written_whole(void **state)
{
    struct fixture *f = *state;
    for (int round = 0; round < 3; round++) { /* each seat held and released six times */
        struct store_batch *batch = batch_new(f);
        struct hold_row last[FIXTURE_SEAT_COUNT];
        int32_t versions[FIXTURE_SEAT_COUNT];
        for (int i = 0; i < FIXTURE_SEAT_COUNT; i++)
            versions[i] = 1 + round * 12;
        for (int i = 0; i < TURN_COMMAND_COUNT_MAX - 32; i++) {
            int seat = i % FIXTURE_SEAT_COUNT;
            struct store_unit *unit = unit_new(batch);
            if (versions[seat] % 2 == 1)
                last[seat] = *unit_hold(f, batch, unit, seat, versions[seat]);
            else
                unit_end(f, batch, unit, &last[seat], seat, versions[seat], HOLD_CANCELLED,
                         END_USER_CANCELLED);
            versions[seat]++;
        }
        batch_run(f, batch);
        assert_int_equal(batch->outcome, STORE_COMMITTED);
        LIST_FOR_EACH(node, &batch->units) {
            assert_int_equal(CONTAINER_OF(node, struct store_unit, node)->result, UNIT_OK);
        }
        assert_true(batch->commit_us > 0);
        batch_free(batch);
    }
    expect_sound(f);
}

struct order {
    int next;
    bool done;
};

static void order_on_done(struct store_batch *batch)
{
    struct order *order = batch->context;
    assert_int_equal(batch->purge_before_ms, -1 - order->next); /* their number, where it does no harm */
    order->next++;
    order->done = order->next == 50;
}

static void test_batches_are_finished_in_the_order_they_were_submitted(void **state)
{
    struct fixture *f = *state;
    struct order order = {.next = 0};
    struct store_batch *batches[50];
    for (int i = 0; i < 50; i++) {
        batches[i] = batch_new(f);
        batches[i]->on_done = order_on_done;
        batches[i]->context = &order;
        batches[i]->purge_before_ms = -1 - i;
        struct store_unit *unit = unit_new(batches[i]);
        (void)unit_seat(f, batches[i], unit, 0, i + 1, i % 2 == 0 ? SEAT_AVAILABLE : SEAT_BLOCKED,
                        i % 2 == 0 ? SEAT_BLOCKED : SEAT_AVAILABLE);
        assert_int_equal(store_submit(f->store, batches[i]), ERR_OK);
    }
    assert_true(fixture_wait(f, &order.done));
    for (int i = 0; i < 50; i++) {
        assert_int_equal(unit_at(batches[i], 0)->result, UNIT_OK); /* each saw the one before */
        batch_free(batches[i]);
    }
    expect_sound(f);
}

static void test_callbacks_run_in_poll_only(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = batch_new(f);
    (void)unit_hold(f, batch, unit_new(batch), 0, 1);
    assert_int_equal(store_submit(f->store, batch), ERR_OK);
    bool done = false;
    while (!done) { /* the lookup thread sees the commit before this thread polls */
        struct store_query query = {.kind = QUERY_HOLD_COUNT, .event_id = f->event_id};
        query_run(f, &query);
        done = query_has(&query, "\"count\":1");
        buf_deinit(&query.rows);
    }
    assert_false(*(bool *)batch->context);
    assert_true(fixture_wait(f, batch->context));
    batch_free(batch);
}

static void test_same_batch_id_is_never_written_twice(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = batch_new(f);
    struct uuid id = batch->id;
    (void)unit_hold(f, batch, unit_new(batch), 0, 1);
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
    batch = batch_new(f);
    batch->id = id;
    struct uuid hold = unit_hold(f, batch, unit_new(batch), 1, 1)->id;
    batch_run(f, batch);
    assert_int_equal(batch->outcome, STORE_FAILED);
    assert_int_equal(batch->err, ERR_INTERNAL);
    batch_free(batch);
    assert_false(lookup_run(f, LOOKUP_HOLD, &hold).found);
}

static void test_resolve_knows_a_committed_batch(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = batch_new(f);
    (void)unit_hold(f, batch, unit_new(batch), 0, 1);
    batch_run(f, batch);
    batch->outcome = STORE_UNKNOWN;
    *(bool *)batch->context = false;
    assert_int_equal(store_resolve(f->store, batch), ERR_OK);
    assert_true(fixture_wait(f, batch->context));
    assert_int_equal(batch->outcome, STORE_COMMITTED);
    batch_free(batch);
}

static void test_resolve_sees_to_it_that_a_lost_batch_cannot_commit(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = batch_new(f);
    (void)unit_hold(f, batch, unit_new(batch), 0, 1);
    batch->outcome = STORE_UNKNOWN;
    assert_int_equal(store_resolve(f->store, batch), ERR_OK);
    assert_true(fixture_wait(f, batch->context));
    assert_int_equal(batch->outcome, STORE_FAILED);
    batch_run(f, batch); /* it comes late after all */
    assert_int_equal(batch->outcome, STORE_FAILED);
    batch_free(batch);
    assert_int_equal(hold_seat(f, 0, 1).state, HOLD_ACTIVE);
}

static void test_close_finishes_what_was_submitted(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batches[20];
    for (int i = 0; i < 20; i++) {
        batches[i] = batch_new(f);
        (void)unit_hold(f, batches[i], unit_new(batches[i]), i, 1);
        assert_int_equal(store_submit(f->store, batches[i]), ERR_OK);
    }
    fixture_reopen(f);
    for (int i = 0; i < 20; i++) {
        assert_true(*(bool *)batches[i]->context);
        assert_int_equal(batches[i]->outcome, STORE_COMMITTED);
        batch_free(batches[i]);
    }
    struct store_query query = {.kind = QUERY_HOLD_COUNT, .event_id = f->event_id};
    query_run(f, &query);
    assert_true(query_has(&query, "\"count\":20"));
    buf_deinit(&query.rows);
}

static void test_layout_can_be_replaced_and_its_seats_written_in_the_same_batch(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = batch_new(f);
    struct store_unit *unit = unit_new(batch);
    struct block_row block = {.org_id = f->org_id,
                              .event_id = f->event_id,
                              .id = fixture_id(f),
                              .section = "ZZZ",
                              .subsection = 1,
                              .name = "New",
                              .capacity = 2,
                              .price_cents = 1};
    struct layout_seat seats[3];
    for (int i = 0; i < 3; i++) {
        f->seat_ids[i] = fixture_id(f);
        seats[i] = (struct layout_seat){
            .id = f->seat_ids[i], .row = 1, .seat = i + 1, .row_label = "1", .seat_label = "1"};
    }
    struct layout_write layout = {.org_id = f->org_id,
                                  .event_id = f->event_id,
                                  .document = "{}",
                                  .blocks = &block,
                                  .block_count = 1,
                                  .seats = seats,
                                  .seat_count = 3};
    unit->layouts = &layout;
    f->block_ids[0] = block.id;
    struct store_unit *holder = unit_new(batch);
    (void)unit_hold(f, batch, holder, 2, 1);
    batch_run(f, batch);
    assert_int_equal(unit->result, UNIT_OK);
    assert_int_equal(holder->result, UNIT_OK);
    batch_free(batch);
    expect_sound(f);
}

static void test_bad_layout_leaves_the_old_one(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = batch_new(f);
    struct store_unit *unit = unit_new(batch);
    struct block_row block = {.org_id = f->org_id,
                              .event_id = f->event_id,
                              .id = fixture_id(f),
                              .section = "B",
                              .subsection = 1,
                              .name = "New",
                              .capacity = 2};
    struct layout_seat seats[2];
    for (int i = 0; i < 2; i++) /* the same place twice */
        seats[i] = (struct layout_seat){
            .id = fixture_id(f), .row = 1, .seat = 1, .row_label = "1", .seat_label = "1"};
    struct layout_write layout = {.org_id = f->org_id,
                                  .event_id = f->event_id,
                                  .document = "{}",
                                  .blocks = &block,
                                  .block_count = 1,
                                  .seats = seats,
                                  .seat_count = 2};
    unit->layouts = &layout;
    struct store_unit *holder = unit_new(batch);
    (void)unit_hold(f, batch, holder, 30, 1);
    batch_run(f, batch);
    assert_int_equal(unit->result, UNIT_BAD);
    assert_int_equal(holder->result, UNIT_OK);
    batch_free(batch);
    expect_sound(f);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_hold_at_expected_version_is_written),
        TEST(test_many_new_events_in_one_batch_are_all_written),
        TEST(test_miss_brings_the_current_row_and_leaves_neighbours_alone),
        TEST(test_unit_of_several_seats_is_all_or_none),
        TEST(test_second_unit_of_a_batch_sees_the_first),
        TEST(test_seat_of_another_organization_is_never_written),
        TEST(test_seat_that_does_not_exist_misses),
        TEST(test_key_is_taken_by_an_earlier_batch),
        TEST(test_key_is_taken_by_a_neighbour_in_the_batch),
        TEST(test_new_key_that_is_there_after_all_is_taken),
        TEST(test_unit_that_misses_leaves_its_key_free),
        TEST(test_key_older_than_a_day_is_absent_and_replaced),
        TEST(test_key_of_another_organization_is_not_taken),
        TEST(test_bad_unit_is_left_out_alone),
        TEST(test_hold_whose_id_is_there_is_refused_alone),
        TEST(test_batch_of_bad_units_only_is_committed_empty),
        TEST(test_hold_ends_once),
        TEST(test_unit_may_end_a_hold_and_make_another_on_the_seat),
        TEST(test_full_batch_is_written_whole),
        TEST(test_batches_are_finished_in_the_order_they_were_submitted),
        TEST(test_callbacks_run_in_poll_only),
        TEST(test_same_batch_id_is_never_written_twice),
        TEST(test_resolve_knows_a_committed_batch),
        TEST(test_resolve_sees_to_it_that_a_lost_batch_cannot_commit),
        TEST(test_close_finishes_what_was_submitted),
        TEST(test_layout_can_be_replaced_and_its_seats_written_in_the_same_batch),
        TEST(test_bad_layout_leaves_the_old_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
