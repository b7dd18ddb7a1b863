/* SPDX-License-Identifier: Apache-2.0
 * The list of results: numbers once, codes and statuses that belong together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <string.h>

#include "base/err.h"

static const enum err all[] = {
#define ERR_ENTRY(name, number, status, code, text) ERR_##name,
    ERR_MAP(ERR_ENTRY)
#undef ERR_ENTRY
};

static void test_every_result_has_status_code_and_sentence(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        const char *code = err_code(all[i]), *text = err_text(all[i]);
        assert_in_range(err_http_status(all[i]), 200, 599);
        for (const char *c = code; *c != '\0'; c++)
            assert_true(islower((unsigned char)*c) || *c == '_');
        assert_true(strlen(code) >= 2);
        assert_int_equal(text[strlen(text) - 1], '.');
    }
}

static void test_codes_on_the_wire_are_one_result_each(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        for (size_t k = i + 1; k < COUNT_OF(all); k++) {
            assert_int_not_equal(all[i], all[k]);
            if (strcmp(err_code(all[i]), "internal_error") != 0)
                assert_string_not_equal(err_code(all[i]), err_code(all[k]));
        }
    }
}

static void test_known_results_keep_their_numbers(void **state)
{
    (void)state;
    assert_int_equal(ERR_OK, 0);
    assert_int_equal(ERR_SEAT_HELD, 20);
    assert_int_equal(ERR_OUTCOME_UNKNOWN, 40);
    assert_int_equal(err_http_status(ERR_SEAT_HELD), 409);
    assert_string_equal(err_code(ERR_SEAT_HELD), "seat_held_by_another_user");
    assert_int_equal(err_http_status(ERR_RATE_LIMITED), 429);
}

static void test_a_number_from_a_damaged_row_reads_as_internal_error(void **state)
{
    (void)state;
    enum err damaged = (enum err)99;
    assert_int_equal(err_http_status(damaged), 500);
    assert_string_equal(err_code(damaged), "internal_error");
    assert_string_equal(err_text(damaged), err_text(ERR_INTERNAL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_result_has_status_code_and_sentence),
        cmocka_unit_test(test_codes_on_the_wire_are_one_result_each),
        cmocka_unit_test(test_known_results_keep_their_numbers),
        cmocka_unit_test(test_a_number_from_a_damaged_row_reads_as_internal_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
