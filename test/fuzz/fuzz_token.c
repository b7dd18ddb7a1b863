/* SPDX-License-Identifier: Apache-2.0
 * Bearer tokens. Half of the inputs are the token as it came; the other half
 * are claims that are signed first, so that what stands behind the signature is
 * reached too. */
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "auth/auth.h"
#include "base/check.h"
#include "base/limits.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char secret[] = "0123456789abcdef0123456789abcdef";

enum { NOW_MS = 1000000 };

static size_t put_base64url(char *out, const void *data, size_t size)
{
    base64_encode(data, size, out);
    size_t length = strcspn(out, "=");
    for (size_t i = 0; i < length; i++)
        out[i] = out[i] == '+' ? '-' : out[i] == '/' ? '_' : out[i];
    out[length] = '\0';
    return length;
}

/* header.claims.signature, as a good issuer would write it; its length. */
static size_t sign_claims(char *out, const uint8_t *claims, size_t size)
{
    static const char header[] = "{\"alg\":\"HS256\",\"typ\":\"JWT\"}";
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned mac_size;
    size_t length = put_base64url(out, header, sizeof(header) - 1);
    out[length++] = '.';
    length += put_base64url(out + length, claims, size);
    HMAC(EVP_sha256(), secret, sizeof(secret) - 1, (const unsigned char *)out, length, mac, &mac_size);
    out[length++] = '.';
    return length + put_base64url(out + length, mac, mac_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct auth *auth;
    static char token[2 * TOKEN_SIZE_MAX];
    if (auth == NULL)
        CHECK(auth_create_secret(secret, sizeof(secret) - 1, &auth) == ERR_OK);
    if (size < 1 || size > TOKEN_SIZE_MAX)
        return 0;
    struct auth_claims claims;
    bool sign = data[0] % 2 == 1;
    size_t length = size - 1;
    if (sign)
        length = sign_claims(token, data + 1, size - 1);
    else
        memcpy(token, data + 1, length);
    if (auth_verify(auth, token, length, NOW_MS, &claims) == ERR_OK) {
        CHECK(sign); /* nobody guesses a signature */
        CHECK(claims.expires_ms > NOW_MS);
        CHECK(claims.role != ROLE_SYSTEM);
        CHECK(!uuid_is_nil(&claims.user_id));
    }
    return 0;
}
