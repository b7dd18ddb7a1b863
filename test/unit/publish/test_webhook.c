/* SPDX-License-Identifier: Apache-2.0
 * What a webhook signs, how it reads answers, which URLs it takes. Requests themselves are tested
 * against a real receiver in test/fault/webhook.test.mjs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "publish/webhook.h"

/* By `printf '1767225600.[]' | openssl dgst -sha256 -hmac whsec_0123456789abcdef`. */
static void test_the_signature_is_the_hmac_of_time_dot_body(void **state)
{
    static const char secret[] = "whsec_0123456789abcdef";
    char signature[WEBHOOK_SIGNATURE_SIZE];

    (void)state;
    webhook_sign(secret, strlen(secret), 1767225600, "[]", 2, signature);
    assert_string_equal(signature,
                        "t=1767225600,v1=bdebe2cec564e6bac9392dc5b21d89bf2ded95c50397ade48008dbec1e64e286");
}

static void test_another_time_body_or_secret_gives_another_signature(void **state)
{
    char one[WEBHOOK_SIGNATURE_SIZE], other[WEBHOOK_SIGNATURE_SIZE];

    (void)state;
    webhook_sign("k", 1, 1, "[]", 2, one);
    webhook_sign("k", 1, 2, "[]", 2, other);
    assert_string_not_equal(strstr(one, "v1="), strstr(other, "v1="));
    webhook_sign("k", 1, 1, "[1]", 3, other);
    assert_string_not_equal(one, other);
    webhook_sign("l", 1, 1, "[]", 2, other);
    assert_string_not_equal(one, other);
}

static void test_answers_mean_taken_later_or_never(void **state)
{
    static const struct {
        long status;
        enum delivery_answer answer;
    } cases[] = {
        {200, ANSWER_DELIVERED}, {202, ANSWER_DELIVERED}, {204, ANSWER_DELIVERED}, {301, ANSWER_REFUSED},
        {400, ANSWER_REFUSED},   {401, ANSWER_REFUSED},   {404, ANSWER_REFUSED},   {408, ANSWER_FAILED},
        {410, ANSWER_REFUSED},   {413, ANSWER_REFUSED},   {422, ANSWER_REFUSED},   {425, ANSWER_FAILED},
        {429, ANSWER_FAILED},    {500, ANSWER_FAILED},    {502, ANSWER_FAILED},    {503, ANSWER_FAILED},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(webhook_judge(cases[i].status, 5), cases[i].answer);
}

static void test_who_finds_fault_with_an_empty_request_is_there(void **state)
{
    (void)state;
    assert_int_equal(webhook_judge(200, 0), ANSWER_DELIVERED);
    assert_int_equal(webhook_judge(400, 0), ANSWER_DELIVERED);
    assert_int_equal(webhook_judge(422, 0), ANSWER_DELIVERED);
    assert_int_equal(webhook_judge(404, 0), ANSWER_REFUSED);
    assert_int_equal(webhook_judge(401, 0), ANSWER_REFUSED);
    assert_int_equal(webhook_judge(500, 0), ANSWER_FAILED);
}

static void test_only_plain_http_and_https_urls_are_taken(void **state)
{
    static const char *const good[] = {"http://127.0.0.1:8080/hook", "https://shop.example/a?b=c",
                                       "http://[::1]:1/"};
    static const char *const bad[] = {"",
                                      "shop.example",
                                      "ftp://shop.example/",
                                      "file:///etc/passwd",
                                      "http:",
                                      "http://u:p@shop.example/",
                                      "https://"};
    char why[400];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_true(webhook_url_check(good[i], why, sizeof why));
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        why[0] = '\0';
        assert_false(webhook_url_check(bad[i], why, sizeof why));
        assert_true(strlen(why) > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_signature_is_the_hmac_of_time_dot_body),
        cmocka_unit_test(test_another_time_body_or_secret_gives_another_signature),
        cmocka_unit_test(test_answers_mean_taken_later_or_never),
        cmocka_unit_test(test_who_finds_fault_with_an_empty_request_is_there),
        cmocka_unit_test(test_only_plain_http_and_https_urls_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
