/* SPDX-License-Identifier: Apache-2.0
 * The check of a bearer token, step by step: size, cache, the three parts,
 * header, signature, claims. Called by the API for every request that needs to
 * know who asks, before its body is read.
 *
 * Invariants:
 *  1. Every way to fail gives the same ERR_UNAUTHORIZED: a caller learns
 *     nothing about which check refused.
 *  2. Only what passed every check is remembered.
 *  3. No memory is allocated in proportion to a token before its size is known
 *     to be at most TOKEN_SIZE_MAX.
 *
 * Any thread. Whether the organization exists and the user is enabled is not
 * asked here: that changes while a token does not (hot/directory.h). */
#include "auth/auth.h"

#include <stdlib.h>
#include <string.h>

#include "auth/auth_int.h"
#include "base/text.h"

struct auth {
    struct auth_key key;
    struct token_cache *cache; /* owns */
};

/* Transfers the key, also when it fails. */
static enum err auth_create(struct auth_key *key, struct auth **out)
{
    struct auth *auth = calloc(1, sizeof *auth);
    if (auth == NULL)
        goto no_auth;
    if (token_cache_create(&auth->cache) != ERR_OK)
        goto no_cache;
    auth->key = *key;
    *out = auth;
    return ERR_OK;

no_cache:
    free(auth);
no_auth:
    auth_key_deinit(key);
    return ERR_INTERNAL;
}

enum err auth_create_secret(const void *secret, size_t size, struct auth **out)
{
    struct auth_key key;
    enum err err = auth_key_init_secret(&key, secret, size);
    if (err != ERR_OK)
        return err;
    return auth_create(&key, out);
}

enum err auth_create_public_key(const char *pem, size_t size, struct auth **out, char *why, size_t why_size)
{
    struct auth_key key;
    enum err err = auth_key_init_public(&key, pem, size, why, why_size);
    if (err != ERR_OK)
        return err;
    return auth_create(&key, out);
}

void auth_destroy(struct auth *auth)
{
    if (auth == NULL)
        return;
    auth_key_deinit(&auth->key);
    token_cache_destroy(auth->cache);
    free(auth);
}

/* header.claims.signature: where each part begins and how long it is. */
struct token_parts {
    const char *header;
    size_t header_length;
    const char *claims;
    size_t claims_length;
    const char *signature;
    size_t signature_length;
    size_t signed_length; /* of "header.claims", from the start */
};

static bool token_split(const char *token, size_t size, struct token_parts *parts)
{
    const char *end = token + size;
    const char *first = memchr(token, '.', size);
    if (first == NULL)
        return false;
    const char *second = memchr(first + 1, '.', (size_t)(end - first - 1));
    if (second == NULL)
        return false;
    *parts = (struct token_parts){
        .header = token,
        .header_length = (size_t)(first - token),
        .claims = first + 1,
        .claims_length = (size_t)(second - first - 1),
        .signature = second + 1,
        .signature_length = (size_t)(end - second - 1), /* a third dot is not in the alphabet */
        .signed_length = (size_t)(second - token),
    };
    return true;
}

static bool token_check(const struct auth_key *key, const char *token, size_t size, int64_t now_ms,
                        struct auth_claims *out)
{
    uint8_t bytes[BASE64URL_DECODED_SIZE(TOKEN_SIZE_MAX)]; /* one part after another */
    size_t count;
    struct token_parts parts;

    if (!token_split(token, size, &parts))
        return false;
    if (!base64url_decode(parts.header, parts.header_length, bytes, &count))
        return false;
    if (!auth_header_accepts(bytes, count, key->algorithm))
        return false;
    if (!base64url_decode(parts.signature, parts.signature_length, bytes, &count))
        return false;
    if (!auth_key_verify(key, token, parts.signed_length, bytes, count))
        return false;
    if (!base64url_decode(parts.claims, parts.claims_length, bytes, &count))
        return false;
    return auth_claims_parse(bytes, count, now_ms, out);
}

enum err auth_verify(struct auth *auth, const char *token, size_t size, int64_t now_ms,
                     struct auth_claims *out)
{
    uint8_t hash[TOKEN_HASH_SIZE];

    if (size == 0 || size > TOKEN_SIZE_MAX)
        return ERR_UNAUTHORIZED;
    sha256(token, size, hash);
    if (token_cache_find(auth->cache, hash, now_ms, out))
        return ERR_OK;
    if (!token_check(&auth->key, token, size, now_ms, out))
        return ERR_UNAUTHORIZED;
    token_cache_put(auth->cache, hash, now_ms, out);
    return ERR_OK;
}
