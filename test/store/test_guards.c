/* SPDX-License-Identifier: Apache-2.0
 * What a unit relies on: versions of checkouts, events and deliveries, checks of
 * events, claims on room in a block, layouts nobody held a seat of. A unit that
 * misses leaves nothing behind, and its neighbours go on. */
#include "fixture.h"

#include <stdio.h>
#include <string.h>

static void expect_sound(struct fixture *f)
{
    char claim[256];
    if (verify_run(f, claim) != 0)
        fail_msg("broken: %s", claim);
}

static struct checkout_row checkout_of(struct fixture *f)
{
    return (struct checkout_row){.org_id = f->org_id,
                                 .event_id = f->event_id,
                                 .id = fixture_id(f),
                                 .user_id = f->user_id,
                                 .state = CHECKOUT_PENDING_PAYMENT,
                                 .currency = "EUR",
                                 .created_ms = f->now_ms,
                                 .expires_ms = f->now_ms + 300000,
                                 .version = 1};
}

static struct event_write *unit_event(struct store_batch *batch, struct store_unit *unit,
                                      struct event_row row, int32_t version)
{
    struct event_write *write = ARENA_NEW(&batch->arena, struct event_write);
    write->row = row;
    write->row.version = version;
    unit->events = write;
    return write;
}

static struct event_check *unit_check(struct fixture *f, struct store_batch *batch, struct store_unit *unit,
                                      int32_t version)
{
    struct event_check *check = ARENA_NEW(&batch->arena, struct event_check);
    *check = (struct event_check){.org_id = f->org_id, .event_id = f->event_id, .version = version};
    check->next = unit->checks;
    unit->checks = check;
    return check;
}

static struct block_claim *unit_claim(struct fixture *f, struct store_batch *batch, struct store_unit *unit,
                                      int block, int32_t count)
{
    struct block_claim *claim = ARENA_NEW(&batch->arena, struct block_claim);
    *claim = (struct block_claim){
        .org_id = f->org_id, .event_id = f->event_id, .block_id = f->block_ids[block], .count = count};
    claim->next = unit->claims;
    unit->claims = claim;
    return claim;
}

static void unit_capacity(struct fixture *f, struct store_batch *batch, struct store_unit *unit, int block,
                          int32_t capacity)
{
    struct block_write *write = ARENA_NEW(&batch->arena, struct block_write);
    write->row = (struct block_row){.org_id = f->org_id,
                                    .event_id = f->event_id,
                                    .id = f->block_ids[block],
                                    .section = "A",
                                    .subsection = block + 1,
                                    .ordinal = block,
                                    .name = "Stalls",
                                    .capacity = capacity,
                                    .price_cents = FIXTURE_PRICE};
    unit->blocks = write;
}

static void set_capacity(struct fixture *f, int block, int32_t capacity)
{
    struct store_batch *batch = batch_new(f);
    unit_capacity(f, batch, unit_new(batch), block, capacity);
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
}

/* A unit between two neighbours that must not notice it; it also makes a hold, which must not be there if it misses. */
struct middle {
    struct store_batch *batch;
    struct store_unit *before, *unit, *after;
    struct uuid hold_id;
};

static struct middle middle_new(struct fixture *f, int32_t seat)
{
    struct middle middle = {.batch = batch_new(f)};
    middle.before = unit_new(middle.batch);
    middle.unit = unit_new(middle.batch);
    middle.after = unit_new(middle.batch);
    (void)unit_hold(f, middle.batch, middle.before, seat - 1, 1);
    middle.hold_id = unit_hold(f, middle.batch, middle.unit, seat, 1)->id;
    (void)unit_hold(f, middle.batch, middle.after, seat + 1, 1);
    return middle;
}

static void middle_run(struct fixture *f, struct middle *middle, enum unit_result expected)
{
    batch_run(f, middle->batch);
    assert_int_equal(middle->batch->outcome, STORE_COMMITTED);
    assert_int_equal(middle->before->result, UNIT_OK);
    assert_int_equal(middle->unit->result, expected);
    assert_int_equal(middle->after->result, UNIT_OK);
    assert_int_equal(lookup_run(f, LOOKUP_HOLD, &middle->hold_id).found, expected == UNIT_OK);
}

