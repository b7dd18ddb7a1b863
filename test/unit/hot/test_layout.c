/* SPDX-License-Identifier: Apache-2.0
 * Layout documents: what is made of a good one, and in which words a bad one
 * is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/text.h"
#include "hot/layout.h"

struct fixture {
    struct arena arena;
    char why[512];
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    arena_init(&fixture->arena);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    arena_deinit(&fixture->arena);
    free(fixture);
    return 0;
}

static struct layout *accept(struct fixture *fixture, const char *document)
{
    struct layout *layout = NULL;
    enum err err =
        layout_parse(document, strlen(document), &fixture->arena, &layout, fixture->why, sizeof fixture->why);
    if (err != ERR_OK)
        print_error("refused: %s\n", fixture->why);
    assert_int_equal(err, ERR_OK);
    return layout;
}

static void refuse_bytes(struct fixture *fixture, const char *document, size_t size, const char *why)
{
    struct layout *layout = NULL;
    memset(fixture->why, 'x', sizeof fixture->why);
    assert_int_equal(
        layout_parse(document, size, &fixture->arena, &layout, fixture->why, sizeof fixture->why),
        ERR_INVALID_REQUEST);
    assert_null(layout);
    assert_string_equal(fixture->why, why);
}

static void refuse(struct fixture *fixture, const char *document, const char *why)
{
    refuse_bytes(fixture, document, strlen(document), why);
}

/* A document of one block A-1 with these rows. */
static const char *with_rows(struct fixture *fixture, const char *rows)
{
    struct buf buf;
    buf_init(&buf);
    buf_printf(
        &buf,
        "{\"blocks\":[{\"section\":\"A\",\"subsection\":1,\"name\":\"n\",\"price_cents\":1,\"rows\":%s}]}",
        rows);
    const char *document = arena_text(&fixture->arena, buf_text(&buf));
    buf_deinit(&buf);
    return document;
}

/* A document of one good row in a block with these members besides. */
static const char *with_block(struct fixture *fixture, const char *members)
{
    struct buf buf;
    buf_init(&buf);
    buf_printf(&buf, "{\"blocks\":[{%s%s\"rows\":[{\"label\":\"1\",\"seats\":10}]}]}", members,
               members[0] != '\0' ? "," : "");
    const char *document = arena_text(&fixture->arena, buf_text(&buf));
    buf_deinit(&buf);
    return document;
}

/* ---- Good documents ---- */

static void test_blocks_rows_and_seats_stand_in_document_order(void **state)
{
    const struct layout *layout = accept(
        *state,
        "{\"name\":\"Hall\",\"blocks\":["
        "{\"section\":\"B\",\"subsection\":2,\"name\":\"Stalls\",\"price_cents\":5000,\"rows\":["
        "  {\"label\":\"A\",\"seats\":3},{\"label\":\"B\",\"seats\":5}]},"
        "{\"section\":\"AA\",\"subsection\":1,\"name\":\"Circle\",\"price_cents\":0,\"capacity\":1,\"rows\":["
        "  {\"label\":\"A\",\"seats\":[\"10\",\"W\\u00e4\",12]}]}]}");
    assert_string_equal(layout->name, "Hall");
    assert_null(layout->stage);
    assert_int_equal(layout->block_count, 2);
    assert_int_equal(layout->row_count, 3);
    assert_int_equal(layout->seat_count, 11);

    const struct layout_block *first = &layout->blocks[0], *second = &layout->blocks[1];
    assert_string_equal(first->section, "B");
    assert_int_equal(first->subsection, 2);
    assert_string_equal(first->name, "Stalls");
    assert_int_equal(first->price_cents, 5000);
    assert_int_equal(first->row_first, 0);
    assert_int_equal(first->row_count, 2);
    assert_int_equal(first->seat_first, 0);
    assert_int_equal(first->seat_count, 8);
    assert_int_equal(first->column_count, 5);
    assert_int_equal(first->capacity, 8);
    assert_string_equal(second->section, "AA");
    assert_int_equal(second->seat_first, 8);
    assert_int_equal(second->row_first, 2);
    assert_int_equal(second->capacity, 1);

    const struct layout_row *rows = layout->rows;
    assert_string_equal(rows[1].label, "B");
    assert_int_equal(rows[1].ordinal, 2);
    assert_int_equal(rows[1].block, 0);
    assert_int_equal(rows[1].seat_first, 3);
    assert_int_equal(rows[1].seat_count, 5);
    assert_int_equal(rows[2].ordinal, 1);
    assert_int_equal(rows[2].block, 1);
    assert_false(rows[2].placed);

    const char *labels[] = {"1", "2", "3", "1", "2", "3", "4", "5", "10", "W\xc3\xa4", "12"};
    for (int32_t i = 0; i < layout->seat_count; i++)
        assert_string_equal(layout->seat_labels[i], labels[i]);
}

