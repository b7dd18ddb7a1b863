/* SPDX-License-Identifier: Apache-2.0
 * What a store gives back: lookups, lists with filters and cursors, and the
 * load at start. Another organization's ids find nothing. */
#include "fixture.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

/* ---- Lookups ---- */

static void test_checkout_comes_with_its_holds_and_tickets(void **state)
{
    struct fixture *f = *state;
    struct uuid id = buy_seat(f, 7, 1);
    struct store_lookup lookup = lookup_run(f, LOOKUP_CHECKOUT, &id);
    assert_true(lookup.found);
    assert_int_equal(lookup.checkout.state, CHECKOUT_COMPLETED);
    assert_int_equal(lookup.checkout.version, 2);
    assert_true(uuid_is_nil(&lookup.checkout.payer));
    assert_int_equal(lookup.checkout.payer_until_ms, 0);
    assert_int_equal(lookup.checkout.total_cents, FIXTURE_PRICE);
    assert_string_equal(lookup.checkout.currency, "EUR");
    assert_string_equal(lookup.checkout.payment_token, "tok_ok");
    assert_int_equal(lookup.hold_count, 1);
    assert_int_equal(lookup.holds[0].state, HOLD_CONVERTED);
    assert_int_equal(lookup.ticket_count, 1);
    assert_string_equal(lookup.tickets[0].code, "0123456789abcdef");
    assert_true(uuid_equal(&lookup.tickets[0].seat_id, &f->seat_ids[7]));
    assert_int_equal(lookup.tickets[0].refunded_ms, 0);
}

static void test_holds_of_a_checkout_come_in_seat_order(void **state)
{
    struct fixture *f = *state;
    static const int32_t seats[] = {31, 4, 12};
    struct checkout_row checkout = {.org_id = f->org_id,
                                    .event_id = f->event_id,
                                    .id = fixture_id(f),
                                    .user_id = f->user_id,
                                    .currency = "EUR",
                                    .total_cents = 3 * FIXTURE_PRICE,
                                    .created_ms = f->now_ms,
                                    .expires_ms = f->now_ms + 300000,
                                    .version = 1};
    struct store_batch *batch = batch_new(f);
    struct store_unit *unit = unit_new(batch);
    struct checkout_write *write = ARENA_NEW(&batch->arena, struct checkout_write);
    write->insert = true;
    write->row = checkout;
    unit->checkouts = write;
    for (size_t i = 0; i < COUNT_OF(seats); i++)
        unit_hold(f, batch, unit, seats[i], 1)->checkout_id = checkout.id;
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
    struct store_lookup lookup = lookup_run(f, LOOKUP_CHECKOUT, &checkout.id);
    assert_int_equal(lookup.hold_count, 3);
    assert_true(uuid_equal(&lookup.holds[0].seat_id, &f->seat_ids[4]));
    assert_true(uuid_equal(&lookup.holds[1].seat_id, &f->seat_ids[12]));
    assert_true(uuid_equal(&lookup.holds[2].seat_id, &f->seat_ids[31]));
}

static void test_what_is_not_there_is_not_found(void **state)
{
    struct fixture *f = *state;
    struct uuid id = fixture_id(f);
    assert_false(lookup_run(f, LOOKUP_HOLD, &id).found);
    assert_false(lookup_run(f, LOOKUP_CHECKOUT, &id).found);
    assert_false(lookup_key_run(f, 0, f->now_ms).found);
}

