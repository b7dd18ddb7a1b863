/* SPDX-License-Identifier: Apache-2.0
 * Domain events from packed changes: their exact form, their order, ids that stay
 * the same, and what must not be in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "publish/domain_event.h"
#include "store/changes.h"

#define CREATED_MS 1767225600000 /* 2026-01-01T00:00:00Z */

struct world {
    struct arena arena;
    struct buf data;
    struct changes_packer packer;
    struct store_unit unit;
    struct domain_events events;
};

static struct uuid id(uint8_t last)
{
    struct uuid id = {{0x01, 0x90, 0xa4, 0xc2, 0x7d, 0x1e, 0x70, 0, 0x80}};
    id.bytes[15] = last;
    return id;
}

enum {
    ORG = 1,
    EVENT = 2,
    SEAT = 3,
    HOLD = 4,
    USER = 5,
    CHECKOUT = 6,
    TICKET = 7,
    OTHER_SEAT = 8,
    OTHER_HOLD = 9
};

static int setup(void **state)
{
    static const struct uuid node = {{9}};
    struct world *w = calloc(1, sizeof *w);

    arena_init(&w->arena);
    buf_init(&w->data);
    changes_pack_begin(&w->packer, &w->data, &node);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    buf_deinit(&w->data);
    arena_deinit(&w->arena);
    free(w);
    return 0;
}

static struct seat_write *add_seat(struct world *w, uint8_t seat, enum seat_state to)
{
    struct seat_write *write = ARENA_NEW(&w->arena, struct seat_write);

    write->row = (struct seat_row){
        .org_id = id(ORG), .event_id = id(EVENT), .id = id(seat), .version = 2, .state = to};
    write->next = w->unit.seats;
    w->unit.seats = write;
    return write;
}

static struct hold_write *add_hold(struct world *w, uint8_t hold, uint8_t seat)
{
    struct hold_write *write = ARENA_NEW(&w->arena, struct hold_write), **end = &w->unit.holds;

    write->row = (struct hold_row){
        .org_id = id(ORG),
        .event_id = id(EVENT),
        .id = id(hold),
        .seat_id = id(seat),
        .user_id = id(USER),
        .cart_token = "cart-secret",
        .state = HOLD_ACTIVE,
        .price_cents = 4500,
        .created_ms = CREATED_MS - 60000,
        .held_until_ms = CREATED_MS + 300000,
    };
    while (*end != NULL)
        end = &(*end)->next;
    *end = write;
    return write;
}

static void end_hold(struct hold_write *write, enum hold_state state, enum end_reason reason)
{
    write->row.state = state;
    write->row.reason = reason;
    write->row.ended_ms = CREATED_MS;
}

static struct checkout_write *add_checkout(struct world *w, enum checkout_state state)
{
    struct checkout_write *write = ARENA_NEW(&w->arena, struct checkout_write);

    write->row = (struct checkout_row){
        .org_id = id(ORG),
        .event_id = id(EVENT),
        .id = id(CHECKOUT),
        .user_id = id(USER),
        .state = state,
        .currency = "EUR",
        .total_cents = 9000,
        .expires_ms = CREATED_MS + 300000,
        .payment_token = "token-secret",
        .version = 1,
    };
    w->unit.checkouts = write;
    return write;
}

static void add_ticket(struct world *w, uint8_t seat, uint8_t hold)
{
    struct ticket_write *write = ARENA_NEW(&w->arena, struct ticket_write);

    write->insert = true;
    write->row = (struct ticket_row){
        .org_id = id(ORG),
        .event_id = id(EVENT),
        .id = id(TICKET),
        .seat_id = id(seat),
        .hold_id = id(hold),
        .checkout_id = id(CHECKOUT),
        .user_id = id(USER),
        .price_cents = 4500,
        .code = "code-secret",
    };
    w->unit.tickets = write;
}

static bool make(struct world *w)
{
    changes_pack_unit(&w->packer, &w->unit);
    w->unit = (struct store_unit){0};
    assert_true(buf_ok(&w->data));
    struct store_change change = {
        .id = 42, .created_ms = CREATED_MS, .data = w->data.data, .size = w->data.size};
    return domain_events_of(&change, &w->arena, &w->events);
}

