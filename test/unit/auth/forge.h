/* SPDX-License-Identifier: Apache-2.0
 * Makes tokens of any header and claims, good and bad ones, for the tests of auth/. */
#ifndef HOLDFAST_TEST_AUTH_FORGE_H
#define HOLDFAST_TEST_AUTH_FORGE_H

#include <openssl/hmac.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "auth/auth_int.h"

#define USER "018f3b1e-0000-7000-8000-000000000001"
#define ORG "018f3b1e-0000-7000-8000-00000000000a"
#define NOW_MS INT64_C(1800000000000)
#define GOOD_CLAIMS "{\"sub\":\"" USER "\",\"org\":\"" ORG "\",\"role\":\"buyer\",\"exp\":1800000060}"
#define HS256_HEADER "{\"alg\":\"HS256\",\"typ\":\"JWT\"}"

enum { FORGED_SIZE = 16384 };

/* "header.claims", both encoded; the length. */
static inline size_t forge_unsigned(const char *header, const char *claims, char *out)
{
    size_t length = base64url_encode((const uint8_t *)header, strlen(header), out);
    out[length++] = '.';
    length += base64url_encode((const uint8_t *)claims, strlen(claims), out + length);
    out[length] = '\0';
    return length;
}

static inline void forge_append_signature(char *out, size_t length, const uint8_t *signature, size_t size)
{
    out[length++] = '.';
    length += base64url_encode(signature, size, out + length);
    out[length] = '\0';
}

static inline void forge_hs256(const void *secret, size_t secret_size, const char *header, const char *claims,
                               char *out)
{
    uint8_t signature[32];
    unsigned size = sizeof signature;
    size_t length = forge_unsigned(header, claims, out);
    HMAC(EVP_sha256(), secret, (int)secret_size, (const unsigned char *)out, length, signature, &size);
    forge_append_signature(out, length, signature, size);
}

static inline enum err verify_text(struct auth *auth, const char *token, struct auth_claims *claims)
{
    return auth_verify(auth, token, strlen(token), NOW_MS, claims);
}

#endif
