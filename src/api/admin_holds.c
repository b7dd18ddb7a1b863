/* SPDX-License-Identifier: Apache-2.0
 * What an admin does to seats: block, unblock, release; and the registry: do
 * the tiers agree, and make them agree.
 *
 * Invariants: (1) a release names exactly one kind of thing. (2) A batch is
 * answered seat by seat: what could not be done is said with its reason, and
 * does not undo the rest. (3) "Stale" is said only after looking several
 * times, since memory and store are read at slightly different moments.
 *
 * Loops' threads; the registry compares on the store's reading thread. */
#include "api/api_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/body.h"
#include "api/render.h"
#include "base/limits.h"

/* ---- Block and unblock ---- */

static void reply_seats(struct api_call *call)
{
    const struct result *result = &call->command.result;
    const char *done = call->command.kind == COMMAND_SEATS_BLOCK ? "blocked" : "available";
    struct buf out;
    struct jsonw json;
    api_json_open(&out, &json);
    jsonw_object_open(&json);
    jsonw_key(&json, "results");
    jsonw_array_open(&json);
    for (int32_t i = 0; i < result->seat_id_count; i++) {
        jsonw_object_open(&json);
        jsonw_key_uuid(&json, "seat_id", &result->seat_ids[i]);
        jsonw_key_text(&json, "status", done);
        jsonw_object_close(&json);
    }
    for (int32_t i = 0; i < result->failure_count; i++) {
        jsonw_object_open(&json);
        jsonw_key_uuid(&json, "seat_id", &result->failures[i].id);
        jsonw_key_text(&json, "code", err_code(result->failures[i].err));
        render_failure_fields(&result->failures[i], result->now_ms, &json);
        jsonw_object_close(&json);
    }
    jsonw_array_close(&json);
    jsonw_key_int(&json, "changed_count", result->seat_id_count);
    jsonw_key_int(&json, "failed_count", result->failure_count);
    jsonw_object_close(&json);
    api_reply(call, 200, &out, &json);
}

static void submit_seats(struct http_request *request, enum command_kind kind)
{
    struct api_call *call = api_call(request);
    struct command *command = &call->command;
    struct uuid event_id;
    struct body body;
    if (!api_path_uuid(call, "event", &event_id))
        return;
    command_init(command, kind, http_arena(request));
    command->id = event_id;
    api_body_open(call, &body);
    body_require(&body, "seat_ids");
    body_uuids(&body, "seat_ids", 1, ADMIN_ID_COUNT_MAX, &command->seats.seat_ids, &command->seats.count);
    body_text(&body, "notes", NOTES_SIZE_MAX, &command->seats.notes);
    if (!api_body_close(call, &body))
        return;
    api_submit(call, reply_seats);
}

void api_admin_seats_block(struct http_request *request)
{
    submit_seats(request, COMMAND_SEATS_BLOCK);
}

void api_admin_seats_unblock(struct http_request *request)
{
    submit_seats(request, COMMAND_SEATS_UNBLOCK);
}

/* ---- Release ---- */

static void reply_released(struct api_call *call)
{
    const struct result *result = &call->command.result;
    struct buf out;
    struct jsonw json;
    api_json_open(&out, &json);
    jsonw_object_open(&json);
    jsonw_key_text(&json, "status", "released");
    jsonw_key_text(&json, "reason", end_reason_name(END_ADMIN_OVERRIDE));
    jsonw_key_int(&json, "seats_released", result->hold_count);
    jsonw_key(&json, "hold_ids");
    jsonw_array_open(&json);
    for (int32_t i = 0; i < result->hold_count; i++)
        jsonw_uuid(&json, &result->holds[i].row.id);
    jsonw_array_close(&json);
    jsonw_key(&json, "skipped");
    jsonw_array_open(&json);
    for (int32_t i = 0; i < result->failure_count; i++) {
        jsonw_object_open(&json);
        jsonw_key_uuid(&json, "id", &result->failures[i].id);
        jsonw_key_text(&json, "reason", err_code(result->failures[i].err));
        jsonw_object_close(&json);
    }
    jsonw_array_close(&json);
    jsonw_key_text(&json, "message",
                   result->hold_count > 0 ? "Seats released by admin" : "Nothing was released");
    jsonw_object_close(&json);
    api_reply(call, 200, &out, &json);
}

static void take_release(struct body *body, struct command *command)
{
    static const char *const kinds[] = {"hold_ids", "seat_ids", "checkout_id", "event_id"};
    int named_count = 0;
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        named_count += body_has(body, kinds[i]);
    if (named_count != 1)
        body_wrong(body, "hold_ids",
                   "or seat_ids or checkout_id or event_id is required, and only one of them.");
    body_uuids(body, "hold_ids", 1, ADMIN_ID_COUNT_MAX, &command->release.hold_ids,
               &command->release.hold_count);
    body_uuids(body, "seat_ids", 1, ADMIN_ID_COUNT_MAX, &command->release.seat_ids,
               &command->release.seat_count);
    body_uuid(body, "checkout_id", &command->release.checkout_id);
    body_uuid(body, "event_id", &command->release.event_id);
    body_text(body, "notes", NOTES_SIZE_MAX, &command->release.notes);
}