static void test_ids_of_another_organization_find_nothing(void **state)
{
    struct fixture *f = *state;
    struct hold_row hold = hold_seat(f, 0, 1);
    struct uuid checkout = buy_seat(f, 1, 1), event = f->event_id, user = f->user_id, seat = f->seat_ids[0];
    fixture_new_tenant(f);
    assert_false(lookup_run(f, LOOKUP_HOLD, &hold.id).found);
    assert_false(lookup_run(f, LOOKUP_CHECKOUT, &checkout).found);
    for (enum query_kind kind = 0; kind < QUERY_KIND_COUNT; kind++) {
        struct store_query query = {.kind = kind, .event_id = event, .user_id = user};
        query_run(f, &query);
        if (kind == QUERY_HOLD_COUNT)
            assert_true(query_has(&query, "\"count\":0"));
        else
            assert_string_equal(buf_text(&query.rows), "[]");
        buf_deinit(&query.rows);
    }
    struct store_query query = {.kind = QUERY_AUDIT, .seat_id = seat};
    query_run(f, &query);
    assert_int_equal(query.row_count, 0);
    buf_deinit(&query.rows);
}

static int32_t due_count(struct fixture *f, int64_t now_ms, int32_t limit, const struct uuid *id)
{
    bool found = false;
    int64_t kept_ms = f->now_ms;
    f->now_ms = now_ms;
    struct store_lookup lookup = lookup_run(f, LOOKUP_DUE_HOLDS, NULL);
    f->now_ms = kept_ms;
    for (int32_t i = 0; i < lookup.hold_count; i++)
        found = found || uuid_equal(&lookup.holds[i].id, id);
    assert_true(lookup.hold_count <= limit);
    return found;
}

static void test_hold_is_due_when_its_grace_is_over(void **state)
{
    struct fixture *f = *state;
    struct hold_row hold = hold_seat(f, 0, 1);
    int64_t grace_ms = policy_default().release_grace_seconds * 1000;
    assert_false(due_count(f, hold.held_until_ms, 100, &hold.id));
    assert_false(due_count(f, hold.held_until_ms + grace_ms - 1, 100, &hold.id));
    assert_true(due_count(f, hold.held_until_ms + grace_ms, 100, &hold.id));
    struct store_batch *batch = batch_new(f);
    unit_end(f, batch, unit_new(batch), &hold, 0, 2, HOLD_EXPIRED, END_TTL_EXPIRED);
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
    assert_false(due_count(f, hold.held_until_ms + grace_ms, 100, &hold.id));
}

/* ---- Lists ---- */

static json_t *query_parse(struct fixture *f, struct store_query *query)
{
    query_run(f, query);
    json_error_t error;
    json_t *rows = json_loadb(query->rows.data, query->rows.size, 0, &error);
    if (rows == NULL)
        fail_msg("not JSON: %s: %s", error.text, buf_text(&query->rows));
    assert_true(json_is_array(rows));
    assert_int_equal(json_array_size(rows), query->row_count);
    buf_deinit(&query->rows);
    return rows;
}

static const char *text_of(const json_t *row, const char *key)
{
    const json_t *value = json_object_get(row, key);
    if (value == NULL)
        fail_msg("there is no %s", key);
    return json_string_value(value);
}

static void test_audit_rows_have_every_column_newest_first(void **state)
{
    struct fixture *f = *state;
    struct hold_row hold = hold_seat(f, 0, 1);
    struct store_batch *batch = batch_new(f);
    unit_end(f, batch, unit_new(batch), &hold, 0, 2, HOLD_EXPIRED, END_TTL_EXPIRED);
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
    struct store_query query = {.kind = QUERY_AUDIT};
    json_t *rows = query_parse(f, &query);
    assert_int_equal(json_array_size(rows), 2);
    const json_t *ended = json_array_get(rows, 0), *made = json_array_get(rows, 1);
    char id[UUID_TEXT_SIZE], at[TIME_TEXT_SIZE];
    uuid_format(&hold.id, id);
    time_format(f->now_ms, at);
    assert_string_equal(text_of(ended, "action"), "seat_hold_expired");
    assert_string_equal(text_of(ended, "entity_id"), id);
    assert_string_equal(text_of(ended, "entity_type"), "SeatHold");
    assert_string_equal(text_of(ended, "role"), "buyer");
    assert_string_equal(text_of(ended, "created_at"), at);
    assert_string_equal(text_of(ended, "user_agent"), "test \"agent\"");
    assert_string_equal(text_of(ended, "scenario"), "A");
    assert_int_equal(json_integer_value(json_object_get(ended, "held_duration_seconds")), 12);
    assert_string_equal(text_of(json_object_get(ended, "before"), "status"), "active");
    assert_true(json_is_null(json_object_get(made, "held_duration_seconds")));
    assert_true(json_is_null(json_object_get(made, "before")));
    assert_true(json_is_null(json_object_get(made, "checkout_id")));
    assert_int_equal(json_object_size(made), 20);
    assert_int_equal(query.next, 0);
    json_decref(rows);
}

