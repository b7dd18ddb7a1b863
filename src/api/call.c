/* SPDX-License-Identifier: Apache-2.0
 * One call's way out and back: a command to the lane or a query to the store,
 * its Idempotency-Key, the answer or the error.
 *
 * Invariants: (1) the connection is suspended before the command is submitted,
 * since the lane may be done with it before submit returns. (2) A refused
 * submit is answered on the same way as a refused command. (3) An error says
 * what failed and when to come back, never who holds a seat.
 *
 * Handlers and answers run on the loop's thread, on_done on the lane's or the
 * store's, where it does nothing but wake the loop. */
#include "api/api_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/render.h"
#include "base/limits.h"
#include "base/text.h"

struct api_call *api_call(struct http_request *request)
{
    return *http_user(request);
}

/* ---- Idempotency-Key ---- */

static bool key_is_valid(const char *key, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (key[i] < 0x21 || key[i] > 0x7e)
            return false;
    return size >= 1 && size <= IDEMPOTENCY_KEY_SIZE_MAX;
}

/* One hash over user, method, path and key; no part can run into the next, because neither a
 * user's text nor a method has the separator in it, and the key comes last. */
static void key_hash(struct api_call *call, const char *key, uint8_t out[32])
{
    char user[UUID_TEXT_SIZE];
    uuid_format(&call->actor.user_id, user);
    const char *method = http_method_name(call->http);
    const char *path = http_path(call->http);
    size_t size = strlen(user) + strlen(method) + strlen(path) + strlen(key) + 3;
    char *text = arena_alloc(http_arena(call->http), size + 1);
    snprintf(text, size + 1, "%s\n%s\n%s\n%s", user, method, path, key);
    sha256(text, size, out);
}

static bool api_take_key(struct api_call *call)
{
    const char *key = http_header(call->http, "Idempotency-Key");
    if (key == NULL || http_method(call->http) == HTTP_GET)
        return true;
    if (!key_is_valid(key, strlen(key))) {
        api_refuse(call, "Idempotency-Key", "The Idempotency-Key must be 1 to %d visible ASCII characters.",
                   IDEMPOTENCY_KEY_SIZE_MAX);
        return false;
    }
    size_t size;
    const char *body = http_body(call->http, &size);
    call->command.has_key = true;
    key_hash(call, key, call->command.key);
    sha256(size > 0 ? body : "", size, call->command.body);
    return true;
}

/* ---- The lane ---- */

static void api_on_done(struct command *command)
{
    struct api_call *call = command->owner;
    http_resume(call->http);
}

static void api_on_result(struct http_request *request)
{
    struct api_call *call = api_call(request);
    if (call->command.result.err != ERR_OK)
        api_fail(call, call->command.result.err);
    else if (call->command.result.is_pending)
        api_reply_pending(call);
    else
        call->on_success(call);
    command_deinit(&call->command);
}

/* Only an operator without organization gets this far without one, and only by naming an event
 * that nobody has. */
static bool api_has_place(struct api_call *call)
{
    if (!uuid_is_nil(&call->actor.org_id))
        return true;
    api_fail(call, ERR_EVENT_NOT_FOUND);
    return false;
}

void api_submit(struct api_call *call, void (*on_success)(struct api_call *call))
{
    struct command *command = &call->command;
    if (!api_has_place(call) || !api_take_key(call)) {
        command_deinit(command);
        return;
    }
    call->on_success = on_success;
    api_defer_command(call, api_on_result);
}

void api_defer_command(struct api_call *call, void (*on_result)(struct http_request *request))
{
    struct command *command = &call->command;
    command->actor = call->actor;
    command->owner = call;
    command->on_done = api_on_done;
    call->has_command = true;
    http_defer(call->http, on_result);
    enum err err = order_submit(call->api->config.order, command);
    if (err != ERR_OK) {
        command->result.err = err;
        http_resume(call->http);
    }
}

/* ---- The store's lists ---- */

static void api_on_rows(struct store_query *query)
{
    struct api_call *call = query->context;
    http_resume(call->http);
}

static void api_on_query(struct http_request *request)
{
    struct api_call *call = api_call(request);
    if (call->query.err != ERR_OK)
        api_fail(call, call->query.err);
    else
        call->on_success(call);
    buf_deinit(&call->query.rows);
    seatmap_release(call->map);
    call->map = NULL;
}

void api_query(struct api_call *call, void (*on_success)(struct api_call *call))
{
    struct store_query *query = &call->query;
    query->org_id = call->actor.org_id;
    query->context = call;
    if (query->on_done == NULL)
        query->on_done = api_on_rows;
    buf_init(&query->rows);
    call->on_success = on_success;
    http_defer(call->http, api_on_query);
    enum err err = store_query(call->api->config.store, query);
    if (err != ERR_OK) {
        query->err = err;
        http_resume(call->http);
    }
}

