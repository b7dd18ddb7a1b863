/* SPDX-License-Identifier: Apache-2.0
 * Options that several subcommands read in the same way: which store, which
 * secret, which addresses. Says in one sentence what is wrong with them. */
#include "cli/setup.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/auth.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/rng.h"

static const char store_scheme[] = "sqlite:";

bool setup_check_store(const struct options *options, char *why, size_t why_size)
{
    const char *url = options->values[OPTION_STORE];
    char origin[512];

    if (strncmp(url, store_scheme, strlen(store_scheme)) == 0 && url[strlen(store_scheme)] != '\0')
        return true;
    if (strncmp(url, "postgres://", 11) == 0 || strncmp(url, "postgresql://", 13) == 0)
        return true;
    options_origin(options, OPTION_STORE, origin, sizeof origin);
    snprintf(why, why_size, "%s: '%.100s' is not a store; it takes sqlite:PATH or postgres://...", origin,
             url);
    return false;
}

const char *setup_show_store(const char *url, char out[STORE_SHOWN_SIZE])
{
    const char *host = strstr(url, "://");
    const char *at = host != NULL ? strchr(host, '@') : NULL;
    const char *colon = host != NULL ? strchr(host + 3, ':') : NULL;
    const char *question = strchr(url, '?');

    /* Options may hold a password too: none are shown. */
    int length = question != NULL && host != NULL ? (int)(question - url) : (int)strlen(url);
    if (at != NULL && colon != NULL && colon < at && (question == NULL || at < question))
        snprintf(out, STORE_SHOWN_SIZE, "%.*s%.*s", (int)(colon - url), url, length - (int)(at - url), at);
    else
        snprintf(out, STORE_SHOWN_SIZE, "%.*s", length, url);
    return out;
}

static bool parse_log_level(const struct options *options, enum log_level *out, char *why, size_t why_size)
{
    static const char *const names[LOG_LEVEL_COUNT] = {"debug", "info", "warn", "error"};
    const char *text = options->values[OPTION_LOG_LEVEL];
    char origin[512];

    for (int level = 0; level < LOG_LEVEL_COUNT; level++)
        if (strcmp(text, names[level]) == 0) {
            *out = (enum log_level)level;
            return true;
        }
    options_origin(options, OPTION_LOG_LEVEL, origin, sizeof origin);
    snprintf(why, why_size, "%s must be debug, info, warn or error, not '%.64s'", origin, text);
    return false;
}

bool setup_node(const struct options *options, struct node_config *config, struct address *metrics_listen,
                char *why, size_t why_size)
{
    int64_t loops;

    if (!parse_log_level(options, &config->log_level, why, why_size) ||
        !options_integer(options, OPTION_HTTP_LOOPS, 1, 8, &loops, why, why_size) ||
        !address_parse(options, OPTION_LISTEN, &config->listen, why, why_size))
        return false;
    config->http_loop_count = (int)loops;
    /* A start that fails is one sentence: what is merely interesting is logged from the ready line on. */
    log_set_level(config->log_level == LOG_INFO ? LOG_WARN : config->log_level);
    if (options->values[OPTION_METRICS_LISTEN] != NULL) {
        if (!address_parse(options, OPTION_METRICS_LISTEN, metrics_listen, why, why_size))
            return false;
        config->metrics_listen = metrics_listen;
    }
    return true;
}

void setup_report_secret(const struct secret *secret)
{
    char quoted[PATH_MAX];

    log_quote(secret->path, quoted, sizeof quoted);
    if (secret->created)
        log_write(LOG_INFO, "made a new secret", "\"path\":\"%s\"", quoted);
    if (secret->open_to_others)
        log_write(LOG_WARN, "the secret can be read by others: chmod 600 it", "\"path\":\"%s\"", quoted);
    if (secret->size < SECRET_SIZE_ADVISED)
        log_write(LOG_WARN, "the secret is short: 32 bytes or more are advised",
                  "\"path\":\"%s\",\"bytes\":%zu", quoted, secret->size);
}

/* A missing folder is said of the store; otherwise the first to miss it would be the secret beside it. */
static bool check_store_folder(const char *path, char *why, size_t why_size)
{
    char copy[PATH_MAX];
    struct stat status;

    snprintf(copy, sizeof copy, "%s", path);
    const char *folder = dirname(copy);
    if (stat(folder, &status) == 0) {
        if (S_ISDIR(status.st_mode))
            return true;
        errno = ENOTDIR;
    }
    snprintf(why, why_size, "the folder %s for the store cannot be used: %s", folder, strerror(errno));
    return false;
}

bool setup_secret(const struct options *options, bool create, struct secret *out, char *why, size_t why_size)
{
    const char *given = options->values[OPTION_JWT_SECRET_FILE];
    const char *store_url = options->values[OPTION_STORE];
    char path[PATH_MAX];
    bool good;

    if (given != NULL) {
        good = secret_read(given, out, why, why_size);
    } else if (!secret_path(store_url, path, sizeof path)) {
        snprintf(why, why_size, "give --jwt-secret-file: only an embedded store has a secret beside it");
        good = false;
    } else if (create && !check_store_folder(store_url + strlen(store_scheme), why, why_size)) {
        good = false;
    } else if (create || access(store_url + strlen(store_scheme), F_OK) == 0) {
        good = secret_read_or_create(path, out, why, why_size);
    } else if (access(path, F_OK) == 0) {
        good = secret_read(path, out, why, why_size);
    } else {
        snprintf(why, why_size,
                 "there is no store and no secret at %s; name them with --store or --jwt-secret-file",
                 store_url);
        good = false;
    }
    return good;
}

static bool copy_token(const char *text, size_t size, char *out, size_t out_size)
{
    while (size > 0 && strchr(" \t\r\n", text[size - 1]) != NULL)
        size--;
    if (size == 0 || size >= out_size || memchr(text, '\n', size) != NULL || memchr(text, '\0', size) != NULL)
        return false;
    memcpy(out, text, size);
    out[size] = '\0';
    return true;
}

static bool sign_operator(const struct options *options, char *out, size_t out_size, char *why,
                          size_t why_size)
{
    enum { OPERATOR_TOKEN_MS = 600000 };
    struct auth_claims claims = {.role = ROLE_OPERATOR, .expires_ms = clock_now_ms() + OPERATOR_TOKEN_MS};
    struct secret secret = {.size = 0};
    struct rng rng;

    if (!setup_secret(options, false, &secret, why, why_size))
        return false;
    rng_init_system(&rng);
    claims.user_id = uuid_make(&rng, clock_now_ms());
    bool good = auth_sign(secret.bytes, secret.size, &claims, clock_now_ms(), out, out_size);
    if (!good)
        snprintf(why, why_size, "a token for the server could not be signed");
    secret_wipe(&secret);
    return good;
}

bool setup_token(const struct options *options, char *out, size_t out_size, char *why, size_t why_size)
{
    const char *path = options->values[OPTION_TOKEN_FILE];
    const char *text = options->values[OPTION_TOKEN];
    struct buf content;
    bool good = false;

    if (text == NULL && path == NULL)
        return sign_operator(options, out, out_size, why, why_size);
    if (text != NULL) {
        good = copy_token(text, strlen(text), out, out_size);
        if (!good)
            snprintf(why, why_size, "the token given is not a token");
        return good;
    }
    buf_init(&content);
    if (file_read(path, TOKEN_SIZE_MAX, &content, why, why_size)) {
        good = content.size > 0 && copy_token(content.data, content.size, out, out_size);
        if (!good)
            snprintf(why, why_size, "%s does not hold a token", path);
    }
    buf_deinit(&content);
    return good;
}