static int32_t audit_count(struct fixture *f, struct store_query query)
{
    query.kind = QUERY_AUDIT;
    json_decref(query_parse(f, &query));
    return query.row_count;
}

static void test_audit_filters_narrow_alone_and_together(void **state)
{
    struct fixture *f = *state;
    struct hold_row first = hold_seat(f, 0, 1);
    struct uuid owner = f->user_id;
    f->user_id = fixture_id(f);
    (void)hold_seat(f, 1, 1);
    struct uuid checkout = buy_seat(f, 2, 1);
    assert_int_equal(audit_count(f, (struct store_query){.limit = 100}), 4);
    assert_int_equal(audit_count(f, (struct store_query){.seat_id = f->seat_ids[0]}), 1);
    assert_int_equal(audit_count(f, (struct store_query){.seat_id = f->seat_ids[2]}), 2);
    assert_int_equal(audit_count(f, (struct store_query){.user_id = owner}), 1);
    assert_int_equal(audit_count(f, (struct store_query){.user_id = f->user_id}), 3);
    assert_int_equal(audit_count(f, (struct store_query){.entity_id = first.id}), 1);
    assert_int_equal(audit_count(f, (struct store_query){.event_id = f->event_id}), 4);
    assert_int_equal(audit_count(f, (struct store_query){.event_id = first.id}), 0);
    assert_int_equal(audit_count(f, (struct store_query){.checkout_id = checkout}), 1);
    assert_int_equal(audit_count(f, (struct store_query){.action = "seat_reserved"}), 3);
    assert_int_equal(
        audit_count(f, (struct store_query){.action = "seat_reserved", .seat_id = f->seat_ids[2]}), 1);
    assert_int_equal(audit_count(f, (struct store_query){.user_id = owner, .seat_id = f->seat_ids[2]}), 0);
    assert_int_equal(audit_count(f, (struct store_query){.since_ms = f->now_ms + 1}), 0);
    assert_int_equal(audit_count(f, (struct store_query){.action = "nothing"}), 0);
}

static void test_audit_pages_give_each_row_once(void **state)
{
    struct fixture *f = *state;
    for (int32_t seat = 0; seat < 25; seat++)
        (void)hold_seat(f, seat, 1);
    int64_t after = 0, last = INT64_MAX;
    int32_t count = 0;
    for (int pages = 0; pages < 100; pages++) {
        struct store_query query = {
            .kind = QUERY_AUDIT, .limit = 10, .after = after, .action = "seat_reserved"};
        json_t *rows = query_parse(f, &query);
        for (size_t i = 0; i < json_array_size(rows); i++, count++) {
            int64_t id = json_integer_value(json_object_get(json_array_get(rows, i), "id"));
            assert_true(id < last);
            last = id;
        }
        json_decref(rows);
        if (pages == 0)
            (void)hold_seat(f, 30, 1); /* what is written meanwhile is not in later pages */
        after = query.next;
        if (after == 0)
            break;
    }
    assert_int_equal(after, 0);
    assert_int_equal(count, 25);
}

