/* SPDX-License-Identifier: Apache-2.0
 * Building the one answer of a request.
 *
 * A reply only fills in the request; exchange.c gives it to the library when
 * the library takes it.
 *
 * 1. One reply each: a second is a programmer's error.
 * 2. Every answer names its request and forbids caching and sniffing, unless
 *    the API set Cache-Control itself.
 * 3. When nobody waits any more (no connection), a reply frees what it was
 *    given and does nothing else; then it may run on any thread.
 *
 * Header values with control characters are dropped: they would end the header. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "http/http_int.h"

static const char json_type[] = "application/json";

static bool is_field_text(const char *text)
{
    if (text[0] == '\0')
        return false;
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return false;
    return true;
}

void http_reply_header(struct http_request *request, const char *name, const char *value)
{
    CHECK(request->status == 0);
    if (!is_field_text(name) || !is_field_text(value))
        return;
    struct http_reply_field *field = ARENA_NEW(&request->arena, struct http_reply_field);
    field->name = arena_text(&request->arena, name);
    field->value = arena_text(&request->arena, value);
    struct http_reply_field **last = &request->fields;
    while (*last != NULL)
        last = &(*last)->next;
    *last = field;
    if (strcasecmp(name, "Cache-Control") == 0)
        request->has_cache_control = true;
}

/* Counts the answer, and logs it: what went wrong on our side always, the rest for those who look. */
static void reply_note(struct http_request *request, int status)
{
    CHECK(request->status == 0);
    request->status = status;
    int64_t taken_us = clock_monotonic_us() - request->started_us;
    histogram_observe(HISTOGRAM_REQUEST_SECONDS, (double)taken_us / 1e6);
    if (status < 300)
        counter_add(COUNTER_HTTP_2XX, 1);
    else if (status < 400)
        counter_add(COUNTER_HTTP_3XX, 1);
    else if (status < 500)
        counter_add(COUNTER_HTTP_4XX, 1);
    else
        counter_add(COUNTER_HTTP_5XX, 1);
    enum log_level level = status < 500 ? LOG_DEBUG : status == 503 ? LOG_WARN : LOG_ERROR;
    if (!log_is_on(level))
        return;
    char path[256];
    log_quote(request->path, path, sizeof path);
    log_write(level, status < 500 ? "request" : "request failed",
              "\"request_id\":\"%s\",\"method\":\"%s\",\"path\":\"%s\",\"status\":%d,\"ip\":\"%s\",\"took_"
              "us\":%lld",
              request->id, http_method_name(request), path, status, http_remote_ip(request),
              (long long)taken_us);
}

/* `data` belongs to the response. */
static void reply_finish(struct http_request *request, int status, const char *content_type, const void *data,
                         size_t size, struct MHD_Response *response)
{
    CHECK(response != NULL); /* a few hundred bytes could not be had */
    reply_note(request, status);
    request->reply_type = content_type == json_type ? json_type : arena_text(&request->arena, content_type);
    request->reply_data = data;
    request->reply_size = size;
    if (content_type != NULL)
        MHD_add_response_header(response, "Content-Type", content_type);
    if (!request->has_cache_control)
        MHD_add_response_header(response, "Cache-Control", "no-store");
    MHD_add_response_header(response, "X-Request-Id", request->id);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    for (const struct http_reply_field *field = request->fields; field != NULL; field = field->next)
        MHD_add_response_header(response, field->name, field->value);
    if (request->loop->is_draining)
        MHD_add_response_header(response, "Connection", "close");
    request->response = response;
}

void http_reply(struct http_request *request, int status, const char *content_type, struct buf *body)
{
    CHECK(request->status == 0);
    if (body != NULL && !buf_ok(body)) {
        buf_deinit(body);
        http_reply_error(request, ERR_INTERNAL);
        return;
    }
    size_t size = 0;
    char *data = body == NULL ? NULL : buf_steal(body, &size);
    if (request->connection == NULL) {
        free(data);
        request->status = status;
        return;
    }
    enum MHD_ResponseMemoryMode mode = data == NULL ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_FREE;
    static char nothing[] = "";
    if (data == NULL)
        data = nothing;
    reply_finish(request, status, content_type, data, size,
                 MHD_create_response_from_buffer(size, data, mode));
}

void http_reply_json(struct http_request *request, int status, struct buf *body)
{
    http_reply(request, status, json_type, body);
}

