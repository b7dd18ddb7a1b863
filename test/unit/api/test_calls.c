/* SPDX-License-Identifier: Apache-2.0
 * Calls from their headers to their answer, over the real table, admission,
 * handlers and directory; only sockets and the lane are stood in for. */
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

static const char secret[] = "0123456789abcdef0123456789abcdef";
static struct api *api;
static struct directory *directory;
static struct auth *auth;
static struct feed *feed;
static struct uuid org_id, other_org_id, event_id, draft_id, other_event_id;
static char event_path[128], seat_path[192];

enum { USER_FIRST = 1, USER_GONE = 9 };

static void put_event(struct uuid *out, const struct uuid *org, uint32_t number, enum event_state state)
{
    *out = fixture_id('e', number);
    struct event_row row = {.org_id = *org,
                            .id = *out,
                            .name = "Concert",
                            .state = state,
                            .sale_start_ms = TIME_NONE,
                            .sale_end_ms = TIME_MAX,
                            .currency = "EUR",
                            .policy = policy_default()};
    directory_put_event(directory, &row);
}

static int setup(void **state)
{
    (void)state;
    org_id = fixture_id('o', 1);
    other_org_id = fixture_id('o', 2);
    if (directory_create(&directory) != ERR_OK ||
        auth_create_secret(secret, strlen(secret), &auth) != ERR_OK ||
        feed_create(50, NULL, NULL, &feed) != ERR_OK)
        return -1;
    directory_put_org(directory, &org_id);
    directory_put_org(directory, &other_org_id);
    directory_put_user(directory, &(struct user_row){.org_id = org_id, .id = fixture_id('u', USER_FIRST)});
    directory_put_user(
        directory, &(struct user_row){.org_id = org_id, .id = fixture_id('u', USER_GONE), .disabled = true});
    put_event(&event_id, &org_id, 1, EVENT_LIVE);
    put_event(&draft_id, &org_id, 2, EVENT_DRAFT);
    put_event(&other_event_id, &other_org_id, 3, EVENT_LIVE);
    struct seatmap *map = fixture_map();
    directory_put_map(directory, &event_id, map);
    seatmap_release(map);
    char event[UUID_TEXT_SIZE], seat[UUID_TEXT_SIZE];
    struct uuid seat_id = fixture_id('s', 1);
    uuid_format(&event_id, event);
    uuid_format(&seat_id, seat);
    snprintf(event_path, sizeof event_path, "/api/events/%s", event);
    snprintf(seat_path, sizeof seat_path, "/api/events/%s/seats/%s/reserve", event, seat);
    struct api_config config = {.directory = directory, .auth = auth, .feed = feed};
    return api_create(&config, &api) == ERR_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    api_destroy(api);
    feed_destroy(feed);
    auth_destroy(auth);
    directory_destroy(directory);
    return 0;
}

/* "Bearer …" in memory that lives until the next ring of calls. */
static const char *bearer(enum role role, const struct uuid *org, uint32_t user)
{
    static char texts[8][1100];
    static size_t next;
    char *text = texts[next++ % 8];
    struct auth_claims claims = {
        .user_id = fixture_id('u', user), .role = role, .expires_ms = clock_now_ms() + 60000};
    if (org != NULL)
        claims.org_id = *org;
    strcpy(text, "Bearer ");
    assert_true(auth_sign(secret, strlen(secret), &claims, clock_now_ms(), text + 7, 1000));
    return text;
}

static struct http_request call_as(enum role role, enum http_method method, const char *path,
                                   const char *body)
{
    return (struct http_request){
        .api = api,
        .method = method,
        .path = path,
        .body = body,
        .is_remote = true,
        .headers = {{"Authorization", bearer(role, &org_id, USER_FIRST)}, {"User-Agent", "t\xff\x01st"}}};
}

static void assert_answer(struct http_request *request, int status, const char *code)
{
    fake_begin(request);
    if (request->status != status)
        print_error("%s answered %d %s\n", request->path, request->status, request->text);
    assert_int_equal(request->status, status);
    assert_string_equal(fake_error(request), code);
    assert_null(fake_command);
    fake_end(request);
}

