/* SPDX-License-Identifier: Apache-2.0
 * Who delivers the change feed and how far they got, what was given up, and
 * what a node looks up after another one changed it. */
#include "fixture.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

/* ---- Deliveries ---- */

static enum unit_result deliver(struct fixture *f, const char *name, int32_t version, int64_t id)
{
    struct store_batch *batch = batch_new(f);
    struct store_unit *unit = unit_new(batch);
    struct delivery_write *write = ARENA_NEW(&batch->arena, struct delivery_write);
    write->row = (struct delivery_row){.name = name,
                                       .position = {.from = INT64_MAX / 2, .to = INT64_MAX / 2 + 7, .id = id},
                                       .node = f->node_id,
                                       .lease_until_ms = f->now_ms + 10000,
                                       .version = version};
    unit->deliveries = write;
    batch_run(f, batch);
    assert_int_equal(batch->outcome, STORE_COMMITTED);
    enum unit_result result = unit->result;
    assert_int_equal(write->missed, result == UNIT_MISSED);
    batch_free(batch);
    return result;
}

static void test_delivery_is_made_once_and_compared_and_set(void **state)
{
    struct fixture *f = *state;
    const char *name = fixture_name(f);
    assert_false(lookup_delivery_run(f, name).found);
    assert_int_equal(deliver(f, name, 2, 0), UNIT_MISSED); /* there is none to change */
    assert_int_equal(deliver(f, name, 1, 1), UNIT_OK);
    struct uuid winner = f->node_id;
    f->node_id = fixture_id(f);
    assert_int_equal(deliver(f, name, 1, 2), UNIT_MISSED); /* another node made it */
    struct store_lookup lookup = lookup_delivery_run(f, name);
    assert_true(lookup.found);
    assert_string_equal(lookup.delivery.name, name);
    assert_true(uuid_equal(&lookup.delivery.node, &winner));
    assert_true(lookup.delivery.position.from == INT64_MAX / 2);
    assert_true(lookup.delivery.position.to == INT64_MAX / 2 + 7);
    assert_true(lookup.delivery.position.id == 1);
    assert_int_equal(lookup.delivery.lease_until_ms, f->now_ms + 10000);
    assert_int_equal(lookup.delivery.version, 1);

    assert_int_equal(deliver(f, name, 2, INT64_MAX), UNIT_OK);
    assert_int_equal(deliver(f, name, 2, 4), UNIT_MISSED);
    lookup = lookup_delivery_run(f, name);
    assert_true(lookup.delivery.position.id == INT64_MAX);
    assert_int_equal(lookup.delivery.version, 2);
    assert_true(uuid_equal(&lookup.delivery.node, &f->node_id));
}

static void test_two_deliveries_of_a_name_in_one_batch_make_one(void **state)
{
    struct fixture *f = *state;
    const char *name = fixture_name(f);
    struct store_batch *batch = batch_new(f);
    struct store_unit *units[3];
    for (int i = 0; i < 3; i++) {
        units[i] = unit_new(batch);
        struct delivery_write *write = ARENA_NEW(&batch->arena, struct delivery_write);
        write->row = (struct delivery_row){.name = name,
                                           .position = {.from = INT64_MAX / 2, .id = INT64_MAX / 2},
                                           .node = fixture_id(f),
                                           .lease_until_ms = i,
                                           .version = i == 2 ? 2 : 1};
        units[i]->deliveries = write;
    }
    batch_run(f, batch);
    assert_int_equal(units[0]->result, UNIT_OK);
    assert_int_equal(units[1]->result, UNIT_MISSED);
    assert_int_equal(units[2]->result, UNIT_OK);
    batch_free(batch);
    assert_int_equal(lookup_delivery_run(f, name).delivery.lease_until_ms, 2);
}

/* ---- Dead letters ---- */

