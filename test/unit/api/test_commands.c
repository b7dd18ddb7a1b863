/* SPDX-License-Identifier: Apache-2.0
 * Calls whose command another node decides: 202 and its place, and the answer
 * when it is asked for. Sockets and the lane are stood in for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "../hot/map_fixture.h"
#include "base/clock.h"
#include "fake_http.h"

#define COMMAND_TEXT "018f7f4e-6a5b-7c3d-9e2f-0a1b2c3d4e01"

static const char secret[] = "0123456789abcdef0123456789abcdef";
static struct api *api;
static struct directory *directory;
static struct auth *auth;
static char bearer[1100] = "Bearer ", seat_path[192];

static int setup(void **state)
{
    (void)state;
    struct auth_claims claims = {.org_id = fixture_id('o', 1),
                                 .user_id = fixture_id('u', 1),
                                 .role = ROLE_BUYER,
                                 .expires_ms = clock_now_ms() + 60000};
    if (directory_create(&directory) != ERR_OK || auth_create_secret(secret, strlen(secret), &auth) != ERR_OK)
        return -1;
    directory_put_org(directory, &claims.org_id);
    directory_put_user(directory, &(struct user_row){.org_id = claims.org_id, .id = claims.user_id});
    if (!auth_sign(secret, strlen(secret), &claims, clock_now_ms(), bearer + 7, sizeof bearer - 7))
        return -1;
    struct uuid event_id = fixture_id('e', 1), seat_id = fixture_id('s', 1);
    char event[UUID_TEXT_SIZE], seat[UUID_TEXT_SIZE];
    uuid_format(&event_id, event);
    uuid_format(&seat_id, seat);
    snprintf(seat_path, sizeof seat_path, "/api/events/%s/seats/%s/reserve", event, seat);
    struct api_config config = {.directory = directory, .auth = auth};
    return api_create(&config, &api) == ERR_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    api_destroy(api);
    auth_destroy(auth);
    directory_destroy(directory);
    return 0;
}

static struct http_request call_of(enum http_method method, const char *path, const char *body)
{
    return (struct http_request){.api = api,
                                 .method = method,
                                 .path = path,
                                 .body = body,
                                 .is_remote = true,
                                 .headers = {{"Authorization", bearer}}};
}

static struct result held_result(void)
{
    static struct hold_view hold;
    hold = (struct hold_view){
        .seat_index = -1,
        .row = {.id = fixture_id('h', 1), .user_id = fixture_id('u', 1), .held_until_ms = 301000}};
    return (struct result){.status = 201, .holds = &hold, .hold_count = 1, .now_ms = 1000};
}

static const char *data_text(const struct http_request *request, const char *key)
{
    const char *text = json_string_value(json_object_get(json_object_get(fake_json(request), "data"), key));
    return text != NULL ? text : "";
}

static void test_a_command_without_an_answer_yet_is_202_with_its_place(void **state)
{
    (void)state;
    struct http_request request = call_of(HTTP_POST, seat_path, NULL);
    fake_begin(&request);
    assert_true(uuid_parse(COMMAND_TEXT, strlen(COMMAND_TEXT), &fake_command->sent.id));
    fake_answer(&request, (struct result){.status = 202, .is_pending = true});
    assert_int_equal(request.status, 202);
    assert_string_equal(fake_reply_header(&request, "Location"), "/api/commands/" COMMAND_TEXT);
    assert_string_equal(data_text(&request, "command_id"), COMMAND_TEXT);
    assert_string_equal(data_text(&request, "status"), "pending");
    assert_string_equal(data_text(&request, "location"), "/api/commands/" COMMAND_TEXT);
    fake_end(&request);
}

static void test_the_place_of_a_command_with_a_key_finds_the_key(void **state)
{
    (void)state;
    uint8_t key[32];
    char place[256];
    struct http_request request = call_of(HTTP_POST, seat_path, NULL);
    request.headers[1] = (struct fake_field){"Idempotency-Key", "order-1"};
    fake_begin(&request);
    assert_true(uuid_parse(COMMAND_TEXT, strlen(COMMAND_TEXT), &fake_command->sent.id));
    memcpy(key, fake_command->key, sizeof key);
    fake_answer(&request, (struct result){.status = 202, .is_pending = true});
    snprintf(place, sizeof place, "%s", fake_reply_header(&request, "Location"));
    fake_end(&request);
    assert_int_equal(strlen(place), strlen("/api/commands/" COMMAND_TEXT ".") + 64);

    request = call_of(HTTP_GET, place, NULL);
    fake_begin(&request);
    assert_non_null(fake_command);
    assert_int_equal(fake_command->kind, COMMAND_ANSWER_GET);
    assert_false(fake_command->sent.is_key_made);
    assert_memory_equal(fake_command->key, key, sizeof key);
    fake_answer(&request, (struct result){.status = 202, .is_pending = true});
    assert_int_equal(request.status, 202);
    assert_string_equal(fake_reply_header(&request, "Location"), place);
    fake_end(&request);
}

static void ask_for_answer(struct http_request *request, struct result result)
{
    *request = call_of(HTTP_GET, "/api/commands/" COMMAND_TEXT, NULL);
    fake_begin(request);
    assert_non_null(fake_command);
    fake_answer(request, result);
}

static void test_an_answer_is_told_as_the_call_itself_tells_it(void **state)
{
    (void)state;
    static const struct {
        enum command_kind kind;
        bool several;
        const char *key; /* what only this shape has */
    } cases[] = {
        {COMMAND_HOLD_SEATS, false, "hold_id"},        {COMMAND_HOLD_SEATS, true, "holds"},
        {COMMAND_HOLD_BEST, false, "holds"},           {COMMAND_HOLD_EXTEND, false, "hold_id"},
        {COMMAND_HOLD_RELEASE, false, "hold_id"},      {COMMAND_CHECKOUT_START, false, "total_cents"},
        {COMMAND_CHECKOUT_COMPLETE, false, "tickets"}, {COMMAND_CHECKOUT_CANCEL, false, "released_seats"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct http_request request;
        struct result result = held_result();
        result.kind = cases[i].kind;
        result.several = cases[i].several;
        result.status = cases[i].kind == COMMAND_CHECKOUT_CANCEL ? 200 : 201;
        result.has_checkout = cases[i].kind >= COMMAND_CHECKOUT_START;
        ask_for_answer(&request, result);
        assert_int_equal(request.status, result.status);
        if (json_object_get(json_object_get(fake_json(&request), "data"), cases[i].key) == NULL)
            fail_msg("case %zu has no %s: %s", i, cases[i].key, request.text);
        fake_end(&request);
    }
}

