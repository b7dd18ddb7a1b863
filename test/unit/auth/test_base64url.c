/* SPDX-License-Identifier: Apache-2.0
 * base64url.c: one text per value, and nothing else is taken. */
#include "forge.h"

static void expect_decoded(const char *text, const char *bytes, size_t size)
{
    uint8_t out[64];
    size_t out_size = 99;
    assert_true(base64url_decode(text, strlen(text), out, &out_size));
    assert_int_equal(out_size, size);
    assert_memory_equal(out, bytes, size);
}

static void test_known_values_decode(void **state)
{
    (void)state;
    expect_decoded("", "", 0);
    expect_decoded("Zg", "f", 1);
    expect_decoded("Zm8", "fo", 2);
    expect_decoded("Zm9v", "foo", 3);
    expect_decoded("-_-_", "\xFB\xFF\xBF", 3);
}

static void test_what_encoding_never_makes_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"Z",     "Zg==", "Zg=",  "Zm9vZ", "Z g", "Zm9v\n",
                                      " Zm9v", "Zm+v", "Zm/v", "Zh",    "Zm9="};
    uint8_t out[64];
    size_t size;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(base64url_decode(bad[i], strlen(bad[i]), out, &size));
    assert_false(base64url_decode("Zm\0v", 4, out, &size));
    assert_false(base64url_decode("Zm\xC3\xA9", 4, out, &size));
}

static void test_every_length_comes_back(void **state)
{
    (void)state;
    uint8_t data[300], back[BASE64URL_DECODED_SIZE(400) + 1];
    char text[BASE64URL_ENCODED_SIZE(300)];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 37 + 11);
    for (size_t size = 0; size <= sizeof data; size++) {
        size_t back_size = 0;
        size_t length = base64url_encode(data, size, text);
        assert_int_equal(length, BASE64URL_ENCODED_SIZE(size));
        assert_true(base64url_decode(text, length, back, &back_size));
        assert_int_equal(back_size, size);
        assert_memory_equal(back, data, size);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_values_decode),
        cmocka_unit_test(test_what_encoding_never_makes_is_refused),
        cmocka_unit_test(test_every_length_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
