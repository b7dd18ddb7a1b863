/* SPDX-License-Identifier: Apache-2.0
 * Request bodies: what is taken, what is refused, and which field is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/body.h"
#include "base/arena.h"

#define ID_A "018f7f4e-6a5b-7c3d-9e2f-0a1b2c3d4e01"
#define ID_B "018f7f4e-6a5b-7c3d-9e2f-0a1b2c3d4e02"

static struct arena arena;

static int setup(void **state)
{
    (void)state;
    arena_init(&arena);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_deinit(&arena);
    return 0;
}

static void open_text(struct body *body, const char *text)
{
    body_open(body, &arena, text, strlen(text));
}

static void assert_refused(const char *text, const char *field)
{
    struct body body;
    const char *name = NULL;
    struct uuid id, *ids = NULL;
    int64_t number, time_ms;
    bool is_on;
    int32_t count;
    open_text(&body, text);
    body_text(&body, "name", 5, &name);
    body_uuid(&body, "id", &id);
    body_int(&body, "number", 1, 50, &number);
    body_bool(&body, "on", &is_on);
    body_time(&body, "at", &time_ms);
    body_uuids(&body, "ids", 2, 3, &ids, &count);
    assert_false(body_close(&body));
    assert_string_equal(body.field, field);
    assert_non_null(body.message);
}

static void test_no_body_is_an_empty_object(void **state)
{
    (void)state;
    struct body body;
    const char *name = NULL;
    body_open(&body, &arena, NULL, 0);
    assert_false(body_text(&body, "name", 5, &name));
    assert_true(body_close(&body));
}

static void test_fields_are_taken_and_unknown_keys_ignored(void **state)
{
    (void)state;
    struct body body;
    const char *name = NULL;
    struct uuid id, *ids = NULL;
    int64_t number = 0, time_ms = 0;
    bool is_on = false;
    int32_t count = 0;
    open_text(&body,
              "{\"name\":\"h\xc3\xa9llo\",\"id\":\"" ID_A "\",\"number\":50,\"on\":true,\"other\":[{}],"
              "\"at\":\"1970-01-01T00:00:01Z\",\"ids\":[\"" ID_A "\",\"" ID_B "\"]}");
    assert_true(body_text(&body, "name", 5, &name)); /* five characters, six bytes */
    assert_true(body_uuid(&body, "id", &id));
    assert_true(body_int(&body, "number", 1, 50, &number));
    assert_true(body_bool(&body, "on", &is_on));
    assert_true(body_time(&body, "at", &time_ms));
    assert_true(body_uuids(&body, "ids", 2, 3, &ids, &count));
    assert_true(body_close(&body));
    assert_string_equal(name, "h\xc3\xa9llo");
    assert_int_equal(number, 50);
    assert_true(is_on);
    assert_int_equal(time_ms, 1000);
    assert_int_equal(count, 2);
    assert_true(uuid_equal(&ids[0], &id));
}

static void test_null_is_absent(void **state)
{
    (void)state;
    struct body body;
    const char *name = NULL;
    open_text(&body, "{\"name\":null}");
    assert_false(body_text(&body, "name", 5, &name));
    assert_true(body_is_null(&body, "name"));
    assert_false(body_has(&body, "name"));
    assert_true(body_close(&body));
}

static void test_what_is_no_object_is_refused(void **state)
{
    (void)state;
    assert_refused("[]", "body");
    assert_refused("3", "body");
    assert_refused("\"x\"", "body");
    assert_refused("{", "body");
    assert_refused("{} {}", "body");
    assert_refused("   ", "body");
    assert_refused("{\"name\":}", "body");
}

static void test_bad_bytes_are_refused(void **state)
{
    (void)state;
    assert_refused("{\"name\":\"\xff\"}", "body");
    assert_refused("{\"name\":\"\xc0\x80\"}", "body");
    assert_refused("{\"name\":\"a\\u0000b\"}", "body");
    assert_refused("{\"name\":\"\\ud800\"}", "body");
    struct body body;
    body_open(&body, &arena, "{\"a\":1}\0", 8);
    assert_false(body_close(&body));
}

