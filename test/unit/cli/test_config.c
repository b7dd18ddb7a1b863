/* SPDX-License-Identifier: Apache-2.0
 * The configuration file: what it takes, and that it names the line it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/options.h"

static char why[512];

static bool read_text(struct options *options, const char *text, size_t size)
{
    char path[] = "/tmp/holdfast-config-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, size), size);
    close(fd);
    *options = (struct options){.argument_count = 0};
    arena_init(&options->arena);
    why[0] = '\0';
    bool good = config_read(options, path, why, sizeof why);
    unlink(path);
    return good;
}

static void assert_refused(const char *text, const char *mention)
{
    struct options options;

    assert_false(read_text(&options, text, strlen(text)));
    if (strstr(why, mention) == NULL)
        fail_msg("'%s' does not mention '%s'", why, mention);
    options_deinit(&options);
}

static void test_lines_comments_blanks_and_quotes_are_read(void **state)
{
    static const char text[] =
        "# all of it\n\n  listen=1.2.3.4:5  \r\nstore = \"sqlite:/a #b\" # here\n\tlog-level =\twarn# loud\n"
        "token = abc=def==";
    struct options options;

    (void)state;
    assert_true(read_text(&options, text, strlen(text)));
    assert_string_equal(options.values[OPTION_LISTEN], "1.2.3.4:5");
    assert_string_equal(options.values[OPTION_STORE], "sqlite:/a #b");
    assert_string_equal(options.values[OPTION_LOG_LEVEL], "warn");
    assert_string_equal(options.values[OPTION_TOKEN], "abc=def==");
    options_deinit(&options);
}

static void test_empty_file_sets_nothing(void **state)
{
    struct options options;

    (void)state;
    assert_true(read_text(&options, "", 0));
    for (int option = 0; option < OPTION_COUNT; option++)
        assert_null(options.values[option]);
    options_deinit(&options);
}

static void test_unknown_key_is_named_with_its_line(void **state)
{
    (void)state;
    assert_refused("listen = a:1\n\nlisen = a:1\n", "line 3");
    assert_refused("listen = a:1\n\nlisen = a:1\n", "'lisen'");
    assert_refused("--listen = a:1\n", "line 1");
}

static void test_flag_only_and_config_itself_are_unknown_keys(void **state)
{
    (void)state;
    assert_refused("role = admin\n", "'role'");
    assert_refused("config = other\n", "'config'");
}

static void test_line_that_is_no_setting_is_refused(void **state)
{
    (void)state;
    assert_refused("listen\n", "line 1");
    assert_refused("listen =\n", "no value");
    assert_refused("listen = # nothing\n", "no value");
    assert_refused("listen = \"a\n", "quotes");
    assert_refused("listen = \"a\" b\n", "quotes");
    assert_refused("= x\n", "line 1");
}

static void test_key_given_twice_is_refused(void **state)
{
    (void)state;
    assert_refused("listen = a:1\nlisten = a:2\n", "line 2");
}

static void test_binary_file_is_refused(void **state)
{
    struct options options;

    (void)state;
    assert_false(read_text(&options, "listen\0= a", 10));
    assert_non_null(strstr(why, "not a text file"));
    options_deinit(&options);
}

static void test_missing_file_and_directory_are_refused(void **state)
{
    struct options options = {.argument_count = 0};

    (void)state;
    arena_init(&options.arena);
    assert_false(config_read(&options, "/nonexistent/holdfast.conf", why, sizeof why));
    assert_non_null(strstr(why, "/nonexistent/holdfast.conf"));
    assert_false(config_read(&options, "/tmp", why, sizeof why));
    options_deinit(&options);
}

static void test_line_number_counts_from_the_start_without_a_last_newline(void **state)
{
    (void)state;
    assert_refused("listen = a:1\nwhat", "line 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_comments_blanks_and_quotes_are_read),
        cmocka_unit_test(test_empty_file_sets_nothing),
        cmocka_unit_test(test_unknown_key_is_named_with_its_line),
        cmocka_unit_test(test_flag_only_and_config_itself_are_unknown_keys),
        cmocka_unit_test(test_line_that_is_no_setting_is_refused),
        cmocka_unit_test(test_key_given_twice_is_refused),
        cmocka_unit_test(test_binary_file_is_refused),
        cmocka_unit_test(test_missing_file_and_directory_are_refused),
        cmocka_unit_test(test_line_number_counts_from_the_start_without_a_last_newline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
