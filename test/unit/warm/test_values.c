/* SPDX-License-Identifier: Apache-2.0
 * Keys and values as other programs see them, and what is made of values that
 * other programs wrote. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs the four above */
#include <cmocka.h>

#include "warm/keys.h"
#include "warm/resp.h"
#include "warm/values.h"

#define ORG "01020304-0506-7708-890a-0b0c0d0e0f10"
#define EVENT "11121314-1516-7718-991a-1b1c1d1e1f20"
#define SEAT "21222324-2526-7728-a92a-2b2c2d2e2f30"
#define HOLD "31323334-3536-7738-b93a-3b3c3d3e3f40"
#define USER "41424344-4546-7748-894a-4b4c4d4e4f50"

enum { UNTIL_MS = 1764165900 };

static struct buf out;
static struct value_times times;

static int setup(void **state)
{
    (void)state;
    buf_init(&out);
    memset(&times, 0, sizeof(times));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    buf_deinit(&out);
    return 0;
}

/* One argument of a command: its length stands before it. */
static void assert_argument(const char *text)
{
    char expected[1024];
    snprintf(expected, sizeof(expected), "$%zu\r\n%s\r\n", strlen(text), text);
    assert_string_equal(buf_text(&out), expected);
    buf_clear(&out);
}

static struct uuid uuid(const char *text)
{
    struct uuid id;
    assert_true(uuid_parse(text, strlen(text), &id));
    return id;
}

static void test_keys_are_those_of_the_contract(void **state)
{
    (void)state;
    struct uuid org = uuid(ORG), event = uuid(EVENT);
    struct keys_event keys;
    keys_event_init(&keys, "voelgoed", &org, &event);
    keys_put_lock(&out, &keys, SEAT);
    assert_argument("org:" ORG ":event:" EVENT ":seat:" SEAT);
    keys_put_members(&out, &keys);
    assert_argument("voelgoed:org:" ORG ":event:" EVENT ":seat_holds");
    keys_put_hold(&out, &keys, SEAT);
    assert_argument("voelgoed:org:" ORG ":seat:" SEAT ":hold");
    keys_put_meta(&out, &keys, HOLD);
    assert_argument("voelgoed:org:" ORG ":hold:" HOLD ":meta");
    keys_put_occupancy(&out, &keys);
    assert_argument("voelgoed:org:" ORG ":event:" EVENT ":occupancy");
    keys_put_bits(&out, &keys, "AB", 12);
    assert_argument("voelgoed:org:" ORG ":event:" EVENT ":seats_bf:AB-12");
    keys_put_guard(&out, &keys, "AB", 12);
    assert_argument("voelgoed:org:" ORG ":event:" EVENT ":seats_bf_version:AB-12");
    keys_put_occupancy_channel(&out, &org, &event);
    assert_argument("occupancy:" ORG ":" EVENT);
    keys_put_seat_channel(&out, &keys, "released");
    assert_argument("org:" ORG ":event:" EVENT ":seating:seat:released");
}

static void test_values_are_those_of_the_contract(void **state)
{
    (void)state;
    value_put_hold(&out, HOLD, USER, UNTIL_MS * 1000LL);
    assert_argument(HOLD ":" USER ":1764165900");
    value_put_member(&out, &times, SEAT, HOLD, USER, UNTIL_MS * 1000LL);
    assert_argument(SEAT ":" HOLD ":" USER ":2025-11-26T14:05:00Z");
    struct value_lock lock = {.hold = HOLD,
                              .user = USER,
                              .cart_token = "cart",
                              .held_at_ms = (UNTIL_MS - 300) * 1000LL,
                              .held_until_ms = UNTIL_MS * 1000LL};
    value_put_lock(&out, &times, &lock);
    assert_argument("{\"user_id\":\"" USER "\",\"cart_token\":\"cart\",\"hold_id\":\"" HOLD
                    "\",\"expires_at\":\"2025-11-26T14:05:00Z\",\"held_at\":\"2025-11-26T14:00:00Z\"}");
}

static void test_times_that_share_a_place_in_memory_stay_apart(void **state)
{
    (void)state;
    struct value_time first = value_time(&times, 0), second = value_time(&times, 8000);
    assert_string_equal(first.text, "1970-01-01T00:00:00Z");
    assert_string_equal(second.text, "1970-01-01T00:00:08Z");
    assert_string_equal(value_time(&times, 999).text, "1970-01-01T00:00:00Z");
}

/* Puts a lock and reads it back, without its frame. */
static void read_back(const char *cart_token, struct warm_lock *found)
{
    struct value_lock lock = {
        .hold = HOLD, .user = USER, .cart_token = cart_token, .held_at_ms = 1000, .held_until_ms = 2000};
    value_put_lock(&out, &times, &lock);
    const char *text = buf_text(&out), *value = strstr(text, "\r\n") + 2;
    size_t size = strtoul(text + 1, NULL, 10);
    assert_int_equal(size, strlen(value) - 2); /* the frame's length is right whatever was escaped */
    value_read_lock(value, size, found);
    buf_clear(&out);
}