static void test_a_refusal_is_told_as_the_call_itself_tells_it(void **state)
{
    (void)state;
    struct seat_failure failure = {.id = fixture_id('s', 1), .err = ERR_SEAT_HELD, .expires_ms = 61000};
    struct result result = {.err = ERR_SEAT_HELD,
                            .failures = &failure,
                            .failure_count = 1,
                            .now_ms = 1000,
                            .kind = COMMAND_HOLD_SEATS};
    for (int several = 0; several <= 1; several++) {
        struct http_request request;
        result.several = several;
        ask_for_answer(&request, result);
        assert_int_equal(request.status, 409);
        assert_string_equal(fake_error(&request), "seat_held_by_another_user");
        json_t *details = json_object_get(json_object_get(fake_json(&request), "error"), "details");
        assert_true((json_object_get(details, "seats") != NULL) == several);
        assert_true((json_object_get(details, "expires_in_seconds") != NULL) != several);
        fake_end(&request);
    }
}

static void test_what_is_not_known_is_404_with_what_to_do(void **state)
{
    (void)state;
    struct http_request request;
    ask_for_answer(&request, (struct result){.err = ERR_COMMAND_NOT_FOUND});
    assert_int_equal(request.status, 404);
    assert_string_equal(fake_error(&request), "command_not_found");
    assert_non_null(strstr(request.text, "Idempotency-Key"));
    fake_end(&request);
    /* The key of something that is never sent: nobody was told to ask for it here. */
    ask_for_answer(&request, (struct result){.status = 200, .kind = COMMAND_EVENT_CREATE});
    assert_int_equal(request.status, 404);
    assert_string_equal(fake_error(&request), "command_not_found");
    fake_end(&request);
}

static void test_what_no_location_ever_said_is_a_bad_request(void **state)
{
    (void)state;
    static const char *const paths[] = {"/api/commands/7", "/api/commands/" COMMAND_TEXT ".",
                                        "/api/commands/" COMMAND_TEXT ".12"};
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        struct http_request request = call_of(HTTP_GET, paths[i], NULL);
        fake_begin(&request);
        assert_int_equal(request.status, 400);
        assert_string_equal(fake_error_field(&request), "command");
        assert_null(fake_command);
        fake_end(&request);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_command_without_an_answer_yet_is_202_with_its_place),
        cmocka_unit_test(test_the_place_of_a_command_with_a_key_finds_the_key),
        cmocka_unit_test(test_an_answer_is_told_as_the_call_itself_tells_it),
        cmocka_unit_test(test_a_refusal_is_told_as_the_call_itself_tells_it),
        cmocka_unit_test(test_what_is_not_known_is_404_with_what_to_do),
        cmocka_unit_test(test_what_no_location_ever_said_is_a_bad_request),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
