/* SPDX-License-Identifier: Apache-2.0
 * Holds, checkouts and events as JSON: shapes, times, and what is not shown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <string.h>

#include "../hot/map_fixture.h"
#include "api/render.h"
#include "base/clock.h"

static struct seatmap *map;

static int setup(void **state)
{
    (void)state;
    map = fixture_map();
    return map != NULL ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    seatmap_release(map);
    return 0;
}

static struct hold_view make_hold(void)
{
    return (struct hold_view){
        .map = map,
        .seat_index = 1,
        .row =
            {
                .id = fixture_id('h', 1),
                .event_id = fixture_id('e', 1),
                .seat_id = fixture_id('s', 1),
                .user_id = fixture_id('u', 1),
                .cart_token = "cart \"1\"",
                .price_cents = 4500,
                .created_ms = 700,
                .held_until_ms = 301000,
            },
    };
}

static json_t *finish(struct buf *out)
{
    assert_true(buf_ok(out));
    json_t *value = json_loadb(out->data, out->size, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(value);
    buf_deinit(out);
    return value;
}

static json_t *hold_json(const struct hold_view *hold, int64_t now_ms, bool with_user)
{
    struct buf out;
    struct jsonw json;
    buf_init(&out);
    jsonw_begin(&json, &out);
    render_hold(hold, now_ms, with_user, &json);
    return finish(&out);
}

static const char *text_of(json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    assert_non_null(text);
    return text;
}

static int64_t int_of(json_t *object, const char *key)
{
    assert_true(json_is_integer(json_object_get(object, key)));
    return json_integer_value(json_object_get(object, key));
}

static void test_a_new_hold_has_every_field_of_the_contract(void **state)
{
    (void)state;
    struct hold_view hold = make_hold();
    json_t *object = hold_json(&hold, 700, false);
    assert_string_equal(text_of(object, "block_name"), "Stalls");
    assert_string_equal(text_of(object, "block"), "A-1");
    assert_string_equal(text_of(object, "row"), "A");
    assert_string_equal(text_of(object, "seat_number"), "2");
    assert_string_equal(text_of(object, "status"), "held");
    assert_string_equal(text_of(object, "held_until"), "1970-01-01T00:05:01Z");
    assert_int_equal(int_of(object, "held_until_unix"), 301);
    assert_int_equal(int_of(object, "expires_in_seconds"), 300);
    assert_string_equal(text_of(object, "message"), "Seat reserved for 5 minutes. Proceed to checkout.");
    assert_int_equal(int_of(object, "price_cents"), 4500);
    assert_string_equal(text_of(object, "cart_token"), "cart \"1\"");
    assert_true(json_is_null(json_object_get(object, "checkout_id")));
    assert_null(json_object_get(object, "reason"));
    assert_non_null(json_object_get(object, "hold_id"));
    assert_non_null(json_object_get(object, "seat_id"));
    assert_non_null(json_object_get(object, "event_id"));
    json_decref(object);
}

static void test_whose_hold_it_is_is_shown_only_if_asked(void **state)
{
    (void)state;
    struct hold_view hold = make_hold();
    json_t *object = hold_json(&hold, 700, false);
    assert_null(json_object_get(object, "user_id"));
    json_decref(object);
    object = hold_json(&hold, 700, true);
    assert_non_null(json_object_get(object, "user_id"));
    json_decref(object);
}

static void test_remaining_time_is_rounded_down_and_never_negative(void **state)
{
    (void)state;
    struct hold_view hold = make_hold();
    json_t *object = hold_json(&hold, 299001, false);
    assert_int_equal(int_of(object, "expires_in_seconds"), 1);
    assert_string_equal(text_of(object, "message"), "Seat reserved for 1 second. Proceed to checkout.");
    json_decref(object);
    object = hold_json(&hold, 400000, false);
    assert_int_equal(int_of(object, "expires_in_seconds"), 0);
    assert_string_equal(text_of(object, "message"), "This hold has expired.");
    json_decref(object);
}

static void test_an_ended_hold_says_how(void **state)
{
    (void)state;
    struct hold_view hold = make_hold();
    hold.row.state = HOLD_CANCELLED;
    hold.row.reason = END_USER_CANCELLED;
    hold.row.ended_ms = 2000;
    json_t *object = hold_json(&hold, 3000, false);
    assert_string_equal(text_of(object, "status"), "cancelled");
    assert_string_equal(text_of(object, "reason"), "user_cancelled");
    assert_int_equal(int_of(object, "expires_in_seconds"), 0);
    assert_string_equal(text_of(object, "message"), "Seat released.");
    json_decref(object);
}

static void test_durations_read_as_people_say_them(void **state)
{
    (void)state;
    static const struct {
        int64_t seconds;
        const char *text;
    } cases[] = {{0, "0 seconds"},  {1, "1 second"},           {59, "59 seconds"},
                 {60, "1 minute"},  {61, "1 minute 1 second"}, {252, "4 minutes 12 seconds"},
                 {300, "5 minutes"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[64];
        render_duration(cases[i].seconds, text, sizeof text);
        assert_string_equal(text, cases[i].text);
    }
}

static json_t *failure_json(struct seat_failure failure, int64_t now_ms)
{
    struct buf out;
    struct jsonw json;
    buf_init(&out);
    jsonw_begin(&json, &out);
    jsonw_object_open(&json);
    render_failure_fields(&failure, now_ms, &json);
    jsonw_object_close(&json);
    return finish(&out);
}

static void test_a_refusal_says_when_to_come_back_and_not_who(void **state)
{
    (void)state;
    json_t *object = failure_json((struct seat_failure){.err = ERR_SEAT_HELD, .expires_ms = 10000}, 500);
    assert_int_equal(json_object_size(object), 2);
    assert_string_equal(text_of(object, "expires_at"), "1970-01-01T00:00:10Z");
    assert_int_equal(int_of(object, "expires_in_seconds"), 10); /* rounded up */
    json_decref(object);
    object = failure_json((struct seat_failure){.err = ERR_SEAT_NOT_AVAILABLE, .state = SEAT_SOLD}, 500);
    assert_int_equal(json_object_size(object), 1);
    assert_string_equal(text_of(object, "current_status"), "sold");
    json_decref(object);
}

