/* SPDX-License-Identifier: Apache-2.0
 * The JSON writer, read back by jansson where it matters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/rng.h"

struct fixture {
    struct buf buf;
    struct jsonw json;
};

static int setup(void **state)
{
    static struct fixture fixture;
    buf_init(&fixture.buf);
    jsonw_begin(&fixture.json, &fixture.buf);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    buf_deinit(&fixture->buf);
    return 0;
}

static void test_nesting_puts_commas_between_and_nowhere_else(void **state)
{
    struct fixture *f = *state;
    jsonw_object_open(&f->json);
    jsonw_key(&f->json, "a");
    jsonw_array_open(&f->json);
    jsonw_int(&f->json, 1);
    jsonw_array_open(&f->json);
    jsonw_array_close(&f->json);
    jsonw_object_open(&f->json);
    jsonw_object_close(&f->json);
    jsonw_null(&f->json);
    jsonw_array_close(&f->json);
    jsonw_key_bool(&f->json, "b", true);
    jsonw_key_bool(&f->json, "c", false);
    jsonw_key_null(&f->json, "d");
    jsonw_key(&f->json, "e");
    jsonw_raw(&f->json, "{\"x\":1}", 7);
    jsonw_key_int(&f->json, "f", -5);
    jsonw_object_close(&f->json);
    assert_string_equal(buf_text(&f->buf),
                        "{\"a\":[1,[],{},null],\"b\":true,\"c\":false,\"d\":null,\"e\":{\"x\":1},\"f\":-5}");
}

static void test_values_have_the_form_of_the_contract(void **state)
{
    struct fixture *f = *state;
    struct uuid nil = {0}, uuid;
    assert_true(uuid_parse("0192F000-0000-7ABC-8DEF-0123456789ab", 36, &uuid));
    jsonw_object_open(&f->json);
    jsonw_key_uuid(&f->json, "id", &uuid);
    jsonw_key_uuid(&f->json, "none", &nil);
    jsonw_key_time(&f->json, "at", 1769860800999);
    jsonw_key_fixed(&f->json, "percent", 12.345, 2);
    jsonw_key_fixed(&f->json, "nan", NAN, 2);
    jsonw_key_text(&f->json, "null", NULL);
    jsonw_object_close(&f->json);
    assert_string_equal(buf_text(&f->buf), "{\"id\":\"0192f000-0000-7abc-8def-0123456789ab\",\"none\":null,"
                                           "\"at\":\"2026-01-31T12:00:00Z\",\"percent\":12.35,\"nan\":null,"
                                           "\"null\":null}");
}

static void test_text_is_escaped(void **state)
{
    struct fixture *f = *state;
    jsonw_text(&f->json, "a\"b\\c\n\r\t\b\f\x01\x1f/é\x7f");
    assert_string_equal(buf_text(&f->buf), "\"a\\\"b\\\\c\\n\\r\\t\\b\\f\\u0001\\u001f/é\x7f\"");
}

static void test_random_text_reads_back_as_it_was(void **state)
{
    struct fixture *f = *state;
    struct rng rng;
    rng_init_seed(&rng, 3);
    for (int round = 0; round < 2000; round++) {
        char text[64];
        size_t length = (size_t)rng_below(&rng, sizeof(text));
        for (size_t i = 0; i < length; i++)
            text[i] = (char)(1 + rng_below(&rng, 127));
        buf_clear(&f->buf);
        jsonw_begin(&f->json, &f->buf);
        jsonw_array_open(&f->json);
        jsonw_text_n(&f->json, text, length);
        jsonw_array_close(&f->json);
        json_t *tree = json_loadb(f->buf.data, f->buf.size, 0, NULL);
        assert_non_null(tree);
        json_t *value = json_array_get(tree, 0);
        assert_int_equal(json_string_length(value), length);
        assert_memory_equal(json_string_value(value), text, length);
        json_decref(tree);
    }
}

static void test_failure_of_the_buffer_is_seen_at_the_end(void **state)
{
    struct fixture *f = *state;
    jsonw_object_open(&f->json);
    assert_false(buf_reserve(&f->buf, SIZE_MAX));
    jsonw_key_text(&f->json, "key", "text");
    struct uuid uuid = {{1}};
    jsonw_key_uuid(&f->json, "uuid", &uuid);
    jsonw_object_close(&f->json);
    assert_false(buf_ok(&f->buf));
    assert_int_equal(f->buf.size, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nesting_puts_commas_between_and_nowhere_else, setup, teardown),
        cmocka_unit_test_setup_teardown(test_values_have_the_form_of_the_contract, setup, teardown),
        cmocka_unit_test_setup_teardown(test_text_is_escaped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_random_text_reads_back_as_it_was, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failure_of_the_buffer_is_seen_at_the_end, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
