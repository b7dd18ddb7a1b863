/* SPDX-License-Identifier: Apache-2.0
 * Request bodies: JSON in, typed fields out, each checked as it is taken.
 *
 * Invariants: (1) what is handed out is well-formed UTF-8 without NUL, of
 * bounded length, in the request's arena; the tree does not outlive
 * body_close(). (2) A key may stand once, keys that nobody asks for are
 * ignored, null means absent. (3) The first fault wins, so that the message
 * names the field a reader would find first. (4) Nesting is bounded before the
 * parser sees it.
 *
 * Loops' threads. It knows types and ranges, not what fields mean together. */
#include "api/body.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"

static void body_fault(struct body *body, const char *field, const char *message)
{
    if (body->message != NULL)
        return;
    body->field = field;
    body->message = arena_text(body->arena, message);
}

void body_wrong(struct body *body, const char *key, const char *format, ...)
{
    char name[128], what[256], message[400];
    if (body->message != NULL)
        return;
    snprintf(name, sizeof name, "%s%s%s", body->prefix != NULL ? body->prefix : "",
             body->prefix != NULL ? "." : "", key);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    snprintf(message, sizeof message, "%s %s", name, what);
    body_fault(body, arena_text(body->arena, name), message);
}

/* ---- The tree ---- */

/* Brackets outside strings; the parser checks everything else. */
static bool depth_is_bounded(const char *text, size_t size)
{
    int depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < size; i++) {
        if (in_string) {
            if (text[i] == '\\')
                i++;
            else if (text[i] == '"')
                in_string = false;
        } else if (text[i] == '"') {
            in_string = true;
        } else if (text[i] == '{' || text[i] == '[') {
            if (++depth > BODY_DEPTH_MAX)
                return false;
        } else if (text[i] == '}' || text[i] == ']') {
            depth--;
        }
    }
    return true;
}

void body_open(struct body *body, struct arena *arena, const char *text, size_t size)
{
    *body = (struct body){.arena = arena};
    if (size == 0)
        return;
    if (!depth_is_bounded(text, size)) {
        body_fault(body, "body", "The body is nested too deeply.");
        return;
    }
    json_error_t error;
    body->root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (body->root == NULL) {
        char message[128];
        if (json_error_code(&error) == json_error_duplicate_key)
            snprintf(message, sizeof message, "A key stands twice in the body (line %d, column %d).",
                     error.line, error.column);
        else
            snprintf(message, sizeof message, "The body is not valid JSON (line %d, column %d).", error.line,
                     error.column);
        body_fault(body, "body", message);
    } else if (!json_is_object(body->root)) {
        body_fault(body, "body", "The body must be a JSON object.");
    } else {
        body->object = body->root;
    }
}

bool body_close(struct body *body)
{
    json_decref(body->root);
    body->root = NULL;
    body->object = NULL;
    return body->message == NULL;
}

bool body_enter(struct body *body, const char *key)
{
    json_t *value = json_object_get(body->object, key);
    if (value == NULL || json_is_null(value))
        return false;
    if (!json_is_object(value)) {
        body_wrong(body, key, "must be an object.");
        return false;
    }
    CHECK(body->prefix == NULL); /* one level: no body has more */
    body->prefix = key;
    body->object = value;
    return true;
}

void body_leave(struct body *body)
{
    body->prefix = NULL;
    body->object = body->root;
}

void body_allow_only(struct body *body, const char *const *keys, size_t count)
{
    const char *key;
    json_t *value;
    json_object_foreach(body->object, key, value)
    {
        bool known = false;
        for (size_t i = 0; i < count; i++)
            known = known || strcmp(keys[i], key) == 0;
        if (!known)
            body_wrong(body, arena_text(body->arena, key), "is not known here.");
    }
}

/* ---- Fields ---- */

static json_t *body_get(const struct body *body, const char *key)
{
    json_t *value = json_object_get(body->object, key);
    return json_is_null(value) ? NULL : value;
}

bool body_has(const struct body *body, const char *key)
{
    return body_get(body, key) != NULL;
}

bool body_is_null(const struct body *body, const char *key)
{
    return json_is_null(json_object_get(body->object, key));
}

