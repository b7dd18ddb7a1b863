/* SPDX-License-Identifier: Apache-2.0
 * Addresses of Redis: what is read, and that nonsense is refused in a sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs the four above */
#include <cmocka.h>

#include "warm/url.h"

static struct address_list list;
static char why[256];

static void parse(const char *text)
{
    enum err err = url_parse(text, &list, why, sizeof(why));
    if (err != ERR_OK)
        print_message("%s: %s\n", text, why);
    assert_int_equal(err, ERR_OK);
}

static void test_plain_host_has_the_usual_port_and_database(void **state)
{
    (void)state;
    parse("redis://localhost");
    assert_int_equal(list.count, 1);
    assert_string_equal(list.addresses[0].host, "localhost");
    assert_string_equal(list.addresses[0].port, "6379");
    assert_int_equal(list.addresses[0].database, 0);
    assert_false(list.addresses[0].is_tls);
    assert_string_equal(list.addresses[0].password, "");
}

static void test_every_part_is_read(void **state)
{
    (void)state;
    parse("rediss://hold%40fast:p%2Css%3Aw:rd@redis.example:6380/7?cafile=/etc/ca%20file.pem&retry_ms=250");
    const struct address *address = &list.addresses[0];
    assert_true(address->is_tls);
    assert_string_equal(address->user, "hold@fast");
    assert_string_equal(address->password, "p,ss:w:rd");
    assert_string_equal(address->host, "redis.example");
    assert_string_equal(address->port, "6380");
    assert_int_equal(address->database, 7);
    assert_string_equal(address->ca_file, "/etc/ca file.pem");
    assert_int_equal(list.retry_ms, 250);
}

static void test_password_without_a_user(void **state)
{
    (void)state;
    parse("redis://:secret@127.0.0.1");
    assert_string_equal(list.addresses[0].user, "");
    assert_string_equal(list.addresses[0].password, "secret");
}

static void test_ipv6_stands_in_brackets(void **state)
{
    (void)state;
    parse("redis://[::1]:7000/2");
    assert_string_equal(list.addresses[0].host, "::1");
    assert_string_equal(list.addresses[0].port, "7000");
    assert_int_equal(list.addresses[0].database, 2);
}

static void test_unix_socket(void **state)
{
    (void)state;
    parse("unix:///run/redis/redis.sock?db=3");
    assert_true(list.addresses[0].is_unix);
    assert_string_equal(list.addresses[0].path, "/run/redis/redis.sock");
    assert_int_equal(list.addresses[0].database, 3);
}

static void test_several_are_kept_in_order(void **state)
{
    (void)state;
    parse("redis://a:1,rediss://b:2,unix:///c");
    assert_int_equal(list.count, 3);
    assert_string_equal(list.addresses[0].host, "a");
    assert_true(list.addresses[1].is_tls);
    assert_string_equal(list.addresses[2].path, "/c");
}

static void test_nonsense_is_refused_in_one_sentence_without_the_password(void **state)
{
    static const char *const nonsense[] = {
        "",
        "redis",
        "localhost:6379",
        "http://localhost",
        "redis://",
        "redis://:6379",
        "redis://host:",
        "redis://host:0",
        "redis://host:65536",
        "redis://host:12x",
        "redis://host/x",
        "redis://host/65536",
        "redis://host/-1",
        "redis://hunter2@host",
        "redis://user:@host",
        "redis://::1:6379",
        "redis://[::1",
        "redis://[::1]6379",
        "redis://[nonsense]",
        "redis://:hunter2%2@host",
        "redis://:hunter2%00@host",
        "redis://:hunter2%zz@host",
        "redis://:hunter2@",
        "redis://host?cafile=/x",
        "redis://host?db=1",
        "redis://host?nonsense=1",
        "redis://host?retry_ms=0",
        "redis://host?retry_ms=-5",
        "redis://host?retry_ms=99999999999999999999",
        "rediss://host?cafile=",
        "unix://",
        "unix://relative",
        "unix:///x?db=x",
        "redis://a,",
        ",redis://a",
        "redis://a,redis://b,redis://c,redis://d,redis://e,redis://f,redis://g,redis://h,redis://i",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
        why[0] = '\0';
        if (url_parse(nonsense[i], &list, why, sizeof(why)) == ERR_OK)
            fail_msg("%s was taken", nonsense[i]);
        size_t size = strlen(why);
        assert_true(size > 10);
        assert_int_equal(why[size - 1], '.');
        assert_null(strstr(why, "hunter2"));
    }
}

static void test_what_is_too_long_is_refused(void **state)
{
    char text[3000];
    (void)state;
    memset(text, 'a', sizeof(text));
    memcpy(text, "redis://", 8);
    text[8 + 256] = '\0';
    assert_int_equal(url_parse(text, &list, why, sizeof(why)), ERR_CONFIG);
    memset(text, 'a', sizeof(text));
    memcpy(text, "unix:///", 8);
    text[8 + 107] = '\0';
    assert_int_equal(url_parse(text, &list, why, sizeof(why)), ERR_CONFIG);
    text[7 + 107] = '\0';
    assert_int_equal(url_parse(text, &list, why, sizeof(why)), ERR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_host_has_the_usual_port_and_database),
        cmocka_unit_test(test_every_part_is_read),
        cmocka_unit_test(test_password_without_a_user),
        cmocka_unit_test(test_ipv6_stands_in_brackets),
        cmocka_unit_test(test_unix_socket),
        cmocka_unit_test(test_several_are_kept_in_order),
        cmocka_unit_test(test_nonsense_is_refused_in_one_sentence_without_the_password),
        cmocka_unit_test(test_what_is_too_long_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
