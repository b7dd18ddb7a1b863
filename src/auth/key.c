/* SPDX-License-Identifier: Apache-2.0
 * The one key of a server, parsed once, and the check of a signature with it.
 *
 * Invariants:
 *  1. The key's type alone decides the algorithm: a secret HS256, an RSA key
 *     RS256, a P-256 key ES256. A token's `alg` chooses nothing.
 *  2. HMACs are compared in constant time.
 *  3. A key is only read after its init, so any thread may verify with it.
 *
 * OpenSSL's errors are translated here, and its error queue is left empty.
 * Private keys are refused: a server that only checks should not have one. */
#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <string.h>

#include "auth/auth_int.h"

enum {
    HMAC_SIZE = 32,
    RSA_BITS_MIN = 2048,
    ES256_NUMBER_SIZE = 32, /* r and s, big endian */
    ES256_SIGNATURE_SIZE = 2 * ES256_NUMBER_SIZE,
    PEM_SIZE_MAX = 64 * 1024,
};

const char *auth_algorithm_name(enum auth_algorithm algorithm)
{
    switch (algorithm) {
    case ALGORITHM_HS256:
        return "HS256";
    case ALGORITHM_RS256:
        return "RS256";
    case ALGORITHM_ES256:
        return "ES256";
    }
    return "";
}

enum err auth_key_init_secret(struct auth_key *key, const void *secret, size_t size)
{
    enum err err = ERR_INTERNAL;
    EVP_MAC *mac = NULL;

    *key = (struct auth_key){.algorithm = ALGORITHM_HS256};
    if (size == 0)
        return ERR_CONFIG;

    char digest[] = "SHA256";
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end(),
    };
    mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    if (mac == NULL)
        goto out;
    key->hmac = EVP_MAC_CTX_new(mac);
    if (key->hmac == NULL)
        goto out;
    if (EVP_MAC_init(key->hmac, secret, size, parameters) != 1)
        goto out;
    err = ERR_OK;

out:
    EVP_MAC_free(mac);
    if (err != ERR_OK)
        auth_key_deinit(key);
    ERR_clear_error();
    return err;
}

/* Sets the algorithm by the key's type; false, and why, if it is none of ours. */
static bool choose_algorithm(struct auth_key *key, char *why, size_t why_size)
{
    if (EVP_PKEY_is_a(key->public, "RSA")) {
        int bits = EVP_PKEY_get_bits(key->public);
        if (bits < RSA_BITS_MIN) {
            snprintf(why, why_size, "The RSA key has %d bits; at least %d are needed.", bits, RSA_BITS_MIN);
            return false;
        }
        key->algorithm = ALGORITHM_RS256;
        return true;
    }
    if (EVP_PKEY_is_a(key->public, "EC")) {
        char group[64] = "";
        size_t length = 0;
        if (EVP_PKEY_get_utf8_string_param(key->public, OSSL_PKEY_PARAM_GROUP_NAME, group, sizeof group,
                                           &length) != 1 ||
            strcmp(group, SN_X9_62_prime256v1) != 0) {
            snprintf(why, why_size, "The elliptic curve of the key must be P-256.");
            return false;
        }
        key->algorithm = ALGORITHM_ES256;
        return true;
    }
    snprintf(why, why_size, "The key must be an RSA or a P-256 public key.");
    return false;
}

/* A key in a file that wants a password is none of ours; OpenSSL would ask the terminal for it. */
static int no_password(char *out, int size, int writing, void *context)
{
    (void)out;
    (void)size;
    (void)writing;
    (void)context;
    return -1;
}

enum err auth_key_init_public(struct auth_key *key, const char *pem, size_t size, char *why, size_t why_size)
{
    enum err err = ERR_CONFIG;

