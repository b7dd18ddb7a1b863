/* SPDX-License-Identifier: Apache-2.0
 * What stands in a request's path and query, checked and typed: ids, numbers,
 * times, blocks, and the event that most paths begin with.
 *
 * Invariants: (1) a value of the wrong shape is a 400 that names it; a value of
 * the right shape that names nothing is a 404. (2) An event of another
 * organization, and for buyers one that is not published or live, does not
 * exist. (3) The nil UUID is no id: inside it means "none".
 *
 * Loops' threads. Bodies are read by body.c; here they only meet their call. */
#include "api/api_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/body.h"
#include "base/clock.h"
#include "base/limits.h"

static bool parse_id(const char *text, struct uuid *out)
{
    return text != NULL && uuid_parse(text, strlen(text), out) && !uuid_is_nil(out);
}

bool api_path_uuid(struct api_call *call, const char *name, struct uuid *out)
{
    if (parse_id(http_param(call->http, name), out))
        return true;
    api_refuse(call, name, "The %s id in the path must be a UUID.", name);
    return false;
}

bool api_query_uuid(struct api_call *call, const char *name, struct uuid *out)
{
    const char *text = http_query(call->http, name);
    *out = (struct uuid){0};
    if (text == NULL || parse_id(text, out))
        return true;
    api_refuse(call, name, "%s must be a UUID.", name);
    return false;
}

bool api_query_int(struct api_call *call, const char *name, int64_t least, int64_t most, int64_t *value)
{
    const char *text = http_query(call->http, name);
    if (text == NULL)
        return true;
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    bool digits = text[0] != '\0' && strspn(text, "0123456789") == strlen(text);
    if (digits && errno == 0 && *end == '\0' && number >= least && number <= most) {
        *value = number;
        return true;
    }
    api_refuse(call, name, "%s must be a whole number from %lld to %lld.", name, (long long)least,
               (long long)most);
    return false;
}

bool api_query_time(struct api_call *call, const char *name, int64_t *time_ms)
{
    const char *text = http_query(call->http, name);
    if (text == NULL || time_parse(text, strlen(text), time_ms))
        return true;
    api_refuse(call, name, "%s must be a time such as 2026-01-31T12:00:00Z.", name);
    return false;
}

bool api_query_limit(struct api_call *call, int32_t *limit)
{
    int64_t value = PAGE_COUNT_DEFAULT;
    if (!api_query_int(call, "limit", 1, PAGE_COUNT_MAX, &value))
        return false;
    *limit = (int32_t)value;
    return true;
}

bool api_query_page(struct api_call *call)
{
    return api_query_limit(call, &call->query.limit) &&
           api_query_int(call, "after", 1, INT64_MAX, &call->query.after);
}

bool api_query_checkout_status(struct api_call *call)
{
    enum checkout_state state;
    const char *text = http_query(call->http, "status");
    call->query.status = arena_text(http_arena(call->http), text);
    if (text == NULL || checkout_state_parse(text, &state))
        return true;
    api_refuse(call, "status",
               "status must be pending_payment, processing, completed, failed, cancelled, "
               "expired or refunded.");
    return false;
}

static bool event_is_visible(const struct api_call *call, const struct event_row *event)
{
    return call->actor.role >= ROLE_AGENT || event->state == EVENT_PUBLISHED || event->state == EVENT_LIVE;
}

bool api_path_event(struct api_call *call, struct event_view *out)
{
    struct uuid event_id;
    if (!api_path_uuid(call, "event", &event_id))
        return false;
    bool found = directory_event(call->api->config.directory, &call->actor.org_id, &event_id,
                                 http_arena(call->http), out);
    if (found && event_is_visible(call, &out->row))
        return true;
    if (found)
        seatmap_release(out->map);
    if (api_may_sync(call))
        api_sync(call); /* and the handler once more */
    else
        api_fail(call, ERR_EVENT_NOT_FOUND);
    return false;
}

/* ---- Blocks ---- */

bool api_section_valid(const char *text)
{
    size_t size = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    return size >= 1 && size <= 3 && text[size] == '\0';
}

bool api_block_parse(const char *text, char section[4], int32_t *subsection)
{
    const char *dash = strchr(text, '-');
    size_t size = dash != NULL ? (size_t)(dash - text) : 0;
    if (size < 1 || size > 3)
        return false;
    memcpy(section, text, size);
    section[size] = '\0';
    const char *digits = dash + 1;
    size_t digit_count = strspn(digits, "0123456789");
    if (digit_count < 1 || digit_count > 6 || digits[digit_count] != '\0' || digits[0] == '0')
        return false;
    *subsection = (int32_t)strtol(digits, NULL, 10);
    return api_section_valid(section);
}

bool api_block_find(const struct seatmap *map, const char *text, struct uuid *block_id)
{
    if (map == NULL)
        return false;
    if (parse_id(text, block_id))
        return seatmap_block_find(map, block_id) >= 0;
    char section[4];
    int32_t subsection;
    if (!api_block_parse(text, section, &subsection))
        return false;
    int32_t position = 0;
    int32_t block = seatmap_block_next(map, section, subsection, &position);
    if (block < 0)
        return false;
    *block_id = map->blocks[block].id;
    return true;
}

/* ---- Bodies ---- */

void api_body_open(struct api_call *call, struct body *body)
{
    size_t size;
    const char *text = http_body(call->http, &size);
    body_open(body, http_arena(call->http), text, size);
}

bool api_body_close(struct api_call *call, struct body *body)
{
    if (body_close(body))
        return true;
    api_refuse(call, body->field, "%s", body->message);
    return false;
}
