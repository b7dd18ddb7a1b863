/* SPDX-License-Identifier: Apache-2.0
 * A failed CHECK says what and where, and ends the process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"

static void test_failed_check_names_the_condition_and_aborts(void **state)
{
    (void)state;
    int ends[2], status;
    char text[1024] = "";
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        int seats = 1;
        CHECK(seats == 2);
        _exit(0);
    }
    close(ends[1]);
    size_t used = 0;
    for (ssize_t got; (got = read(ends[0], text + used, sizeof(text) - 1 - used)) > 0;)
        used += (size_t)got;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_non_null(
        strstr(text, "CHECK(seats == 2) failed in test_failed_check_names_the_condition_and_aborts()"));
    assert_non_null(strstr(text, "test_check.c:"));
}

static void test_true_check_is_evaluated_once_and_goes_on(void **state)
{
    (void)state;
    int times = 0;
    CHECK(++times == 1);
    assert_int_equal(times, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failed_check_names_the_condition_and_aborts),
        cmocka_unit_test(test_true_check_is_evaluated_once_and_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