static void assert_refused(enum role role, enum http_method method, const char *path, const char *body,
                           const char *field)
{
    struct http_request request = call_as(role, method, path, body);
    fake_begin(&request);
    if (request.status != 400)
        print_error("%s %s answered %d %s\n", path, body, request.status, request.text);
    assert_int_equal(request.status, 400);
    assert_string_equal(fake_error(&request), "invalid_request");
    assert_string_equal(fake_error_field(&request), field);
    fake_end(&request);
}

/* ---- Token and role ---- */

static void test_without_a_good_token_the_answer_is_401(void **state)
{
    (void)state;
    struct uuid unknown_org = fixture_id('o', 77);
    const char *headers[] = {
        NULL,
        "",
        "Bearer",
        "Bearer ",
        "Basic abc",
        "Bearer a.b.c",
        "Bearer a b",
        bearer(ROLE_BUYER, &unknown_org, 1),
        bearer(ROLE_BUYER, &org_id, USER_GONE),
    };
    for (size_t i = 0; i < COUNT_OF(headers); i++) {
        struct http_request request = {.api = api,
                                       .method = HTTP_GET,
                                       .path = "/api/events",
                                       .is_remote = true,
                                       .headers = {{headers[i] != NULL ? "Authorization" : "X", headers[i]}}};
        fake_begin(&request);
        assert_int_equal(request.status, 401);
        assert_string_equal(fake_error(&request), "unauthorized");
        assert_string_equal(fake_reply_header(&request, "WWW-Authenticate"), "Bearer");
        fake_end(&request);
    }
}

static void test_token_is_checked_before_role_and_role_before_shape(void **state)
{
    (void)state;
    struct http_request request = {
        .api = api, .method = HTTP_POST, .path = "/api/admin/events", .body = "nonsense"};
    assert_answer(&request, 401, "unauthorized");
    request = call_as(ROLE_BUYER, HTTP_POST, "/api/admin/events", "nonsense");
    assert_answer(&request, 403, "forbidden");
    request = call_as(ROLE_AGENT, HTTP_POST, "/api/admin/events", "nonsense");
    assert_answer(&request, 403, "forbidden");
    request = call_as(ROLE_ADMIN, HTTP_POST, "/api/admin/organizations", "{\"name\":\"x\"}");
    assert_answer(&request, 403, "forbidden");
    assert_refused(ROLE_ADMIN, HTTP_POST, "/api/admin/events", "nonsense", "body");
}

static void test_a_new_user_is_registered_once_in_the_background(void **state)
{
    (void)state;
    int before = fake_user_seen_count;
    for (int i = 0; i < 3; i++) {
        struct http_request request = {.api = api,
                                       .method = HTTP_GET,
                                       .path = "/api/events",
                                       .headers = {{"Authorization", bearer(ROLE_BUYER, &org_id, 42)}}};
        fake_begin(&request);
        assert_int_equal(request.status, 200);
        fake_end(&request);
    }
    assert_in_range(fake_user_seen_count - before, 1, 2); /* two if a moment ended in between */
    before = fake_user_seen_count;
    struct http_request request = call_as(ROLE_BUYER, HTTP_GET, "/api/events", NULL);
    fake_begin(&request);
    fake_end(&request);
    assert_int_equal(fake_user_seen_count, before);
}

static void test_an_operator_without_organization_acts_in_that_of_the_event(void **state)
{
    (void)state;
    char path[160], text[UUID_TEXT_SIZE];
    uuid_format(&other_event_id, text);
    snprintf(path, sizeof path, "/api/admin/events/%s/registry/reconcile", text);
    struct fake_field operator= {"Authorization", bearer(ROLE_OPERATOR, NULL, 5)};
    struct http_request request = {.api = api, .method = HTTP_POST, .path = path, .headers = {operator} };
    fake_begin(&request);
    assert_non_null(fake_command);
    assert_true(uuid_equal(&fake_command->actor.org_id, &other_org_id));
    fake_end(&request);
    request =
        (struct http_request){.api = api, .method = HTTP_GET, .path = "/api/events", .headers = {operator} };
    assert_answer(&request, 403, "forbidden");
    request = (struct http_request){.api = api,
                                    .method = HTTP_POST,
                                    .path = "/api/admin/organizations",
                                    .body = "{\"name\":\"New\"}",
                                    .headers = {operator} };
    fake_begin(&request);
    assert_non_null(fake_command);
    assert_false(uuid_is_nil(&fake_command->actor.org_id)); /* keys need one */
    fake_end(&request);
    struct uuid unknown = fixture_id('e', 99);
    uuid_format(&unknown, text);
    snprintf(path, sizeof path, "/api/admin/events/%s/registry/reconcile", text);
    request = (struct http_request){.api = api, .method = HTTP_POST, .path = path, .headers = {operator} };
    assert_answer(&request, 404, "event_not_found");
}