static void test_checkouts_are_listed_with_their_seats(void **state)
{
    struct fixture *f = *state;
    struct uuid first = buy_seat(f, 0, 1);
    f->user_id = fixture_id(f);
    struct uuid second = buy_seat(f, 1, 1);
    char text[UUID_TEXT_SIZE];
    struct store_query query = {.kind = QUERY_CHECKOUTS, .limit = 1};
    json_t *rows = query_parse(f, &query);
    const json_t *row = json_array_get(rows, 0);
    uuid_format(&second, text);
    assert_int_equal(query.row_count, 1);
    assert_string_equal(text_of(row, "checkout_id"), text);
    assert_string_equal(text_of(row, "status"), "completed");
    assert_string_equal(text_of(row, "refund"), "none");
    assert_string_equal(text_of(row, "currency"), "EUR");
    assert_int_equal(json_integer_value(json_object_get(row, "seats")), 1);
    assert_int_equal(json_integer_value(json_object_get(row, "total_cents")), FIXTURE_PRICE);
    assert_int_equal(json_object_size(row), 12);
    json_decref(rows);
    assert_true(query.next != 0);
    struct store_query page = {.kind = QUERY_CHECKOUTS, .limit = 1, .after = query.next};
    rows = query_parse(f, &page);
    uuid_format(&first, text);
    assert_string_equal(text_of(json_array_get(rows, 0), "checkout_id"), text);
    json_decref(rows);

    struct store_query filters[] = {
        {.user_id = f->user_id}, {.status = "completed", .user_id = f->user_id}, {.checkout_id = second}};
    for (size_t i = 0; i < COUNT_OF(filters); i++) {
        filters[i].kind = QUERY_CHECKOUTS;
        json_decref(query_parse(f, &filters[i]));
        assert_int_equal(filters[i].row_count, 1);
    }
    struct store_query none = {.kind = QUERY_CHECKOUTS, .status = "failed"};
    json_decref(query_parse(f, &none));
    assert_int_equal(none.row_count, 0);
}

static void test_occupancy_history_is_oldest_first_from_a_time_on(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = batch_new(f);
    struct store_unit *unit = unit_new(batch);
    for (int i = 0; i < 5; i++) {
        struct snapshot_write *write = ARENA_NEW(&batch->arena, struct snapshot_write);
        *write = (struct snapshot_write){.org_id = f->org_id,
                                         .event_id = f->event_id,
                                         .at_ms = f->now_ms + i * 60000,
                                         .counts = {40 - i, i, 0, 0}};
        write->next = unit->snapshots;
        unit->snapshots = write;
    }
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
    struct store_query query = {
        .kind = QUERY_OCCUPANCY_HISTORY, .event_id = f->event_id, .limit = 2, .since_ms = f->now_ms + 60000};
    json_t *rows = query_parse(f, &query);
    const json_t *row = json_array_get(rows, 0);
    assert_int_equal(query.row_count, 2);
    assert_int_equal(json_integer_value(json_object_get(row, "held")), 1);
    assert_int_equal(json_integer_value(json_object_get(row, "total")), 40);
    assert_float_equal(json_number_value(json_object_get(row, "occupancy_percent")), 2.5, 0.001);
    json_decref(rows);
    struct store_query rest = {.kind = QUERY_OCCUPANCY_HISTORY, .event_id = f->event_id, .after = query.next};
    rows = query_parse(f, &rest);
    assert_int_equal(rest.row_count, 2);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(rows, 1), "held")), 4);
    assert_int_equal(rest.next, 0);
    json_decref(rows);
}