static void test_the_name_may_be_left_out(void **state)
{
    assert_string_equal(accept(*state, with_rows(*state, "[{\"label\":\"1\",\"seats\":1}]"))->name, "Layout");
}

static void test_positions_are_kept_and_the_step_defaults_to_one_right(void **state)
{
    const struct layout *layout =
        accept(*state, with_rows(*state, "[{\"label\":\"1\",\"seats\":1,\"x\":1.5,\"y\":-2},"
                                         "{\"label\":\"2\",\"seats\":1,\"x\":0,\"y\":3,\"dx\":0,\"dy\":0.25},"
                                         "{\"label\":\"3\",\"seats\":1,\"x\":null,\"y\":null}]"));
    assert_true(layout->rows[0].placed);
    assert_float_equal(layout->rows[0].x, 1.5, 0);
    assert_float_equal(layout->rows[0].y, -2, 0);
    assert_float_equal(layout->rows[0].dx, 1, 0);
    assert_float_equal(layout->rows[0].dy, 0, 0);
    assert_float_equal(layout->rows[1].dx, 0, 0);
    assert_float_equal(layout->rows[1].dy, 0.25, 0);
    assert_false(layout->rows[2].placed);
}

static void test_the_stage_is_kept_as_json(void **state)
{
    const struct layout *layout = accept(
        *state,
        "{\"stage\": {\"x\": 1, \"label\": \"B\\u00fchne\"}, \"blocks\":[{\"section\":\"A\",\"subsection\":1,"
        "\"name\":\"n\",\"price_cents\":1,\"rows\":[{\"label\":\"1\",\"seats\":1}]}]}");
    assert_string_equal(layout->stage, "{\"x\":1,\"label\":\"B\xc3\xbchne\"}");
}

static void test_unknown_keys_are_ignored(void **state)
{
    accept(
        *state,
        "{\"venue\":[1,{}],\"blocks\":[{\"section\":\"A\",\"subsection\":1,\"name\":\"n\",\"colour\":\"red\","
        "\"price_cents\":1,\"rows\":[{\"label\":\"1\",\"seats\":1,\"aisle\":true}]}]}");
}

static void test_equal_labels_share_their_memory(void **state)
{
    const struct layout *layout = accept(
        *state, with_rows(*state, "[{\"label\":\"1\",\"seats\":3},{\"label\":\"2\",\"seats\":[\"3\",2]},"
                                  "{\"label\":\"3\",\"seats\":[\"odd\",\"3001\",\"03\"]},{\"label\":\"4\","
                                  "\"seats\":[\"odd\",3001,\"3\"]}]"));
    const char **labels = layout->seat_labels;
    assert_ptr_equal(labels[2], labels[3]);
    assert_ptr_equal(labels[1], labels[4]);
    assert_ptr_equal(labels[5], labels[8]);
    assert_ptr_equal(labels[6], labels[9]);
    assert_string_equal(labels[7], "03");
    assert_ptr_equal(labels[10], labels[2]);
}

