/* SPDX-License-Identifier: Apache-2.0
 * Makes HS256 tokens: for the command line (`holdfast token`), the demo and
 * tests. A server with a public key cannot sign, and need not.
 *
 * Invariants: (1) what is signed here, auth_verify() with the same secret takes
 * until it expires; (2) `exp` is rounded down to a whole second, so a token
 * never lasts longer than asked.
 *
 * Any thread. */
#include <inttypes.h>
#include <stdio.h>

#include "auth/auth.h"
#include "auth/auth_int.h"

enum { SIGNATURE_SIZE = 32, CLAIMS_JSON_SIZE = 256 };

static const char header_json[] = "{\"alg\":\"HS256\",\"typ\":\"JWT\"}";

/* The length, which always fits. Ids, roles and numbers need no escapes. */
static size_t claims_write(const struct auth_claims *claims, int64_t now_ms, char out[CLAIMS_JSON_SIZE])
{
    char user[UUID_TEXT_SIZE];
    char org[UUID_TEXT_SIZE];
    char org_member[UUID_TEXT_SIZE + 16] = "";

    uuid_format(&claims->user_id, user);
    if (!uuid_is_nil(&claims->org_id)) {
        uuid_format(&claims->org_id, org);
        snprintf(org_member, sizeof org_member, "\"org\":\"%s\",", org);
    }
    int length = snprintf(out, CLAIMS_JSON_SIZE,
                          "{\"sub\":\"%s\",%s\"role\":\"%s\",\"iat\":%" PRId64 ",\"exp\":%" PRId64 "}", user,
                          org_member, role_name(claims->role), now_ms / 1000, claims->expires_ms / 1000);
    CHECK(length > 0 && length < CLAIMS_JSON_SIZE);
    return (size_t)length;
}

bool auth_sign(const void *secret, size_t secret_size, const struct auth_claims *claims, int64_t now_ms,
               char *out, size_t out_size)
{
    char json[CLAIMS_JSON_SIZE];
    uint8_t signature[SIGNATURE_SIZE];
    struct auth_key key;

    if (claims->role == ROLE_SYSTEM)
        return false;
    size_t json_size = claims_write(claims, now_ms, json);
    size_t needed = BASE64URL_ENCODED_SIZE(sizeof header_json - 1) + 1 + BASE64URL_ENCODED_SIZE(json_size) +
                    1 + BASE64URL_ENCODED_SIZE(SIGNATURE_SIZE) + 1;
    if (out_size < needed)
        return false;
    if (auth_key_init_secret(&key, secret, secret_size) != ERR_OK)
        return false;

    size_t length = base64url_encode((const uint8_t *)header_json, sizeof header_json - 1, out);
    out[length++] = '.';
    length += base64url_encode((const uint8_t *)json, json_size, out + length);
    bool good = auth_key_hmac(&key, out, length, signature);
    auth_key_deinit(&key);
    if (!good)
        return false;
    out[length++] = '.';
    length += base64url_encode(signature, SIGNATURE_SIZE, out + length);
    out[length] = '\0';
    return true;
}
