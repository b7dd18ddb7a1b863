/* SPDX-License-Identifier: Apache-2.0
 * What the files of auth/ share: the parts of a token's check, one file each.
 *
 *   auth.c ─▶ token_cache.c (seen before?) ─▶ base64url.c ─▶ claims.c (header)
 *          ─▶ key.c (signature) ─▶ claims.c (claims) ─▶ token_cache.c (remember)
 *
 * Nothing of a token but its header is interpreted before its signature holds. */
#ifndef HOLDFAST_AUTH_AUTH_INT_H
#define HOLDFAST_AUTH_AUTH_INT_H

#include <openssl/evp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/auth.h"
#include "base/limits.h"

/* ---- base64url.c ---- */

/* Strict: no padding, no white space, no stray bits at the end, so that one value has one text.
 * `out` has room for BASE64URL_DECODED_SIZE(length). */
#define BASE64URL_DECODED_SIZE(length) ((length) / 4 * 3 + 2)
#define BASE64URL_ENCODED_SIZE(size) (((size)*4 + 2) / 3) /* without a NUL */
bool base64url_decode(const char *text, size_t length, uint8_t *out, size_t *size);
size_t base64url_encode(const uint8_t *data, size_t size, char *out); /* not NUL ended; the length */

/* ---- key.c ---- */

enum auth_algorithm { ALGORITHM_HS256, ALGORITHM_RS256, ALGORITHM_ES256 };

struct auth_key {
    enum auth_algorithm algorithm;
    EVP_MAC_CTX *hmac; /* owns; HS256: keyed once, copied for each check */
    EVP_PKEY *public;  /* owns; RS256, ES256 */
};

const char *auth_algorithm_name(enum auth_algorithm algorithm); /* as in a token's `alg` */
enum err auth_key_init_secret(struct auth_key *key, const void *secret, size_t size) MUST_CHECK;
enum err auth_key_init_public(struct auth_key *key, const char *pem, size_t size, char *why,
                              size_t why_size) MUST_CHECK;
void auth_key_deinit(struct auth_key *key);
bool auth_key_verify(const struct auth_key *key, const char *text, size_t text_size, const uint8_t *signature,
                     size_t signature_size);
/* HS256 alone; false if OpenSSL fails. */
bool auth_key_hmac(const struct auth_key *key, const char *text, size_t text_size, uint8_t out[32]);

/* ---- claims.c ---- */

/* Is this the header of a token that our key could have signed? */
bool auth_header_accepts(const uint8_t *json, size_t size, enum auth_algorithm algorithm);
/* False unless every claim is there, well formed and valid at `now_ms`. */
bool auth_claims_parse(const uint8_t *json, size_t size, int64_t now_ms, struct auth_claims *out);

/* ---- token_cache.c ---- */

struct token_cache;

enum { TOKEN_HASH_SIZE = 32 };

enum err token_cache_create(struct token_cache **out) MUST_CHECK;
void token_cache_destroy(struct token_cache *cache); /* NULL is fine */
bool token_cache_find(struct token_cache *cache, const uint8_t hash[TOKEN_HASH_SIZE], int64_t now_ms,
                      struct auth_claims *out);
void token_cache_put(struct token_cache *cache, const uint8_t hash[TOKEN_HASH_SIZE], int64_t now_ms,
                     const struct auth_claims *claims);

#endif