static void test_metrics_are_for_loopback_and_operators(void **state)
{
    (void)state;
    struct http_request request = {.api = api, .method = HTTP_GET, .path = "/metrics"};
    fake_begin(&request);
    assert_int_equal(request.status, 200);
    fake_end(&request);
    request = (struct http_request){.api = api, .method = HTTP_GET, .path = "/metrics", .is_remote = true};
    assert_answer(&request, 401, "unauthorized");
    request = call_as(ROLE_ADMIN, HTTP_GET, "/metrics", NULL);
    assert_answer(&request, 403, "forbidden");
    request = call_as(ROLE_OPERATOR, HTTP_GET, "/metrics", NULL);
    fake_begin(&request);
    assert_int_equal(request.status, 200);
    fake_end(&request);
}

static void test_figures_are_for_admins_and_operators(void **state)
{
    (void)state;
    struct http_request request = call_as(ROLE_BUYER, HTTP_GET, "/api/admin/figures", NULL);
    assert_answer(&request, 403, "forbidden");
    request = call_as(ROLE_AGENT, HTTP_GET, "/api/admin/figures", NULL);
    assert_answer(&request, 403, "forbidden");
    request = (struct http_request){.api = api, .method = HTTP_GET, .path = "/api/admin/figures"};
    assert_answer(&request, 401, "unauthorized"); /* from loopback too */
}

static void test_a_buyer_lists_only_their_own_checkouts(void **state)
{
    (void)state;
    char other[UUID_TEXT_SIZE];
    struct uuid other_id = fixture_id('u', 7);
    uuid_format(&other_id, other);
    struct http_request request = call_as(ROLE_BUYER, HTTP_GET, "/api/checkouts", NULL);
    request.query[0] = (struct fake_field){"user_id", other};
    assert_answer(&request, 403, "forbidden");
}

/* ---- Tenants ---- */

static void test_foreign_and_hidden_events_answer_as_unknown_ones(void **state)
{
    (void)state;
    struct uuid unknown = fixture_id('e', 99);
    const struct uuid *ids[] = {&other_event_id, &draft_id, &unknown};
    static const char *const ends[] = {"", "/layout", "/seats", "/availability", "/occupancy", "/stream"};
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        for (size_t e = 0; e < COUNT_OF(ends); e++) {
            char path[160], text[UUID_TEXT_SIZE];
            uuid_format(ids[i], text);
            snprintf(path, sizeof path, "/api/events/%s%s", text, ends[e]);
            struct http_request request = call_as(ROLE_BUYER, HTTP_GET, path, NULL);
            assert_answer(&request, 404, "event_not_found");
        }
    }
}

static void test_an_id_that_is_no_uuid_is_a_bad_request(void **state)
{
    (void)state;
    assert_refused(ROLE_BUYER, HTTP_GET, "/api/events/7/layout", NULL, "event");
    assert_refused(ROLE_BUYER, HTTP_GET, "/api/holds/x", NULL, "hold");
    assert_refused(ROLE_BUYER, HTTP_DELETE, "/api/holds/00000000-0000-0000-0000-000000000000", NULL, "hold");
    assert_refused(ROLE_BUYER, HTTP_POST, "/api/checkouts/x/cancel", NULL, "checkout");
    assert_refused(ROLE_ADMIN, HTTP_PATCH, "/api/admin/users/x", "{\"disabled\":true}", "user");
}

/* ---- Reserve ---- */

static struct result held_result(void)
{
    static struct hold_view hold;
    hold = (struct hold_view){
        .seat_index = -1,
        .row = {.id = fixture_id('h', 1), .user_id = fixture_id('u', 1), .held_until_ms = 301000}};
    return (struct result){.status = 201, .holds = &hold, .hold_count = 1, .now_ms = 1000};
}

