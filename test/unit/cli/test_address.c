/* SPDX-License-Identifier: Apache-2.0
 * Addresses and ids as they are typed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "cli/cli.h"

static char why[512];

static bool parse(const char *text, struct address *out)
{
    struct options options = {.argument_count = 0};

    options.values[OPTION_LISTEN] = text;
    options.sources[OPTION_LISTEN] = FROM_FLAG;
    return address_parse(&options, OPTION_LISTEN, out, why, sizeof why);
}

static void assert_address(const char *text, const char *host, unsigned port, const char *url)
{
    struct address address;
    char written[128];

    assert_true(parse(text, &address));
    assert_string_equal(address.host, host);
    assert_int_equal(address.port, port);
    address_format_url(&address, written, sizeof written);
    assert_string_equal(written, url);
}

static void test_numeric_addresses_and_localhost_are_taken(void **state)
{
    struct address address;

    (void)state;
    assert_address("127.0.0.1:8080", "127.0.0.1", 8080, "http://127.0.0.1:8080");
    assert_address("0.0.0.0:0", "0.0.0.0", 0, "http://0.0.0.0:0");
    assert_address("[::1]:65535", "::1", 65535, "http://[::1]:65535");
    assert_true(parse("localhost:80", &address));
}

static void test_what_is_no_address_is_named(void **state)
{
    static const char *const bad[] = {
        "8080",   ":8080", "127.0.0.1", "127.0.0.1:",   "127.0.0.1:x",   "127.0.0.1:-1",  "127.0.0.1:65536",
        "::1:80", "[::1]", "[]:80",     "1.2.3.4.5:80", "127.0.0.1:80a", "127.0.0.1: 80", "[::1:80"};
    struct address address;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        if (parse(bad[i], &address))
            fail_msg("'%s' was taken", bad[i]);
        assert_non_null(strstr(why, "--listen"));
        assert_non_null(strstr(why, bad[i]));
    }
}

static void test_uuid_option_is_nil_when_absent_and_refused_when_wrong(void **state)
{
    struct options options = {.argument_count = 0};
    struct uuid id;

    (void)state;
    assert_true(options_uuid(&options, OPTION_ORG, &id, why, sizeof why));
    assert_true(uuid_is_nil(&id));
    options.sources[OPTION_ORG] = FROM_FLAG;
    options.values[OPTION_ORG] = "0190a4c2-7d1e-7c3a-9f54-2b8d6e0f1a23";
    assert_true(options_uuid(&options, OPTION_ORG, &id, why, sizeof why));
    assert_false(uuid_is_nil(&id));
    options.values[OPTION_ORG] = "0190a4c2";
    assert_false(options_uuid(&options, OPTION_ORG, &id, why, sizeof why));
    options.values[OPTION_ORG] = "00000000-0000-0000-0000-000000000000";
    assert_false(options_uuid(&options, OPTION_ORG, &id, why, sizeof why));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numeric_addresses_and_localhost_are_taken),
        cmocka_unit_test(test_what_is_no_address_is_named),
        cmocka_unit_test(test_uuid_option_is_nil_when_absent_and_refused_when_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