static void test_the_same_labels_may_stand_in_different_rows_and_blocks(void **state)
{
    const struct layout *layout = accept(*state, "{\"blocks\":["
                                                 "{\"section\":\"A\",\"subsection\":1,\"name\":\"n\",\"price_"
                                                 "cents\":1,\"rows\":[{\"label\":\"1\",\"seats\":2}]},"
                                                 "{\"section\":\"A\",\"subsection\":2,\"name\":\"n\",\"price_"
                                                 "cents\":1,\"rows\":[{\"label\":\"1\",\"seats\":2}]},"
                                                 "{\"section\":\"B\",\"subsection\":1,\"name\":\"n\",\"price_"
                                                 "cents\":1,\"rows\":[{\"label\":\"1\",\"seats\":2}]}]}");
    assert_int_equal(layout->seat_count, 6);
}

static void test_limits_themselves_are_allowed(void **state)
{
    struct fixture *fixture = *state;
    char label[4 * TEXT_SIZE_MAX + 1] = "";
    for (int i = 0; i < TEXT_SIZE_MAX; i++)
        strcat(label, "\xc3\xa9"); /* characters count, not bytes */
    struct buf rows;
    buf_init(&rows);
    buf_printf(&rows, "[{\"label\":\"%s\",\"seats\":%d}]", label, ROW_SEAT_COUNT_MAX);
    const struct layout *layout = accept(fixture, with_rows(fixture, buf_text(&rows)));
    assert_int_equal(layout->seat_count, ROW_SEAT_COUNT_MAX);
    assert_string_equal(layout->seat_labels[ROW_SEAT_COUNT_MAX - 1], "2000");
    buf_deinit(&rows);
    accept(fixture,
           with_block(fixture, "\"section\":\"ZZZ\",\"subsection\":9999,\"name\":\"n\",\"capacity\":10,"
                               "\"price_cents\":10000000000"));
}

/* `block_count` blocks of `row_count` rows of `seat_count` seats. */
static const char *large_document(struct fixture *fixture, int block_count, int row_count, int seat_count)
{
    struct buf buf;
    buf_init(&buf);
    buf_put_text(&buf, "{\"blocks\":[");
    for (int b = 0; b < block_count; b++) {
        buf_printf(&buf, "%s{\"section\":\"A\",\"subsection\":%d,\"name\":\"n\",\"price_cents\":1,\"rows\":[",
                   b ? "," : "", b + 1);
        for (int r = 0; r < row_count; r++)
            buf_printf(&buf, "%s{\"label\":\"%d\",\"seats\":%d}", r ? "," : "", r + 1, seat_count);
        buf_put_text(&buf, "]}");
    }
    buf_put_text(&buf, "]}");
    const char *document = arena_text(&fixture->arena, buf_text(&buf));
    buf_deinit(&buf);
    return document;
}

static void test_a_hundred_thousand_seats_are_allowed_and_no_more(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(accept(fixture, large_document(fixture, 25, 100, 40))->seat_count, EVENT_SEAT_COUNT_MAX);
    assert_int_equal(accept(fixture, large_document(fixture, 50, 2000, 1))->row_count, EVENT_SEAT_COUNT_MAX);
    refuse(fixture, large_document(fixture, 1, 51, 2000),
           "the layout has 102000 seats; an event can have 100000");
    refuse(fixture, large_document(fixture, 2001, 1, 1), "blocks must be a list of 1 to 2000 blocks");
    refuse(fixture, large_document(fixture, 1, 2001, 1), "block A-1: rows must be a list of 1 to 2000 rows");
    refuse(fixture, large_document(fixture, 1, 100001, 0), "the layout has more than 100000 rows");
}

/* ---- Bad documents ---- */

