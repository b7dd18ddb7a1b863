/* SPDX-License-Identifier: Apache-2.0
 * Holds: reserve one seat, hold several or the best, list, extend, release.
 *
 * Invariants: (1) a request names seats, or asks for the best, never both.
 * (2) A buyer acts for themselves; an agent or admin may name whom they act
 * for, and is then shown whose hold it is. (3) A reserve without a body is
 * answered without building any JSON tree: it is the path that must be fast.
 *
 * Loops' threads: the lane decides. */
#include "api/api_int.h"

#include <string.h>

#include "api/body.h"
#include "api/render.h"
#include "base/limits.h"

static bool shows_user(const struct api_call *call)
{
    return call->actor.role >= ROLE_AGENT;
}

/* What reserve and holds have in common. */
struct hold_fields {
    enum hold_source source;
    const char *cart_token;
    struct uuid user_id;
};

static void take_hold_fields(struct body *body, struct hold_fields *out)
{
    const char *source = NULL;
    if (body_text(body, "source", TEXT_SIZE_MAX, &source) && !hold_source_parse(source, &out->source))
        body_wrong(body, "source", "must be web, scanner or offline_sync.");
    body_text(body, "cart_token", TEXT_SIZE_MAX, &out->cart_token);
    body_uuid(body, "user_id", &out->user_id);
}

/* ---- POST /api/events/{event}/seats/{seat}/reserve ---- */

void api_reply_hold(struct api_call *call)
{
    const struct result *result = &call->command.result;
    struct buf out;
    struct jsonw json;
    if (result->hold_count < 1) {
        api_fail(call, ERR_INTERNAL);
        return;
    }
    api_json_open(&out, &json);
    render_hold(&result->holds[0], result->now_ms, shows_user(call), &json);
    api_reply(call, result->status, &out, &json);
}

void api_seat_reserve(struct http_request *request)
{
    struct api_call *call = api_call(request);
    struct hold_fields fields = {.source = SOURCE_WEB};
    struct uuid event_id, *seat_id = ARENA_NEW(http_arena(request), struct uuid);
    if (!api_path_uuid(call, "event", &event_id) || !api_path_uuid(call, "seat", seat_id))
        return;
    size_t size;
    http_body(request, &size);
    if (size > 0) {
        struct body body;
        api_body_open(call, &body);
        take_hold_fields(&body, &fields);
        if (!api_body_close(call, &body) || !api_act_for(call, &fields.user_id))
            return;
    }
    command_init(&call->command, COMMAND_HOLD_SEATS, http_arena(request));
    call->command.hold_seats.event_id = event_id;
    call->command.hold_seats.seat_ids = seat_id;
    call->command.hold_seats.count = 1;
    call->command.hold_seats.cart_token = fields.cart_token;
    call->command.hold_seats.source = fields.source;
    api_submit(call, api_reply_hold);
}

/* ---- POST /api/events/{event}/holds ---- */

void api_reply_holds(struct api_call *call)
{
    const struct result *result = &call->command.result;
    struct buf out;
    struct jsonw json;
    api_json_open(&out, &json);
    jsonw_object_open(&json);
    jsonw_key(&json, "holds");
    render_holds(result->holds, result->hold_count, result->now_ms, shows_user(call), &json);
    if (result->has_explanation) {
        jsonw_key(&json, "explanation");
        render_explanation(&result->explanation, &json);
    }
    jsonw_object_close(&json);
    api_reply(call, result->status, &out, &json);
}

static void take_named_seats(struct body *body, struct command *command, const struct uuid *event_id,
                             const struct hold_fields *fields)
{
    command->hold_seats.event_id = *event_id;
    command->hold_seats.several = true;
    command->hold_seats.cart_token = fields->cart_token;
    command->hold_seats.source = fields->source;
    body_uuids(body, "seat_ids", 2, HOLD_SEAT_COUNT_MAX, &command->hold_seats.seat_ids,
               &command->hold_seats.count);
    static const char *const others[] = {"quantity", "section", "subsection", "adjacent"};
    for (size_t i = 0; i < COUNT_OF(others); i++)
        if (body_has(body, others[i]))
            body_wrong(body, others[i], "cannot stand beside seat_ids.");
}

