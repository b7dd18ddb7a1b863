/* SPDX-License-Identifier: Apache-2.0
 * Reads an import file: strict, because a name that is misspelt would otherwise be
 * a policy that silently does not hold. Every complaint names the place
 * (`event.policy.hold_ttl_seconds`), or line and column where it is no JSON. */
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/text.h"
#include "cli/import.h"

struct import_reader {
    struct rng *rng;
    struct arena *arena;
    int64_t now_ms;
    char *why;
    size_t why_size;
};

static bool complain(const struct import_reader *reader, const char *format, ...) PRINTF_LIKE(2, 3);
static bool complain(const struct import_reader *reader, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(reader->why, reader->why_size, format, arguments);
    va_end(arguments);
    return false;
}

/* An object in which nothing but `names` stands. */
static bool check_names(const struct import_reader *reader, json_t *object, const char *place,
                        const char *const *names, size_t count)
{
    const char *key;
    json_t *value;

    if (!json_is_object(object))
        return complain(reader, "%s must be an object", place);
    json_object_foreach(object, key, value)
    {
        size_t i = 0;
        while (i < count && strcmp(names[i], key) != 0)
            i++;
        if (i == count)
            return complain(reader, "%s has an unknown name '%.64s'", place, key);
    }
    return true;
}

static bool read_name(const struct import_reader *reader, json_t *object, const char *place, const char **out)
{
    json_t *value = json_object_get(object, "name");
    size_t length = json_string_length(value);

    if (!json_is_string(value) || length == 0 ||
        text_character_count(json_string_value(value), length) > TEXT_SIZE_MAX)
        return complain(reader, "%s.name must be text of 1 to %d characters", place, TEXT_SIZE_MAX);
    *out = arena_text_n(reader->arena, json_string_value(value), length);
    return true;
}

static bool read_id(const struct import_reader *reader, json_t *object, const char *place, struct uuid *out,
                    bool *given)
{
    json_t *value = json_object_get(object, "id");

    *given = value != NULL && !json_is_null(value);
    if (!*given) {
        *out = uuid_make(reader->rng, reader->now_ms);
        return true;
    }
    if (!json_is_string(value) || !uuid_parse(json_string_value(value), json_string_length(value), out) ||
        uuid_is_nil(out))
        return complain(reader, "%s.id must be a UUID", place);
    return true;
}

static bool read_time(const struct import_reader *reader, json_t *event, const char *name, int64_t initial,
                      int64_t *out)
{
    json_t *value = json_object_get(event, name);

    *out = initial;
    if (value == NULL || json_is_null(value))
        return true;
    if (!json_is_string(value) || !time_parse(json_string_value(value), json_string_length(value), out))
        return complain(reader, "event.%s must be a time such as 2026-01-31T12:00:00Z", name);
    return true;
}

