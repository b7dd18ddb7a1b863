/* SPDX-License-Identifier: Apache-2.0
 * The table of routes and openapi.json describe the same API: no endpoint
 * undocumented, none invented, the same roles, every reference resolves, and
 * every error code exists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/api_int.h"
#include "base/embed.h"
#include "base/err.h"

extern const struct embed api_files[];

static json_t *document;

static const char *const method_names[HTTP_METHOD_COUNT] = {"get", "post", "put", "patch", "delete"};

static int setup(void **state)
{
    (void)state;
    const struct embed *file = embed_find(api_files, "openapi.json");
    document = file != NULL ? json_loadb(file->data, file->size, JSON_REJECT_DUPLICATES, NULL) : NULL;
    return document != NULL ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    json_decref(document);
    return 0;
}

static json_t *find_operation(const struct http_route *route)
{
    json_t *path = json_object_get(json_object_get(document, "paths"), route->path);
    return json_object_get(path, method_names[route->method]);
}

static void test_every_route_is_documented(void **state)
{
    (void)state;
    size_t count;
    const struct http_route *routes = api_routes(true, &count);
    for (size_t i = 0; i < count; i++) {
        if (find_operation(&routes[i]) == NULL)
            print_error("not documented: %s %s\n", method_names[routes[i].method], routes[i].path);
        assert_non_null(find_operation(&routes[i]));
    }
}

static bool has_route(const char *path, const char *method)
{
    size_t count;
    const struct http_route *routes = api_routes(true, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(routes[i].path, path) == 0 && strcmp(method_names[routes[i].method], method) == 0)
            return true;
    return false;
}

static void test_no_route_is_invented(void **state)
{
    (void)state;
    const char *path, *method;
    json_t *operations, *operation;
    json_object_foreach(json_object_get(document, "paths"), path, operations)
    {
        json_object_foreach(operations, method, operation)
        {
            if (!has_route(path, method))
                print_error("there is no such endpoint: %s %s\n", method, path);
            assert_true(has_route(path, method));
        }
    }
}

static void test_roles_are_those_of_the_table(void **state)
{
    (void)state;
    size_t count;
    const struct http_route *routes = api_routes(true, &count);
    for (size_t i = 0; i < count; i++) {
        const struct api_access *access = routes[i].context;
        const char *role = json_string_value(json_object_get(find_operation(&routes[i]), "x-holdfast-role"));
        assert_non_null(role);
        assert_string_equal(role, access->flags & API_OPEN ? "none" : role_name(access->role));
    }
}

static void test_every_api_path_asks_for_a_token(void **state)
{
    (void)state;
    size_t count;
    const struct http_route *routes = api_routes(false, &count);
    for (size_t i = 0; i < count; i++) {
        const struct api_access *access = routes[i].context;
        if (strncmp(routes[i].path, "/api/", 5) == 0)
            assert_false(access->flags & API_OPEN);
        if (strncmp(routes[i].path, "/api/admin/", 11) == 0)
            assert_true(access->role >= ROLE_ADMIN);
        if (access->flags & API_OF_EVENT)
            assert_non_null(strstr(routes[i].path, "{event}"));
    }
}

static void test_path_parameters_are_documented(void **state)
{
    (void)state;
    size_t count;
    const struct http_route *routes = api_routes(true, &count);
    for (size_t i = 0; i < count; i++) {
        json_t *parameters = json_object_get(find_operation(&routes[i]), "parameters"), *parameter;
        size_t index, named_count = 0, wanted_count = 0;
        for (const char *c = routes[i].path; *c != '\0'; c++)
            wanted_count += *c == '{';
        json_array_foreach(parameters, index, parameter)
        {
            const char *in = json_string_value(json_object_get(parameter, "in"));
            char name[64];
            snprintf(name, sizeof name, "{%s}", json_string_value(json_object_get(parameter, "name")));
            if (in != NULL && strcmp(in, "path") == 0) {
                assert_non_null(strstr(routes[i].path, name));
                named_count++;
            }
        }
        assert_int_equal(named_count, wanted_count);
    }
}

static json_t *resolve(const char *reference)
{
    char path[256];
    char *rest = NULL;
    assert_int_equal(strncmp(reference, "#/", 2), 0);
    snprintf(path, sizeof path, "%s", reference + 2);
    json_t *value = document;
    for (char *part = strtok_r(path, "/", &rest); part != NULL; part = strtok_r(NULL, "/", &rest))
        value = json_object_get(value, part);
    return value;
}

static void check_references(json_t *value)
{
    const char *key;
    size_t index;
    json_t *child;
    const char *reference = json_string_value(json_object_get(value, "$ref"));
    if (reference != NULL && resolve(reference) == NULL)
        print_error("does not resolve: %s\n", reference);
    assert_true(reference == NULL || resolve(reference) != NULL);
    if (json_is_object(value)) {
        json_object_foreach(value, key, child) check_references(child);
    }
    if (json_is_array(value)) {
        json_array_foreach(value, index, child) check_references(child);
    }
}

static void test_every_reference_resolves(void **state)
{
    (void)state;
    check_references(document);
}

static void test_error_codes_are_those_of_the_list(void **state)
{
    (void)state;
    json_t *codes = resolve("#/components/examples");
    size_t wanted_count = 0;
#define CHECK_CODE(name, number, status, code, text)                                                         \
    if ((number) > 0 && (number) < 100) {                                                                    \
        wanted_count++;                                                                                      \
        if (json_object_get(codes, code) == NULL)                                                            \
            print_error("no example of %s\n", code);                                                         \
        assert_non_null(json_object_get(codes, code));                                                       \
    }
    ERR_MAP(CHECK_CODE)
#undef CHECK_CODE
    assert_int_equal(json_object_size(codes), wanted_count);
    assert_int_equal(json_array_size(json_object_get(
                         resolve("#/components/schemas/Error/properties/error/properties/code"), "enum")),
                     wanted_count);
}

static void test_the_demo_is_described_only_by_the_demo(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    assert_int_equal(openapi_make(false, &text, &size), ERR_OK);
    assert_null(strstr(text, "/api/demo/token"));
    free(text);
    assert_int_equal(openapi_make(true, &text, &size), ERR_OK);
    assert_non_null(strstr(text, "/api/demo/token"));
    free(text);
    size_t with, without;
    api_routes(true, &with);
    const struct http_route *routes = api_routes(false, &without);
    assert_int_equal(with, without + 1);
    assert_string_equal(routes[without].path, "/api/demo/token");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_route_is_documented),
        cmocka_unit_test(test_no_route_is_invented),
        cmocka_unit_test(test_roles_are_those_of_the_table),
        cmocka_unit_test(test_every_api_path_asks_for_a_token),
        cmocka_unit_test(test_path_parameters_are_documented),
        cmocka_unit_test(test_every_reference_resolves),
        cmocka_unit_test(test_error_codes_are_those_of_the_list),
        cmocka_unit_test(test_the_demo_is_described_only_by_the_demo),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