static void test_reserve_without_a_body_submits_the_seat(void **state)
{
    (void)state;
    struct http_request request = call_as(ROLE_BUYER, HTTP_POST, seat_path, NULL);
    fake_begin(&request);
    assert_non_null(fake_command);
    assert_int_equal(fake_command->kind, COMMAND_HOLD_SEATS);
    assert_int_equal(fake_command->hold_seats.count, 1);
    assert_false(fake_command->hold_seats.several);
    assert_int_equal(fake_command->hold_seats.source, SOURCE_WEB);
    assert_true(uuid_equal(&fake_command->hold_seats.event_id, &event_id));
    assert_true(uuid_equal(&fake_command->actor.org_id, &org_id));
    assert_string_equal(fake_command->actor.user_agent, "t??st");
    assert_false(fake_command->has_key);
    fake_answer(&request, held_result());
    assert_int_equal(request.status, 201);
    json_t *data = json_object_get(fake_json(&request), "data");
    assert_string_equal(json_string_value(json_object_get(data, "status")), "held");
    assert_null(json_object_get(data, "user_id"));
    fake_end(&request);
}

static void test_a_refusal_says_when_to_come_back_and_never_who(void **state)
{
    (void)state;
    struct seat_failure failure = {.id = fixture_id('s', 1), .err = ERR_SEAT_HELD, .expires_ms = 61000};
    struct http_request request = call_as(ROLE_BUYER, HTTP_POST, seat_path, NULL);
    fake_begin(&request);
    fake_answer(
        &request,
        (struct result){.err = ERR_SEAT_HELD, .failures = &failure, .failure_count = 1, .now_ms = 1000});
    assert_int_equal(request.status, 409);
    assert_string_equal(fake_error(&request), "seat_held_by_another_user");
    json_t *details = json_object_get(json_object_get(fake_json(&request), "error"), "details");
    assert_int_equal(json_object_size(details), 2);
    assert_int_equal(json_integer_value(json_object_get(details, "expires_in_seconds")), 60);
    assert_null(strstr(request.text, "user_id"));
    fake_end(&request);
}

static void test_rate_limit_and_overload_say_when_to_retry(void **state)
{
    (void)state;
    struct http_request request = call_as(ROLE_BUYER, HTTP_POST, seat_path, NULL);
    fake_begin(&request);
    fake_answer(&request, (struct result){.err = ERR_RATE_LIMITED, .retry_after_seconds = 41});
    assert_int_equal(request.status, 429);
    assert_string_equal(fake_reply_header(&request, "Retry-After"), "41");
    fake_end(&request);
    fake_submit_err = ERR_OVERLOADED;
    request = call_as(ROLE_BUYER, HTTP_POST, seat_path, NULL);
    fake_begin(&request);
    fake_submit_err = ERR_OK;
    assert_int_equal(request.status, 503);
    assert_string_equal(fake_error(&request), "overloaded");
    assert_string_equal(fake_reply_header(&request, "Retry-After"), "1");
    fake_end(&request);
}

/* ---- Acting for another ---- */

static void test_only_agents_may_act_for_another_user(void **state)
{
    (void)state;
    char body[96], text[UUID_TEXT_SIZE];
    struct uuid buyer = fixture_id('u', 7);
    uuid_format(&buyer, text);
    snprintf(body, sizeof body, "{\"user_id\":\"%s\"}", text);
    struct http_request request = call_as(ROLE_BUYER, HTTP_POST, seat_path, body);
    assert_answer(&request, 403, "forbidden");
    request = call_as(ROLE_AGENT, HTTP_POST, seat_path, body);
    fake_begin(&request);
    assert_non_null(fake_command);
    assert_true(uuid_equal(&fake_command->actor.for_user_id, &buyer));
    assert_false(uuid_equal(&fake_command->actor.user_id, &buyer));
    fake_answer(&request, held_result());
    assert_non_null(strstr(request.text, "\"user_id\"")); /* an agent is shown whose it is */
    fake_end(&request);
}

/* ---- Several seats ---- */