static void expect_types(const struct world *w, int count, ...)
{
    va_list types;

    assert_int_equal(w->events.count, count);
    va_start(types, count);
    for (int i = 0; i < count; i++)
        assert_string_equal(domain_event_type_name(w->events.list[i].type), va_arg(types, const char *));
    va_end(types);
}

/* ---- The exact form ---- */

#define IDS(entity)                                                                                          \
    "\"data\":{\"organization_id\":\"0190a4c2-7d1e-7000-8000-000000000001\","                                \
    "\"event_id\":\"0190a4c2-7d1e-7000-8000-000000000002\"," entity
#define SEAT_DATA                                                                                            \
    IDS("\"seat_id\":\"0190a4c2-7d1e-7000-8000-000000000003\","                                              \
        "\"hold_id\":\"0190a4c2-7d1e-7000-8000-000000000004\","                                              \
        "\"user_id\":\"0190a4c2-7d1e-7000-8000-000000000005\",")
#define HEAD(event_id, type, subject, sequence)                                                              \
    "{\"specversion\":\"1.0\",\"id\":\"" event_id "\","                                                      \
    "\"source\":\"/holdfast/organizations/0190a4c2-7d1e-7000-8000-000000000001\",\"type\":\"" type "\","     \
    "\"subject\":\"0190a4c2-7d1e-7000-8000-00000000000" subject "\",\"time\":\"2026-01-01T00:00:00Z\","      \
    "\"sequence\":\"00000000000000000042-00000" sequence "\",\"datacontenttype\":\"application/json\","

static void test_a_new_hold_is_SeatReserved_in_exactly_this_form(void **state)
{
    struct world *w = *state;

    add_seat(w, SEAT, SEAT_HELD);
    add_hold(w, HOLD, SEAT)->insert = true;
    assert_true(make(w));
    assert_int_equal(w->events.count, 1);
    assert_string_equal(w->events.list[0].body,
                        HEAD("7eed5a90-720d-89a4-839c-fd9819868d97", "SeatReserved", "3", "0") SEAT_DATA
                        "\"checkout_id\":null,\"price_cents\":4500,\"source\":\"web\","
                        "\"held_until\":\"2026-01-01T00:05:00Z\",\"held_until_unix\":1767225900}}");
    assert_int_equal(w->events.list[0].size, strlen(w->events.list[0].body));
    struct uuid seat = id(SEAT), org = id(ORG);
    assert_true(uuid_equal(&w->events.list[0].key, &seat));
    assert_true(uuid_equal(&w->events.list[0].org_id, &org));
    assert_true(w->events.list[0].time_ms == CREATED_MS);
}

static void test_a_hold_that_ends_is_SeatReleased_with_its_reason_and_what_the_seat_is_now(void **state)
{
    struct world *w = *state;

    add_seat(w, SEAT, SEAT_BLOCKED);
    end_hold(add_hold(w, HOLD, SEAT), HOLD_CANCELLED, END_ADMIN_OVERRIDE);
    assert_true(make(w));
    assert_int_equal(w->events.count, 1);
    assert_string_equal(w->events.list[0].body,
                        HEAD("7eed5a90-720d-89a4-839c-fd9819868d97", "SeatReleased", "3", "0") SEAT_DATA
                        "\"checkout_id\":null,\"price_cents\":4500,\"reason\":\"admin_override\","
                        "\"seat_status\":\"blocked\",\"held_seconds\":60}}");
}

