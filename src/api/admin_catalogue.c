/* SPDX-License-Identifier: Apache-2.0
 * What an organization sells: organizations, users, events, layouts, blocks.
 *
 * Invariants: (1) a patch carries exactly the fields that stood in the body;
 * the rest keeps its value. (2) Ranges of the policy come from POLICY_MAP;
 * relations between its fields are checked where all of them are known, by the
 * lane. (3) An answer shows what was committed: it is read from the directory
 * after the lane is done.
 *
 * Loops' threads. */
#include "api/api_int.h"

#include <string.h>

#include "api/body.h"
#include "api/render.h"
#include "base/clock.h"
#include "base/limits.h"

#define API_PRICE_CENTS_MAX INT64_C(10000000000) /* as in a layout document */

/* ---- Organizations and users ---- */

static void reply_org(struct api_call *call)
{
    struct buf out;
    struct jsonw json;
    api_json_open(&out, &json);
    jsonw_object_open(&json);
    jsonw_key_uuid(&json, "organization_id", &call->command.result.id);
    jsonw_key_text(&json, "name", call->command.admin.name);
    jsonw_object_close(&json);
    api_reply(call, 201, &out, &json);
}

void api_admin_org_create(struct http_request *request)
{
    struct api_call *call = api_call(request);
    struct body body;
    command_init(&call->command, COMMAND_ORG_CREATE, http_arena(request));
    api_body_open(call, &body);
    body_require(&body, "name");
    body_text(&body, "name", TEXT_SIZE_MAX, &call->command.admin.name);
    body_uuid(&body, "id", &call->command.id);
    if (!api_body_close(call, &body))
        return;
    /* Idempotency-Keys are kept apart by organization; an operator of none has one of their own. */
    if (uuid_is_nil(&call->actor.org_id))
        call->actor.org_id = call->actor.user_id;
    api_submit(call, reply_org);
}

static void reply_user(struct api_call *call)
{
    struct buf out;
    struct jsonw json;
    api_json_open(&out, &json);
    jsonw_object_open(&json);
    jsonw_key_uuid(&json, "user_id", &call->command.id);
    jsonw_key_bool(&json, "disabled", call->command.admin.disabled);
    jsonw_object_close(&json);
    api_reply(call, 200, &out, &json);
}

void api_admin_user_patch(struct http_request *request)
{
    struct api_call *call = api_call(request);
    struct uuid user_id;
    struct body body;
    if (!api_path_uuid(call, "user", &user_id))
        return;
    command_init(&call->command, COMMAND_USER_PATCH, http_arena(request));
    call->command.id = user_id;
    api_body_open(call, &body);
    body_require(&body, "disabled");
    body_bool(&body, "disabled", &call->command.admin.disabled);
    if (!api_body_close(call, &body))
        return;
    api_submit(call, reply_user);
}

/* ---- Events ---- */

void api_admin_events_list(struct http_request *request)
{
    struct api_call *call = api_call(request);
    struct event_view *events;
    uint32_t states = BIT(EVENT_STATE_COUNT) - 1;
    int32_t count = directory_events(call->api->config.directory, &call->actor.org_id, states,
                                     http_arena(request), &events);
    struct buf out;
    struct jsonw json;
    api_json_open(&out, &json);
    jsonw_array_open(&json);
    for (int32_t i = 0; i < count; i++) {
        render_event(&events[i], true, &json);
        seatmap_release(events[i].map);
    }
    jsonw_array_close(&json);
    api_reply(call, 200, &out, &json);
}

static void take_currency(struct body *body, struct command *command)
{
    const char *text = NULL;
    if (!body_text(body, "currency", TEXT_SIZE_MAX, &text))
        return;
    if (strlen(text) != 3 || strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != 3) {
        body_wrong(body, "currency", "must be three capital letters, as in ISO 4217.");
        return;
    }
    memcpy(command->event.row.currency, text, 4);
    command->event.fields |= PATCH_CURRENCY;
}