static void bury(struct fixture *f, const struct uuid *id, const char *reason)
{
    struct store_batch *batch = batch_new(f);
    struct dead_letter_write *write = ARENA_NEW(&batch->arena, struct dead_letter_write);
    write->row = (struct dead_letter_row){.org_id = f->org_id,
                                          .id = *id,
                                          .delivery = "webhook",
                                          .type = "SeatReserved",
                                          .body = "{\"seat\":7}",
                                          .reason = reason,
                                          .try_count = 8,
                                          .created_ms = f->now_ms};
    unit_new(batch)->dead_letters = write;
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
}

static void test_dead_letters_are_listed_newest_first(void **state)
{
    struct fixture *f = *state;
    struct uuid first = fixture_id(f), second = fixture_id(f);
    char expected[512], text[UUID_TEXT_SIZE], org[UUID_TEXT_SIZE], at[TIME_TEXT_SIZE];
    bury(f, &first, "refused");
    bury(f, &second, "timed out");
    bury(f, &second, "again"); /* there already: left alone */
    struct store_query query = {.kind = QUERY_DEAD_LETTERS, .limit = 1};
    query_run(f, &query);
    uuid_format(&second, text);
    uuid_format(&f->org_id, org);
    time_format(f->now_ms, at);
    snprintf(expected, sizeof(expected),
             "[{\"id\":\"%s\",\"organization_id\":\"%s\",\"delivery\":\"webhook\",\"type\":\"SeatReserved\","
             "\"reason\":\"timed out\",\"tries\":8,\"created_at\":\"%s\",\"event\":{\"seat\":7}}]",
             text, org, at);
    assert_string_equal(buf_text(&query.rows), expected);
    assert_true(query.next != 0);
    buf_deinit(&query.rows);
    struct store_query rest = {.kind = QUERY_DEAD_LETTERS, .after = query.next};
    query_run(f, &rest);
    uuid_format(&first, text);
    assert_int_equal(rest.row_count, 1);
    assert_true(query_has(&rest, text));
    buf_deinit(&rest.rows);
}

static void test_dead_letters_are_an_organizations_own_unless_all_are_asked_for(void **state)
{
    struct fixture *f = *state;
    struct uuid mine = fixture_id(f), theirs = fixture_id(f);
    char mine_text[UUID_TEXT_SIZE], theirs_text[UUID_TEXT_SIZE];
    uuid_format(&mine, mine_text);
    uuid_format(&theirs, theirs_text);
    bury(f, &theirs, "refused");
    fixture_new_tenant(f);
    bury(f, &mine, "refused");
    struct store_query query = {.kind = QUERY_DEAD_LETTERS};
    query_run(f, &query);
    assert_int_equal(query.row_count, 1);
    assert_true(query_has(&query, mine_text));
    buf_deinit(&query.rows);
    struct store_query all = {.kind = QUERY_DEAD_LETTERS};
    query_run_all(f, &all);
    assert_true(query_has(&all, mine_text));
    assert_true(query_has(&all, theirs_text));
    buf_deinit(&all.rows);
}

/* ---- Lookups ---- */