static void test_a_started_checkout_lists_its_seats_after_their_extensions(void **state)
{
    struct world *w = *state;

    add_seat(w, SEAT, SEAT_HELD);
    struct hold_write *first = add_hold(w, HOLD, SEAT), *second = add_hold(w, OTHER_HOLD, OTHER_SEAT);
    first->row.checkout_id = second->row.checkout_id = id(CHECKOUT);
    first->extended = true; /* the second is at its cap */
    add_checkout(w, CHECKOUT_PENDING_PAYMENT)->insert = true;
    assert_true(make(w));
    expect_types(w, 2, "HoldExtended", "CheckoutStarted");
    assert_string_equal(
        w->events.list[1].body,
        HEAD("27fbc0b7-c852-8cf9-89e7-f71b49d80618", "CheckoutStarted", "6", "2") IDS(
            "\"checkout_id\":\"0190a4c2-7d1e-7000-8000-000000000006\","
            "\"user_id\":\"0190a4c2-7d1e-7000-8000-000000000005\",") "\"status\":\"pending_payment\","
                                                                     "\"reason\":null,\"refund\":\"none\","
                                                                     "\"currency\":\"EUR\",\"total_cents\":"
                                                                     "9000,"
                                                                     "\"expires_at\":\"2026-01-01T00:05:"
                                                                     "00Z\",\"expires_at_unix\":1767225900,"
                                                                     "\"seats\":["
                                                                     "{\"seat_id\":\"0190a4c2-7d1e-7000-8000-"
                                                                     "000000000003\",\"hold_id\":\"0190a4c2-"
                                                                     "7d1e-7000-8000-000000000004\","
                                                                     "\"price_cents\":4500},"
                                                                     "{\"seat_id\":\"0190a4c2-7d1e-7000-8000-"
                                                                     "000000000008\",\"hold_id\":\"0190a4c2-"
                                                                     "7d1e-7000-8000-000000000009\","
                                                                     "\"price_cents\":4500}]}}");
}

static void test_a_completed_checkout_lists_its_tickets_and_its_holds_tell_nothing(void **state)
{
    struct world *w = *state;
    struct uuid seat = id(SEAT);

    add_seat(w, SEAT, SEAT_SOLD);
    end_hold(add_hold(w, HOLD, SEAT), HOLD_CONVERTED, END_NONE);
    add_checkout(w, CHECKOUT_COMPLETED)->moved = true;
    add_ticket(w, SEAT, HOLD);
    assert_true(make(w));
    expect_types(w, 1, "CheckoutCompleted");
    assert_int_equal(w->events.list[0].seat_count, 1);
    assert_memory_equal(w->events.list[0].seats, &seat, sizeof seat);
    assert_non_null(strstr(w->events.list[0].body,
                           "\"tickets\":[{\"ticket_id\":\"0190a4c2-7d1e-7000-8000-000000000007\","
                           "\"seat_id\":\"0190a4c2-7d1e-7000-8000-000000000003\","
                           "\"hold_id\":\"0190a4c2-7d1e-7000-8000-000000000004\",\"price_cents\":4500}]}}"));
}

/* ---- Which changes tell what ---- */

static void test_every_end_of_a_checkout_has_its_type(void **state)
{
    static const struct {
        enum checkout_state to;
        const char *type;
    } ends[] = {
        {CHECKOUT_COMPLETED, "CheckoutCompleted"}, {CHECKOUT_CANCELLED, "CheckoutCancelled"},
        {CHECKOUT_FAILED, "CheckoutFailed"},       {CHECKOUT_EXPIRED, "CheckoutExpired"},
        {CHECKOUT_REFUNDED, "CheckoutRefunded"},
    };
    struct world *w = *state;

    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        buf_clear(&w->data);
        changes_pack_begin(&w->packer, &w->data, &(struct uuid){{9}});
        add_checkout(w, ends[i].to)->moved = true;
        assert_true(make(w));
        expect_types(w, 1, ends[i].type);
    }
}

static void test_what_does_not_move_tells_nothing(void **state)
{
    struct world *w = *state;

    add_seat(w, SEAT, SEAT_HELD);
    add_hold(w, HOLD, SEAT); /* pinned, or moved to another checkout */
    add_checkout(w, CHECKOUT_PENDING_PAYMENT);
    assert_true(make(w));
    add_checkout(w, CHECKOUT_PROCESSING)->moved = true;
    assert_true(make(w));
    add_checkout(w, CHECKOUT_FAILED); /* a refund that is owed does not move it */
    assert_true(make(w));
    assert_int_equal(w->events.count, 0);
}

static void test_an_owner_who_comes_back_is_told_as_released_then_reserved(void **state)
{
    struct world *w = *state;

    add_seat(w, SEAT, SEAT_HELD);
    end_hold(add_hold(w, HOLD, SEAT), HOLD_EXPIRED, END_TTL_EXPIRED);
    add_hold(w, OTHER_HOLD, SEAT)->insert = true;
    assert_true(make(w));
    expect_types(w, 2, "SeatReleased", "SeatReserved");
    assert_non_null(strstr(w->events.list[0].body, "\"reason\":\"ttl_expired\",\"seat_status\":\"held\""));
    assert_true(uuid_equal(&w->events.list[0].key, &w->events.list[1].key));
    assert_false(uuid_equal(&w->events.list[0].id, &w->events.list[1].id));
}