static void test_holds_take_one_of_two_forms(void **state)
{
    (void)state;
    char path[160];
    snprintf(path, sizeof path, "%s/holds", event_path);
#define A "\"018f7f4e-6a5b-7c3d-9e2f-0a1b2c3d4e01\""
#define B "\"018f7f4e-6a5b-7c3d-9e2f-0a1b2c3d4e02\""
    assert_refused(ROLE_BUYER, HTTP_POST, path, NULL, "seat_ids");
    assert_refused(ROLE_BUYER, HTTP_POST, path, "{}", "seat_ids");
    assert_refused(ROLE_BUYER, HTTP_POST, path, "{\"seat_ids\":[" A "]}", "seat_ids");
    assert_refused(ROLE_BUYER, HTTP_POST, path, "{\"seat_ids\":[" A "," A "]}", "seat_ids");
    assert_refused(ROLE_BUYER, HTTP_POST, path, "{\"seat_ids\":[" A "," B "],\"quantity\":2}", "quantity");
    assert_refused(ROLE_BUYER, HTTP_POST, path, "{\"quantity\":0}", "quantity");
    assert_refused(ROLE_BUYER, HTTP_POST, path, "{\"quantity\":51}", "quantity");
    assert_refused(ROLE_BUYER, HTTP_POST, path, "{\"quantity\":2,\"section\":\"a\"}", "section");
    assert_refused(ROLE_BUYER, HTTP_POST, path, "{\"quantity\":2,\"subsection\":1}", "subsection");
    assert_refused(ROLE_BUYER, HTTP_POST, path, "{\"quantity\":2,\"adjacent\":\"no\"}", "adjacent");
    assert_refused(ROLE_BUYER, HTTP_POST, path, "{\"quantity\":2,\"source\":\"fax\"}", "source");
    struct http_request request =
        call_as(ROLE_BUYER, HTTP_POST, path,
                "{\"quantity\":4,\"section\":\"AB\",\"subsection\":2,\"adjacent\":false}");
    fake_begin(&request);
    assert_int_equal(fake_command->kind, COMMAND_HOLD_BEST);
    assert_int_equal(fake_command->hold_best.quantity, 4);
    assert_string_equal(fake_command->hold_best.section, "AB");
    assert_false(fake_command->hold_best.adjacent);
    fake_end(&request);
    request = call_as(ROLE_BUYER, HTTP_POST, path, "{\"seat_ids\":[" A "," B "]}");
    fake_begin(&request);
    assert_int_equal(fake_command->kind, COMMAND_HOLD_SEATS);
    assert_true(fake_command->hold_seats.several);
    struct seat_failure failures[] = {
        {.id = fixture_id('s', 1), .err = ERR_SEAT_NOT_AVAILABLE, .state = SEAT_SOLD},
        {.id = fixture_id('s', 2), .err = ERR_SEAT_HELD, .expires_ms = 5000}};
    fake_answer(&request,
                (struct result){.err = ERR_SEAT_NOT_AVAILABLE, .failures = failures, .failure_count = 2});
    json_t *details = json_object_get(json_object_get(fake_json(&request), "error"), "details");
    assert_int_equal(json_array_size(json_object_get(details, "seats")), 2);
    fake_end(&request);
#undef A
#undef B
}

/* ---- Idempotency-Key ---- */

static void submit_with_key(const char *key, const char *path, const char *body, uint8_t out_key[32],
                            uint8_t out_body[32])
{
    struct http_request request = call_as(ROLE_BUYER, HTTP_POST, path, body);
    request.headers[2] = (struct fake_field){"Idempotency-Key", key};
    fake_begin(&request);
    assert_non_null(fake_command);
    assert_true(fake_command->has_key);
    memcpy(out_key, fake_command->key, 32);
    memcpy(out_body, fake_command->body, 32);
    fake_end(&request);
}

static void test_a_key_is_of_its_path_and_knows_its_body(void **state)
{
    (void)state;
    uint8_t key[4][32], body[4][32];
    char other_path[192];
    snprintf(other_path, sizeof other_path, "%s", seat_path);
    *strstr(other_path, "/reserve") = '\0';
    other_path[strlen(other_path) - 1] = other_path[strlen(other_path) - 1] == '1' ? '2' : '1';
    strcat(other_path, "/reserve");
    submit_with_key("k1", seat_path, NULL, key[0], body[0]);
    submit_with_key("k1", seat_path, "{\"source\":\"web\"}", key[1], body[1]);
    submit_with_key("k2", seat_path, NULL, key[2], body[2]);
    submit_with_key("k1", other_path, NULL, key[3], body[3]);
    assert_memory_equal(key[0], key[1], 32);
    assert_memory_not_equal(body[0], body[1], 32);
    assert_memory_not_equal(key[0], key[2], 32);
    assert_memory_equal(body[0], body[2], 32);
    assert_memory_not_equal(key[0], key[3], 32);
}