static void test_analytics_count_by_block_and_hour_of_making(void **state)
{
    struct fixture *f = *state;
    f->now_ms = f->now_ms / 3600000 * 3600000;
    struct hold_row expired = hold_seat(f, 0, 1);
    struct store_batch *batch = batch_new(f);
    unit_end(f, batch, unit_new(batch), &expired, 0, 2, HOLD_EXPIRED, END_TTL_EXPIRED);
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
    (void)buy_seat(f, 1, 1);
    (void)hold_seat(f, 2, 1);
    (void)hold_seat(f, 3, 1);
    f->now_ms += 3600000;
    (void)hold_seat(f, 4, 1);
    (void)hold_seat(f, 39, 1);
    struct store_query query = {.kind = QUERY_ANALYTICS, .event_id = f->event_id};
    json_t *rows = query_parse(f, &query);
    assert_int_equal(query.row_count, 3);
    const json_t *row = json_array_get(rows, 0);
    assert_string_equal(text_of(row, "block"), "A-1");
    assert_string_equal(text_of(row, "block_name"), "Stalls");
    assert_int_equal(json_integer_value(json_object_get(row, "holds")), 4);
    assert_int_equal(json_integer_value(json_object_get(row, "converted")), 1);
    assert_int_equal(json_integer_value(json_object_get(row, "expired")), 1);
    assert_int_equal(json_integer_value(json_object_get(row, "active")), 2);
    assert_float_equal(json_number_value(json_object_get(row, "conversion")), 0.25, 0.0001);
    assert_float_equal(json_number_value(json_object_get(row, "abandonment")), 0.25, 0.0001);
    assert_float_equal(json_number_value(json_object_get(row, "average_hold_seconds")), 12.0, 0.01);
    row = json_array_get(rows, 1);
    assert_string_equal(text_of(row, "block"), "A-1");
    assert_int_equal(json_integer_value(json_object_get(row, "holds")), 1);
    assert_true(json_is_null(json_object_get(row, "average_hold_seconds")));
    assert_string_equal(text_of(json_array_get(rows, 2), "block"), "A-2");
    json_decref(rows);
    struct store_query later = {.kind = QUERY_ANALYTICS, .event_id = f->event_id, .since_ms = f->now_ms};
    json_decref(query_parse(f, &later));
    assert_int_equal(later.row_count, 2);
}

static void test_user_is_listed_and_can_be_disabled(void **state)
{
    struct fixture *f = *state;
    for (int disabled = 0; disabled < 2; disabled++) {
        struct store_batch *batch = batch_new(f);
        struct user_write *user = ARENA_NEW(&batch->arena, struct user_write);
        user->row = (struct user_row){
            .org_id = f->org_id, .id = f->user_id, .disabled = disabled != 0, .created_ms = f->now_ms + 5000};
        unit_new(batch)->users = user;
        assert_int_equal(batch_commit(f, batch), UNIT_OK);
        struct store_query query = {.kind = QUERY_USERS, .user_id = f->user_id};
        json_t *rows = query_parse(f, &query);
        char at[TIME_TEXT_SIZE];
        time_format(f->now_ms, at); /* of the first writing */
        assert_int_equal(query.row_count, 1);
        assert_int_equal(json_is_true(json_object_get(json_array_get(rows, 0), "disabled")), disabled);
        assert_string_equal(text_of(json_array_get(rows, 0), "created_at"), at);
        json_decref(rows);
    }
}

/* ---- Loading ---- */

struct loaded {
    struct fixture *f;
    struct feed_position position;
    int32_t positions;
    struct checkout_row checkout;
    bool org, user, event, layout;
    int32_t seats, holds, checkouts;
    int64_t holds_ever;
    struct seat_row seat_rows[FIXTURE_SEAT_COUNT];
    struct hold_row hold;
    bool in_event; /* seats that come now are the fixture's */
    enum err stop;
};

static enum err on_position(void *context, const struct feed_position *position)
{
    struct loaded *l = context;
    assert_false(l->org); /* it comes first */
    l->position = *position;
    l->positions++;
    return ERR_OK;
}

static enum err on_org(void *context, const struct org_row *row)
{
    struct loaded *l = context;
    if (uuid_equal(&row->id, &l->f->org_id)) {
        assert_string_equal(row->name, "Theatre");
        l->org = true;
    }
    return l->stop;
}

static enum err on_user(void *context, const struct user_row *row)
{
    struct loaded *l = context;
    l->user = l->user || (uuid_equal(&row->org_id, &l->f->org_id) && uuid_equal(&row->id, &l->f->user_id));
    return ERR_OK;
}