/* ---- Versions ---- */

static void test_checkout_is_compared_and_set(void **state)
{
    struct fixture *f = *state;
    struct checkout_row row = checkout_of(f);
    struct store_batch *batch = batch_new(f);
    (void)unit_checkout(batch, unit_new(batch), &row, true);
    assert_int_equal(batch_commit(f, batch), UNIT_OK);

    row.version = 2;
    row.state = CHECKOUT_PROCESSING;
    row.payment_token = "tok";
    row.payer = f->node_id;
    row.payer_until_ms = f->now_ms + 30000;
    batch = batch_new(f);
    (void)unit_checkout(batch, unit_new(batch), &row, false);
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
    struct store_lookup lookup = lookup_run(f, LOOKUP_CHECKOUT, &row.id);
    assert_int_equal(lookup.checkout.state, CHECKOUT_PROCESSING);
    assert_int_equal(lookup.checkout.version, 2);
    assert_true(uuid_equal(&lookup.checkout.payer, &f->node_id));
    assert_int_equal(lookup.checkout.payer_until_ms, f->now_ms + 30000);

    row.state = CHECKOUT_CANCELLED; /* decided on version 1 */
    struct middle middle = middle_new(f, 5);
    const struct checkout_write *write = unit_checkout(middle.batch, middle.unit, &row, false);
    middle_run(f, &middle, UNIT_MISSED);
    assert_true(write->missed);
    assert_false(middle.unit->seats->missed);
    assert_int_equal(middle.unit->seats->current.version, 1);
    batch_free(middle.batch);
    assert_int_equal(lookup_run(f, LOOKUP_CHECKOUT, &row.id).checkout.state, CHECKOUT_PROCESSING);

    row.version = 4; /* the future misses too */
    middle = middle_new(f, 9);
    (void)unit_checkout(middle.batch, middle.unit, &row, false);
    middle_run(f, &middle, UNIT_MISSED);
    batch_free(middle.batch);

    row.version = 3;
    row.payer = (struct uuid){{0}};
    row.payer_until_ms = 0;
    batch = batch_new(f);
    (void)unit_checkout(batch, unit_new(batch), &row, false);
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
    lookup = lookup_run(f, LOOKUP_CHECKOUT, &row.id);
    assert_true(uuid_is_nil(&lookup.checkout.payer));
}

static void test_checkouts_of_one_batch_see_each_other(void **state)
{
    struct fixture *f = *state;
    struct checkout_row row = checkout_of(f);
    struct store_batch *batch = batch_new(f);
    struct store_unit *made = unit_new(batch), *moved = unit_new(batch), *late = unit_new(batch);
    (void)unit_checkout(batch, made, &row, true);
    row.version = 2;
    (void)unit_checkout(batch, moved, &row, false);
    (void)unit_checkout(batch, late, &row, false);
    batch_run(f, batch);
    assert_int_equal(made->result, UNIT_OK);
    assert_int_equal(moved->result, UNIT_OK);
    assert_int_equal(late->result, UNIT_MISSED);
    batch_free(batch);
}

static void test_seat_that_misses_takes_the_checkout_with_it(void **state)
{
    struct fixture *f = *state;
    (void)hold_seat(f, 3, 1);
    struct checkout_row row = checkout_of(f);
    struct store_batch *batch = batch_new(f);
    struct store_unit *unit = unit_new(batch);
    const struct checkout_write *write = unit_checkout(batch, unit, &row, true);
    (void)unit_hold(f, batch, unit, 3, 1);
    batch_run(f, batch);
    assert_int_equal(unit->result, UNIT_MISSED);
    assert_false(write->missed);
    assert_true(unit->seats->missed);
    batch_free(batch);
    assert_false(lookup_run(f, LOOKUP_CHECKOUT, &row.id).found);
}

