/* SPDX-License-Identifier: Apache-2.0
 * Flags over environment over file over default, and one sentence for what is
 * asked wrongly. */
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

static const char *environment_name, *environment_value;

static char *fake_environment(const char *name)
{
    return environment_name != NULL && strcmp(name, environment_name) == 0 ? (char *)environment_value : NULL;
}

struct fixture {
    struct options options;
    char why[512];
    char path[64];
};

static int setup(void **state)
{
    static struct fixture fixture;

    memset(&fixture, 0, sizeof fixture);
    environment_name = NULL;
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    options_deinit(&fixture->options);
    if (fixture->path[0] != '\0')
        unlink(fixture->path);
    return 0;
}

#define PARSE(fixture, verb, ...)                                                                            \
    options_parse(&(fixture)->options, verb, (int)(sizeof((char *[]){__VA_ARGS__}) / sizeof(char *)),        \
                  (char *[]){__VA_ARGS__}, fake_environment, (fixture)->why, sizeof(fixture)->why)

static void write_config(struct fixture *fixture, const char *text)
{
    snprintf(fixture->path, sizeof fixture->path, "/tmp/holdfast-options-XXXXXX");
    int fd = mkstemp(fixture->path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void test_nothing_given_gives_every_default(void **state)
{
    struct fixture *fixture = *state;

    assert_true(options_parse(&fixture->options, VERB_SERVE, 0, NULL, fake_environment, fixture->why,
                              sizeof fixture->why));
    for (int option = 0; option < OPTION_COUNT; option++)
        assert_ptr_equal(fixture->options.values[option], option_rows[option].initial);
    assert_string_equal(fixture->options.values[OPTION_STORE], "sqlite:./holdfast.db");
}

static void test_flag_wins_over_environment_over_file(void **state)
{
    struct fixture *fixture = *state;

    write_config(fixture, "listen = 1.1.1.1:1\nstore = sqlite:file.db\nlog-level = warn\n");
    environment_name = "HOLDFAST_STORE";
    environment_value = "sqlite:environment.db";
    assert_true(PARSE(fixture, VERB_SERVE, "--config", fixture->path, "--listen", "3.3.3.3:3"));
    assert_string_equal(fixture->options.values[OPTION_LISTEN], "3.3.3.3:3");
    assert_int_equal(fixture->options.sources[OPTION_LISTEN], FROM_FLAG);
    assert_string_equal(fixture->options.values[OPTION_STORE], "sqlite:environment.db");
    assert_int_equal(fixture->options.sources[OPTION_STORE], FROM_ENVIRONMENT);
    assert_string_equal(fixture->options.values[OPTION_LOG_LEVEL], "warn");
    assert_int_equal(fixture->options.sources[OPTION_LOG_LEVEL], FROM_FILE);
}

static void test_flag_wins_over_the_variable_of_the_same_name(void **state)
{
    struct fixture *fixture = *state;

    environment_name = "HOLDFAST_LISTEN";
    environment_value = "2.2.2.2:2";
    assert_true(PARSE(fixture, VERB_SERVE, "--listen", "3.3.3.3:3"));
    assert_string_equal(fixture->options.values[OPTION_LISTEN], "3.3.3.3:3");
}

static void test_equals_sign_and_next_word_mean_the_same(void **state)
{
    struct fixture *fixture = *state;

    assert_true(PARSE(fixture, VERB_SERVE, "--listen=a:1", "--store", "sqlite:x=y"));
    assert_string_equal(fixture->options.values[OPTION_LISTEN], "a:1");
    assert_string_equal(fixture->options.values[OPTION_STORE], "sqlite:x=y");
}

static void test_typo_is_refused_with_the_nearest_name(void **state)
{
    struct fixture *fixture = *state;

    assert_false(PARSE(fixture, VERB_SERVE, "--lisen", "127.0.0.1:1"));
    assert_non_null(strstr(fixture->why, "--listen"));
}

static void test_option_of_another_command_is_refused(void **state)
{
    struct fixture *fixture = *state;

    assert_false(PARSE(fixture, VERB_VERIFY, "--listen", "127.0.0.1:1"));
    assert_non_null(strstr(fixture->why, "--listen"));
}

static void test_flag_without_its_value_is_refused(void **state)
{
    struct fixture *fixture = *state;

    assert_false(PARSE(fixture, VERB_SERVE, "--listen"));
    assert_non_null(strstr(fixture->why, "needs a value"));
}

static void test_next_flag_is_not_taken_for_a_value(void **state)
{
    struct fixture *fixture = *state;

    assert_false(PARSE(fixture, VERB_SERVE, "--listen", "--store"));
    assert_non_null(strstr(fixture->why, "--listen needs a value"));
}

static void test_switch_takes_no_value(void **state)
{
    struct fixture *fixture = *state;

    assert_false(PARSE(fixture, VERB_VERIFY, "--json=yes"));
    options_deinit(&fixture->options);
    assert_true(PARSE(fixture, VERB_VERIFY, "--json"));
    assert_non_null(fixture->options.values[OPTION_JSON]);
}

static void test_help_wins_over_everything_wrong(void **state)
{
    struct fixture *fixture = *state;

    assert_true(PARSE(fixture, VERB_SERVE, "--nonsense", "--help"));
    assert_true(fixture->options.help);
}

static void test_words_after_two_dashes_are_arguments(void **state)
{
    struct fixture *fixture = *state;

    assert_true(PARSE(fixture, VERB_IMPORT, "-", "--", "--listen"));
    assert_int_equal(fixture->options.argument_count, 2);
    assert_string_equal(fixture->options.arguments[0], "-");
    assert_string_equal(fixture->options.arguments[1], "--listen");
}

static void test_empty_variable_counts_as_not_set(void **state)
{
    struct fixture *fixture = *state;

    environment_name = "HOLDFAST_LISTEN";
    environment_value = "";
    assert_true(PARSE(fixture, VERB_SERVE, "--log-level", "warn"));
    assert_string_equal(fixture->options.values[OPTION_LISTEN], "127.0.0.1:8080");
}

static void test_flag_only_option_is_not_read_from_the_environment(void **state)
{
    struct fixture *fixture = *state;

    environment_name = "HOLDFAST_ROLE";
    environment_value = "admin";
    assert_true(PARSE(fixture, VERB_TOKEN, "--ttl", "5"));
    assert_string_equal(fixture->options.values[OPTION_ROLE], "buyer");
}

static void test_number_must_be_whole_and_in_range(void **state)
{
    static const char *const bad[] = {"0", "9", "-1", "2x", "1.5", " 2", "99999999999999999999", "two"};
    struct fixture *fixture = *state;
    int64_t value = 0;

    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_true(PARSE(fixture, VERB_SERVE, "--http-loops", (char *)bad[i]));
        assert_false(options_integer(&fixture->options, OPTION_HTTP_LOOPS, 1, 8, &value, fixture->why,
                                     sizeof fixture->why));
        assert_non_null(strstr(fixture->why, "--http-loops"));
        options_deinit(&fixture->options);
    }
    assert_true(PARSE(fixture, VERB_SERVE, "--http-loops", "8"));
    assert_true(options_integer(&fixture->options, OPTION_HTTP_LOOPS, 1, 8, &value, fixture->why,
                                sizeof fixture->why));
    assert_int_equal(value, 8);
}

static void test_message_names_the_variable_a_bad_value_came_from(void **state)
{
    struct fixture *fixture = *state;
    int64_t value;

    environment_name = "HOLDFAST_HTTP_LOOPS";
    environment_value = "many";
    assert_true(PARSE(fixture, VERB_SERVE, "--log-level", "warn"));
    assert_false(options_integer(&fixture->options, OPTION_HTTP_LOOPS, 1, 8, &value, fixture->why,
                                 sizeof fixture->why));
    assert_non_null(strstr(fixture->why, "HOLDFAST_HTTP_LOOPS"));
}

static void test_nearest_name_is_none_when_nothing_is_near(void **state)
{
    static const char *const names[] = {"serve", "demo", "token"};

    (void)state;
    assert_string_equal(options_nearest("srve", names, 3), "serve");
    assert_string_equal(options_nearest("tokne", names, 3), "token");
    assert_null(options_nearest("frobnicate", names, 3));
    assert_null(options_nearest("", names, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nothing_given_gives_every_default, setup, teardown),
        cmocka_unit_test_setup_teardown(test_flag_wins_over_environment_over_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_flag_wins_over_the_variable_of_the_same_name, setup, teardown),
        cmocka_unit_test_setup_teardown(test_equals_sign_and_next_word_mean_the_same, setup, teardown),
        cmocka_unit_test_setup_teardown(test_typo_is_refused_with_the_nearest_name, setup, teardown),
        cmocka_unit_test_setup_teardown(test_option_of_another_command_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_flag_without_its_value_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_next_flag_is_not_taken_for_a_value, setup, teardown),
        cmocka_unit_test_setup_teardown(test_switch_takes_no_value, setup, teardown),
        cmocka_unit_test_setup_teardown(test_help_wins_over_everything_wrong, setup, teardown),
        cmocka_unit_test_setup_teardown(test_words_after_two_dashes_are_arguments, setup, teardown),
        cmocka_unit_test_setup_teardown(test_empty_variable_counts_as_not_set, setup, teardown),
        cmocka_unit_test_setup_teardown(test_flag_only_option_is_not_read_from_the_environment, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_number_must_be_whole_and_in_range, setup, teardown),
        cmocka_unit_test_setup_teardown(test_message_names_the_variable_a_bad_value_came_from, setup,
                                        teardown),
        cmocka_unit_test(test_nearest_name_is_none_when_nothing_is_near),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