void api_admin_release(struct http_request *request)
{
    struct api_call *call = api_call(request);
    struct uuid of_event_id;
    struct body body;
    if (!api_query_uuid(call, "event_id", &of_event_id))
        return;
    command_init(&call->command, COMMAND_ADMIN_RELEASE, http_arena(request));
    api_body_open(call, &body);
    take_release(&body, &call->command);
    if (!api_body_close(call, &body))
        return;
    /* Seats, holds and checkouts do not say whose they are: the query may, by their event. */
    if (!uuid_is_nil(&call->command.release.event_id))
        of_event_id = call->command.release.event_id;
    if (!uuid_is_nil(&of_event_id))
        api_adopt_event_org(call, &of_event_id);
    if (!api_has_org(call))
        return;
    api_submit(call, reply_released);
}

/* ---- The registry ---- */

static void reply_counts(struct api_call *call, const struct uuid *event_id, int64_t hot, int64_t stored,
                         bool consistent)
{
    const struct result *result = &call->command.result;
    bool has_warm = result->counts[1] >= 0;
    if (call->command.kind == COMMAND_REGISTRY)
        consistent = consistent && result->missing_count + result->orphaned_count == 0;
    struct buf out;
    struct jsonw json;
    api_json_open(&out, &json);
    jsonw_object_open(&json);
    jsonw_key_uuid(&json, "event_id", event_id);
    jsonw_key_int(&json, "hot", hot);
    if (has_warm)
        jsonw_key_int(&json, "warm", result->counts[1]);
    else
        jsonw_key_null(&json, "warm");
    jsonw_key_int(&json, "store", stored);
    jsonw_key_int(&json, "missing", result->missing_count);
    jsonw_key_int(&json, "orphaned", result->orphaned_count);
    jsonw_key_bool(&json, "consistent", consistent);
    jsonw_key_text(&json, "status", consistent ? "ok" : "stale");
    jsonw_key_text(&json, "message", consistent ? "All layers in sync" : "Consistency warning");
    jsonw_object_close(&json);
    api_reply(call, 200, &out, &json);
}

struct registry_count { /* the store's reading thread has it until the call is resumed */
    int64_t hot_before;
    int64_t hot;
    int64_t stored;
    int32_t try_count;
    bool consistent;
};

static int64_t count_held(const struct seatmap *map)
{
    int32_t counts[SEAT_STATE_COUNT] = {0};
    if (map != NULL)
        seatmap_counts(map, counts);
    return counts[SEAT_HELD];
}

/* The one row of QUERY_HOLD_COUNT: [{"count":N}]. −1 if it is not that. */
static int64_t parse_count(struct buf *rows)
{
    json_t *root = json_loadb(rows->data != NULL ? rows->data : "", rows->size, 0, NULL);
    json_t *count = json_object_get(json_array_get(root, 0), "count");
    int64_t value = json_is_integer(count) ? json_integer_value(count) : -1;
    json_decref(root);
    return value;
}

/* Memory is read before and after the store: a count between the two is what it was meanwhile. */
static void registry_on_rows(struct store_query *query)
{
    struct api_call *call = query->context;
    struct registry_count *count = call->state;
    if (query->err == ERR_OK) {
        count->hot = count_held(call->map);
        count->stored = parse_count(&query->rows);
        int64_t low = count->hot < count->hot_before ? count->hot : count->hot_before;
        int64_t high = count->hot < count->hot_before ? count->hot_before : count->hot;
        count->consistent = count->stored >= low && count->stored <= high;
        if (!count->consistent && ++count->try_count < API_REGISTRY_TRY_COUNT_MAX) {
            count->hot_before = count->hot;
            buf_deinit(&query->rows);
            buf_init(&query->rows);
            query->row_count = 0;
            query->err = store_query(call->api->config.store, query);
            if (query->err == ERR_OK)
                return;
        }
    }
    http_resume(call->http);
}

static void reply_registry(struct api_call *call)
{
    struct registry_count *count = call->state;
    reply_counts(call, &call->query.event_id, count->hot, count->stored, count->consistent);
}

static void compare_registry(struct api_call *call)
{
    struct event_view event;
    if (!api_path_event(call, &event))
        return;
    struct registry_count *count = ARENA_NEW(http_arena(call->http), struct registry_count);
    count->hot_before = count_held(event.map);
    call->state = count;
    call->map = event.map;
    call->query.kind = QUERY_HOLD_COUNT;
    call->query.event_id = event.row.id;
    call->query.limit = 1;
    call->query.on_done = registry_on_rows;
    api_query(call, reply_registry);
}

void api_admin_registry_get(struct http_request *request)
{
    struct api_call *call = api_call(request);
    struct uuid event_id;
    if (!api_path_uuid(call, "event", &event_id))
        return;
    command_init(&call->command, COMMAND_REGISTRY, http_arena(request));
    call->command.id = event_id;
    api_submit(call, compare_registry);
}

void api_admin_registry_reconcile(struct http_request *request)
{
    struct api_call *call = api_call(request);
    struct uuid event_id;
    struct body body;
    if (!api_path_uuid(call, "event", &event_id))
        return;
    api_body_open(call, &body); /* has no fields, but must be an object if it is there */
    if (!api_body_close(call, &body))
        return;
    command_init(&call->command, COMMAND_RECONCILE, http_arena(request));
    call->command.id = event_id;
    api_submit(call, compare_registry); /* what the store says now, beside what memory has */
}