static enum err on_event(void *context, const struct event_row *row)
{
    struct loaded *l = context;
    struct policy policy = policy_default();
    l->in_event = uuid_equal(&row->id, &l->f->event_id);
    if (!l->in_event)
        return ERR_OK;
    assert_true(l->org);
    assert_true(l->user);
    l->event = true;
    assert_string_equal(row->name, "Premiere");
    assert_int_equal(row->state, EVENT_LIVE);
    assert_true(row->sale_start_ms == TIME_NONE);
    assert_true(row->sale_end_ms == TIME_MAX);
    assert_string_equal(row->currency, "EUR");
    assert_int_equal(row->version, 1);
    assert_memory_equal(&row->policy, &policy, sizeof(policy));
    return ERR_OK;
}

static enum err on_layout(void *context, const struct uuid *event_id, const char *document,
                          const struct block_row *blocks, int32_t block_count, int64_t holds_ever)
{
    struct loaded *l = context;
    if (!uuid_equal(event_id, &l->f->event_id))
        return ERR_OK;
    assert_true(l->event);
    l->layout = true;
    l->holds_ever = holds_ever;
    assert_string_equal(document, "{\"name\":\"House\"}");
    assert_int_equal(block_count, FIXTURE_BLOCK_COUNT);
    assert_true(uuid_equal(&blocks[1].id, &l->f->block_ids[1]));
    assert_string_equal(blocks[1].section, "A");
    assert_int_equal(blocks[1].subsection, 2);
    assert_int_equal(blocks[1].price_cents, FIXTURE_PRICE);
    return ERR_OK;
}

static enum err on_seat(void *context, const struct seat_row *row)
{
    struct loaded *l = context;
    if (!l->in_event)
        return ERR_OK;
    assert_true(l->layout);
    assert_int_equal(row->index, l->seats);
    assert_true(uuid_equal(&row->id, &l->f->seat_ids[l->seats]));
    l->seat_rows[l->seats++] = *row;
    return ERR_OK;
}

static enum err on_hold(void *context, const struct hold_row *row)
{
    struct loaded *l = context;
    if (!uuid_equal(&row->org_id, &l->f->org_id))
        return ERR_OK;
    assert_int_equal(row->state, HOLD_ACTIVE);
    assert_string_equal(row->cart_token, "cart");
    l->hold = *row;
    l->holds++;
    return ERR_OK;
}

static enum err on_checkout(void *context, const struct checkout_row *row)
{
    struct loaded *l = context;
    if (!uuid_equal(&row->org_id, &l->f->org_id))
        return ERR_OK;
    l->checkouts++;
    l->checkout = *row;
    return ERR_OK;
}

static const struct store_loader loader = {.on_position = on_position,
                                           .on_org = on_org,
                                           .on_user = on_user,
                                           .on_event = on_event,
                                           .on_layout = on_layout,
                                           .on_seat = on_seat,
                                           .on_hold = on_hold,
                                           .on_checkout = on_checkout};