static void test_event_is_compared_and_set(void **state)
{
    struct fixture *f = *state;
    struct event_row row = fixture_event(f);
    row.name = "Second";
    struct store_batch *batch = batch_new(f);
    (void)unit_event(batch, unit_new(batch), row, 2);
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
    row.name = "Late";
    struct middle middle = middle_new(f, 5);
    const struct event_write *write = unit_event(middle.batch, middle.unit, row, 2);
    middle_run(f, &middle, UNIT_MISSED);
    assert_true(write->missed);
    batch_free(middle.batch);
    struct store_lookup lookup = lookup_run(f, LOOKUP_EVENT, &f->event_id);
    assert_int_equal(lookup.event.version, 2);
    assert_string_equal(lookup.event.name, "Second");
    batch = batch_new(f);
    (void)unit_event(batch, unit_new(batch), row, 3);
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
    assert_int_equal(lookup_run(f, LOOKUP_EVENT, &f->event_id).event.version, 3);
}

static void test_unit_that_misses_an_event_leaves_its_key_free(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = batch_new(f);
    struct store_unit *unit = unit_new(batch);
    (void)unit_check(f, batch, unit, 7);
    (void)unit_key(f, batch, unit, 3);
    assert_int_equal(batch_commit(f, batch), UNIT_MISSED);
    assert_false(lookup_key_run(f, 3, f->now_ms).found);
}

/* ---- Checks ---- */

static void test_event_at_the_checked_version_lets_the_unit_pass(void **state)
{
    struct fixture *f = *state;
    struct middle middle = middle_new(f, 5);
    (void)unit_check(f, middle.batch, middle.before, 1);
    const struct event_check *check = unit_check(f, middle.batch, middle.unit, 1);
    middle_run(f, &middle, UNIT_OK);
    assert_false(check->missed);
    batch_free(middle.batch);
    expect_sound(f);
}

static void test_event_at_another_version_makes_the_unit_miss(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = batch_new(f);
    (void)unit_event(batch, unit_new(batch), fixture_event(f), 2);
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
    struct middle middle = middle_new(f, 5);
    (void)unit_check(f, middle.batch, middle.before, 2);
    const struct event_check *check = unit_check(f, middle.batch, middle.unit, 1);
    middle_run(f, &middle, UNIT_MISSED);
    assert_true(check->missed);
    assert_false(middle.unit->seats->missed);
    batch_free(middle.batch);
    expect_sound(f);
}

static void test_check_of_an_event_that_is_not_there_misses(void **state)
{
    struct fixture *f = *state;
    struct middle middle = middle_new(f, 5);
    unit_check(f, middle.batch, middle.unit, 1)->event_id = fixture_id(f);
    middle_run(f, &middle, UNIT_MISSED);
    batch_free(middle.batch);
}

static void test_check_sees_an_earlier_unit_of_its_batch(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = batch_new(f);
    struct store_unit *units[4];
    for (int i = 0; i < 4; i++)
        units[i] = unit_new(batch);
    (void)unit_check(f, batch, units[0], 1);
    (void)unit_hold(f, batch, units[0], 0, 1);
    (void)unit_event(batch, units[1], fixture_event(f), 2);
    (void)unit_check(f, batch, units[2], 1);
    (void)unit_hold(f, batch, units[2], 1, 1);
    (void)unit_check(f, batch, units[3], 2);
    (void)unit_hold(f, batch, units[3], 2, 1);
    batch_run(f, batch);
    assert_int_equal(units[0]->result, UNIT_OK);
    assert_int_equal(units[1]->result, UNIT_OK);
    assert_int_equal(units[2]->result, UNIT_MISSED);
    assert_int_equal(units[3]->result, UNIT_OK);
    batch_free(batch);
    expect_sound(f);
}