static void test_bad_json_is_refused_with_its_line(void **state)
{
    struct fixture *fixture = *state;
    refuse(fixture, "{\n\n  \"blocks\": [}\n", "not valid JSON, line 3: unexpected token near '}'");
    refuse(fixture, "", "not valid JSON, line 1: '[' or '{' expected near end of file");
    refuse(fixture, "{\"blocks\":[]} x", "not valid JSON, line 1: end of file expected near 'x'");
    refuse(fixture, "{\"name\":\"a\",\"name\":\"b\"}",
           "not valid JSON, line 1: duplicate object key near '\"name\"'");
    refuse(fixture, "{\"name\":\"a\\u0000b\"}",
           "not valid JSON, line 1: \\u0000 is not allowed without JSON_ALLOW_NUL near '\"a\\u0000b\"'");
    refuse_bytes(fixture, "{\"name\":\"a\0b\"}", 14,
                 "not valid JSON, line 1: control character 0x0 near '\"a'");
    refuse(fixture, "{\"name\":\"\xff\"}", "not valid JSON, line 1: unable to decode byte 0xff near '\"'");
    refuse(fixture, "{\"x\":1e999}", "not valid JSON, line 1: real number overflow near '1e999'");
}

static void test_the_document_must_have_blocks(void **state)
{
    refuse(*state, "[]", "the layout must be an object");
    refuse(*state, "{}", "blocks must be a list of 1 to 2000 blocks");
    refuse(*state, "{\"blocks\":{}}", "blocks must be a list of 1 to 2000 blocks");
    refuse(*state, "{\"blocks\":[]}", "blocks must be a list of 1 to 2000 blocks");
    refuse(*state, "{\"blocks\":[1]}", "block 1: must be an object");
    refuse(*state, "{\"name\":\"\",\"blocks\":[1]}", "name must be text of 1 to 255 characters");
    refuse(*state, "{\"name\":7,\"blocks\":[1]}", "name must be text of 1 to 255 characters");
}

static void test_a_wrong_section_is_refused(void **state)
{
    const char *wrong[] = {"\"a\"", "\"ABCD\"", "\"\"", "\"A1\"", "\"\xc3\x84\"", "1", "null", "[]"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char members[200];
        snprintf(members, sizeof members, "\"section\":%s,\"subsection\":1,\"name\":\"n\",\"price_cents\":1",
                 wrong[i]);
        refuse(*state, with_block(*state, members), "block 1: section must be one to three letters A to Z");
    }
    refuse(*state, with_block(*state, ""), "block 1: section must be one to three letters A to Z");
}

static void test_a_wrong_subsection_is_refused(void **state)
{
    const char *wrong[] = {"0", "-1", "10000", "1.0", "\"1\"", "null", "9223372036854775807"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char members[200];
        snprintf(members, sizeof members,
                 "\"section\":\"A\",\"subsection\":%s,\"name\":\"n\",\"price_cents\":1", wrong[i]);
        refuse(*state, with_block(*state, members),
               "block 1: subsection must be a whole number from 1 to 9999");
    }
}

static void test_a_wrong_price_is_refused(void **state)
{
    const char *wrong[] = {"-1", "10000000001", "9.5", "\"9\"", "null"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char members[200];
        snprintf(members, sizeof members,
                 "\"section\":\"A\",\"subsection\":1,\"name\":\"n\",\"price_cents\":%s", wrong[i]);
        refuse(*state, with_block(*state, members),
               "block A-1: price_cents must be a whole number from 0 to 10000000000");
    }
}

static void test_a_capacity_above_the_seats_is_refused(void **state)
{
    const char *wrong[] = {"11", "0", "-5", "2.5", "\"3\""};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char members[200];
        snprintf(members, sizeof members,
                 "\"section\":\"A\",\"subsection\":1,\"name\":\"n\",\"price_cents\":1,\"capacity\":%s",
                 wrong[i]);
        refuse(*state, with_block(*state, members),
               "block A-1: capacity must be a whole number from 1 to 10, its number of seats");
    }
}

static void test_a_block_needs_a_name(void **state)
{
    refuse(*state, with_block(*state, "\"section\":\"A\",\"subsection\":1,\"price_cents\":1"),
           "block A-1: name must be text of 1 to 255 characters");
    char members[2 * TEXT_SIZE_MAX] = "\"section\":\"A\",\"subsection\":1,\"name\":\"";
    size_t length = strlen(members);
    memset(members + length, 'n', TEXT_SIZE_MAX + 1);
    strcpy(members + length + TEXT_SIZE_MAX + 1, "\"");
    refuse(*state, with_block(*state, members), "block A-1: name must be text of 1 to 255 characters");
}