static bool read_policy(const struct import_reader *reader, json_t *object, struct policy *out)
{
    static const char *const names[] = {
#define POLICY_NAME(name, initial, least, most) #name,
        POLICY_MAP(POLICY_NAME)
#undef POLICY_NAME
    };

    *out = policy_default();
    if (object == NULL || json_is_null(object))
        return true;
    if (!check_names(reader, object, "event.policy", names, COUNT_OF(names)))
        return false;
    json_t *value;
#define POLICY_READ(name, initial, least, most)                                                              \
    value = json_object_get(object, #name);                                                                  \
    if (json_is_boolean(value) && (most) == 1)                                                               \
        out->name = json_is_true(value);                                                                     \
    else if (json_is_integer(value) && json_integer_value(value) >= (least) &&                               \
             json_integer_value(value) <= (most))                                                            \
        out->name = (int32_t)json_integer_value(value);                                                      \
    else if (value != NULL)                                                                                  \
        return complain(reader, (most) == 1 ? "event.policy." #name " must be true or false"                 \
                                            : "event.policy." #name " must be a whole number from " #least   \
                                              " to " #most);
    POLICY_MAP(POLICY_READ)
#undef POLICY_READ
    if (json_object_get(object, "hold_max_seconds") == NULL && out->hold_max_seconds < out->hold_ttl_seconds)
        out->hold_max_seconds = out->hold_ttl_seconds;
    if (!policy_valid(out))
        return complain(reader, "event.policy.hold_max_seconds must be at least hold_ttl_seconds");
    return true;
}

static bool read_event(const struct import_reader *reader, json_t *object, struct import_plan *plan)
{
    static const char *const names[] = {"id",       "name",     "status", "sale_start",
                                        "sale_end", "currency", "policy"};
    struct event_row *event = &plan->event;

    if (!check_names(reader, object, "event", names, COUNT_OF(names)) ||
        !read_id(reader, object, "event", &event->id, &plan->has_event_id) ||
        !read_name(reader, object, "event", &event->name) ||
        !read_time(reader, object, "sale_start", TIME_NONE, &event->sale_start_ms) ||
        !read_time(reader, object, "sale_end", TIME_MAX, &event->sale_end_ms) ||
        !read_policy(reader, json_object_get(object, "policy"), &event->policy))
        return false;
    if (event->sale_end_ms < event->sale_start_ms)
        return complain(reader, "event.sale_end is before event.sale_start");
    json_t *status = json_object_get(object, "status");
    event->state = EVENT_DRAFT;
    if (status != NULL &&
        (!json_is_string(status) || !event_state_parse(json_string_value(status), &event->state)))
        return complain(reader, "event.status must be draft, published, live, archived or cancelled");
    json_t *currency = json_object_get(object, "currency");
    const char *code = currency != NULL ? json_string_value(currency) : IMPORT_CURRENCY_DEFAULT;
    if (code == NULL || strlen(code) != 3 || strspn(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != 3)
        return complain(reader, "event.currency must be a code of three capital letters, such as EUR");
    memcpy(event->currency, code, 4);
    event->org_id = plan->org.id;
    event->created_ms = event->updated_ms = reader->now_ms;
    return true;
}

static bool read_layout(const struct import_reader *reader, json_t *object, struct import_plan *plan)
{
    char why[512] = "";

    if (!json_is_object(object))
        return complain(reader, "layout must be an object");
    char *document = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(12));
    if (document == NULL)
        return complain(reader, "the layout does not fit into memory");
    size_t size = strlen(document);
    plan->document = arena_text_n(reader->arena, document, size);
    free(document);
    if (size > LAYOUT_BODY_SIZE_MAX)
        return complain(reader, "layout is larger than %d bytes", LAYOUT_BODY_SIZE_MAX);
    if (layout_parse(plan->document, size, reader->arena, &plan->layout, why, sizeof why) != ERR_OK)
        return complain(reader, "layout: %s", why);
    return true;
}

bool import_parse(const char *text, size_t size, struct rng *rng, int64_t now_ms, struct arena *arena,
                  struct import_plan *out, char *why, size_t why_size)
{
    static const char *const names[] = {"organization", "event", "layout"};
    static const char *const org_names[] = {"id", "name"};
    struct import_reader reader = {
        .rng = rng, .arena = arena, .now_ms = now_ms, .why = why, .why_size = why_size};
    json_error_t error;
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    bool good = false;

    *out = (struct import_plan){.has_org_id = false};
    if (root == NULL) {
        snprintf(why, why_size, "line %d, column %d: %s", error.line, error.column, error.text);
        return false;
    }
    if (!check_names(&reader, root, "the document", names, COUNT_OF(names)))
        goto done;
    json_t *org = json_object_get(root, "organization");
    if (!check_names(&reader, org, "organization", org_names, COUNT_OF(org_names)) ||
        !read_id(&reader, org, "organization", &out->org.id, &out->has_org_id) ||
        !read_name(&reader, org, "organization", &out->org.name))
        goto done;
    out->org.created_ms = now_ms;
    good = read_event(&reader, json_object_get(root, "event"), out) &&
           read_layout(&reader, json_object_get(root, "layout"), out);
done:
    json_decref(root);
    return good;
}
