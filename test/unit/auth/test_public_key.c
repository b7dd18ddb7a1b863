/* SPDX-License-Identifier: Apache-2.0
 * Tokens checked with a public key: RS256 or ES256 by the key's type. The classic
 * attack, an HS256 token signed with the public key as its secret, fails. */
#include "forge.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#define RS256_HEADER "{\"alg\":\"RS256\",\"typ\":\"JWT\"}"
#define ES256_HEADER "{\"alg\":\"ES256\",\"typ\":\"JWT\"}"

struct key_pair {
    EVP_PKEY *key;
    char pem[4096];
    size_t pem_size;
};

struct keys {
    struct key_pair rsa, rsa_other, rsa_small, p256, p256_other, p384, ed25519;
};

static struct keys keys;

static void pair_init(struct key_pair *pair, EVP_PKEY *key)
{
    assert_non_null(key);
    pair->key = key;
    BIO *bio = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_PUBKEY(bio, key), 1);
    pair->pem_size = (size_t)BIO_read(bio, pair->pem, sizeof pair->pem - 1);
    pair->pem[pair->pem_size] = '\0';
    BIO_free(bio);
}

static int keys_make(void **state)
{
    (void)state;
    pair_init(&keys.rsa, EVP_RSA_gen(2048));
    pair_init(&keys.rsa_other, EVP_RSA_gen(2048));
    pair_init(&keys.rsa_small, EVP_RSA_gen(1024));
    pair_init(&keys.p256, EVP_EC_gen("P-256"));
    pair_init(&keys.p256_other, EVP_EC_gen("P-256"));
    pair_init(&keys.p384, EVP_EC_gen("P-384"));
    pair_init(&keys.ed25519, EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"));
    return 0;
}

static int keys_free(void **state)
{
    (void)state;
    struct key_pair *all[] = {&keys.rsa,        &keys.rsa_other, &keys.rsa_small, &keys.p256,
                              &keys.p256_other, &keys.p384,      &keys.ed25519};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        EVP_PKEY_free(all[i]->key);
    return 0;
}

static struct auth *auth_of(const struct key_pair *pair)
{
    struct auth *auth = NULL;
    char why[200] = "";
    assert_int_equal(auth_create_public_key(pair->pem, pair->pem_size, &auth, why, sizeof why), ERR_OK);
    return auth;
}

static size_t sign(EVP_PKEY *key, const char *text, size_t length, uint8_t *out, size_t out_size)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    assert_int_equal(EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key), 1);
    assert_int_equal(EVP_DigestSign(context, out, &out_size, (const unsigned char *)text, length), 1);
    EVP_MD_CTX_free(context);
    return out_size;
}

static void forge_rs256(const struct key_pair *pair, const char *header, const char *claims, char *out)
{
    uint8_t signature[1024];
    size_t length = forge_unsigned(header, claims, out);
    size_t size = sign(pair->key, out, length, signature, sizeof signature);
    forge_append_signature(out, length, signature, size);
}

static void raw_signature(const struct key_pair *pair, const char *text, size_t length, uint8_t raw[64])
{
    uint8_t der[256];
    const unsigned char *position = der;
    size_t size = sign(pair->key, text, length, der, sizeof der);
    ECDSA_SIG *pair_of_numbers = d2i_ECDSA_SIG(NULL, &position, (long)size);
    assert_non_null(pair_of_numbers);
    BN_bn2binpad(ECDSA_SIG_get0_r(pair_of_numbers), raw, 32);
    BN_bn2binpad(ECDSA_SIG_get0_s(pair_of_numbers), raw + 32, 32);
    ECDSA_SIG_free(pair_of_numbers);
}

static void forge_es256(const struct key_pair *pair, const char *header, const char *claims, char *out)
{
    uint8_t raw[64];
    size_t length = forge_unsigned(header, claims, out);
    raw_signature(pair, out, length, raw);
    forge_append_signature(out, length, raw, sizeof raw);
}

static void test_rs256_token_is_taken(void **state)
{
    (void)state;
    struct auth *auth = auth_of(&keys.rsa);
    struct auth_claims claims;
    char token[FORGED_SIZE];
    forge_rs256(&keys.rsa, RS256_HEADER, GOOD_CLAIMS, token);
    assert_int_equal(verify_text(auth, token, &claims), ERR_OK);
    assert_int_equal(claims.role, ROLE_BUYER);
    assert_int_equal(verify_text(auth, token, &claims), ERR_OK);
    auth_destroy(auth);
}

static void test_rs256_forgeries_are_refused(void **state)
{
    (void)state;
    struct auth *auth = auth_of(&keys.rsa);
    struct auth_claims claims;
    char token[FORGED_SIZE];
    forge_rs256(&keys.rsa_other, RS256_HEADER, GOOD_CLAIMS, token);
    assert_int_equal(verify_text(auth, token, &claims), ERR_UNAUTHORIZED);
    forge_rs256(&keys.rsa, "{\"alg\":\"RS512\"}", GOOD_CLAIMS, token);
    assert_int_equal(verify_text(auth, token, &claims), ERR_UNAUTHORIZED);
    forge_rs256(&keys.rsa, "{\"alg\":\"PS256\"}", GOOD_CLAIMS, token);
    assert_int_equal(verify_text(auth, token, &claims), ERR_UNAUTHORIZED);
    forge_es256(&keys.p256, ES256_HEADER, GOOD_CLAIMS, token);
    assert_int_equal(verify_text(auth, token, &claims), ERR_UNAUTHORIZED);
    forge_rs256(&keys.rsa, RS256_HEADER, "{\"sub\":\"" USER "\",\"org\":\"" ORG "\",\"role\":\"buyer\"}",
                token);
    assert_int_equal(verify_text(auth, token, &claims), ERR_UNAUTHORIZED);
    auth_destroy(auth);
}

