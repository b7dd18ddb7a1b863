/* SPDX-License-Identifier: Apache-2.0
 * Log lines: valid JSON, whole, and bounded, whatever is put in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

/* Standard error goes to a file between the two; what was written comes back. */
static int saved_fd;
static FILE *sink;

static void capture_begin(void)
{
    sink = tmpfile();
    assert_non_null(sink);
    saved_fd = dup(STDERR_FILENO);
    dup2(fileno(sink), STDERR_FILENO);
}

static char *capture_end(void)
{
    dup2(saved_fd, STDERR_FILENO);
    close(saved_fd);
    long size = lseek(fileno(sink), 0, SEEK_END);
    char *text = malloc((size_t)size + 1);
    assert_non_null(text);
    rewind(sink);
    assert_int_equal(fread(text, 1, (size_t)size, sink), size);
    text[size] = '\0';
    fclose(sink);
    return text;
}

static json_t *line_parse(const char *line)
{
    json_t *tree = json_loads(line, JSON_DISABLE_EOF_CHECK, NULL);
    if (tree == NULL)
        fail_msg("not JSON: %s", line);
    return tree;
}

static void test_a_line_has_time_level_message_and_fields(void **state)
{
    (void)state;
    capture_begin();
    log_write(LOG_WARN, "the \"store\" is slow", "\"ms\":%d,\"text\":\"%s\"", 17, "x");
    char *text = capture_end();
    assert_int_equal(text[strlen(text) - 1], '\n');
    json_t *tree = line_parse(text);
    assert_string_equal(json_string_value(json_object_get(tree, "level")), "warn");
    assert_string_equal(json_string_value(json_object_get(tree, "message")), "the \"store\" is slow");
    assert_int_equal(json_integer_value(json_object_get(tree, "ms")), 17);
    const char *time = json_string_value(json_object_get(tree, "time"));
    assert_int_equal(strlen(time), strlen("2026-01-31T12:00:00.000Z"));
    json_decref(tree);
    free(text);
}

static void test_fields_may_be_absent_or_empty(void **state)
{
    (void)state;
    capture_begin();
    log_write(LOG_ERROR, "plain", NULL);
    log_write(LOG_ERROR, "empty", "%s", "");
    char *text = capture_end();
    json_t *first = line_parse(text), *second = line_parse(strchr(text, '\n') + 1);
    assert_int_equal(json_object_size(first), 3);
    assert_int_equal(json_object_size(second), 3);
    json_decref(first);
    json_decref(second);
    free(text);
}

static void test_lines_below_the_level_are_dropped(void **state)
{
    (void)state;
    capture_begin();
    log_write(LOG_DEBUG, "dropped", NULL);
    log_set_level(LOG_ERROR);
    log_write(LOG_WARN, "dropped", NULL);
    log_set_level(LOG_DEBUG);
    log_write(LOG_DEBUG, "kept", NULL);
    log_set_level(LOG_INFO);
    char *text = capture_end();
    assert_null(strstr(text, "dropped"));
    assert_non_null(strstr(text, "kept"));
    free(text);
}

static void test_fields_that_do_not_fit_leave_a_valid_line(void **state)
{
    (void)state;
    for (int size = 3800; size < 5000; size += 3) {
        capture_begin();
        log_write(LOG_ERROR, "long", "\"text\":\"%0*d\"", size, 0);
        char *text = capture_end();
        assert_true(strlen(text) <= 4096);
        json_t *tree = line_parse(text);
        assert_true(json_is_string(json_object_get(tree, "text")) !=
                    json_is_true(json_object_get(tree, "truncated")));
        json_decref(tree);
        free(text);
    }
}

static void test_quote_makes_foreign_text_safe(void **state)
{
    (void)state;
    char out[64];
    log_quote("a\"\\\n\x01", out, sizeof(out));
    assert_string_equal(out, "a\\\"\\\\\\u000a\\u0001");
    log_quote("é\xff\xc3!", out, sizeof(out));
    assert_string_equal(out, "é\\ufffd\\ufffd!");
}

static void test_quote_cuts_between_characters_only(void **state)
{
    (void)state;
    char out[16];
    log_quote("abcé", out, 5);
    assert_string_equal(out, "abc");
    log_quote("abcé", out, 6);
    assert_string_equal(out, "abcé");
    log_quote("abc\n", out, 9);
    assert_string_equal(out, "abc");
    log_quote("abc", out, 1);
    assert_string_equal(out, "");
}

static void *write_lines(void *argument)
{
    for (int i = 0; i < 500; i++)
        log_write(LOG_ERROR, "line", "\"thread\":%d,\"number\":%d", *(int *)argument, i);
    return NULL;
}

static void test_lines_of_two_threads_do_not_mix(void **state)
{
    (void)state;
    int numbers[2] = {1, 2};
    pthread_t threads[2];
    capture_begin();
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, &numbers[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    char *text = capture_end();
    int count = 0;
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"), count++)
        json_decref(line_parse(line));
    assert_int_equal(count, 1000);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_line_has_time_level_message_and_fields),
        cmocka_unit_test(test_fields_may_be_absent_or_empty),
        cmocka_unit_test(test_lines_below_the_level_are_dropped),
        cmocka_unit_test(test_fields_that_do_not_fit_leave_a_valid_line),
        cmocka_unit_test(test_quote_makes_foreign_text_safe),
        cmocka_unit_test(test_quote_cuts_between_characters_only),
        cmocka_unit_test(test_lines_of_two_threads_do_not_mix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