static void test_a_checkout_lists_seats_and_tickets_with_their_place(void **state)
{
    (void)state;
    struct hold_view hold = make_hold();
    struct ticket_row ticket = {
        .id = fixture_id('t', 1), .seat_id = fixture_id('s', 1), .price_cents = 4500, .code = "abc"};
    struct result result = {
        .has_checkout = true,
        .checkout = {.id = fixture_id('c', 1),
                     .event_id = fixture_id('e', 1),
                     .state = CHECKOUT_COMPLETED,
                     .currency = "EUR",
                     .total_cents = 4500,
                     .expires_ms = 301000},
        .checkout_holds = &hold,
        .checkout_hold_count = 1,
        .tickets = &ticket,
        .ticket_count = 1,
    };
    struct buf out;
    struct jsonw json;
    buf_init(&out);
    jsonw_begin(&json, &out);
    render_checkout(&result, &(struct event_view){.row.name = "Concert", .map = map}, false, &json);
    json_t *object = finish(&out);
    assert_string_equal(text_of(object, "status"), "completed");
    assert_string_equal(text_of(object, "event_name"), "Concert");
    assert_string_equal(text_of(object, "currency"), "EUR");
    assert_int_equal(int_of(object, "total_cents"), 4500);
    assert_null(json_object_get(object, "user_id"));
    json_t *seat = json_array_get(json_object_get(object, "seats"), 0);
    assert_string_equal(text_of(seat, "block"), "A-1");
    json_t *shown = json_array_get(json_object_get(object, "tickets"), 0);
    assert_string_equal(text_of(shown, "seat_number"), "2");
    assert_string_equal(text_of(shown, "code"), "abc");
    json_decref(object);
}

static void test_an_event_without_sale_limits_shows_null(void **state)
{
    (void)state;
    struct event_view event = {
        .map = map,
        .row = {.id = fixture_id('e', 1),
                .name = "Concert",
                .state = EVENT_LIVE,
                .sale_start_ms = TIME_NONE,
                .sale_end_ms = TIME_MAX,
                .currency = "EUR",
                .policy = policy_default()},
    };
    struct buf out;
    struct jsonw json;
    buf_init(&out);
    jsonw_begin(&json, &out);
    render_event(&event, false, &json);
    json_t *object = finish(&out);
    assert_null(json_object_get(object, "organization_id"));
    assert_true(json_is_null(json_object_get(object, "sale_start")));
    assert_true(json_is_null(json_object_get(object, "sale_end")));
    assert_int_equal(int_of(object, "seat_count"), FIXTURE_SEAT_COUNT);
    json_t *policy = json_object_get(object, "policy");
    assert_int_equal(int_of(policy, "hold_ttl_seconds"), 300);
    assert_true(json_is_false(json_object_get(policy, "forbid_single_seat_gaps")));
    assert_int_equal(json_array_size(json_object_get(object, "blocks")), FIXTURE_BLOCK_COUNT);
    json_decref(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_new_hold_has_every_field_of_the_contract),
        cmocka_unit_test(test_whose_hold_it_is_is_shown_only_if_asked),
        cmocka_unit_test(test_remaining_time_is_rounded_down_and_never_negative),
        cmocka_unit_test(test_an_ended_hold_says_how),
        cmocka_unit_test(test_durations_read_as_people_say_them),
        cmocka_unit_test(test_a_refusal_says_when_to_come_back_and_not_who),
        cmocka_unit_test(test_a_checkout_lists_seats_and_tickets_with_their_place),
        cmocka_unit_test(test_an_event_without_sale_limits_shows_null),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
