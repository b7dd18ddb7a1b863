/* SPDX-License-Identifier: Apache-2.0
 * See fake_http.h. Defines the functions of http.h and order.h that the API
 * calls, so that the real ones are not linked. One thread. */
#include "fake_http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct command *fake_command;
int fake_user_seen_count;
enum err fake_submit_err;
static json_t *answer;

static const char *find_field(const struct fake_field *fields, const char *name)
{
    for (size_t i = 0; i < FAKE_FIELD_COUNT_MAX && fields[i].name != NULL; i++)
        if (strcasecmp(fields[i].name, name) == 0)
            return fields[i].value;
    return NULL;
}

/* Fills in the params if the path is one of the template. */
static bool match_path(struct http_request *request, const char *template)
{
    const char *path = request->path;
    size_t count = 0;
    memset(request->params, 0, sizeof request->params);
    while (*template != '\0') {
        if (*template == '{') {
            size_t name_size = strcspn(template, "}"), size = strcspn(path, "/");
            request->params[count].name = arena_text_n(&request->arena, template + 1, name_size - 1);
            request->params[count++].value = arena_text_n(&request->arena, path, size);
            template += name_size + 1;
            path += size;
        } else if (*template ++ != *path++) {
            return false;
        }
    }
    return *path == '\0';
}

void fake_begin(struct http_request *request)
{
    size_t count;
    const struct http_route *routes = api_routes(false, &count);
    arena_init(&request->arena);
    fake_command = NULL;
    for (size_t i = 0; i < count && request->route == NULL; i++)
        if (routes[i].method == request->method && match_path(request, routes[i].path))
            request->route = &routes[i];
    CHECK(request->route != NULL);
    api_on_headers(request);
    if (request->status == 0)
        request->route->handler(request);
    if (request->resumed)
        request->on_resume(request);
    CHECK(request->status != 0 || request->on_resume != NULL);
}

void fake_answer(struct http_request *request, struct result result)
{
    CHECK(fake_command != NULL);
    fake_command->result = result;
    fake_command->on_done(fake_command);
    CHECK(request->resumed);
    request->on_resume(request);
}

void fake_end(struct http_request *request)
{
    if (request->status == 0 && fake_command != NULL)
        fake_answer(request, (struct result){.err = ERR_INTERNAL});
    json_decref(answer);
    answer = NULL;
    free(request->text);
    arena_deinit(&request->arena);
}

const char *fake_reply_header(const struct http_request *request, const char *name)
{
    return find_field(request->reply_headers, name);
}

json_t *fake_json(const struct http_request *request)
{
    json_decref(answer);
    answer = json_loadb(request->text, request->text_size, JSON_REJECT_DUPLICATES, NULL);
    CHECK(answer != NULL);
    return answer;
}

static const char *text_or_empty(json_t *value)
{
    return json_is_string(value) ? json_string_value(value) : "";
}

const char *fake_error(const struct http_request *request)
{
    return text_or_empty(json_object_get(json_object_get(fake_json(request), "error"), "code"));
}

const char *fake_error_field(const struct http_request *request)
{
    json_t *error = json_object_get(fake_json(request), "error");
    return text_or_empty(json_object_get(json_object_get(error, "details"), "field"));
}

/* ---- order.h ---- */

enum err order_submit(struct order *order, struct command *command)
{
    (void)order;
    if (command->kind == COMMAND_USER_SEEN) {
        fake_user_seen_count++;
        command->on_done(command);
        return ERR_OK;
    }
    if (fake_submit_err == ERR_OK)
        fake_command = command;
    return fake_submit_err;
}

/* ---- http.h ---- */

void *http_context(const struct http_request *request)
{
    return request->api;
}

const struct http_route *http_route(const struct http_request *request)
{
    return request->route;
}

enum http_method http_method(const struct http_request *request)
{
    return request->method;
}

const char *http_method_name(const struct http_request *request)
{
    static const char *const names[HTTP_METHOD_COUNT] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
    return names[request->method];
}

const char *http_path(const struct http_request *request)
{
    return request->path;
}

const char *http_param(const struct http_request *request, const char *name)
{
    return find_field(request->params, name);
}

const char *http_query(const struct http_request *request, const char *name)
{
    return find_field(request->query, name);
}

const char *http_header(const struct http_request *request, const char *name)
{
    return find_field(request->headers, name);
}

const char *http_body(const struct http_request *request, size_t *size)
{
    *size = request->body != NULL ? strlen(request->body) : 0;
    return request->body;
}

const char *http_request_id(const struct http_request *request)
{
    (void)request;
    return "request-1";
}

const char *http_remote_ip(const struct http_request *request)
{
    (void)request;
    return "192.0.2.1";
}

bool http_is_loopback(const struct http_request *request)
{
    return !request->is_remote;
}

struct arena *http_arena(struct http_request *request)
{
    return &request->arena;
}

void **http_user(struct http_request *request)
{
    return &request->user;
}

void http_reply_header(struct http_request *request, const char *name, const char *value)
{
    size_t i = 0;
    while (request->reply_headers[i].name != NULL)
        i++;
    CHECK(i < FAKE_FIELD_COUNT_MAX);
    request->reply_headers[i].name = arena_text(&request->arena, name);
    request->reply_headers[i].value = arena_text(&request->arena, value);
}

static void keep_reply(struct http_request *request, int status, const void *data, size_t size)
{
    CHECK(request->status == 0); /* exactly one reply */
    request->status = status;
    request->text = malloc(size + 1);
    CHECK(request->text != NULL);
    memcpy(request->text, size > 0 ? data : "", size);
    request->text[size] = '\0';
    request->text_size = size;
}

void http_reply(struct http_request *request, int status, const char *content_type, struct buf *body)
{
    (void)content_type;
    keep_reply(request, status, body->data, body->size);
    buf_deinit(body);
}

void http_reply_json(struct http_request *request, int status, struct buf *body)
{
    http_reply(request, status, "application/json", body);
}

void http_reply_error(struct http_request *request, enum err err)
{
    struct buf out;
    buf_init(&out);
    api_write_error(request, err, &out);
    http_reply(request, err_http_status(err), "application/json", &out);
}

void http_reply_static(struct http_request *request, int status, const char *content_type, const void *data,
                       size_t size)
{
    (void)content_type;
    keep_reply(request, status, data, size);
}

void http_reply_shared(struct http_request *request, int status, const char *content_type, const void *data,
                       size_t size, void (*on_release)(void *context), void *context)
{
    (void)content_type;
    keep_reply(request, status, data, size);
    on_release(context);
}

void http_reply_stream(struct http_request *request, const struct http_stream *stream)
{
    keep_reply(request, 200, NULL, 0);
    stream->close(stream->context);
}

void http_defer(struct http_request *request, void (*on_resume)(struct http_request *request))
{
    request->on_resume = on_resume;
}

void http_resume(struct http_request *request)
{
    request->resumed = true;
}
