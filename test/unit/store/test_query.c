/* SPDX-License-Identifier: Apache-2.0
 * Rows of lists as JSON: every column, in its form, null where there is nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "store/query.h"

static const char *row_text(struct buf *buf, enum query_kind kind, const struct query_value *values)
{
    struct jsonw json;
    buf_clear(buf);
    jsonw_begin(&json, buf);
    query_write_row(&json, kind, values);
    return buf_text(buf);
}

static void test_every_kind_has_distinct_columns_that_fit(void **state)
{
    (void)state;
    for (enum query_kind kind = 0; kind < QUERY_KIND_COUNT; kind++) {
        int count = 0;
        const struct query_column *columns = query_columns(kind, &count);
        assert_in_range(count, 1, QUERY_COLUMN_COUNT_MAX);
        assert_non_null(query_name(kind));
        for (int i = 0; i < count; i++) {
            for (int j = 0; j < i; j++)
                assert_string_not_equal(columns[i].name, columns[j].name);
        }
    }
}

static void test_row_of_nulls_has_every_key(void **state)
{
    (void)state;
    struct query_value values[QUERY_COLUMN_COUNT_MAX];
    struct buf buf;
    buf_init(&buf);
    for (int i = 0; i < QUERY_COLUMN_COUNT_MAX; i++)
        values[i] = (struct query_value){.is_null = true};
    assert_string_equal(row_text(&buf, QUERY_USERS, values),
                        "{\"user_id\":null,\"disabled\":null,\"created_at\":null}");
    buf_deinit(&buf);
}

static void test_each_type_has_its_form(void **state)
{
    (void)state;
    static const struct uuid id = {{0x01, 0x90, [15] = 0xff}};
    struct query_value user[] = {{.data = id.bytes, .size = 16}, {.integer = 1}, {.integer = 1700000000999}};
    struct query_value snapshot[] = {{.integer = 0},  {.integer = 1}, {.integer = 2},   {.integer = 3},
                                     {.integer = -4}, {.integer = 2}, {.real = 33.3333}};
    struct buf buf;
    buf_init(&buf);
    assert_string_equal(row_text(&buf, QUERY_USERS, user),
                        "{\"user_id\":\"01900000-0000-0000-0000-0000000000ff\",\"disabled\":true,"
                        "\"created_at\":\"2023-11-14T22:13:20Z\"}");
    assert_string_equal(row_text(&buf, QUERY_OCCUPANCY_HISTORY, snapshot),
                        "{\"snapshot_at\":\"1970-01-01T00:00:00Z\",\"available\":1,\"held\":2,\"sold\":3,"
                        "\"blocked\":-4,\"total\":2,\"occupancy_percent\":33.3}");
    buf_deinit(&buf);
}

static void test_text_is_escaped_and_json_is_not(void **state)
{
    (void)state;
    struct query_value values[QUERY_COLUMN_COUNT_MAX];
    struct buf buf;
    int count;
    const struct query_column *columns = query_columns(QUERY_AUDIT, &count);
    buf_init(&buf);
    for (int i = 0; i < count; i++) {
        values[i] = (struct query_value){.is_null = true};
        if (strcmp(columns[i].name, "after") == 0)
            values[i] = (struct query_value){.data = "{\"a\":1}", .size = 7};
        if (strcmp(columns[i].name, "user_agent") == 0)
            values[i] = (struct query_value){.data = "a\"b\n", .size = 4};
    }
    const char *text = row_text(&buf, QUERY_AUDIT, values);
    assert_non_null(strstr(text, "\"after\":{\"a\":1}"));
    assert_non_null(strstr(text, "\"user_agent\":\"a\\\"b\\n\""));
    buf_deinit(&buf);
}

static void test_id_of_the_wrong_size_is_null(void **state)
{
    (void)state;
    struct query_value user[] = {{.data = "short", .size = 5}, {.integer = 0}, {.integer = 0}};
    struct buf buf;
    buf_init(&buf);
    assert_non_null(strstr(row_text(&buf, QUERY_USERS, user), "\"user_id\":null,\"disabled\":false"));
    buf_deinit(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_has_distinct_columns_that_fit),
        cmocka_unit_test(test_row_of_nulls_has_every_key),
        cmocka_unit_test(test_each_type_has_its_form),
        cmocka_unit_test(test_text_is_escaped_and_json_is_not),
        cmocka_unit_test(test_id_of_the_wrong_size_is_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