static void test_the_same_block_twice_is_refused(void **state)
{
    refuse(*state,
           "{\"blocks\":["
           "{\"section\":\"A\",\"subsection\":12,\"name\":\"n\",\"price_cents\":1,\"rows\":[{\"label\":\"1\","
           "\"seats\":2}]},"
           "{\"section\":\"B\",\"subsection\":12,\"name\":\"n\",\"price_cents\":1,\"rows\":[{\"label\":\"1\","
           "\"seats\":2}]},"
           "{\"section\":\"A\",\"subsection\":12,\"name\":\"m\",\"price_cents\":1,\"rows\":[{\"label\":\"1\","
           "\"seats\":2}]}]}",
           "block A-12 stands there twice");
}

static void test_wrong_rows_are_refused(void **state)
{
    refuse(*state, with_rows(*state, "[]"), "block A-1: rows must be a list of 1 to 2000 rows");
    refuse(*state, with_rows(*state, "7"), "block A-1: rows must be a list of 1 to 2000 rows");
    refuse(*state, with_rows(*state, "[7]"), "block A-1, row 1: must be an object");
    refuse(*state, with_rows(*state, "[{\"label\":\"1\",\"seats\":1},{\"seats\":1}]"),
           "block A-1, row 2: label must be text of 1 to 255 characters");
    refuse(*state,
           with_rows(
               *state,
               "[{\"label\":\"C\",\"seats\":1},{\"label\":\"D\",\"seats\":1},{\"label\":\"C\",\"seats\":1}]"),
           "block A-1: row \"C\" stands there twice");
}

static void test_wrong_seats_are_refused(void **state)
{
    const char *wrong[] = {"0", "-3", "2001", "1.5", "\"40\"", "null", "{}", "[]", "true"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char rows[200];
        snprintf(rows, sizeof rows, "[{\"label\":\"B\",\"seats\":2},{\"label\":\"C\",\"seats\":%s}]",
                 wrong[i]);
        refuse(*state, with_rows(*state, rows),
               "block A-1, row \"C\": seats must be 1 to 2000, as a number or a list of labels");
    }
    refuse(*state, with_rows(*state, "[{\"label\":\"C\"}]"),
           "block A-1, row \"C\": seats must be 1 to 2000, as a number or a list of labels");
}

static void test_wrong_seat_labels_are_refused(void **state)
{
    const char *why =
        "block A-1, row \"C\": label of seat 2 must be text of 1 to 255 characters, or a whole number";
    refuse(*state, with_rows(*state, "[{\"label\":\"C\",\"seats\":[\"1\",\"\"]}]"), why);
    refuse(*state, with_rows(*state, "[{\"label\":\"C\",\"seats\":[\"1\",null]}]"), why);
    refuse(*state, with_rows(*state, "[{\"label\":\"C\",\"seats\":[\"1\",1.5]}]"), why);
    refuse(*state, with_rows(*state, "[{\"label\":\"C\",\"seats\":[\"1\",[\"2\"]]}]"), why);
    refuse(*state, with_rows(*state, "[{\"label\":\"C\",\"seats\":[\"7\",\"8\",7]}]"),
           "block A-1, row \"C\": seat \"7\" stands there twice");
}

static void test_a_list_of_too_many_labels_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct buf rows;
    buf_init(&rows);
    buf_put_text(&rows, "[{\"label\":\"C\",\"seats\":[0");
    for (int i = 1; i <= ROW_SEAT_COUNT_MAX; i++)
        buf_printf(&rows, ",%d", i);
    buf_put_text(&rows, "]}]");
    refuse(fixture, with_rows(fixture, buf_text(&rows)),
           "block A-1, row \"C\": seats must be 1 to 2000, as a number or a list of labels");
    buf_deinit(&rows);
}