static void test_load_gives_back_what_was_written(void **state)
{
    struct fixture *f = *state;
    struct hold_row hold = hold_seat(f, 5, 1);
    (void)buy_seat(f, 6, 1);
    struct checkout_row checkout = {.org_id = f->org_id,
                                    .event_id = f->event_id,
                                    .id = fixture_id(f),
                                    .user_id = f->user_id,
                                    .state = CHECKOUT_FAILED,
                                    .refund = REFUND_OWED,
                                    .reason = END_PAYMENT_FAILED,
                                    .currency = "EUR",
                                    .created_ms = f->now_ms,
                                    .expires_ms = f->now_ms,
                                    .ended_ms = f->now_ms,
                                    .version = 1,
                                    .payer = fixture_id(f),
                                    .payer_until_ms = f->now_ms + 7000};
    struct store_batch *batch = batch_new(f);
    struct checkout_write *write = ARENA_NEW(&batch->arena, struct checkout_write);
    write->insert = true;
    write->row = checkout;
    unit_new(batch)->checkouts = write;
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
    fixture_reopen(f);

    struct loaded l = {.f = f};
    assert_int_equal(store_load(f->store, &loader, &l), ERR_OK);
    assert_true(l.layout);
    assert_int_equal(l.seats, FIXTURE_SEAT_COUNT);
    assert_int_equal(l.holds_ever, 2);
    assert_int_equal(l.holds, 1);
    assert_true(uuid_equal(&l.hold.id, &hold.id));
    assert_int_equal(l.positions, 1);
    assert_int_equal(l.checkouts, 1); /* the one that owes a refund, not the completed one */
    assert_int_equal(l.checkout.version, 1);
    assert_true(uuid_equal(&l.checkout.payer, &checkout.payer));
    assert_int_equal(l.checkout.payer_until_ms, f->now_ms + 7000);
    assert_int_equal(l.seat_rows[5].state, SEAT_HELD);
    assert_int_equal(l.seat_rows[5].version, 2);
    assert_true(uuid_equal(&l.seat_rows[5].hold_id, &hold.id));
    assert_int_equal(l.seat_rows[5].held_until_ms, hold.held_until_ms);
    assert_int_equal(l.seat_rows[5].locked_ms, f->now_ms);
    assert_int_equal(l.seat_rows[6].state, SEAT_SOLD);
    assert_int_equal(l.seat_rows[6].version, 3);
    assert_false(uuid_is_nil(&l.seat_rows[6].ticket_id));
    assert_int_equal(l.seat_rows[7].state, SEAT_AVAILABLE);
    assert_true(uuid_is_nil(&l.seat_rows[7].hold_id));
}

static void test_load_stops_at_the_loaders_error(void **state)
{
    struct fixture *f = *state;
    struct loaded l = {.f = f, .stop = ERR_CONFIG};
    assert_int_equal(store_load(f->store, &loader, &l), ERR_CONFIG);
    assert_false(l.event);
}

static void test_event_and_block_changes_are_loaded(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = batch_new(f);
    struct store_unit *unit = unit_new(batch);
    struct block_write *block = ARENA_NEW(&batch->arena, struct block_write);
    block->row = (struct block_row){.org_id = f->org_id,
                                    .event_id = f->event_id,
                                    .id = f->block_ids[1],
                                    .name = "Stalls",
                                    .capacity = 3,
                                    .price_cents = FIXTURE_PRICE};
    unit->blocks = block;
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
    struct loaded l = {.f = f};
    assert_int_equal(store_load(f->store, &loader, &l), ERR_OK);

    batch = batch_new(f);
    block = ARENA_NEW(&batch->arena, struct block_write);
    block->row =
        (struct block_row){.org_id = f->org_id, .event_id = f->event_id, .id = fixture_id(f), .name = ""};
    unit_new(batch)->blocks = block;
    assert_int_equal(batch_commit(f, batch), UNIT_BAD); /* no such block */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_checkout_comes_with_its_holds_and_tickets),
        TEST(test_holds_of_a_checkout_come_in_seat_order),
        TEST(test_what_is_not_there_is_not_found),
        TEST(test_ids_of_another_organization_find_nothing),
        TEST(test_hold_is_due_when_its_grace_is_over),
        TEST(test_audit_rows_have_every_column_newest_first),
        TEST(test_audit_filters_narrow_alone_and_together),
        TEST(test_audit_pages_give_each_row_once),
        TEST(test_checkouts_are_listed_with_their_seats),
        TEST(test_occupancy_history_is_oldest_first_from_a_time_on),
        TEST(test_analytics_count_by_block_and_hour_of_making),
        TEST(test_user_is_listed_and_can_be_disabled),
        TEST(test_load_gives_back_what_was_written),
        TEST(test_load_stops_at_the_loaders_error),
        TEST(test_event_and_block_changes_are_loaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
