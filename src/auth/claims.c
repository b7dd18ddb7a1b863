/* SPDX-License-Identifier: Apache-2.0
 * The two JSON objects of a token: its header, and what it claims.
 *
 * Invariants:
 *  1. A key that stands twice in an object refuses the token: two readers could
 *     otherwise see two different claims in it.
 *  2. `exp` is required and exact: at that moment the token is worth nothing,
 *     and there is no leeway. `nbf` is optional and as exact.
 *  3. Types are never converted: a number in quotes is not a number.
 *  4. A `crit` header refuses the token, because we know no extension.
 *
 * Claims we have no use for are ignored. Pure; any thread. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "auth/auth_int.h"

/* 9999-12-31T23:59:59Z. Times beyond it are as good as this one. */
#define SECONDS_MAX 253402300799ll

static json_t *object_parse(const uint8_t *json, size_t size)
{
    json_error_t error;
    json_t *object = json_loadb((const char *)json, size, JSON_REJECT_DUPLICATES, &error);
    if (object != NULL && !json_is_object(object)) {
        json_decref(object);
        return NULL;
    }
    return object;
}

bool auth_header_accepts(const uint8_t *json, size_t size, enum auth_algorithm algorithm)
{
    json_t *header = object_parse(json, size);
    if (header == NULL)
        return false;

    const char *name = json_string_value(json_object_get(header, "alg")); /* NULL unless a string */
    bool good = name != NULL && strcmp(name, auth_algorithm_name(algorithm)) == 0 &&
                json_object_get(header, "crit") == NULL;
    json_decref(header);
    return good;
}

/* A NumericDate: seconds, whole or not. */
static bool time_of(const json_t *value, int64_t *time_ms)
{
    if (json_is_integer(value)) {
        json_int_t seconds = json_integer_value(value);
        if (seconds > SECONDS_MAX)
            seconds = SECONDS_MAX;
        if (seconds < -SECONDS_MAX)
            seconds = -SECONDS_MAX;
        *time_ms = (int64_t)seconds * 1000;
        return true;
    }
    if (json_is_real(value)) {
        double seconds = json_real_value(value);
        if (!isfinite(seconds))
            return false;
        seconds = fmin(fmax(seconds, -(double)SECONDS_MAX), (double)SECONDS_MAX);
        *time_ms = (int64_t)floor(seconds * 1000);
        return true;
    }
    return false;
}

/* A UUID in a string, and not the nil one, which stands for "none" everywhere. */
static bool uuid_of(const json_t *value, struct uuid *out)
{
    if (!json_is_string(value))
        return false;
    return uuid_parse(json_string_value(value), json_string_length(value), out) && !uuid_is_nil(out);
}

static bool role_of(const json_t *value, enum role *out)
{
    const char *name = json_string_value(value);
    if (name == NULL || !role_parse(name, out))
        return false;
    return *out != ROLE_SYSTEM; /* that is us, and nobody signs for us */
}

static bool claims_read(const json_t *object, int64_t now_ms, struct auth_claims *out)
{
    if (!time_of(json_object_get(object, "exp"), &out->expires_ms) || out->expires_ms <= now_ms)
        return false;

    const json_t *not_before = json_object_get(object, "nbf");
    int64_t not_before_ms;
    if (not_before != NULL && (!time_of(not_before, &not_before_ms) || not_before_ms > now_ms))
        return false;

    if (!uuid_of(json_object_get(object, "sub"), &out->user_id))
        return false;
    if (!role_of(json_object_get(object, "role"), &out->role))
        return false;

    const json_t *org = json_object_get(object, "org");
    if (org == NULL)
        return out->role == ROLE_OPERATOR;
    return uuid_of(org, &out->org_id);
}

bool auth_claims_parse(const uint8_t *json, size_t size, int64_t now_ms, struct auth_claims *out)
{
    json_t *object = object_parse(json, size);
    if (object == NULL)
        return false;

    struct auth_claims claims = {0};
    bool good = claims_read(object, now_ms, &claims);
    json_decref(object);
    if (good)
        *out = claims;
    return good;
}
