/* SPDX-License-Identifier: Apache-2.0
 * Tokens checked with a secret: HS256 and nothing else, whatever the token says. */
#include "forge.h"

#include <stdlib.h>

static const char secret[] = "a secret of thirty-two bytes or so, for tests";

static int setup(void **state)
{
    struct auth *auth = NULL;
    assert_int_equal(auth_create_secret(secret, strlen(secret), &auth), ERR_OK);
    *state = auth;
    return 0;
}

static int teardown(void **state)
{
    auth_destroy(*state);
    return 0;
}

static enum err verify_claims(struct auth *auth, const char *claims, struct auth_claims *out)
{
    char token[FORGED_SIZE];
    forge_hs256(secret, strlen(secret), HS256_HEADER, claims, token);
    return verify_text(auth, token, out);
}

static void expect_claims(struct auth *auth, enum err expected, const char *claims)
{
    struct auth_claims out;
    enum err err = verify_claims(auth, claims, &out);
    if (err != expected)
        fail_msg("%s gave %d", claims, (int)err);
}

static void expect_header(struct auth *auth, enum err expected, const char *header)
{
    struct auth_claims out;
    char token[FORGED_SIZE];
    forge_hs256(secret, strlen(secret), header, GOOD_CLAIMS, token);
    enum err err = verify_text(auth, token, &out);
    if (err != expected)
        fail_msg("%s gave %d", header, (int)err);
}

static void test_good_token_gives_its_claims(void **state)
{
    struct auth_claims claims;
    char text[UUID_TEXT_SIZE];
    assert_int_equal(verify_claims(*state, GOOD_CLAIMS, &claims), ERR_OK);
    uuid_format(&claims.user_id, text);
    assert_string_equal(text, USER);
    uuid_format(&claims.org_id, text);
    assert_string_equal(text, ORG);
    assert_int_equal(claims.role, ROLE_BUYER);
    assert_int_equal(claims.expires_ms, INT64_C(1800000060000));
}