static void test_hs256_signed_with_the_public_key_is_refused(void **state)
{
    (void)state;
    const struct key_pair *pairs[] = {&keys.rsa, &keys.p256};
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        struct auth *auth = auth_of(pairs[i]);
        struct auth_claims claims;
        char token[FORGED_SIZE];
        forge_hs256(pairs[i]->pem, pairs[i]->pem_size, HS256_HEADER, GOOD_CLAIMS, token);
        assert_int_equal(verify_text(auth, token, &claims), ERR_UNAUTHORIZED);
        forge_hs256(pairs[i]->pem, pairs[i]->pem_size, RS256_HEADER, GOOD_CLAIMS, token);
        assert_int_equal(verify_text(auth, token, &claims), ERR_UNAUTHORIZED);
        forge_hs256(pairs[i]->pem, pairs[i]->pem_size, "{\"alg\":\"none\"}", GOOD_CLAIMS, token);
        assert_int_equal(verify_text(auth, token, &claims), ERR_UNAUTHORIZED);
        auth_destroy(auth);
    }
}

static void test_es256_token_is_taken(void **state)
{
    (void)state;
    struct auth *auth = auth_of(&keys.p256);
    struct auth_claims claims;
    char token[FORGED_SIZE];
    for (int i = 0; i < 40; i++) { /* some have an r or s with leading zeros or a high bit */
        char text[512];
        snprintf(text, sizeof text,
                 "{\"n\":%d,\"sub\":\"" USER "\",\"org\":\"" ORG "\",\"role\":\"agent\",\"exp\":1800000060}",
                 i);
        forge_es256(&keys.p256, ES256_HEADER, text, token);
        assert_int_equal(verify_text(auth, token, &claims), ERR_OK);
        assert_int_equal(claims.role, ROLE_AGENT);
    }
    auth_destroy(auth);
}

static void test_es256_forgeries_are_refused(void **state)
{
    (void)state;
    struct auth *auth = auth_of(&keys.p256);
    struct auth_claims claims;
    char token[FORGED_SIZE];
    uint8_t signature[256] = {0};

    forge_es256(&keys.p256_other, ES256_HEADER, GOOD_CLAIMS, token);
    assert_int_equal(verify_text(auth, token, &claims), ERR_UNAUTHORIZED);
    forge_es256(&keys.p256, RS256_HEADER, GOOD_CLAIMS, token);
    assert_int_equal(verify_text(auth, token, &claims), ERR_UNAUTHORIZED);

    size_t length = forge_unsigned(ES256_HEADER, GOOD_CLAIMS, token);
    forge_append_signature(token, length, signature, 64); /* r and s zero */
    assert_int_equal(verify_text(auth, token, &claims), ERR_UNAUTHORIZED);
    forge_append_signature(token, length, signature, 0);
    assert_int_equal(verify_text(auth, token, &claims), ERR_UNAUTHORIZED);
    token[length] = '\0';
    size_t size = sign(keys.p256.key, token, length, signature, sizeof signature); /* good, but in DER */
    forge_append_signature(token, length, signature, size);
    assert_int_equal(verify_text(auth, token, &claims), ERR_UNAUTHORIZED);
    token[length] = '\0';
    raw_signature(&keys.p256, token, length, signature); /* good, but a byte longer */
    forge_append_signature(token, length, signature, 65);
    assert_int_equal(verify_text(auth, token, &claims), ERR_UNAUTHORIZED);
    auth_destroy(auth);
}

static void expect_refused_key(const char *pem, size_t size, const char *word)
{
    struct auth *auth = NULL;
    char why[200] = "";
    assert_int_equal(auth_create_public_key(pem, size, &auth, why, sizeof why), ERR_CONFIG);
    assert_null(auth);
    if (strstr(why, word) == NULL)
        fail_msg("\"%s\" does not say %s", why, word);
}

static void test_unfit_keys_are_refused_with_a_reason(void **state)
{
    (void)state;
    expect_refused_key(keys.rsa_small.pem, keys.rsa_small.pem_size, "1024 bits");
    expect_refused_key(keys.p384.pem, keys.p384.pem_size, "P-256");
    expect_refused_key(keys.ed25519.pem, keys.ed25519.pem_size, "RSA or a P-256");
    expect_refused_key("", 0, "PEM");
    expect_refused_key("hello", 5, "PEM");
    expect_refused_key(keys.rsa.pem, keys.rsa.pem_size / 2, "PEM");

    char pem[4096];
    BIO *bio = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_PrivateKey(bio, keys.p256.key, NULL, NULL, 0, NULL, NULL), 1);
    int size = BIO_read(bio, pem, sizeof pem);
    BIO_free(bio);
    expect_refused_key(pem, (size_t)size, "private key");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rs256_token_is_taken),
        cmocka_unit_test(test_rs256_forgeries_are_refused),
        cmocka_unit_test(test_hs256_signed_with_the_public_key_is_refused),
        cmocka_unit_test(test_es256_token_is_taken),
        cmocka_unit_test(test_es256_forgeries_are_refused),
        cmocka_unit_test(test_unfit_keys_are_refused_with_a_reason),
    };
    return cmocka_run_group_tests(tests, keys_make, keys_free);
}