static void test_a_bad_key_is_refused(void **state)
{
    (void)state;
    char long_key[300];
    memset(long_key, 'k', sizeof long_key);
    long_key[256] = '\0';
    const char *keys[] = {"", "a b", "a\tb", "k\xc3\xa9y", long_key};
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        struct http_request request = call_as(ROLE_BUYER, HTTP_POST, seat_path, NULL);
        request.headers[2] = (struct fake_field){"Idempotency-Key", keys[i]};
        assert_answer(&request, 400, "invalid_request");
    }
}

/* ---- Reads ---- */

static void test_the_layout_is_tagged_and_not_sent_twice(void **state)
{
    (void)state;
    char path[160], etag[128], list[200];
    snprintf(path, sizeof path, "%s/layout", event_path);
    struct http_request request = call_as(ROLE_BUYER, HTTP_GET, path, NULL);
    fake_begin(&request);
    assert_int_equal(request.status, 200);
    json_t *data = json_object_get(fake_json(&request), "data");
    json_t *block = json_array_get(json_object_get(data, "blocks"), 1);
    assert_int_equal(json_integer_value(json_object_get(block, "first_index")), 5);
    json_t *row = json_array_get(json_object_get(block, "rows"), 0);
    assert_int_equal(json_array_size(json_object_get(row, "seat_ids")), 4);
    assert_int_equal(json_array_size(json_object_get(row, "seat_numbers")), 4);
    snprintf(etag, sizeof etag, "%s", fake_reply_header(&request, "ETag"));
    fake_end(&request);
    snprintf(list, sizeof list, "\"other\", W/%s", etag);
    const char *tags[] = {etag, list, "*"};
    for (size_t i = 0; i < COUNT_OF(tags); i++) {
        request = call_as(ROLE_BUYER, HTTP_GET, path, NULL);
        request.headers[2] = (struct fake_field){"If-None-Match", tags[i]};
        fake_begin(&request);
        assert_int_equal(request.status, 304);
        assert_int_equal(request.text_size, 0);
        fake_end(&request);
    }
    request = call_as(ROLE_BUYER, HTTP_GET, path, NULL);
    request.headers[2] = (struct fake_field){"If-None-Match", "\"other\""};
    fake_begin(&request);
    assert_int_equal(request.status, 200);
    fake_end(&request);
}

static void test_availability_packs_two_bits_a_seat(void **state)
{
    (void)state;
    char path[160];
    struct event_view event;
    struct arena arena;
    arena_init(&arena);
    assert_true(directory_event(directory, &org_id, &event_id, &arena, &event));
    seatmap_move(event.map, 1, SEAT_HELD);
    seatmap_move(event.map, 4, SEAT_SOLD);
    snprintf(path, sizeof path, "%s/availability", event_path);
    struct http_request request = call_as(ROLE_BUYER, HTTP_GET, path, NULL);
    fake_begin(&request);
    json_t *data = json_object_get(fake_json(&request), "data");
    assert_int_equal(json_integer_value(json_object_get(data, "count")), FIXTURE_SEAT_COUNT);
    assert_string_equal(json_string_value(json_object_get(data, "states")), "BAIA"); /* 04 02 00 */
    assert_non_null(json_object_get(data, "stream_id"));
    assert_non_null(json_object_get(data, "layout_etag"));
    fake_end(&request);
    seatmap_move(event.map, 1, SEAT_AVAILABLE);
    seatmap_move(event.map, 4, SEAT_AVAILABLE);
    seatmap_release(event.map);
    arena_deinit(&arena);
}