void body_require(struct body *body, const char *key)
{
    if (!body_has(body, key))
        body_wrong(body, key, "is required.");
}

bool body_text(struct body *body, const char *key, size_t character_count_max, const char **out)
{
    json_t *value = body_get(body, key);
    if (value == NULL)
        return false;
    if (!json_is_string(value)) {
        body_wrong(body, key, "must be a string.");
        return false;
    }
    const char *text = json_string_value(value);
    size_t size = json_string_length(value);
    size_t count = text_is_utf8(text, size) ? text_character_count(text, size) : 0;
    if (count < 1 || count > character_count_max) {
        body_wrong(body, key, "must have 1 to %zu characters.", character_count_max);
        return false;
    }
    *out = arena_text_n(body->arena, text, size);
    return true;
}

static bool json_to_uuid(const json_t *value, struct uuid *out)
{
    return json_is_string(value) && uuid_parse(json_string_value(value), json_string_length(value), out) &&
           !uuid_is_nil(out);
}

bool body_uuid(struct body *body, const char *key, struct uuid *out)
{
    json_t *value = body_get(body, key);
    struct uuid id;
    if (value == NULL)
        return false;
    if (!json_to_uuid(value, &id)) {
        body_wrong(body, key, "must be a UUID.");
        return false;
    }
    *out = id;
    return true;
}

bool body_int(struct body *body, const char *key, int64_t least, int64_t most, int64_t *out)
{
    json_t *value = body_get(body, key);
    if (value == NULL)
        return false;
    if (!json_is_integer(value) || json_integer_value(value) < least || json_integer_value(value) > most) {
        body_wrong(body, key, "must be a whole number from %lld to %lld.", (long long)least, (long long)most);
        return false;
    }
    *out = json_integer_value(value);
    return true;
}

bool body_bool(struct body *body, const char *key, bool *out)
{
    json_t *value = body_get(body, key);
    if (value == NULL)
        return false;
    if (!json_is_boolean(value)) {
        body_wrong(body, key, "must be true or false.");
        return false;
    }
    *out = json_boolean_value(value);
    return true;
}

bool body_time(struct body *body, const char *key, int64_t *time_ms)
{
    json_t *value = body_get(body, key);
    if (value == NULL)
        return false;
    if (!json_is_string(value) || !time_parse(json_string_value(value), json_string_length(value), time_ms)) {
        body_wrong(body, key, "must be a time such as 2026-01-31T12:00:00Z.");
        return false;
    }
    return true;
}

static int compare_uuids(const void *a, const void *b)
{
    return uuid_compare(a, b);
}

static bool uuids_are_distinct(struct arena *arena, const struct uuid *ids, int32_t count)
{
    struct uuid *sorted = arena_copy(arena, ids, sizeof *ids * (size_t)count);
    qsort(sorted, (size_t)count, sizeof *sorted, compare_uuids);
    for (int32_t i = 1; i < count; i++)
        if (uuid_equal(&sorted[i - 1], &sorted[i]))
            return false;
    return true;
}

bool body_uuids(struct body *body, const char *key, int32_t count_min, int32_t count_max, struct uuid **out,
                int32_t *count)
{
    json_t *value = body_get(body, key);
    if (value == NULL)
        return false;
    size_t size = json_array_size(value); /* 0 if it is no array */
    if (!json_is_array(value) || size < (size_t)count_min || size > (size_t)count_max) {
        body_wrong(body, key, "must be an array of %d to %d UUIDs.", count_min, count_max);
        return false;
    }
    struct uuid *ids = ARENA_ARRAY(body->arena, struct uuid, size);
    for (size_t i = 0; i < size; i++) {
        if (!json_to_uuid(json_array_get(value, i), &ids[i])) {
            body_wrong(body, key, "must hold UUIDs only; the one at position %zu is not.", i);
            return false;
        }
    }
    if (!uuids_are_distinct(body->arena, ids, (int32_t)size)) {
        body_wrong(body, key, "must not name the same id twice.");
        return false;
    }
    *out = ids;
    *count = (int32_t)size;
    return true;
}
