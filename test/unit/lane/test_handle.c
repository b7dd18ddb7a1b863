/* SPDX-License-Identifier: Apache-2.0
 * The name under which the answer of a command is asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "lane/command.h"

#define ID_TEXT "018f7f4e-6a5b-7c3d-9e2f-0a1b2c3d4e01"
#define KEY_TEXT "00010203040506070809a0b0c0d0e0f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff1f"

static struct command make_command(enum command_kind kind)
{
    struct command command;
    command_init(&command, kind, NULL);
    assert_true(uuid_parse(ID_TEXT, strlen(ID_TEXT), &command.sent.id));
    return command;
}

static void test_a_key_made_of_an_id_begins_with_it_and_ends_with_its_hash(void **state)
{
    (void)state;
    struct command command = make_command(COMMAND_HOLD_SEATS);
    uint8_t key[32], wanted[32], hashed[32] = "holdfast command";
    command_make_key(&command.sent.id, key);
    memcpy(hashed + 16, command.sent.id.bytes, 16);
    sha256(hashed, sizeof(hashed), wanted);
    assert_memory_equal(key, command.sent.id.bytes, 16);
    assert_memory_equal(key + 16, wanted, 16);
}

static void test_without_a_key_of_the_callers_the_handle_is_the_id(void **state)
{
    (void)state;
    struct command command = make_command(COMMAND_HOLD_SEATS);
    char handle[COMMAND_HANDLE_SIZE];
    command_format_handle(&command, handle);
    assert_string_equal(handle, ID_TEXT);
    command.has_key = command.sent.is_key_made = true;
    command_make_key(&command.sent.id, command.key);
    command_format_handle(&command, handle);
    assert_string_equal(handle, ID_TEXT);

    struct command asked = make_command(COMMAND_ANSWER_GET);
    assert_true(command_parse_handle(handle, &asked));
    assert_true(uuid_equal(&asked.sent.id, &command.sent.id));
    assert_true(asked.sent.is_key_made);
    assert_memory_equal(asked.key, command.key, sizeof command.key);
    assert_false(asked.has_key); /* asking is not itself to be answered once only */
}

static void test_the_callers_key_is_in_the_handle_and_comes_back(void **state)
{
    (void)state;
    struct command command = make_command(COMMAND_HOLD_SEATS), asked = make_command(COMMAND_ANSWER_GET);
    char handle[COMMAND_HANDLE_SIZE], again[COMMAND_HANDLE_SIZE];
    command.has_key = true;
    assert_true(command_parse_handle(ID_TEXT "." KEY_TEXT, &command));
    command_format_handle(&command, handle);
    assert_string_equal(handle, ID_TEXT "." KEY_TEXT);
    assert_true(command_parse_handle(handle, &asked));
    assert_false(asked.sent.is_key_made);
    assert_memory_equal(asked.key, command.key, sizeof command.key);
    command_format_handle(&asked, again); /* still pending: the same place */
    assert_string_equal(again, handle);
}

static void test_what_is_no_handle_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        ".",
        "x",
        "00000000-0000-0000-0000-000000000000",
        ID_TEXT ".",
        ID_TEXT ".00",
        ID_TEXT "." KEY_TEXT "0",
        ID_TEXT "." KEY_TEXT "." KEY_TEXT,
        ID_TEXT "x",
        ID_TEXT ".g0010203040506070809a0b0c0d0e0f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff1f",
        ID_TEXT ".A0010203040506070809a0b0c0d0e0f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff1f",
        "." KEY_TEXT,
        KEY_TEXT,
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct command command = make_command(COMMAND_ANSWER_GET);
        if (command_parse_handle(bad[i], &command))
            fail_msg("'%s' was taken", bad[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_key_made_of_an_id_begins_with_it_and_ends_with_its_hash),
        cmocka_unit_test(test_without_a_key_of_the_callers_the_handle_is_the_id),
        cmocka_unit_test(test_the_callers_key_is_in_the_handle_and_comes_back),
        cmocka_unit_test(test_what_is_no_handle_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