/* Null takes a limit away. */
static void take_sale_window(struct body *body, struct command *command)
{
    struct event_row *row = &command->event.row;
    if (body_is_null(body, "sale_start") || body_time(body, "sale_start", &row->sale_start_ms))
        command->event.fields |= PATCH_SALE_START;
    if (body_is_null(body, "sale_end") || body_time(body, "sale_end", &row->sale_end_ms))
        command->event.fields |= PATCH_SALE_END;
    if (row->sale_start_ms > row->sale_end_ms)
        body_wrong(body, "sale_end", "must not be before sale_start.");
}

static void take_policy_field(struct body *body, struct command *command, int number, const char *key,
                              int32_t least, int32_t most, int32_t *out)
{
    int64_t value = 0;
    bool is_on = false;
    bool is_switch = least == 0 && most == 1;
    if (is_switch ? !body_bool(body, key, &is_on) : !body_int(body, key, least, most, &value))
        return;
    *out = is_switch ? is_on : (int32_t)value;
    command->event.policy_fields |= BIT(number);
}

static void take_policy(struct body *body, struct command *command)
{
#define FIELD_NAME(name, initial, least, most) #name,
    static const char *const names[] = {POLICY_MAP(FIELD_NAME)};
#undef FIELD_NAME
    struct policy *policy = &command->event.row.policy;
    int number = 0;
    if (!body_enter(body, "policy"))
        return;
    body_allow_only(body, names, COUNT_OF(names));
#define TAKE_FIELD(name, initial, least, most)                                                               \
    take_policy_field(body, command, number++, #name, least, most, &policy->name);
    POLICY_MAP(TAKE_FIELD)
#undef TAKE_FIELD
    body_leave(body);
}

static void take_event(struct body *body, struct command *command)
{
    struct event_row *row = &command->event.row;
    const char *status = NULL;
    row->sale_start_ms = TIME_NONE;
    row->sale_end_ms = TIME_MAX;
    row->policy = policy_default();
    if (body_text(body, "name", TEXT_SIZE_MAX, &row->name))
        command->event.fields |= PATCH_NAME;
    if (body_text(body, "status", TEXT_SIZE_MAX, &status)) {
        if (event_state_parse(status, &row->state))
            command->event.fields |= PATCH_STATE;
        else
            body_wrong(body, "status", "must be draft, published, live, archived or cancelled.");
    }
    take_sale_window(body, command);
    take_currency(body, command);
    take_policy(body, command);
}

static void reply_event(struct api_call *call)
{
    struct result *result = &call->command.result;
    struct event_view event;
    if (!directory_event(call->api->config.directory, &call->actor.org_id, &result->id,
                         http_arena(call->http), &event)) {
        api_fail(call, ERR_INTERNAL);
        return;
    }
    struct buf out;
    struct jsonw json;
    api_json_open(&out, &json);
    render_event(&event, true, &json);
    seatmap_release(event.map);
    api_reply(call, call->command.kind == COMMAND_EVENT_CREATE ? 201 : 200, &out, &json);
}

void api_admin_event_create(struct http_request *request)
{
    struct api_call *call = api_call(request);
    struct command *command = &call->command;
    struct body body;
    command_init(command, COMMAND_EVENT_CREATE, http_arena(request));
    memcpy(command->event.row.currency, "EUR", 4);
    command->event.row.state = EVENT_DRAFT;
    api_body_open(call, &body);
    body_require(&body, "name");
    body_uuid(&body, "id", &command->event.row.id);
    take_event(&body, command);
    if (command->event.row.state != EVENT_DRAFT && command->event.row.state != EVENT_PUBLISHED)
        body_wrong(&body, "status", "of a new event must be draft or published.");
    if (!policy_valid(&command->event.row.policy))
        body_wrong(&body, "policy", "must have hold_max_seconds of at least hold_ttl_seconds.");
    if (!api_body_close(call, &body))
        return;
    command->id = command->event.row.id;
    command->event.row.org_id = call->actor.org_id;
    api_submit(call, reply_event);
}

void api_admin_event_patch(struct http_request *request)
{
    struct api_call *call = api_call(request);
    struct command *command = &call->command;
    struct uuid event_id;
    struct body body;
    if (!api_path_uuid(call, "event", &event_id))
        return;
    command_init(command, COMMAND_EVENT_PATCH, http_arena(request));
    command->id = event_id;
    command->event.row.id = event_id;
    command->event.row.org_id = call->actor.org_id;
    api_body_open(call, &body);
    take_event(&body, command);
    if (command->event.fields == 0 && command->event.policy_fields == 0)
        body_wrong(&body, "body",
                   "must name something to change: name, status, sale_start, sale_end, currency or policy.");
    if (!api_body_close(call, &body))
        return;
    api_submit(call, reply_event);
}

/* ---- Layouts and blocks ---- */

static void reply_layout(struct api_call *call)
{
    struct event_view event;
    if (!directory_event(call->api->config.directory, &call->actor.org_id, &call->command.id,
                         http_arena(call->http), &event)) {
        api_fail(call, ERR_INTERNAL);
        return;
    }
    struct buf out;
    struct jsonw json;
    api_json_open(&out, &json);
    jsonw_object_open(&json);
    jsonw_key_uuid(&json, "event_id", &event.row.id);
    jsonw_key_int(&json, "blocks", event.map != NULL ? event.map->layout->block_count : 0);
    jsonw_key_int(&json, "seats", event.map != NULL ? event.map->layout->seat_count : 0);
    jsonw_object_close(&json);
    seatmap_release(event.map);
    api_reply(call, 200, &out, &json);
}

void api_admin_layout_put(struct http_request *request)
{
    struct api_call *call = api_call(request);
    struct uuid event_id;
    size_t size;
    if (!api_path_uuid(call, "event", &event_id))
        return;
    const char *document = http_body(request, &size);
    if (size == 0) {
        api_refuse(call, "body", "The body must be a layout document.");
        return;
    }
    command_init(&call->command, COMMAND_LAYOUT_PUT, http_arena(request));
    call->command.id = event_id;
    call->command.layout.document = document;
    call->command.layout.size = size;
    api_submit(call, reply_layout);
}

static void reply_block(struct api_call *call)
{
    struct event_view event;
    bool found = directory_event(call->api->config.directory, &call->actor.org_id, &call->command.id,
                                 http_arena(call->http), &event);
    int32_t block =
        found && event.map != NULL ? seatmap_block_find(event.map, &call->command.block.block_id) : -1;
    if (block >= 0) {
        struct buf out;
        struct jsonw json;
        api_json_open(&out, &json);
        render_block(event.map, block, &json);
        api_reply(call, 200, &out, &json);
    } else {
        api_fail(call, ERR_INTERNAL);
    }
    if (found)
        seatmap_release(event.map);
}

static bool take_block(struct api_call *call, struct body *body)
{
    struct command *command = &call->command;
    int64_t capacity = 0;
    if (body_text(body, "name", TEXT_SIZE_MAX, &command->block.name))
        command->block.fields |= PATCH_NAME;
    if (body_int(body, "capacity", 1, EVENT_SEAT_COUNT_MAX, &capacity))
        command->block.fields |= PATCH_CAPACITY;
    if (body_int(body, "price_cents", 0, API_PRICE_CENTS_MAX, &command->block.price_cents))
        command->block.fields |= PATCH_PRICE;
    command->block.capacity = (int32_t)capacity;
    if (command->block.fields == 0)
        body_wrong(body, "body", "must name something to change: name, capacity or price_cents.");
    return api_body_close(call, body);
}

void api_admin_block_patch(struct http_request *request)
{
    struct api_call *call = api_call(request);
    struct event_view event;
    struct uuid event_id, block_id;
    struct body body;
    char section[4];
    int32_t subsection;
    const char *block = http_param(request, "block");
    if (!api_path_uuid(call, "event", &event_id))
        return;
    if (!uuid_parse(block, strlen(block), &block_id) && !api_block_parse(block, section, &subsection)) {
        api_refuse(call, "block",
                   "The block in the path must be a UUID, or a section and subsection such as A-1.");
        return;
    }
    command_init(&call->command, COMMAND_BLOCK_PATCH, http_arena(request));
    api_body_open(call, &body);
    if (!take_block(call, &body) || !api_path_event(call, &event))
        return;
    bool found = api_block_find(event.map, block, &block_id);
    seatmap_release(event.map);
    if (!found) {
        call->message = "No such block.";
        api_fail(call, ERR_NOT_FOUND);
        return;
    }
    call->command.id = event_id;
    call->command.block.block_id = block_id;
    api_submit(call, reply_block);
}
