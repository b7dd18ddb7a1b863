/* SPDX-License-Identifier: Apache-2.0
 * A buyer's own checkouts, newest first, with the name of each one's event: what
 * "my tickets" shows on any device.
 *
 * Invariants: (1) the list is of one user of one organization, both from the
 * token; only an agent may name another user. (2) The name is shown whatever
 * became of the event: a ticket outlives its sale.
 *
 * Read from the store on its own thread; names come from the directory. Loops'
 * threads. The list of everybody's is admin_lists.c's. */
#include "api/api_int.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_event_name(struct api_call *call, json_t *row)
{
    const char *text = json_string_value(json_object_get(row, "event_id"));
    struct uuid event_id;
    struct event_view event;
    json_t *name = NULL;
    if (text != NULL && uuid_parse(text, strlen(text), &event_id) &&
        directory_event(call->api->config.directory, &call->actor.org_id, &event_id, http_arena(call->http),
                        &event)) {
        name = json_string(event.row.name);
        seatmap_release(event.map);
    }
    json_object_set_new(row, "event_name", name != NULL ? name : json_null());
}

static void reply_checkouts(struct api_call *call)
{
    struct store_query *query = &call->query;
    json_t *rows =
        query->rows.size > 0 ? json_loadb(query->rows.data, query->rows.size, 0, NULL) : json_array();
    for (size_t i = 0; i < json_array_size(rows); i++)
        add_event_name(call, json_array_get(rows, i));
    char *text = rows != NULL ? json_dumps(rows, JSON_COMPACT) : NULL;
    json_decref(rows);
    if (text == NULL) {
        api_fail(call, ERR_INTERNAL);
        return;
    }
    char next[24];
    struct buf out;
    struct jsonw json;
    api_json_open(&out, &json);
    jsonw_raw(&json, text, strlen(text));
    free(text);
    snprintf(next, sizeof next, "%lld", (long long)query->next);
    jsonw_key_text(&json, "next", query->next != 0 ? next : NULL);
    api_reply(call, 200, &out, &json);
}

void api_checkouts_list(struct http_request *request)
{
    struct api_call *call = api_call(request);
    struct uuid user_id;
    if (!api_query_uuid(call, "user_id", &user_id) ||
        !api_query_uuid(call, "event_id", &call->query.event_id) || !api_query_page(call) ||
        !api_query_checkout_status(call) || !api_act_for(call, &user_id))
        return;
    call->query.kind = QUERY_CHECKOUTS;
    call->query.user_id = call->actor.for_user_id;
    api_query(call, reply_checkouts);
}
