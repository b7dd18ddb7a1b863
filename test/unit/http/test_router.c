/* SPDX-License-Identifier: Apache-2.0
 * The router and the spelling of addresses: pure, no sockets. */
#include "http_fixture.h"

#include "http/http_int.h"
#include "http/router.h"

static void no_handler(struct http_request *request)
{
    (void)request;
}

static const struct http_route routes[] = {
    {HTTP_GET, "/", no_handler, NULL, 0},
    {HTTP_GET, "/api/events", no_handler, NULL, 0},
    {HTTP_POST, "/api/events", no_handler, NULL, 0},
    {HTTP_GET, "/api/events/{event}", no_handler, NULL, 0},
    {HTTP_GET, "/api/events/mine", no_handler, NULL, 0},
    {HTTP_DELETE, "/api/events/{event}/seats/{seat}", no_handler, NULL, 0},
    {HTTP_PUT, "/api/events/{id}/seats/{place}", no_handler, NULL, 0},
    {HTTP_PATCH, "/api/events/{event}/seats/{seat}", no_handler, NULL, 0},
    {HTTP_GET, "/api/events/mine/archive", no_handler, NULL, 0},
};

struct fixture {
    struct router *router;
    struct arena arena;
    struct http_match match;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    fixture->router = router_create(routes, COUNT_OF(routes));
    arena_init(&fixture->arena);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    router_destroy(fixture->router);
    arena_deinit(&fixture->arena);
    free(fixture);
    return 0;
}

static const struct http_route *find(struct fixture *fixture, const char *method, const char *path)
{
    router_match(fixture->router, method, path, &fixture->arena, &fixture->match);
    return fixture->match.route;
}

static void test_literal_wins_over_parameter(void **state)
{
    assert_ptr_equal(find(*state, "GET", "/api/events/mine"), &routes[4]);
    assert_ptr_equal(find(*state, "GET", "/api/events/other"), &routes[3]);
    assert_ptr_equal(find(*state, "GET", "/"), &routes[0]);
}

static void test_parameter_is_tried_when_the_literal_leads_nowhere(void **state)
{
    struct fixture *fixture = *state;
    assert_ptr_equal(find(fixture, "DELETE", "/api/events/mine/seats/7"), &routes[5]);
    assert_int_equal(fixture->match.param_count, 2);
    assert_string_equal(fixture->match.params[0].value, "mine");
    assert_string_equal(fixture->match.params[1].value, "7");
}

static void test_each_route_has_its_own_names(void **state)
{
    struct fixture *fixture = *state;
    assert_ptr_equal(find(fixture, "PUT", "/api/events/a/seats/b"), &routes[6]);
    assert_int_equal(fixture->match.params[1].name_length, 5);
    assert_memory_equal(fixture->match.params[1].name, "place", 5);
}

static void test_unknown_paths_match_nothing(void **state)
{
    struct fixture *fixture = *state;
    static const char *const paths[] = {
        "",
        "*",
        "api/events",
        "/api",
        "/api/events/",
        "//api/events",
        "/nope",
        "/api//events",
        "/API/events",
        "/api/events/a/",
        "/api/events/a/b",
        "/api/events/a/seats//",
        "/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r",
    };
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        assert_null(find(fixture, "GET", paths[i]));
        assert_int_equal(fixture->match.methods, 0);
    }
}

static void test_encoded_slash_and_nul_match_nothing(void **state)
{
    static const char *const paths[] = {
        "/api/events%2Fmine", "/api/events/a%2fb", "/api/events/%2F", "/api/events/a%00",
        "/api/events/%",      "/api/events/%4",    "/api/events/%zz", "/api%2Fevents",
    };
    for (size_t i = 0; i < COUNT_OF(paths); i++)
        assert_null(find(*state, "GET", paths[i]));
}

static void test_encoded_letters_are_decoded(void **state)
{
    struct fixture *fixture = *state;
    assert_ptr_equal(find(fixture, "GET", "/%61pi/events/%C3%A9+%25"), &routes[3]);
    assert_string_equal(fixture->match.params[0].value, "\xC3\xA9+%");
}

static void test_absolute_form_is_understood(void **state)
{
    assert_ptr_equal(find(*state, "GET", "http://host:80/api/events"), &routes[1]);
    assert_ptr_equal(find(*state, "GET", "http://host"), &routes[0]);
}

static void test_allow_lists_methods_sorted(void **state)
{
    struct fixture *fixture = *state;
    char allow[ALLOW_TEXT_SIZE];
    assert_null(find(fixture, "GET", "/api/events/a/seats/b"));
    router_write_allow(fixture->match.methods, allow);
    assert_string_equal(allow, "DELETE, PATCH, PUT");
    assert_null(find(fixture, "BREW", "/api/events"));
    router_write_allow(fixture->match.methods, allow);
    assert_string_equal(allow, "GET, HEAD, POST");
    assert_ptr_equal(find(fixture, "HEAD", "/api/events"), &routes[1]);
    router_write_allow(~0u, allow);
    assert_string_equal(allow, "DELETE, GET, HEAD, PATCH, POST, PUT");
}

static void test_addresses_have_one_spelling(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *normalized; /* NULL: refused */
    } cases[] = {
        {"10.1.2.3", "10.1.2.3"},
        {" 10.1.2.3\t", "10.1.2.3"},
        {"10.1.2.3:4711", "10.1.2.3"},
        {"::FFFF:10.1.2.3", "10.1.2.3"},
        {"2001:DB8:0:0::1", "2001:db8::1"},
        {"[2001:db8::1]:443", "2001:db8::1"},
        {"[::1]", "::1"},
        {"", NULL},
        {"unknown", NULL},
        {"10.1.2", NULL},
        {"10.1.2.3:", NULL},
        {"10.1.2.3:x", NULL},
        {"[::1", NULL},
        {"[::1]x", NULL},
        {"1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char out[INET6_ADDRSTRLEN];
        bool is_valid = address_normalize(cases[i].text, strlen(cases[i].text), out);
        assert_int_equal(is_valid, cases[i].normalized != NULL);
        if (is_valid)
            assert_string_equal(out, cases[i].normalized);
    }
    assert_true(address_is_loopback("127.8.9.1"));
    assert_true(address_is_loopback("::1"));
    assert_false(address_is_loopback("12.7.0.1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_literal_wins_over_parameter, setup, teardown),
        cmocka_unit_test_setup_teardown(test_parameter_is_tried_when_the_literal_leads_nowhere, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_each_route_has_its_own_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unknown_paths_match_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_encoded_slash_and_nul_match_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_encoded_letters_are_decoded, setup, teardown),
        cmocka_unit_test_setup_teardown(test_absolute_form_is_understood, setup, teardown),
        cmocka_unit_test_setup_teardown(test_allow_lists_methods_sorted, setup, teardown),
        cmocka_unit_test(test_addresses_have_one_spelling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