static void test_another_algorithm_is_refused(void **state)
{
    expect_header(*state, ERR_OK, "{\"alg\":\"HS256\"}");
    expect_header(*state, ERR_OK, "{\"alg\":\"HS256\",\"kid\":\"x\",\"typ\":\"at+jwt\"}");
    static const char *const bad[] = {
        "{\"alg\":\"none\"}",
        "{\"alg\":\"None\"}",
        "{\"alg\":\"\"}",
        "{\"alg\":\"hs256\"}",
        "{\"alg\":\"HS384\"}",
        "{\"alg\":\"RS256\"}",
        "{\"alg\":null}",
        "{\"alg\":[\"HS256\"]}",
        "{\"alg\":256}",
        "{\"alg\":\"HS256\\u0000\"}",
        "{\"alg\":\"HS2\"}",
        "{}",
        "{\"typ\":\"JWT\"}",
        "[]",
        "\"HS256\"",
        "",
        "{\"alg\":\"HS256\",\"crit\":[\"exp\"]}",
        "{\"alg\":\"HS256\",\"crit\":null}",
        "{\"alg\":\"none\",\"alg\":\"HS256\"}",
        "{\"alg\":\"HS256\",\"alg\":\"HS256\"}",
        "{\"alg\":\"HS256\"} x",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        expect_header(*state, ERR_UNAUTHORIZED, bad[i]);
}

static void test_unsigned_token_is_refused(void **state)
{
    char token[FORGED_SIZE];
    struct auth_claims claims;
    size_t length = forge_unsigned("{\"alg\":\"none\"}", GOOD_CLAIMS, token);
    assert_int_equal(verify_text(*state, token, &claims), ERR_UNAUTHORIZED);
    strcpy(token + length, ".");
    assert_int_equal(verify_text(*state, token, &claims), ERR_UNAUTHORIZED);
    length = forge_unsigned(HS256_HEADER, GOOD_CLAIMS, token);
    strcpy(token + length, ".");
    assert_int_equal(verify_text(*state, token, &claims), ERR_UNAUTHORIZED);
}

#define WITH(rest) "{\"sub\":\"" USER "\",\"org\":\"" ORG "\",\"role\":\"buyer\"" rest "}"

static void test_exp_is_required_a_number_and_exact(void **state)
{
    expect_claims(*state, ERR_OK, WITH(",\"exp\":1800000001"));
    expect_claims(*state, ERR_OK, WITH(",\"exp\":1800000000.001"));
    expect_claims(*state, ERR_OK, WITH(",\"exp\":1.9e9"));
    expect_claims(*state, ERR_OK, WITH(",\"exp\":1e300"));
    expect_claims(*state, ERR_OK, WITH(",\"exp\":9223372036854775807"));
    static const char *const bad[] = {
        WITH(""),
        WITH(",\"exp\":1800000000"),
        WITH(",\"exp\":1800000000.0"),
        WITH(",\"exp\":1799999999"),
        WITH(",\"exp\":1799999999.999"),
        WITH(",\"exp\":0"),
        WITH(",\"exp\":-1"),
        WITH(",\"exp\":-9223372036854775808"),
        WITH(",\"exp\":-1e300"),
        WITH(",\"exp\":1e999"),
        WITH(",\"exp\":99999999999999999999"),
        WITH(",\"exp\":\"1800000060\""),
        WITH(",\"exp\":null"),
        WITH(",\"exp\":true"),
        WITH(",\"exp\":[1800000060]"),
        WITH(",\"exp\":NaN"),
        WITH(",\"exp\":1800000060,\"exp\":1900000000"),
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        expect_claims(*state, ERR_UNAUTHORIZED, bad[i]);
}

static void test_nbf_is_honoured_when_there(void **state)
{
    expect_claims(*state, ERR_OK, WITH(",\"exp\":1800000060,\"nbf\":1800000000"));
    expect_claims(*state, ERR_OK, WITH(",\"exp\":1800000060,\"nbf\":0.5"));
    expect_claims(*state, ERR_UNAUTHORIZED, WITH(",\"exp\":1800000060,\"nbf\":1800000001"));
    expect_claims(*state, ERR_UNAUTHORIZED, WITH(",\"exp\":1800000060,\"nbf\":1800000000.5"));
    expect_claims(*state, ERR_UNAUTHORIZED, WITH(",\"exp\":1800000060,\"nbf\":\"0\""));
    expect_claims(*state, ERR_UNAUTHORIZED, WITH(",\"exp\":1800000060,\"nbf\":null"));
}

#define CLAIMS(sub, org, role) "{\"sub\":" sub ",\"org\":" org ",\"role\":" role ",\"exp\":1800000060}"
#define NIL "\"00000000-0000-0000-0000-000000000000\""

static void test_ids_and_role_are_required_and_well_formed(void **state)
{
    expect_claims(*state, ERR_OK, CLAIMS("\"" USER "\"", "\"" ORG "\"", "\"agent\""));
    expect_claims(*state, ERR_OK, CLAIMS("\"" USER "\"", "\"" ORG "\"", "\"admin\""));
    expect_claims(*state, ERR_OK, CLAIMS("\"" USER "\"", "\"" ORG "\"", "\"operator\""));
    static const char *const bad[] = {
        CLAIMS("\"" USER "\"", "\"" ORG "\"", "\"system\""),
        CLAIMS("\"" USER "\"", "\"" ORG "\"", "\"Admin\""),
        CLAIMS("\"" USER "\"", "\"" ORG "\"", "\"\""),
        CLAIMS("\"" USER "\"", "\"" ORG "\"", "0"),
        CLAIMS("\"" USER "\"", "\"" ORG "\"", "[\"admin\"]"),
        CLAIMS("\"" USER "\"", "\"" ORG "\"", "\"buyer\",\"role\":\"admin\""),
        CLAIMS("\"alice\"", "\"" ORG "\"", "\"buyer\""),
        CLAIMS("\"" USER "x\"", "\"" ORG "\"", "\"buyer\""),
        CLAIMS(NIL, "\"" ORG "\"", "\"buyer\""),
        CLAIMS("7", "\"" ORG "\"", "\"buyer\""),
        CLAIMS("\"" USER "\"", "\"acme\"", "\"buyer\""),
        CLAIMS("\"" USER "\"", NIL, "\"buyer\""),
        CLAIMS("\"" USER "\"", "null", "\"buyer\""),
        CLAIMS("\"" USER "\"", "\"acme\"", "\"operator\""),
        "{\"org\":\"" ORG "\",\"role\":\"buyer\",\"exp\":1800000060}",
        "{\"sub\":\"" USER "\",\"role\":\"buyer\",\"exp\":1800000060}",
        "{\"sub\":\"" USER "\",\"org\":\"" ORG "\",\"exp\":1800000060}",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        expect_claims(*state, ERR_UNAUTHORIZED, bad[i]);
}

static void test_operator_needs_no_organization(void **state)
{
    struct auth_claims claims;
    assert_int_equal(
        verify_claims(*state, "{\"sub\":\"" USER "\",\"role\":\"operator\",\"exp\":1800000060}", &claims),
        ERR_OK);
    assert_true(uuid_is_nil(&claims.org_id));
    assert_int_equal(claims.role, ROLE_OPERATOR);
}

static void test_claims_that_are_no_object_are_refused(void **state)
{
    static const char *const bad[] = {
        "", "null", "[]", "7", "\"x\"", "{", GOOD_CLAIMS "}", "{\"sub\":\"\xFF\"}"};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        expect_claims(*state, ERR_UNAUTHORIZED, bad[i]);

    char deep[3000];
    memset(deep, '[', sizeof deep);
    deep[sizeof deep - 1] = '\0';
    expect_claims(*state, ERR_UNAUTHORIZED, deep);
}

static void test_changing_any_character_refuses_the_token(void **state)
{
    char token[FORGED_SIZE];
    struct auth_claims claims;
    forge_hs256(secret, strlen(secret), HS256_HEADER, GOOD_CLAIMS, token);
    assert_int_equal(verify_text(*state, token, &claims), ERR_OK);
    for (size_t i = 0; i < strlen(token); i++) {
        char kept = token[i];
        token[i] = kept == 'A' ? 'B' : 'A';
        assert_int_equal(verify_text(*state, token, &claims), ERR_UNAUTHORIZED);
        token[i] = '=';
        assert_int_equal(verify_text(*state, token, &claims), ERR_UNAUTHORIZED);
        token[i] = kept;
    }
}

static void test_every_truncation_is_refused(void **state)
{
    char token[FORGED_SIZE];
    struct auth_claims claims;
    forge_hs256(secret, strlen(secret), HS256_HEADER, GOOD_CLAIMS, token);
    for (size_t size = 0; size < strlen(token); size++) {
        char *copy = malloc(size + 1); /* its own memory, so that reading past the end is seen */
        memcpy(copy, token, size);
        assert_int_equal(auth_verify(*state, copy, size, NOW_MS, &claims), ERR_UNAUTHORIZED);
        free(copy);
    }
}

static void test_garbage_is_refused(void **state)
{
    static const char *const bad[] = {"",         ".",           "..",           "...",
                                      "a.b.c",    "a.b.c.d",     "Bearer x",     "\xFF",
                                      "e30.e30.", "e30.e30.e30", " e30.e30.e30", "e30.e30.e30\n"};
    struct auth_claims claims;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_int_equal(verify_text(*state, bad[i], &claims), ERR_UNAUTHORIZED);

    char token[FORGED_SIZE];
    forge_hs256(secret, strlen(secret), HS256_HEADER, GOOD_CLAIMS, token);
    strcat(token, ".");
    assert_int_equal(verify_text(*state, token, &claims), ERR_UNAUTHORIZED);
    strcat(token, "AAAA");
    assert_int_equal(verify_text(*state, token, &claims), ERR_UNAUTHORIZED);
}

static void test_huge_token_is_refused_even_if_well_signed(void **state)
{
    char claims[6000];
    struct auth_claims out;
    int length = snprintf(claims, sizeof claims, "%s", WITH(",\"exp\":1800000060,\"x\":\""));
    memset(claims + length - 1, 'y', 2500);
    strcpy(claims + length - 1 + 2500, "\"}");
    assert_int_equal(verify_claims(*state, claims, &out), ERR_OK); /* large, but within the limit */
    memset(claims + length - 1, 'y', 4000);
    strcpy(claims + length - 1 + 4000, "\"}");
    assert_int_equal(verify_claims(*state, claims, &out), ERR_UNAUTHORIZED);
}

static void test_another_secret_is_refused(void **state)
{
    char token[FORGED_SIZE];
    struct auth_claims claims;
    forge_hs256("another", 7, HS256_HEADER, GOOD_CLAIMS, token);
    assert_int_equal(verify_text(*state, token, &claims), ERR_UNAUTHORIZED);
    forge_hs256("", 0, HS256_HEADER, GOOD_CLAIMS, token);
    assert_int_equal(verify_text(*state, token, &claims), ERR_UNAUTHORIZED);
}

static void test_empty_secret_is_a_configuration_error(void **state)
{
    (void)state;
    struct auth *auth = NULL;
    assert_int_equal(auth_create_secret("", 0, &auth), ERR_CONFIG);
    assert_null(auth);
}

static void test_remembered_token_ends_at_its_exp(void **state)
{
    char token[FORGED_SIZE];
    struct auth_claims claims;
    forge_hs256(secret, strlen(secret), HS256_HEADER, GOOD_CLAIMS, token);
    size_t size = strlen(token);
    assert_int_equal(auth_verify(*state, token, size, NOW_MS, &claims), ERR_OK);
    assert_int_equal(auth_verify(*state, token, size, INT64_C(1800000059999), &claims), ERR_OK);
    assert_int_equal(auth_verify(*state, token, size, INT64_C(1800000060000), &claims), ERR_UNAUTHORIZED);
}

static void test_what_auth_sign_makes_verifies(void **state)
{
    struct auth_claims claims = {.role = ROLE_ADMIN, .expires_ms = NOW_MS + 5500};
    struct auth_claims back;
    char token[512];
    assert_true(uuid_parse(USER, 36, &claims.user_id));
    assert_true(uuid_parse(ORG, 36, &claims.org_id));
    assert_true(auth_sign(secret, strlen(secret), &claims, NOW_MS, token, sizeof token));
    assert_int_equal(verify_text(*state, token, &back), ERR_OK);
    assert_true(uuid_equal(&back.user_id, &claims.user_id));
    assert_true(uuid_equal(&back.org_id, &claims.org_id));
    assert_int_equal(back.role, ROLE_ADMIN);
    assert_int_equal(back.expires_ms, NOW_MS + 5000); /* rounded down */

    claims.role = ROLE_OPERATOR;
    memset(&claims.org_id, 0, sizeof claims.org_id);
    assert_true(auth_sign(secret, strlen(secret), &claims, NOW_MS, token, sizeof token));
    assert_int_equal(verify_text(*state, token, &back), ERR_OK);
    assert_true(uuid_is_nil(&back.org_id));
}

static void test_auth_sign_refuses_what_does_not_fit(void **state)
{
    (void)state;
    struct auth_claims claims = {.role = ROLE_BUYER, .expires_ms = NOW_MS + 5000};
    char token[512];
    assert_true(uuid_parse(USER, 36, &claims.user_id));
    assert_true(uuid_parse(ORG, 36, &claims.org_id));
    assert_true(auth_sign(secret, strlen(secret), &claims, NOW_MS, token, sizeof token));
    size_t needed = strlen(token) + 1;
    assert_true(auth_sign(secret, strlen(secret), &claims, NOW_MS, token, needed));
    assert_false(auth_sign(secret, strlen(secret), &claims, NOW_MS, token, needed - 1));
    assert_false(auth_sign(secret, strlen(secret), &claims, NOW_MS, token, 0));
    assert_false(auth_sign("", 0, &claims, NOW_MS, token, sizeof token));
    claims.role = ROLE_SYSTEM;
    assert_false(auth_sign(secret, strlen(secret), &claims, NOW_MS, token, sizeof token));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_good_token_gives_its_claims, setup, teardown),
        cmocka_unit_test_setup_teardown(test_another_algorithm_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unsigned_token_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_exp_is_required_a_number_and_exact, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nbf_is_honoured_when_there, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ids_and_role_are_required_and_well_formed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_operator_needs_no_organization, setup, teardown),
        cmocka_unit_test_setup_teardown(test_claims_that_are_no_object_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_changing_any_character_refuses_the_token, setup, teardown),
        cmocka_unit_test_setup_teardown(test_every_truncation_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_garbage_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_huge_token_is_refused_even_if_well_signed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_another_secret_is_refused, setup, teardown),
        cmocka_unit_test(test_empty_secret_is_a_configuration_error),
        cmocka_unit_test_setup_teardown(test_remembered_token_ends_at_its_exp, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_auth_sign_makes_verifies, setup, teardown),
        cmocka_unit_test_setup_teardown(test_auth_sign_refuses_what_does_not_fit, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