static void test_each_part_of_a_position_may_stand_alone(void **state)
{
    const struct layout *layout =
        accept(*state, with_rows(*state, "[{\"label\":\"A\",\"seats\":1,\"x\":-3},"
                                         "{\"label\":\"B\",\"seats\":1,\"dy\":2}]"));
    assert_true(layout->rows[0].placed);
    assert_true(layout->rows[0].x == -3 && layout->rows[0].y == 0 && layout->rows[0].dx == 1);
    assert_true(layout->rows[1].placed);
    assert_true(layout->rows[1].x == 0 && layout->rows[1].y == 1 && layout->rows[1].dy == 2);
}

static void test_wrong_positions_are_refused(void **state)
{
    refuse(*state, with_rows(*state, "[{\"label\":\"C\",\"seats\":1,\"x\":\"1\",\"y\":1}]"),
           "block A-1, row \"C\": x must be a number between -1000000000 and 1000000000");
    refuse(*state, with_rows(*state, "[{\"label\":\"C\",\"seats\":1,\"x\":1,\"y\":1e300}]"),
           "block A-1, row \"C\": y must be a number between -1000000000 and 1000000000");
}

static void test_a_stage_that_is_too_large_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct buf document;
    buf_init(&document);
    buf_put_text(&document, "{\"stage\":\"");
    for (int i = 0; i < 64 * 1024; i++)
        buf_put_char(&document, 's');
    buf_put_text(&document, "\"}");
    refuse_bytes(fixture, document.data, document.size, "stage must be at most 65536 bytes of JSON");
    buf_deinit(&document);
}

static void test_a_document_of_millions_of_values_is_refused_unparsed(void **state)
{
    struct fixture *fixture = *state;
    struct buf document;
    buf_init(&document);
    buf_put_text(&document, "{\"stage\":[{}");
    for (int i = 0; i < 1000000; i++)
        buf_put_text(&document, ",{}");
    buf_put_text(&document, "]}");
    refuse_bytes(fixture, document.data, document.size, "the layout has more than 2000000 values");
    buf_deinit(&document);
}

static void test_a_refusal_is_one_line_of_utf8_however_short_the_room(void **state)
{
    struct fixture *fixture = *state;
    struct buf rows;
    buf_init(&rows);
    buf_put_text(&rows, "[{\"label\":\"");
    for (int i = 0; i < TEXT_SIZE_MAX; i++)
        buf_put_text(&rows, i % 10 == 9 ? "\\n" : "\xe2\x82\xac");
    buf_put_text(&rows, "\",\"seats\":0}]");
    const char *document = with_rows(fixture, buf_text(&rows));
    for (size_t room = 1; room < sizeof fixture->why; room++) {
        struct layout *layout = NULL;
        memset(fixture->why, 'x', sizeof fixture->why);
        assert_int_equal(
            layout_parse(document, strlen(document), &fixture->arena, &layout, fixture->why, room),
            ERR_INVALID_REQUEST);
        assert_true(strlen(fixture->why) < room);
        assert_true(text_is_utf8(fixture->why, strlen(fixture->why)));
        assert_null(strpbrk(fixture->why, "\n\r\t"));
    }
    buf_deinit(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_blocks_rows_and_seats_stand_in_document_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_name_may_be_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(test_positions_are_kept_and_the_step_defaults_to_one_right, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_the_stage_is_kept_as_json, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unknown_keys_are_ignored, setup, teardown),
        cmocka_unit_test_setup_teardown(test_equal_labels_share_their_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_same_labels_may_stand_in_different_rows_and_blocks, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_limits_themselves_are_allowed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_hundred_thousand_seats_are_allowed_and_no_more, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_bad_json_is_refused_with_its_line, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_document_must_have_blocks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_wrong_section_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_wrong_subsection_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_wrong_price_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_capacity_above_the_seats_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_block_needs_a_name, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_same_block_twice_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_rows_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_seats_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_seat_labels_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_list_of_too_many_labels_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_each_part_of_a_position_may_stand_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_positions_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_stage_that_is_too_large_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_document_of_millions_of_values_is_refused_unparsed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_refusal_is_one_line_of_utf8_however_short_the_room, setup,
                                        teardown),
    };
    return cmocka_run_group_tests_name("hot/layout", tests, NULL, NULL);
}