static void test_event_comes_with_its_layout_as_admins_left_it(void **state)
{
    struct fixture *f = *state;
    (void)hold_seat(f, 3, 1);
    (void)hold_seat(f, 4, 1);
    struct store_batch *batch = batch_new(f);
    struct store_unit *unit = unit_new(batch);
    struct block_write *block = ARENA_NEW(&batch->arena, struct block_write);
    block->row = (struct block_row){.org_id = f->org_id,
                                    .event_id = f->event_id,
                                    .id = f->block_ids[1],
                                    .section = "A",
                                    .subsection = 2,
                                    .ordinal = 1,
                                    .name = "Boxes",
                                    .capacity = 7,
                                    .price_cents = 9900};
    unit->blocks = block;
    struct event_write *event = ARENA_NEW(&batch->arena, struct event_write);
    event->row = fixture_event(f);
    event->row.version = 2;
    event->row.sale_start_ms = f->now_ms;
    event->row.policy.max_seats_per_user = 3;
    unit->events = event;
    assert_int_equal(batch_commit(f, batch), UNIT_OK);

    struct policy policy = policy_default();
    policy.max_seats_per_user = 3;
    struct store_lookup lookup = lookup_run(f, LOOKUP_EVENT, &f->event_id);
    assert_true(lookup.found);
    assert_true(uuid_equal(&lookup.event.id, &f->event_id));
    assert_true(uuid_equal(&lookup.event.org_id, &f->org_id));
    assert_string_equal(lookup.event.name, "Premiere");
    assert_string_equal(lookup.event.currency, "EUR");
    assert_int_equal(lookup.event.state, EVENT_LIVE);
    assert_int_equal(lookup.event.version, 2);
    assert_int_equal(lookup.event.sale_start_ms, f->now_ms);
    assert_true(lookup.event.sale_end_ms == TIME_MAX);
    assert_memory_equal(&lookup.event.policy, &policy, sizeof(policy));
    assert_string_equal(lookup.document, "{\"name\":\"House\"}");
    assert_int_equal(lookup.holds_ever, 2);
    assert_int_equal(lookup.block_count, FIXTURE_BLOCK_COUNT);
    assert_string_equal(lookup.blocks[0].name, "Stalls");
    assert_true(uuid_equal(&lookup.blocks[1].id, &f->block_ids[1]));
    assert_string_equal(lookup.blocks[1].name, "Boxes");
    assert_string_equal(lookup.blocks[1].section, "A");
    assert_int_equal(lookup.blocks[1].subsection, 2);
    assert_int_equal(lookup.blocks[1].ordinal, 1);
    assert_int_equal(lookup.blocks[1].capacity, 7);
    assert_int_equal(lookup.blocks[1].price_cents, 9900);
    assert_int_equal(lookup.seat_count, FIXTURE_SEAT_COUNT);
    for (int i = 0; i < FIXTURE_SEAT_COUNT; i++)
        assert_true(uuid_equal(&lookup.seat_ids[i], &f->seat_ids[i]));
}

static void test_event_without_a_layout_has_no_document(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = batch_new(f);
    struct event_write *event = ARENA_NEW(&batch->arena, struct event_write);
    event->insert = true;
    event->row = fixture_event(f);
    struct uuid id = event->row.id = fixture_id(f);
    unit_new(batch)->events = event;
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
    struct store_lookup lookup = lookup_run(f, LOOKUP_EVENT, &id);
    assert_true(lookup.found);
    assert_null(lookup.document);
    assert_int_equal(lookup.block_count, 0);
    assert_int_equal(lookup.seat_count, 0);
    assert_int_equal(lookup.holds_ever, 0);
}

static void test_user_is_looked_up(void **state)
{
    struct fixture *f = *state;
    struct store_lookup user = lookup_run(f, LOOKUP_USER, &f->user_id);
    assert_true(user.found);
    assert_true(uuid_equal(&user.user.id, &f->user_id));
    assert_true(uuid_equal(&user.user.org_id, &f->org_id));
    assert_false(user.user.disabled);
    assert_int_equal(user.user.created_ms, f->now_ms);
}

static void test_lookups_find_nothing_of_another_organization(void **state)
{
    struct fixture *f = *state;
    struct uuid event = f->event_id, user = f->user_id, nobody = fixture_id(f);
    fixture_new_tenant(f);
    assert_false(lookup_run(f, LOOKUP_EVENT, &event).found);
    assert_false(lookup_run(f, LOOKUP_USER, &user).found);
    assert_false(lookup_run(f, LOOKUP_EVENT, &nobody).found);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        OVER_EVERY_STORE(test_delivery_is_made_once_and_compared_and_set),
        OVER_EVERY_STORE(test_two_deliveries_of_a_name_in_one_batch_make_one),
        TEST(test_dead_letters_are_listed_newest_first),
        TEST(test_dead_letters_are_an_organizations_own_unless_all_are_asked_for),
        OVER_EVERY_STORE(test_event_comes_with_its_layout_as_admins_left_it),
        OVER_EVERY_STORE(test_event_without_a_layout_has_no_document),
        OVER_EVERY_STORE(test_user_is_looked_up),
        OVER_EVERY_STORE(test_lookups_find_nothing_of_another_organization),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
