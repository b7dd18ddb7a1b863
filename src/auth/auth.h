/* SPDX-License-Identifier: Apache-2.0
 * Bearer tokens: JWT checked with one key whose type fixes the algorithm.
 * A secret means HS256, a public key RS256 or ES256; nothing else passes,
 * whatever the token says. Verified tokens are remembered (bounded, by hash)
 * until they expire. Any thread. */
#ifndef HOLDFAST_AUTH_AUTH_H
#define HOLDFAST_AUTH_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/model.h"

struct auth;

struct auth_claims {
    struct uuid user_id;
    struct uuid org_id; /* nil for an operator without one */
    enum role role;     /* never ROLE_SYSTEM */
    int64_t expires_ms;
};

enum err auth_create_secret(const void *secret, size_t size, struct auth **out) MUST_CHECK;
/* PEM: RSA (2048 bits or more) or P-256. `why` says what is wrong with it. */
enum err auth_create_public_key(const char *pem, size_t size, struct auth **out, char *why,
                                size_t why_size) MUST_CHECK;
void auth_destroy(struct auth *auth);

/* ERR_UNAUTHORIZED for anything but a good token. */
enum err auth_verify(struct auth *auth, const char *token, size_t size, int64_t now_ms,
                     struct auth_claims *out) MUST_CHECK;

/* HS256. out is NUL ended; false if it does not fit. */
bool auth_sign(const void *secret, size_t secret_size, const struct auth_claims *claims, int64_t now_ms,
               char *out, size_t out_size);

#endif