/* ---- Answers ---- */

void api_json_open(struct buf *out, struct jsonw *json)
{
    buf_init(out);
    buf_reserve(out, API_ANSWER_SIZE); /* most answers fit; a failure sticks in the buffer */
    jsonw_begin(json, out);
    jsonw_object_open(json);
    jsonw_key(json, "data");
}

void api_reply(struct api_call *call, int status, struct buf *out, struct jsonw *json)
{
    jsonw_object_close(json);
    if (buf_ok(out)) {
        http_reply_json(call->http, status != 0 ? status : 200, out);
        return;
    }
    buf_deinit(out);
    api_fail(call, ERR_INTERNAL);
}

/* ---- Errors ---- */

static int64_t retry_after_seconds(const struct api_call *call)
{
    int64_t seconds = call != NULL && call->has_command ? call->command.result.retry_after_seconds : 0;
    return seconds > 0 ? seconds : API_RETRY_SECONDS;
}

static bool has_retry_after(enum err err)
{
    return err_http_status(err) == 429 || err_http_status(err) == 503;
}

void api_fail(struct api_call *call, enum err err)
{
    if (has_retry_after(err)) {
        char *text = arena_alloc(http_arena(call->http), 24);
        snprintf(text, 24, "%lld", (long long)retry_after_seconds(call));
        http_reply_header(call->http, "Retry-After", text);
    }
    if (err == ERR_UNAUTHORIZED)
        http_reply_header(call->http, "WWW-Authenticate", "Bearer");
    http_reply_error(call->http, err);
}

void api_refuse(struct api_call *call, const char *field, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    call->field = field;
    call->message = arena_text(http_arena(call->http), text);
    api_fail(call, ERR_INVALID_REQUEST);
}

static bool failures_are_listed(const struct command *command)
{
    if (command->kind == COMMAND_ANSWER_GET) /* as they were for the command it asks about */
        return command->result.kind == COMMAND_HOLD_SEATS && command->result.several;
    return (command->kind == COMMAND_HOLD_SEATS && command->hold_seats.several) ||
           command->kind == COMMAND_SEATS_BLOCK || command->kind == COMMAND_SEATS_UNBLOCK;
}

static void write_result_details(const struct command *command, struct jsonw *json)
{
    const struct result *result = &command->result;
    if (result->failure_count > 0 && failures_are_listed(command)) {
        jsonw_key(json, "seats");
        jsonw_array_open(json);
        for (int32_t i = 0; i < result->failure_count; i++) {
            jsonw_object_open(json);
            jsonw_key_uuid(json, "seat_id", &result->failures[i].id);
            jsonw_key_text(json, "code", err_code(result->failures[i].err));
            render_failure_fields(&result->failures[i], result->now_ms, json);
            jsonw_object_close(json);
        }
        jsonw_array_close(json);
    } else if (result->failure_count > 0) {
        render_failure_fields(&result->failures[0], result->now_ms, json);
    }
    if (result->err == ERR_WOULD_LEAVE_SINGLE_SEAT) {
        jsonw_key(json, "seats");
        jsonw_array_open(json);
        for (int32_t i = 0; i < result->stranded_count; i++)
            jsonw_uuid(json, &result->stranded[i]);
        jsonw_array_close(json);
    }
    if (result->has_checkout) {
        jsonw_key_uuid(json, "checkout_id", &result->checkout.id);
        jsonw_key_text(json, "checkout_status", checkout_state_name(result->checkout.state));
    }
}

static const char *error_message(const struct api_call *call, enum err err)
{
    if (call != NULL && call->message != NULL)
        return call->message;
    if (call != NULL && call->has_command && call->command.result.message != NULL)
        return call->command.result.message;
    return err_text(err);
}

void api_write_error(struct http_request *request, enum err err, struct buf *out)
{
    const struct api_call *call = api_call(request); /* NULL: no route, so no headers of ours */
    struct jsonw json;
    jsonw_begin(&json, out);
    jsonw_object_open(&json);
    jsonw_key(&json, "error");
    jsonw_object_open(&json);
    jsonw_key_text(&json, "code", err_code(err));
    jsonw_key_text(&json, "message", error_message(call, err));
    jsonw_key(&json, "details");
    jsonw_object_open(&json);
    if (call != NULL && call->field != NULL)
        jsonw_key_text(&json, "field", call->field);
    if (call != NULL && call->has_command && call->command.result.err == err)
        write_result_details(&call->command, &json);
    if (has_retry_after(err))
        jsonw_key_int(&json, "retry_after_seconds", retry_after_seconds(call));
    jsonw_object_close(&json);
    jsonw_key_text(&json, "request_id", http_request_id(request));
    jsonw_object_close(&json);
    jsonw_object_close(&json);
}