void http_reply_error(struct http_request *request, enum err err)
{
    CHECK(request->status == 0);
    if (request->connection == NULL) {
        request->status = err_http_status(err);
        return;
    }
    struct buf body;
    buf_init(&body);
    request->loop->server->config.write_error(request, err, &body);
    if (!buf_ok(&body)) /* no memory for the words: the status alone */
        buf_deinit(&body);
    http_reply(request, err_http_status(err), json_type, &body);
}

void http_reply_static(struct http_request *request, int status, const char *content_type, const void *data,
                       size_t size)
{
    CHECK(request->status == 0);
    if (request->connection == NULL) {
        request->status = status;
        return;
    }
    reply_finish(request, status, content_type, data, size,
                 MHD_create_response_from_buffer(size, (void *)(uintptr_t)data, MHD_RESPMEM_PERSISTENT));
}

void http_reply_shared(struct http_request *request, int status, const char *content_type, const void *data,
                       size_t size, void (*on_release)(void *context), void *context)
{
    CHECK(request->status == 0);
    if (request->connection == NULL) {
        request->status = status;
        on_release(context);
        return;
    }
    struct MHD_Response *response = MHD_create_response_from_buffer_with_free_callback_cls(
        size, (void *)(uintptr_t)data, on_release, context);
    reply_finish(request, status, content_type, data, size, response);
}

void http_reply_stream(struct http_request *request, const struct http_stream *stream)
{
    CHECK(request->status == 0);
    if (request->connection == NULL) {
        request->status = MHD_HTTP_OK;
        stream->close(stream->context);
        return;
    }
    http_reply_header(request, "X-Accel-Buffering", "no");
    if (request->is_head) {
        stream->close(stream->context);
        http_reply_static(request, MHD_HTTP_OK, "text/event-stream", "", 0);
        return;
    }
    reply_note(request, MHD_HTTP_OK);
    request->stream = *stream;
    request->has_stream = true;
}

void reply_write_head(struct http_request *request, int status, const char *content_type, int64_t size,
                      struct buf *out)
{
    char date[64];
    struct tm utc;
    time_t now = time(NULL);
    gmtime_r(&now, &utc);
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &utc);
    buf_printf(out, "HTTP/1.1 %d %s\r\nDate: %s\r\nConnection: close\r\n", status,
               MHD_get_reason_phrase_for((unsigned)status), date);
    if (content_type != NULL)
        buf_printf(out, "Content-Type: %s\r\n", content_type);
    if (size >= 0)
        buf_printf(out, "Content-Length: %lld\r\n", (long long)size);
    if (!request->has_cache_control)
        buf_put_text(out, "Cache-Control: no-store\r\n");
    buf_printf(out, "X-Request-Id: %s\r\nX-Content-Type-Options: nosniff\r\n", request->id);
    for (const struct http_reply_field *field = request->fields; field != NULL; field = field->next)
        buf_printf(out, "%s: %s\r\n", field->name, field->value);
    buf_put_text(out, "\r\n");
}

/* The connection is about to close: what a full socket does not take is lost, as it would be later. */
static void reply_send_raw(struct http_request *request, const char *content_type, const void *data,
                           size_t size)
{
    struct buf answer;
    buf_init(&answer);
    reply_write_head(request, request->status, content_type, (int64_t)size, &answer);
    if (!request->is_head)
        buf_put(&answer, data, size);
    if (buf_ok(&answer))
        (void)!send(request->connection->fd, answer.data, answer.size, MSG_DONTWAIT | MSG_NOSIGNAL);
    buf_deinit(&answer);
}

void reply_send_raw_error(struct http_request *request, enum err err)
{
    struct buf body;
    buf_init(&body);
    reply_note(request, err_http_status(err));
    request->loop->server->config.write_error(request, err, &body);
    reply_send_raw(request, json_type, body.data, body.size);
    buf_deinit(&body);
}

void reply_send_unsent(struct http_request *request)
{
    if (request->response != NULL)
        reply_send_raw(request, request->reply_type, request->reply_data, request->reply_size);
}

void reply_drop(struct http_request *request)
{
    if (request->response != NULL)
        MHD_destroy_response(request->response);
    request->response = NULL;
    if (request->has_stream)
        request->stream.close(request->stream.context);
    request->has_stream = false;
}