/* What the store remembers of an event must not outlive the unit that wrote it. */
static void test_event_of_a_unit_that_was_refused_keeps_its_version(void **state)
{
    struct fixture *f = *state;
    (void)hold_seat(f, 0, 1);
    struct store_batch *batch = batch_new(f);
    struct store_unit *bad = unit_new(batch), *good = unit_new(batch);
    (void)unit_event(batch, bad, fixture_event(f), 2);
    unit_hold(f, batch, bad, 1, 1)->seat_id = f->seat_ids[0]; /* a second active hold of the seat */
    (void)unit_check(f, batch, good, 1);
    (void)unit_hold(f, batch, good, 2, 1);
    batch_run(f, batch);
    assert_int_equal(bad->result, UNIT_BAD);
    assert_int_equal(good->result, UNIT_OK);
    batch_free(batch);
    assert_int_equal(lookup_run(f, LOOKUP_EVENT, &f->event_id).event.version, 1);
    expect_sound(f);
}

/* ---- Claims ---- */

static enum unit_result hold_with_claim(struct fixture *f, int32_t seat)
{
    struct store_batch *batch = batch_new(f);
    struct store_unit *unit = unit_new(batch);
    (void)unit_hold(f, batch, unit, seat, 1);
    const struct block_claim *claim = unit_claim(f, batch, unit, 0, 1);
    batch_run(f, batch);
    assert_int_equal(batch->outcome, STORE_COMMITTED);
    enum unit_result result = unit->result;
    assert_int_equal(claim->missed, result == UNIT_MISSED);
    batch_free(batch);
    return result;
}

static void test_last_place_is_given_once(void **state)
{
    struct fixture *f = *state;
    set_capacity(f, 0, 2);
    assert_int_equal(hold_with_claim(f, 0), UNIT_OK);
    struct hold_row sold_later = hold_seat(f, 25, 1); /* of another block: it takes no room */
    (void)sold_later;
    assert_int_equal(hold_with_claim(f, 1), UNIT_OK);
    assert_int_equal(hold_with_claim(f, 2), UNIT_MISSED);
    struct middle middle = middle_new(f, 30);
    (void)unit_claim(f, middle.batch, middle.unit, 0, 1);
    middle_run(f, &middle, UNIT_MISSED);
    batch_free(middle.batch);
    expect_sound(f);
}

static void test_place_that_was_given_back_can_be_taken_again(void **state)
{
    struct fixture *f = *state;
    set_capacity(f, 0, 1);
    struct hold_row hold = hold_seat(f, 0, 1);
    assert_int_equal(hold_with_claim(f, 1), UNIT_MISSED);
    struct store_batch *batch = batch_new(f);
    unit_end(f, batch, unit_new(batch), &hold, 0, 2, HOLD_EXPIRED, END_TTL_EXPIRED);
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
    assert_int_equal(hold_with_claim(f, 1), UNIT_OK);
    expect_sound(f);
}

static void test_sold_seats_take_room(void **state)
{
    struct fixture *f = *state;
    (void)buy_seat(f, 0, 1);
    set_capacity(f, 0, 1);
    assert_int_equal(hold_with_claim(f, 1), UNIT_MISSED);
    expect_sound(f);
}

static void test_claims_of_one_batch_are_judged_one_after_the_other(void **state)
{
    struct fixture *f = *state;
    set_capacity(f, 0, 3);
    assert_int_equal(hold_with_claim(f, 0), UNIT_OK);
    struct store_batch *batch = batch_new(f);
    struct store_unit *units[4];
    for (int i = 0; i < 4; i++) {
        units[i] = unit_new(batch);
        (void)unit_hold(f, batch, units[i], i + 1, i == 1 ? 9 : 1); /* the second misses its seat */
        (void)unit_claim(f, batch, units[i], 0, 1);
    }
    batch_run(f, batch);
    assert_int_equal(units[0]->result, UNIT_OK);
    assert_int_equal(units[1]->result, UNIT_MISSED);
    assert_int_equal(units[2]->result, UNIT_OK); /* the place that the second did not take */
    assert_int_equal(units[3]->result, UNIT_MISSED);
    assert_true(units[3]->claims->missed);
    assert_false(units[3]->seats->missed);
    batch_free(batch);
    expect_sound(f);
}

