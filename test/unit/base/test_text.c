/* SPDX-License-Identifier: Apache-2.0
 * UTF-8, base64 and SHA-256 against known answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/check.h"
#include "base/text.h"

static void test_well_formed_utf8_is_accepted(void **state)
{
    (void)state;
    static const char *const good[] = {
        "",
        "a",
        "Zoë",
        "日本語",
        "\xF0\x9F\x8E\xAB",
        "\xC2\x80",
        "\xDF\xBF",
        "\xE0\xA0\x80",
        "\xED\x9F\xBF",
        "\xEE\x80\x80",
        "\xEF\xBF\xBF",
        "\xF0\x90\x80\x80",
        "\xF4\x8F\xBF\xBF",
    };
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_true(text_is_utf8(good[i], strlen(good[i])));
}

static void test_malformed_utf8_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "\x80",
        "\xBF",
        "\xC0\x80",
        "\xC1\xBF",
        "\xC2",
        "\xC2\x41",
        "\xE0\x80\x80",
        "\xE0\x9F\xBF",
        "\xE1\x80",
        "\xE1\x80\x41",
        "\xED\xA0\x80",
        "\xED\xBF\xBF",
        "\xF0\x80\x80\x80",
        "\xF0\x8F\xBF\xBF",
        "\xF0\x90\x80",
        "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80",
        "\xFE",
        "\xFF",
        "abc\xFF",
        "\xC3\xA9\xC3",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(text_is_utf8(bad[i], strlen(bad[i])));
    assert_false(text_is_utf8("a\0b", 3));
    assert_false(text_is_utf8("\xE0\xA0\x80", 2)); /* the length decides, not a NUL */
}

static void test_characters_are_counted_not_bytes(void **state)
{
    (void)state;
    assert_int_equal(text_character_count("", 0), 0);
    assert_int_equal(text_character_count("Zoë", 4), 3);
    assert_int_equal(text_character_count("\xF0\x9F\x8E\xAB!", 5), 2);
}

static void test_base64_of_every_remainder(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    char out[16];
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        base64_encode((const uint8_t *)pairs[i][0], strlen(pairs[i][0]), out);
        assert_string_equal(out, pairs[i][1]);
    }
    base64_encode((const uint8_t *)"\xFF\xFE\xFB", 3, out);
    assert_string_equal(out, "//77");
}

static void test_sha256_of_known_text(void **state)
{
    (void)state;
    static const uint8_t abc[32] = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40,
                                    0xde, 0x5d, 0xae, 0x22, 0x23, 0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17,
                                    0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad};
    uint8_t out[32];
    sha256("abc", 3, out);
    assert_memory_equal(out, abc, 32);
    sha256("", 0, out);
    assert_int_equal(out[0], 0xe3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_well_formed_utf8_is_accepted),
        cmocka_unit_test(test_malformed_utf8_is_refused),
        cmocka_unit_test(test_characters_are_counted_not_bytes),
        cmocka_unit_test(test_base64_of_every_remainder),
        cmocka_unit_test(test_sha256_of_known_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