static void test_a_lock_is_read_back_whatever_the_cart_token_holds(void **state)
{
    static const char *const tokens[] = {"",     "cart",         "\"",        "\\",
                                         "\\\"", "\x01\x1f\n\t", "Ünïcödé ✓", "\",\"hold_id\":\"" SEAT};
    (void)state;
    for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
        struct warm_lock found = {0};
        read_back(tokens[i], &found);
        assert_true(found.readable);
        struct uuid hold = uuid(HOLD), user = uuid(USER);
        assert_true(uuid_equal(&found.found_hold_id, &hold));
        assert_true(uuid_equal(&found.found_user_id, &user));
        assert_int_equal(found.found_held_at_ms, 1000);
    }
}

static void test_locks_of_strangers_make_no_sense(void **state)
{
    static const char *const strange[] = {
        "",
        "null",
        "1",
        "[]",
        "{}",
        "{",
        "\xff\xfe",
        "held",
        "{\"user_id\":\"" USER "\"}",
        "{\"hold_id\":\"" HOLD "\"}",
        "{\"user_id\":\"" USER "\",\"hold_id\":null}",
        "{\"user_id\":\"" USER "\",\"hold_id\":7}",
        "{\"user_id\":\"" USER "\",\"hold_id\":\"" HOLD " \"}",
        "{\"user_id\":\"" USER "\",\"hold_id\":\"" HOLD "\"} and more",
        "{\"user_id\":\"" USER "\",\"hold_id\":\"" HOLD "\",\"hold_id\":\"" SEAT "\"}",
        "{\"user_id\":[\"" USER "\"],\"hold_id\":{\"x\":\"" HOLD "\"}}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++) {
        struct warm_lock found = {.readable = true};
        value_read_lock(strange[i], strlen(strange[i]), &found);
        if (found.readable)
            fail_msg("this was read: %s", strange[i]);
    }
    static char deep[100000];
    memset(deep, '[', sizeof(deep));
    struct warm_lock found = {.readable = true};
    value_read_lock(deep, sizeof(deep), &found);
    assert_false(found.readable);
    value_read_lock(deep, 16000, &found);
    assert_false(found.readable);
}

static void test_a_lock_without_a_time_is_an_old_one(void **state)
{
    static const char *const old[] = {
        "{\"user_id\":\"" USER "\",\"hold_id\":\"" HOLD "\"}",
        "{ \"hold_id\" : \"" HOLD "\", \"user_id\": \"" USER "\", \"held_at\": null }",
        "{\"user_id\":\"" USER "\",\"hold_id\":\"" HOLD "\",\"held_at\":\"yesterday\"}",
        "{\"user_id\":\"" USER "\",\"hold_id\":\"" HOLD "\",\"held_at\":99}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(old) / sizeof(old[0]); i++) {
        struct warm_lock found = {.found_held_at_ms = 7};
        value_read_lock(old[i], strlen(old[i]), &found);
        assert_true(found.readable);
        assert_int_equal(found.found_held_at_ms, 0);
    }
}

static void test_members_are_read(void **state)
{
    static const char member[] = SEAT ":" HOLD ":" USER ":2025-11-26T14:05:00Z";
    (void)state;
    struct warm_member read = {0};
    value_read_member(member, strlen(member), &read);
    assert_true(read.readable);
    struct uuid seat = uuid(SEAT), hold = uuid(HOLD), user = uuid(USER);
    assert_true(uuid_equal(&read.seat_id, &seat));
    assert_true(uuid_equal(&read.hold_id, &hold));
    assert_true(uuid_equal(&read.user_id, &user));
    assert_int_equal(read.held_until_ms, UNTIL_MS * 1000LL);
}

static void test_members_of_strangers_are_not_readable(void **state)
{
    static const char *const strange[] = {
        "",
        "x",
        SEAT,
        SEAT ":" HOLD ":" USER,
        SEAT ":" HOLD ":" USER ":",
        SEAT ":" HOLD ":" USER ":soon",
        SEAT "-" HOLD ":" USER ":2025-11-26T14:05:00Z",
        SEAT ":" HOLD ":" USER ":2025-11-26T14:05:00Z and more",
        "seat-001:hold-001:user-001:2025-11-26T14:05:00Z",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++) {
        struct warm_member read = {.readable = true};
        value_read_member(strange[i], strlen(strange[i]), &read);
        assert_false(read.readable);
    }
}

static void test_numbers_of_the_protocol(void **state)
{
    (void)state;
    resp_int(&out, 0);
    assert_argument("0");
    resp_int(&out, INT64_MAX);
    assert_argument("9223372036854775807");
    resp_int(&out, INT64_MIN);
    assert_argument("-9223372036854775808");
    resp_array(&out, 1234567);
    assert_string_equal(buf_text(&out), "*1234567\r\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_keys_are_those_of_the_contract, setup, teardown),
        cmocka_unit_test_setup_teardown(test_values_are_those_of_the_contract, setup, teardown),
        cmocka_unit_test_setup_teardown(test_times_that_share_a_place_in_memory_stay_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_lock_is_read_back_whatever_the_cart_token_holds, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_locks_of_strangers_make_no_sense, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_lock_without_a_time_is_an_old_one, setup, teardown),
        cmocka_unit_test_setup_teardown(test_members_are_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_members_of_strangers_are_not_readable, setup, teardown),
        cmocka_unit_test_setup_teardown(test_numbers_of_the_protocol, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
