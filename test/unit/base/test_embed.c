/* SPDX-License-Identifier: Apache-2.0
 * Looking up files that were built in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/embed.h"

static const struct embed table[] = {{"one.sql", "SELECT 1", 8}, {"two.sql", "", 0}, {NULL, NULL, 0}};

static void test_a_file_is_found_by_its_whole_name(void **state)
{
    (void)state;
    assert_ptr_equal(embed_find(table, "one.sql"), &table[0]);
    assert_ptr_equal(embed_find(table, "two.sql"), &table[1]);
    assert_null(embed_find(table, "one"));
    assert_null(embed_find(table, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_file_is_found_by_its_whole_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