static void test_claim_of_several_is_all_or_none(void **state)
{
    struct fixture *f = *state;
    set_capacity(f, 0, 2);
    struct store_batch *batch = batch_new(f);
    struct store_unit *three = unit_new(batch), *two = unit_new(batch);
    for (int i = 0; i < 3; i++)
        (void)unit_hold(f, batch, three, i, 1);
    (void)unit_claim(f, batch, three, 0, 3);
    for (int i = 3; i < 5; i++)
        (void)unit_hold(f, batch, two, i, 1);
    (void)unit_claim(f, batch, two, 0, 2);
    batch_run(f, batch);
    assert_int_equal(three->result, UNIT_MISSED);
    assert_int_equal(two->result, UNIT_OK);
    batch_free(batch);
    expect_sound(f);
}

static void test_claim_goes_by_the_capacity_its_unit_writes(void **state)
{
    struct fixture *f = *state;
    set_capacity(f, 0, 1);
    assert_int_equal(hold_with_claim(f, 0), UNIT_OK);
    struct store_batch *batch = batch_new(f);
    struct store_unit *more = unit_new(batch), *less = unit_new(batch);
    unit_capacity(f, batch, more, 0, 5);
    (void)unit_claim(f, batch, more, 0, 4);
    unit_capacity(f, batch, less, 0, 0);
    (void)unit_claim(f, batch, less, 0, 0); /* nothing is taken, but what is taken must fit */
    batch_run(f, batch);
    assert_int_equal(more->result, UNIT_OK);
    assert_int_equal(less->result, UNIT_MISSED);
    batch_free(batch);
    assert_int_equal(lookup_run(f, LOOKUP_EVENT, &f->event_id).blocks[0].capacity, 5);
    expect_sound(f);
}

static void test_claim_on_a_block_that_is_not_there_misses(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = batch_new(f);
    struct store_unit *unit = unit_new(batch);
    unit_claim(f, batch, unit, 0, 1)->block_id = fixture_id(f);
    assert_int_equal(batch_commit(f, batch), UNIT_MISSED);
}

/* ---- Layouts ---- */

static struct layout_write *unit_layout(struct fixture *f, struct store_batch *batch, struct store_unit *unit)
{
    struct block_row *block = ARENA_NEW(&batch->arena, struct block_row);
    *block = (struct block_row){.org_id = f->org_id,
                                .event_id = f->event_id,
                                .id = fixture_id(f),
                                .section = "N",
                                .subsection = 1,
                                .name = "New",
                                .capacity = 1};
    struct layout_seat *seat = ARENA_NEW(&batch->arena, struct layout_seat);
    *seat =
        (struct layout_seat){.id = fixture_id(f), .row = 1, .seat = 1, .row_label = "1", .seat_label = "1"};
    struct layout_write *layout = ARENA_NEW(&batch->arena, struct layout_write);
    *layout = (struct layout_write){.org_id = f->org_id,
                                    .event_id = f->event_id,
                                    .document = "{\"name\":\"New\"}",
                                    .blocks = block,
                                    .block_count = 1,
                                    .seats = seat,
                                    .seat_count = 1};
    unit->layouts = layout;
    return layout;
}

static void test_layout_is_replaced_until_a_seat_was_held(void **state)
{
    struct fixture *f = *state;
    struct uuid event_id = f->event_id;
    struct hold_row hold = hold_seat(f, 0, 1);
    struct store_batch *batch = batch_new(f);
    unit_end(f, batch, unit_new(batch), &hold, 0, 2, HOLD_CANCELLED, END_USER_CANCELLED);
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
    batch = batch_new(f);
    struct store_unit *late = unit_new(batch), *after = unit_new(batch);
    const struct layout_write *layout = unit_layout(f, batch, late);
    (void)unit_hold(f, batch, after, 5, 1);
    batch_run(f, batch);
    assert_int_equal(late->result, UNIT_MISSED); /* a hold that has ended counts */
    assert_true(layout->missed);
    assert_int_equal(after->result, UNIT_OK);
    batch_free(batch);
    struct store_lookup lookup = lookup_run(f, LOOKUP_EVENT, &event_id);
    assert_int_equal(lookup.seat_count, FIXTURE_SEAT_COUNT);
    assert_string_equal(lookup.document, "{\"name\":\"House\"}");
    expect_sound(f);

    fixture_new_tenant(f); /* an event of which no seat was ever held */
    batch = batch_new(f);
    (void)unit_layout(f, batch, unit_new(batch));
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
    lookup = lookup_run(f, LOOKUP_EVENT, &f->event_id);
    assert_int_equal(lookup.seat_count, 1);
    expect_sound(f);
}

