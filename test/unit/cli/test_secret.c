/* SPDX-License-Identifier: Apache-2.0
 * The secret: made once, for its owner alone, never overwritten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/files.h"

static char directory[256], path[320], why[512];

static int setup(void **state)
{
    (void)state;
    assert_true(
        directory_create_temporary("/tmp", "holdfast-secret", directory, sizeof directory, why, sizeof why));
    snprintf(path, sizeof path, "%s/holdfast.db.secret", directory);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    directory_remove(directory);
    assert_int_not_equal(access(directory, F_OK), 0);
    return 0;
}

static void write_file(const char *data, size_t size, mode_t mode)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    fclose(file);
    assert_int_equal(chmod(path, mode), 0);
}

static void test_path_is_beside_an_embedded_store_only(void **state)
{
    char out[64];

    (void)state;
    assert_true(secret_path("sqlite:./holdfast.db", out, sizeof out));
    assert_string_equal(out, "./holdfast.db.secret");
    assert_false(secret_path("postgres://localhost/x", out, sizeof out));
    assert_false(secret_path("sqlite:/a/path/that/does/not/fit/into/sixty/four/bytes/of/room/at/all.db", out,
                             sizeof out));
}

static void test_first_use_makes_one_for_the_owner_alone(void **state)
{
    struct secret secret;
    struct stat status;

    (void)state;
    assert_true(secret_read_or_create(path, &secret, why, sizeof why));
    assert_true(secret.created);
    assert_false(secret.open_to_others);
    assert_int_equal(secret.size, 64);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(status.st_nlink, 1);
}

static void test_second_use_reads_the_same_one(void **state)
{
    struct secret first, second;

    (void)state;
    assert_true(secret_read_or_create(path, &first, why, sizeof why));
    assert_true(secret_read_or_create(path, &second, why, sizeof why));
    assert_false(second.created);
    assert_int_equal(first.size, second.size);
    assert_memory_equal(first.bytes, second.bytes, first.size);
}

static void test_raw_bytes_lose_only_their_line_end(void **state)
{
    struct secret secret;

    (void)state;
    write_file("a\0b \n\n", 6, 0600);
    assert_true(secret_read(path, &secret, why, sizeof why));
    assert_int_equal(secret.size, 5);
    assert_memory_equal(secret.bytes, "a\0b \n", 5);
    write_file("key\r\n", 5, 0600);
    assert_true(secret_read(path, &secret, why, sizeof why));
    assert_int_equal(secret.size, 3);
}

static void test_file_open_to_others_is_noticed(void **state)
{
    struct secret secret;

    (void)state;
    write_file("0123456789abcdef", 16, 0640);
    assert_true(secret_read(path, &secret, why, sizeof why));
    assert_true(secret.open_to_others);
}

static void test_empty_secret_is_refused_and_kept(void **state)
{
    struct secret secret;

    (void)state;
    write_file("\n", 1, 0600);
    assert_false(secret_read_or_create(path, &secret, why, sizeof why));
    assert_non_null(strstr(why, "empty"));
}

static void test_secret_in_a_missing_directory_is_one_sentence(void **state)
{
    struct secret secret;

    (void)state;
    assert_false(secret_read_or_create("/nonexistent/x.secret", &secret, why, sizeof why));
    assert_non_null(strstr(why, "/nonexistent/x.secret"));
}

static void test_wiped_secret_is_gone(void **state)
{
    struct secret secret, zero;

    (void)state;
    memset(&zero, 0, sizeof zero);
    assert_true(secret_read_or_create(path, &secret, why, sizeof why));
    secret_wipe(&secret);
    assert_memory_equal(&secret, &zero, sizeof secret);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_path_is_beside_an_embedded_store_only),
        cmocka_unit_test_setup_teardown(test_first_use_makes_one_for_the_owner_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_second_use_reads_the_same_one, setup, teardown),
        cmocka_unit_test_setup_teardown(test_raw_bytes_lose_only_their_line_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_file_open_to_others_is_noticed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_empty_secret_is_refused_and_kept, setup, teardown),
        cmocka_unit_test(test_secret_in_a_missing_directory_is_one_sentence),
        cmocka_unit_test_setup_teardown(test_wiped_secret_is_gone, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
