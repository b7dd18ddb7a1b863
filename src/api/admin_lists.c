/* SPDX-License-Identifier: Apache-2.0
 * Lists for admins: active holds with who has them, checkouts, the audit,
 * occupancy over time, analytics.
 *
 * Invariants: (1) every list is of one organization, the caller's or for an
 * operator that of the event they name. (2) A page has at most PAGE_COUNT_MAX
 * rows; `next` is the cursor of the page after it, or null at the end.
 *
 * Active holds come from the lane's memory; the rest is read from the store on
 * its own thread and never waits for the lane. Loops' threads. */
#include "api/api_int.h"

#include <stdio.h>
#include <string.h>

#include "api/render.h"
#include "base/limits.h"

/* ---- Active holds ---- */

static void reply_holds_page(struct api_call *call)
{
    const struct result *result = &call->command.result;
    struct buf out;
    struct jsonw json;
    api_json_open(&out, &json);
    render_holds(result->holds, result->hold_count, result->now_ms, true, &json);
    jsonw_key_uuid(&json, "next", &result->id); /* the last one's id if there are more; else nil, so null */
    api_reply(call, 200, &out, &json);
}

/* A block that is well named but not there has no holds: found is false, and no error. */
static bool take_block_filter(struct api_call *call, const struct seatmap *map, struct uuid *block_id,
                              bool *found)
{
    const char *text = http_query(call->http, "block");
    char section[4];
    int32_t subsection;
    *block_id = (struct uuid){0};
    *found = text == NULL || api_block_find(map, text, block_id);
    if (*found || uuid_parse(text, strlen(text), block_id) || api_block_parse(text, section, &subsection))
        return true;
    api_refuse(call, "block", "block must be a UUID, or a section and subsection such as A-1.");
    return false;
}

void api_admin_holds_list(struct http_request *request)
{
    struct api_call *call = api_call(request);
    struct uuid user_id, after, block_id;
    struct event_view event;
    int32_t limit;
    bool found;
    if (!api_query_uuid(call, "user_id", &user_id) || !api_query_uuid(call, "after", &after) ||
        !api_query_limit(call, &limit) || !api_path_event(call, &event))
        return;
    bool valid = take_block_filter(call, event.map, &block_id, &found);
    seatmap_release(event.map);
    if (!valid)
        return;
    command_init(&call->command, COMMAND_HOLDS_LIST, http_arena(request));
    if (!found) {
        reply_holds_page(call);
        return;
    }
    call->command.holds_list.everybody = true;
    call->command.holds_list.event_id = event.row.id;
    call->command.holds_list.user_id = user_id;
    call->command.holds_list.block_id = block_id;
    call->command.holds_list.after = after;
    call->command.holds_list.limit = limit;
    api_submit(call, reply_holds_page);
}

/* ---- From the store ---- */

void api_reply_rows(struct api_call *call)
{
    struct store_query *query = &call->query;
    char next[24];
    struct buf out;
    struct jsonw json;
    api_json_open(&out, &json);
    if (query->rows.size > 0)
        jsonw_raw(&json, query->rows.data, query->rows.size);
    else
        jsonw_raw(&json, "[]", 2);
    snprintf(next, sizeof next, "%lld", (long long)query->next);
    jsonw_key_text(&json, "next", query->next != 0 ? next : NULL);
    api_reply(call, 200, &out, &json);
}

/* Audit and checkouts: an operator without an organization names the event. */
static bool take_event_filter(struct api_call *call)
{
    if (!api_query_uuid(call, "event_id", &call->query.event_id))
        return false;
    if (!uuid_is_nil(&call->query.event_id))
        api_adopt_event_org(call, &call->query.event_id);
    return true;
}

void api_admin_checkouts_list(struct http_request *request)
{
    struct api_call *call = api_call(request);
    if (!take_event_filter(call) || !api_query_uuid(call, "user_id", &call->query.user_id) ||
        !api_query_page(call) || !api_query_checkout_status(call) || !api_has_org(call))
        return;
    call->query.kind = QUERY_CHECKOUTS;
    api_query(call, api_reply_rows);
}

void api_admin_audit_list(struct http_request *request)
{
    struct api_call *call = api_call(request);
    struct store_query *query = &call->query;
    enum audit_action action;
    if (!take_event_filter(call) || !api_query_uuid(call, "entity_id", &query->entity_id) ||
        !api_query_uuid(call, "seat_id", &query->seat_id) ||
        !api_query_uuid(call, "user_id", &query->user_id) ||
        !api_query_uuid(call, "checkout_id", &query->checkout_id) || !api_query_page(call))
        return;
    query->action = arena_text(http_arena(request), http_query(request, "action"));
    if (query->action != NULL && !audit_action_parse(query->action, &action)) {
        api_refuse(call, "action", "action must be an audited action such as seat_reserved.");
        return;
    }
    if (!api_has_org(call))
        return;
    query->kind = QUERY_AUDIT;
    api_query(call, api_reply_rows);
}

static void list_of_event(struct http_request *request, enum query_kind kind)
{
    struct api_call *call = api_call(request);
    struct event_view event;
    if (!api_query_time(call, "since", &call->query.since_ms) || !api_query_page(call) ||
        !api_path_event(call, &event))
        return;
    seatmap_release(event.map);
    call->query.kind = kind;
    call->query.event_id = event.row.id;
    api_query(call, api_reply_rows);
}

void api_admin_history_list(struct http_request *request)
{
    list_of_event(request, QUERY_OCCUPANCY_HISTORY);
}

void api_admin_analytics_get(struct http_request *request)
{
    list_of_event(request, QUERY_ANALYTICS);
}