static void take_best(struct body *body, struct command *command, const struct uuid *event_id,
                      const struct hold_fields *fields)
{
    int64_t quantity = 0, subsection = 0;
    const char *section = "";
    command->hold_best.event_id = *event_id;
    command->hold_best.adjacent = true;
    command->hold_best.cart_token = fields->cart_token;
    command->hold_best.source = fields->source;
    if (!body_has(body, "quantity"))
        body_wrong(body, "seat_ids", "or quantity is required.");
    body_int(body, "quantity", 1, HOLD_SEAT_COUNT_MAX, &quantity);
    if (body_text(body, "section", TEXT_SIZE_MAX, &section) && !api_section_valid(section)) {
        body_wrong(body, "section", "must be one to three capital letters.");
        section = "";
    }
    if (body_int(body, "subsection", 1, 999999, &subsection) && section[0] == '\0')
        body_wrong(body, "subsection", "needs a section.");
    body_bool(body, "adjacent", &command->hold_best.adjacent);
    command->hold_best.quantity = (int32_t)quantity;
    command->hold_best.subsection = (int32_t)subsection;
    memcpy(command->hold_best.section, section, strlen(section) + 1);
}

void api_holds_create(struct http_request *request)
{
    struct api_call *call = api_call(request);
    struct hold_fields fields = {.source = SOURCE_WEB};
    struct uuid event_id;
    struct body body;
    if (!api_path_uuid(call, "event", &event_id))
        return;
    api_body_open(call, &body);
    take_hold_fields(&body, &fields);
    bool named = body_has(&body, "seat_ids");
    command_init(&call->command, named ? COMMAND_HOLD_SEATS : COMMAND_HOLD_BEST, http_arena(request));
    if (named)
        take_named_seats(&body, &call->command, &event_id, &fields);
    else
        take_best(&body, &call->command, &event_id, &fields);
    if (!api_body_close(call, &body) || !api_act_for(call, &fields.user_id))
        return;
    api_submit(call, api_reply_holds);
}

/* ---- My holds ---- */

static void reply_own_holds(struct api_call *call)
{
    const struct result *result = &call->command.result;
    struct buf out;
    struct jsonw json;
    api_json_open(&out, &json);
    render_holds(result->holds, result->hold_count, result->now_ms, shows_user(call), &json);
    api_reply(call, 200, &out, &json);
}

void api_holds_list(struct http_request *request)
{
    struct api_call *call = api_call(request);
    struct uuid user_id, event_id;
    if (!api_query_uuid(call, "user_id", &user_id) || !api_query_uuid(call, "event_id", &event_id) ||
        !api_act_for(call, &user_id))
        return;
    command_init(&call->command, COMMAND_HOLDS_LIST, http_arena(request));
    call->command.holds_list.event_id = event_id;
    api_submit(call, reply_own_holds);
}

static void submit_hold(struct http_request *request, enum command_kind kind)
{
    struct api_call *call = api_call(request);
    struct uuid hold_id;
    struct body body;
    if (!api_path_uuid(call, "hold", &hold_id))
        return;
    api_body_open(call, &body); /* has no fields, but must be an object if it is there */
    if (!api_body_close(call, &body))
        return;
    command_init(&call->command, kind, http_arena(request));
    call->command.id = hold_id;
    api_submit(call, api_reply_hold);
}

void api_hold_get(struct http_request *request)
{
    submit_hold(request, COMMAND_HOLD_GET);
}

void api_hold_extend(struct http_request *request)
{
    submit_hold(request, COMMAND_HOLD_EXTEND);
}

void api_hold_release(struct http_request *request)
{
    submit_hold(request, COMMAND_HOLD_RELEASE);
}