static void test_seats_mark_what_is_mine(void **state)
{
    (void)state;
    char path[160];
    snprintf(path, sizeof path, "%s/seats", event_path);
    struct http_request request = call_as(ROLE_BUYER, HTTP_GET, path, NULL);
    request.query[0] = (struct fake_field){"section", "A"};
    request.query[1] = (struct fake_field){"subsection", "1"};
    fake_begin(&request);
    assert_non_null(fake_command);
    assert_int_equal(fake_command->kind, COMMAND_HOLDS_LIST);
    struct hold_view holds[] = {{.map = fake_command->maps->map,
                                 .seat_index = 3,
                                 .row = {.id = fixture_id('h', 2), .held_until_ms = 1000}},
                                {.map = fake_command->maps->map,
                                 .seat_index = 0,
                                 .row = {.id = fixture_id('h', 1), .held_until_ms = 1000}}};
    fake_answer(&request, (struct result){.holds = holds, .hold_count = 2, .status = 200});
    json_t *seats = json_object_get(fake_json(&request), "data");
    assert_int_equal(json_array_size(seats), 5);
    for (size_t i = 0; i < 5; i++) {
        json_t *seat = json_array_get(seats, i);
        bool is_mine = i == 0 || i == 3;
        assert_int_equal(json_object_get(seat, "mine") != NULL, is_mine);
        assert_string_equal(json_string_value(json_object_get(seat, "status")),
                            is_mine ? "held" : "available");
        assert_string_equal(json_string_value(json_object_get(seat, "block")), "A-1");
    }
    fake_end(&request);
    struct http_request wrong = call_as(ROLE_BUYER, HTTP_GET, path, NULL);
    wrong.query[0] = (struct fake_field){"subsection", "1"};
    assert_answer(&wrong, 400, "invalid_request");
}

/* ---- Admin ---- */

static void test_event_patch_carries_only_what_was_named(void **state)
{
    (void)state;
    char path[160], text[UUID_TEXT_SIZE];
    uuid_format(&event_id, text);
    snprintf(path, sizeof path, "/api/admin/events/%s", text);
    struct http_request request =
        call_as(ROLE_ADMIN, HTTP_PATCH, path, "{\"sale_end\":null,\"policy\":{\"max_seats_per_user\":6}}");
    fake_begin(&request);
    assert_int_equal(fake_command->kind, COMMAND_EVENT_PATCH);
    assert_int_equal(fake_command->event.fields, PATCH_SALE_END);
    assert_true(fake_command->event.row.sale_end_ms == TIME_MAX);
    assert_int_equal(fake_command->event.policy_fields, BIT(5));
    assert_int_equal(fake_command->event.row.policy.max_seats_per_user, 6);
    fake_end(&request);
    assert_refused(ROLE_ADMIN, HTTP_PATCH, path, "{}", "body");
    assert_refused(ROLE_ADMIN, HTTP_PATCH, path, "{\"policy\":{\"hold_ttl_seconds\":0}}",
                   "policy.hold_ttl_seconds");
    assert_refused(ROLE_ADMIN, HTTP_PATCH, path, "{\"policy\":{\"forbid_single_seat_gaps\":1}}",
                   "policy.forbid_single_seat_gaps");
    assert_refused(ROLE_ADMIN, HTTP_PATCH, path, "{\"status\":\"open\"}", "status");
    assert_refused(ROLE_ADMIN, HTTP_PATCH, path, "{\"currency\":\"eur\"}", "currency");
    assert_refused(ROLE_ADMIN, HTTP_POST, "/api/admin/events", "{\"name\":\"x\",\"status\":\"live\"}",
                   "status");
    assert_refused(ROLE_ADMIN, HTTP_POST, "/api/admin/events",
                   "{\"name\":\"x\",\"policy\":{\"hold_ttl_seconds\":600,\"hold_max_seconds\":300}}",
                   "policy");
}

static void test_a_block_is_named_by_id_or_place(void **state)
{
    (void)state;
    char path[192], text[UUID_TEXT_SIZE];
    uuid_format(&event_id, text);
    snprintf(path, sizeof path, "/api/admin/events/%s/blocks/A-2", text);
    struct http_request request = call_as(ROLE_ADMIN, HTTP_PATCH, path, "{\"price_cents\":700}");
    fake_begin(&request);
    struct uuid wanted = fixture_id('b', 1);
    assert_true(uuid_equal(&fake_command->block.block_id, &wanted));
    assert_int_equal(fake_command->block.fields, PATCH_PRICE);
    fake_end(&request);
    snprintf(path, sizeof path, "/api/admin/events/%s/blocks/Z-9", text);
    request = call_as(ROLE_ADMIN, HTTP_PATCH, path, "{\"price_cents\":700}");
    assert_answer(&request, 404, "not_found");
    snprintf(path, sizeof path, "/api/admin/events/%s/blocks/nonsense", text);
    assert_refused(ROLE_ADMIN, HTTP_PATCH, path, "{\"price_cents\":700}", "block");
}