    *key = (struct auth_key){.algorithm = ALGORITHM_RS256};
    if (size > PEM_SIZE_MAX) {
        snprintf(why, why_size, "The key file is too large to be a public key.");
        return ERR_CONFIG;
    }
    BIO *bio = BIO_new_mem_buf(pem, (int)size);
    if (bio == NULL) {
        snprintf(why, why_size, "Out of memory.");
        return ERR_INTERNAL;
    }
    key->public = PEM_read_bio_PUBKEY(bio, NULL, no_password, NULL);
    if (key->public == NULL) {
        bool is_private = memmem(pem, size, "PRIVATE KEY", strlen("PRIVATE KEY")) != NULL;
        snprintf(why, why_size, "%s",
                 is_private ? "This is a private key; give the server the public one."
                            : "Not a public key in PEM form (-----BEGIN PUBLIC KEY-----).");
        goto out;
    }
    if (!choose_algorithm(key, why, why_size))
        goto out;
    err = ERR_OK;

out:
    BIO_free(bio);
    if (err != ERR_OK)
        auth_key_deinit(key);
    ERR_clear_error();
    return err;
}

void auth_key_deinit(struct auth_key *key)
{
    EVP_MAC_CTX_free(key->hmac);
    EVP_PKEY_free(key->public);
    key->hmac = NULL;
    key->public = NULL;
}

bool auth_key_hmac(const struct auth_key *key, const char *text, size_t text_size, uint8_t out[32])
{
    CHECK(key->algorithm == ALGORITHM_HS256);
    bool good = false;
    size_t size = 0;
    EVP_MAC_CTX *context = EVP_MAC_CTX_dup(key->hmac);
    if (context != NULL)
        good = EVP_MAC_update(context, (const unsigned char *)text, text_size) == 1 &&
               EVP_MAC_final(context, out, &size, HMAC_SIZE) == 1 && size == HMAC_SIZE;
    EVP_MAC_CTX_free(context);
    return good;
}

static bool verify_hmac(const struct auth_key *key, const char *text, size_t text_size,
                        const uint8_t *signature, size_t signature_size)
{
    uint8_t expected[HMAC_SIZE];
    if (signature_size != HMAC_SIZE)
        return false;
    if (!auth_key_hmac(key, text, text_size, expected))
        return false;
    return CRYPTO_memcmp(expected, signature, HMAC_SIZE) == 0;
}

static bool verify_with_public_key(const struct auth_key *key, const char *text, size_t text_size,
                                   const uint8_t *signature, size_t signature_size)
{
    bool good = false;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (context != NULL && EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, key->public) == 1)
        good =
            EVP_DigestVerify(context, signature, signature_size, (const unsigned char *)text, text_size) == 1;
    EVP_MD_CTX_free(context);
    return good;
}

/* Tokens carry r and s as two plain numbers; OpenSSL wants them in DER. */
static bool verify_es256(const struct auth_key *key, const char *text, size_t text_size,
                         const uint8_t *signature, size_t signature_size)
{
    bool good = false;
    unsigned char *der = NULL;
    if (signature_size != ES256_SIGNATURE_SIZE)
        return false;

    ECDSA_SIG *pair = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(signature, ES256_NUMBER_SIZE, NULL);
    BIGNUM *s = BN_bin2bn(signature + ES256_NUMBER_SIZE, ES256_NUMBER_SIZE, NULL);
    if (pair == NULL || r == NULL || s == NULL || ECDSA_SIG_set0(pair, r, s) != 1) {
        BN_free(r);
        BN_free(s);
        goto out;
    }
    int der_size = i2d_ECDSA_SIG(pair, &der);
    if (der_size > 0)
        good = verify_with_public_key(key, text, text_size, der, (size_t)der_size);

out:
    OPENSSL_free(der);
    ECDSA_SIG_free(pair);
    return good;
}

bool auth_key_verify(const struct auth_key *key, const char *text, size_t text_size, const uint8_t *signature,
                     size_t signature_size)
{
    bool good = false;
    switch (key->algorithm) {
    case ALGORITHM_HS256:
        good = verify_hmac(key, text, text_size, signature, signature_size);
        break;
    case ALGORITHM_RS256:
        good = verify_with_public_key(key, text, text_size, signature, signature_size);
        break;
    case ALGORITHM_ES256:
        good = verify_es256(key, text, text_size, signature, signature_size);
        break;
    }
    if (!good)
        ERR_clear_error(); /* a queue per thread that would otherwise fill with forgeries */
    return good;
}
