/* SPDX-License-Identifier: Apache-2.0
 * `holdfast token`: a signed token for somebody, on standard output and nothing
 * else there, so that it can be used in a shell's substitution. For people who
 * set up or try a server; a shop makes its own with the same secret. */
#include <stdio.h>
#include <string.h>

#include "auth/auth.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/rng.h"
#include "cli/setup.h"

enum { TOKEN_TTL_SECONDS_MAX = 10 * 366 * 86400 };

static bool read_claims(const struct options *options, struct auth_claims *claims, char *why, size_t why_size)
{
    int64_t ttl_seconds;

    if (!role_parse(options->values[OPTION_ROLE], &claims->role) || claims->role == ROLE_SYSTEM) {
        snprintf(why, why_size, "--role must be buyer, agent, admin or operator, not '%.64s'",
                 options->values[OPTION_ROLE]);
        return false;
    }
    if (!options_uuid(options, OPTION_ORG, &claims->org_id, why, why_size) ||
        !options_uuid(options, OPTION_USER, &claims->user_id, why, why_size) ||
        !options_integer(options, OPTION_TTL, 1, TOKEN_TTL_SECONDS_MAX, &ttl_seconds, why, why_size))
        return false;
    if (uuid_is_nil(&claims->org_id) && claims->role != ROLE_OPERATOR) {
        snprintf(why, why_size, "--org is needed: only an operator's token goes without an organization");
        return false;
    }
    claims->expires_ms = clock_now_ms() + ttl_seconds * 1000;
    return true;
}

int token_run(const struct options *options)
{
    struct auth_claims claims = {.role = ROLE_BUYER};
    struct secret secret = {.size = 0};
    char why[1024], token[TOKEN_SIZE_MAX];
    int status = EXIT_FAILED;

    if (options->argument_count > 0)
        return cli_fail_usage(VERB_TOKEN, "token takes no argument '%.64s'", options->arguments[0]);
    if (!read_claims(options, &claims, why, sizeof why))
        return cli_fail_usage(VERB_TOKEN, "%s", why);
    if (!setup_secret(options, false, &secret, why, sizeof why))
        return cli_fail("%s", why);
    if (uuid_is_nil(&claims.user_id)) {
        char text[UUID_TEXT_SIZE];
        struct rng rng;
        rng_init_system(&rng);
        claims.user_id = uuid_make(&rng, clock_now_ms());
        uuid_format(&claims.user_id, text);
        fprintf(stderr, "holdfast: for the new user %s\n", text);
    }
    if (auth_sign(secret.bytes, secret.size, &claims, clock_now_ms(), token, sizeof token)) {
        puts(token);
        status = EXIT_DONE;
    } else {
        status = cli_fail("the token could not be signed");
    }
    secret_wipe(&secret);
    return status;
}