static void test_a_key_that_stands_twice_is_refused(void **state)
{
    (void)state;
    assert_refused("{\"number\":1,\"number\":2}", "body");
}

static void test_nesting_is_bounded(void **state)
{
    (void)state;
    char deep[4096];
    size_t size = 0;
    size += (size_t)sprintf(deep, "{\"other\":");
    for (int i = 0; i < 1000; i++)
        deep[size++] = '[';
    for (int i = 0; i < 1000; i++)
        deep[size++] = ']';
    deep[size++] = '}';
    deep[size] = '\0';
    assert_refused(deep, "body");
    struct body body;
    open_text(&body, "{\"other\":\"[[[[[[[[[[[[[[[[[[[[\\\"[[[[\"}"); /* brackets in a string are text */
    assert_true(body_close(&body));
}

static void test_wrong_types_name_their_field(void **state)
{
    (void)state;
    assert_refused("{\"name\":7}", "name");
    assert_refused("{\"id\":7}", "id");
    assert_refused("{\"id\":\"018f7f4e\"}", "id");
    assert_refused("{\"number\":\"7\"}", "number");
    assert_refused("{\"number\":1.5}", "number");
    assert_refused("{\"number\":1e1}", "number");
    assert_refused("{\"on\":1}", "on");
    assert_refused("{\"at\":\"yesterday\"}", "at");
    assert_refused("{\"at\":17}", "at");
    assert_refused("{\"ids\":\"" ID_A "\"}", "ids");
    assert_refused("{\"ids\":[\"" ID_A "\",7]}", "ids");
}

static void test_ranges_are_kept(void **state)
{
    (void)state;
    assert_refused("{\"name\":\"\"}", "name");
    assert_refused("{\"name\":\"sixsix\"}", "name");
    assert_refused("{\"number\":0}", "number");
    assert_refused("{\"number\":51}", "number");
    assert_refused("{\"number\":99999999999999999999999}", "body");
    assert_refused("{\"ids\":[]}", "ids");
    assert_refused("{\"ids\":[\"" ID_A "\"]}", "ids");
    assert_refused("{\"ids\":[\"" ID_A "\",\"" ID_B "\",\"" ID_A "\",\"" ID_B "\"]}", "ids");
}

static void test_the_same_id_twice_is_refused(void **state)
{
    (void)state;
    assert_refused("{\"ids\":[\"" ID_A "\",\"018F7F4E-6A5B-7C3D-9E2F-0A1B2C3D4E01\"]}", "ids");
}

static void test_the_nil_id_is_no_id(void **state)
{
    (void)state;
    assert_refused("{\"id\":\"00000000-0000-0000-0000-000000000000\"}", "id");
}

static void test_the_first_fault_is_the_one_told(void **state)
{
    (void)state;
    assert_refused("{\"number\":0,\"name\":7}", "name");
}

static void test_a_nested_field_is_named_with_its_object(void **state)
{
    (void)state;
    struct body body;
    int64_t number;
    open_text(&body, "{\"policy\":{\"number\":0}}");
    assert_true(body_enter(&body, "policy"));
    body_int(&body, "number", 1, 2, &number);
    body_leave(&body);
    assert_false(body_close(&body));
    assert_string_equal(body.field, "policy.number");
    open_text(&body, "{\"policy\":3}");
    assert_false(body_enter(&body, "policy"));
    assert_false(body_close(&body));
    assert_string_equal(body.field, "policy");
}

static void test_a_required_field_that_is_missing_is_named(void **state)
{
    (void)state;
    struct body body;
    open_text(&body, "{}");
    body_require(&body, "name");
    assert_false(body_close(&body));
    assert_string_equal(body.field, "name");
    assert_string_equal(body.message, "name is required.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_no_body_is_an_empty_object, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fields_are_taken_and_unknown_keys_ignored, setup, teardown),
        cmocka_unit_test_setup_teardown(test_null_is_absent, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_no_object_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_bytes_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_key_that_stands_twice_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nesting_is_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_types_name_their_field, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ranges_are_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_same_id_twice_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_nil_id_is_no_id, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_first_fault_is_the_one_told, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_nested_field_is_named_with_its_object, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_required_field_that_is_missing_is_named, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
