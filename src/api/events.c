/* SPDX-License-Identifier: Apache-2.0
 * Events as buyers see them: those that are published or live, their policy,
 * blocks and prices, and how full they are.
 *
 * Answered from the directory and the published counters: no read here waits
 * for the lane or the store. Loops' threads. Changing events is
 * admin_catalogue.c's. */
#include "api/api_int.h"
#include "api/render.h"
#include "base/clock.h"

void api_events_list(struct http_request *request)
{
    struct api_call *call = api_call(request);
    struct event_view *events;
    int32_t count = directory_events(call->api->config.directory, &call->actor.org_id,
                                     BIT(EVENT_PUBLISHED) | BIT(EVENT_LIVE), http_arena(request), &events);
    struct buf out;
    struct jsonw json;
    api_json_open(&out, &json);
    jsonw_array_open(&json);
    for (int32_t i = 0; i < count; i++) {
        render_event(&events[i], false, &json);
        seatmap_release(events[i].map);
    }
    jsonw_array_close(&json);
    api_reply(call, 200, &out, &json);
}

void api_event_get(struct http_request *request)
{
    struct api_call *call = api_call(request);
    struct event_view event;
    if (!api_path_event(call, &event))
        return;
    struct buf out;
    struct jsonw json;
    api_json_open(&out, &json);
    render_event(&event, false, &json);
    seatmap_release(event.map);
    api_reply(call, 200, &out, &json);
}

static void write_empty_occupancy(int64_t now_ms, struct jsonw *json)
{
    static const char *const zeros[] = {"available", "held", "sold", "blocked", "total"};
    static const char *const percents[] = {"percent_available", "percent_held", "percent_sold"};
    jsonw_object_open(json);
    for (size_t i = 0; i < COUNT_OF(zeros); i++)
        jsonw_key_int(json, zeros[i], 0);
    for (size_t i = 0; i < COUNT_OF(percents); i++)
        jsonw_key_int(json, percents[i], 0);
    jsonw_key_time(json, "timestamp", now_ms);
    jsonw_key(json, "blocks");
    jsonw_array_open(json);
    jsonw_array_close(json);
    jsonw_object_close(json);
}

void api_occupancy_get(struct http_request *request)
{
    struct api_call *call = api_call(request);
    struct event_view event;
    if (!api_path_event(call, &event))
        return;
    struct buf out;
    struct jsonw json;
    api_json_open(&out, &json);
    if (event.map != NULL)
        seatmap_write_occupancy(event.map, clock_now_ms(), true, &json);
    else
        write_empty_occupancy(clock_now_ms(), &json);
    seatmap_release(event.map);
    api_reply(call, 200, &out, &json);
}