static void test_layout_after_a_hold_of_its_batch_misses(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = batch_new(f);
    struct store_unit *holder = unit_new(batch), *unit = unit_new(batch);
    (void)unit_hold(f, batch, holder, 0, 1);
    (void)unit_layout(f, batch, unit);
    batch_run(f, batch);
    assert_int_equal(holder->result, UNIT_OK);
    assert_int_equal(unit->result, UNIT_MISSED);
    batch_free(batch);
    expect_sound(f);
}

/* ---- Users ---- */

static void write_user(struct fixture *f, bool seen, bool disabled)
{
    struct store_batch *batch = batch_new(f);
    struct user_write *write = ARENA_NEW(&batch->arena, struct user_write);
    write->seen = seen;
    write->row = (struct user_row){
        .org_id = f->org_id, .id = f->user_id, .disabled = disabled, .created_ms = f->now_ms + 1000};
    unit_new(batch)->users = write;
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
}

static void test_user_who_is_seen_stays_as_they_are(void **state)
{
    struct fixture *f = *state;
    write_user(f, true, false);
    assert_int_equal(lookup_run(f, LOOKUP_USER, &f->user_id).user.created_ms, f->now_ms);
    write_user(f, false, true);
    assert_true(lookup_run(f, LOOKUP_USER, &f->user_id).user.disabled);
    write_user(f, true, false);
    assert_true(lookup_run(f, LOOKUP_USER, &f->user_id).user.disabled);
    write_user(f, false, false);
    assert_false(lookup_run(f, LOOKUP_USER, &f->user_id).user.disabled);
    f->user_id = fixture_id(f);
    assert_false(lookup_run(f, LOOKUP_USER, &f->user_id).found);
    write_user(f, true, false);
    assert_true(lookup_run(f, LOOKUP_USER, &f->user_id).found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER_EVERY_STORE(test_checkout_is_compared_and_set),
        OVER_EVERY_STORE(test_checkouts_of_one_batch_see_each_other),
        OVER_EVERY_STORE(test_seat_that_misses_takes_the_checkout_with_it),
        OVER_EVERY_STORE(test_event_is_compared_and_set),
        OVER_EVERY_STORE(test_unit_that_misses_an_event_leaves_its_key_free),
        OVER_EVERY_STORE(test_event_at_the_checked_version_lets_the_unit_pass),
        OVER_EVERY_STORE(test_event_at_another_version_makes_the_unit_miss),
        OVER_EVERY_STORE(test_check_of_an_event_that_is_not_there_misses),
        OVER_EVERY_STORE(test_check_sees_an_earlier_unit_of_its_batch),
        cmocka_unit_test_setup_teardown(test_event_of_a_unit_that_was_refused_keeps_its_version,
                                        fixture_setup, fixture_teardown),
        OVER_EVERY_STORE(test_last_place_is_given_once),
        OVER_EVERY_STORE(test_place_that_was_given_back_can_be_taken_again),
        OVER_EVERY_STORE(test_sold_seats_take_room),
        OVER_EVERY_STORE(test_claims_of_one_batch_are_judged_one_after_the_other),
        OVER_EVERY_STORE(test_claim_of_several_is_all_or_none),
        OVER_EVERY_STORE(test_claim_goes_by_the_capacity_its_unit_writes),
        OVER_EVERY_STORE(test_claim_on_a_block_that_is_not_there_misses),
        OVER_EVERY_STORE(test_layout_is_replaced_until_a_seat_was_held),
        OVER_EVERY_STORE(test_layout_after_a_hold_of_its_batch_misses),
        OVER_EVERY_STORE(test_user_who_is_seen_stays_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