static void test_seats_of_neighbouring_commands_are_not_mixed(void **state)
{
    struct world *w = *state;
    struct uuid seat = id(SEAT);

    add_hold(w, OTHER_HOLD, OTHER_SEAT)->extended = true; /* a command of its own, without a seat record */
    changes_pack_unit(&w->packer, &w->unit);
    w->unit = (struct store_unit){0};
    add_hold(w, HOLD, SEAT)->row.checkout_id = id(CHECKOUT);
    add_checkout(w, CHECKOUT_PENDING_PAYMENT)->insert = true;
    assert_true(make(w));
    expect_types(w, 2, "HoldExtended", "CheckoutStarted");
    assert_int_equal(w->events.list[0].seat_count, 0); /* its key is its seat */
    assert_int_equal(w->events.list[1].seat_count, 1);
    assert_true(uuid_equal(&w->events.list[1].seats[0], &seat));
    assert_null(strstr(w->events.list[1].body, "000000000009"));
    assert_non_null(strstr(w->events.list[1].body, "000000000004"));
}

/* ---- Promises ---- */

static void test_the_same_change_gives_the_same_ids_and_another_change_others(void **state)
{
    struct world *w = *state;
    struct domain_events again, other;

    add_hold(w, HOLD, SEAT)->insert = true;
    add_hold(w, OTHER_HOLD, OTHER_SEAT)->insert = true;
    assert_true(make(w));
    struct store_change change = {
        .id = 42, .created_ms = CREATED_MS, .data = w->data.data, .size = w->data.size};
    assert_true(domain_events_of(&change, &w->arena, &again));
    change.id = 43;
    assert_true(domain_events_of(&change, &w->arena, &other));
    for (int i = 0; i < 2; i++) {
        assert_string_equal(w->events.list[i].body, again.list[i].body);
        assert_true(uuid_equal(&w->events.list[i].id, &again.list[i].id));
        assert_false(uuid_equal(&w->events.list[i].id, &other.list[i].id));
    }
}

static void test_no_secret_is_in_any_event(void **state)
{
    struct world *w = *state;

    add_hold(w, OTHER_HOLD, OTHER_SEAT)->insert = true;
    end_hold(add_hold(w, HOLD, SEAT), HOLD_CONVERTED, END_NONE);
    add_checkout(w, CHECKOUT_COMPLETED)->moved = true;
    add_ticket(w, SEAT, HOLD);
    assert_true(make(w));
    assert_int_equal(w->events.count, 2);
    for (int i = 0; i < w->events.count; i++)
        assert_null(strstr(w->events.list[i].body, "secret"));
}

static void test_a_change_that_is_cut_off_gives_what_was_before_the_cut(void **state)
{
    struct world *w = *state;
    struct domain_events events;

    add_hold(w, HOLD, SEAT)->insert = true;
    add_hold(w, OTHER_HOLD, OTHER_SEAT)->insert = true;
    assert_true(make(w));
    struct store_change cut = {
        .id = 42, .created_ms = CREATED_MS, .data = w->data.data, .size = w->data.size - 1};
    assert_false(domain_events_of(&cut, &w->arena, &events));
    assert_int_equal(events.count, 1);
    assert_string_equal(events.list[0].body, w->events.list[0].body);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_new_hold_is_SeatReserved_in_exactly_this_form),
        TEST(test_a_hold_that_ends_is_SeatReleased_with_its_reason_and_what_the_seat_is_now),
        TEST(test_a_started_checkout_lists_its_seats_after_their_extensions),
        TEST(test_a_completed_checkout_lists_its_tickets_and_its_holds_tell_nothing),
        TEST(test_every_end_of_a_checkout_has_its_type),
        TEST(test_what_does_not_move_tells_nothing),
        TEST(test_an_owner_who_comes_back_is_told_as_released_then_reserved),
        TEST(test_seats_of_neighbouring_commands_are_not_mixed),
        TEST(test_the_same_change_gives_the_same_ids_and_another_change_others),
        TEST(test_no_secret_is_in_any_event),
        TEST(test_a_change_that_is_cut_off_gives_what_was_before_the_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