static void test_a_release_names_exactly_one_thing(void **state)
{
    (void)state;
#define A "\"018f7f4e-6a5b-7c3d-9e2f-0a1b2c3d4e01\""
    const char *path = "/api/admin/seats/release";
    assert_refused(ROLE_ADMIN, HTTP_POST, path, "{}", "hold_ids");
    assert_refused(ROLE_ADMIN, HTTP_POST, path, "{\"hold_ids\":[" A "],\"event_id\":" A "}", "hold_ids");
    assert_refused(ROLE_ADMIN, HTTP_POST, path, "{\"hold_ids\":[]}", "hold_ids");
    struct http_request request =
        call_as(ROLE_ADMIN, HTTP_POST, path, "{\"checkout_id\":" A ",\"notes\":\"call\"}");
    fake_begin(&request);
    assert_int_equal(fake_command->kind, COMMAND_ADMIN_RELEASE);
    assert_string_equal(fake_command->release.notes, "call");
    struct seat_failure skipped = {.id = fixture_id('h', 4), .err = ERR_PAYMENT_IN_PROGRESS};
    struct result result = held_result();
    result.failures = &skipped;
    result.failure_count = 1;
    fake_answer(&request, result);
    json_t *data = json_object_get(fake_json(&request), "data");
    assert_int_equal(json_integer_value(json_object_get(data, "seats_released")), 1);
    json_t *first = json_array_get(json_object_get(data, "skipped"), 0);
    assert_string_equal(json_string_value(json_object_get(first, "reason")), "payment_in_progress");
    fake_end(&request);
#undef A
}

static void test_lists_check_their_filters(void **state)
{
    (void)state;
    static const struct {
        const char *path, *name, *value;
    } cases[] = {
        {"/api/admin/audit", "limit", "0"},        {"/api/admin/audit", "limit", "1001"},
        {"/api/admin/audit", "limit", "ten"},      {"/api/admin/audit", "after", "-1"},
        {"/api/admin/audit", "action", "dancing"}, {"/api/admin/audit", "seat_id", "7"},
        {"/api/admin/checkouts", "status", "odd"}, {"/api/admin/checkouts", "event_id", "7"},
        {"/api/checkouts", "status", "odd"},       {"/api/checkouts", "user_id", "7"},
        {"/api/checkouts", "limit", "0"},          {"/api/checkouts", "after", "now"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct http_request request = call_as(ROLE_ADMIN, HTTP_GET, cases[i].path, NULL);
        request.query[0] = (struct fake_field){cases[i].name, cases[i].value};
        assert_answer(&request, 400, "invalid_request");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_a_good_token_the_answer_is_401),
        cmocka_unit_test(test_token_is_checked_before_role_and_role_before_shape),
        cmocka_unit_test(test_a_new_user_is_registered_once_in_the_background),
        cmocka_unit_test(test_an_operator_without_organization_acts_in_that_of_the_event),
        cmocka_unit_test(test_metrics_are_for_loopback_and_operators),
        cmocka_unit_test(test_figures_are_for_admins_and_operators),
        cmocka_unit_test(test_a_buyer_lists_only_their_own_checkouts),
        cmocka_unit_test(test_foreign_and_hidden_events_answer_as_unknown_ones),
        cmocka_unit_test(test_an_id_that_is_no_uuid_is_a_bad_request),
        cmocka_unit_test(test_reserve_without_a_body_submits_the_seat),
        cmocka_unit_test(test_a_refusal_says_when_to_come_back_and_never_who),
        cmocka_unit_test(test_rate_limit_and_overload_say_when_to_retry),
        cmocka_unit_test(test_only_agents_may_act_for_another_user),
        cmocka_unit_test(test_holds_take_one_of_two_forms),
        cmocka_unit_test(test_a_key_is_of_its_path_and_knows_its_body),
        cmocka_unit_test(test_a_bad_key_is_refused),
        cmocka_unit_test(test_the_layout_is_tagged_and_not_sent_twice),
        cmocka_unit_test(test_availability_packs_two_bits_a_seat),
        cmocka_unit_test(test_seats_mark_what_is_mine),
        cmocka_unit_test(test_event_patch_carries_only_what_was_named),
        cmocka_unit_test(test_a_block_is_named_by_id_or_place),
        cmocka_unit_test(test_a_release_names_exactly_one_thing),
        cmocka_unit_test(test_lists_check_their_filters),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
