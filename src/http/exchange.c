/* SPDX-License-Identifier: Apache-2.0
 * One request, from its headers to its reply: the order in which it may be
 * refused, and where its handler runs. Called by the library on the loop's thread.
 *
 *   headers ─ framing 400 ─ size 431 ─ path 404, 405 ─ on_headers ─ length 413 ─ type 415
 *      │                                                                (refused: not read further)
 *      ▼
 *   body ──── chunked and over the limit: 413 on the socket itself, for the
 *      │      library takes no reply while it reads
 *      ▼
 *   handler ─ replies, or defers ─▶ suspended ─ http_resume() ─▶ on_resume ─ replies
 *
 * 1. The token and role (on_headers) are judged before the body's shape.
 * 2. A request that is refused with its body still to come costs its
 *    connection: the rest is not read but by linger.c, for a moment. Without a
 *    body the connection is kept.
 * 3. A suspended connection is touched by its loop alone, and only to go on. */
#include <string.h>

#include "base/limits.h"
#include "http/http_int.h"

static bool has_body(const struct http_request *request)
{
    return request->is_chunked || request->content_length > 0;
}

static size_t body_size_max(const struct http_request *request)
{
    size_t size = request->match.route->body_size_max;
    return size == 0 ? BODY_SIZE_MAX : size;
}

static size_t header_size(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return info == NULL ? 0 : info->header_size;
}

/* Gives the library the answer, or takes the socket from it for a stream (then MHD_NO ends its part). */
static enum MHD_Result exchange_send(struct http_request *request)
{
    struct http_connection *connection = request->connection;
    if (request->has_stream) {
        if (stream_take_over(request))
            return MHD_NO;
        request->status = 0;
        http_reply_error(request, ERR_OVERLOADED);
    }
    enum MHD_Result result =
        MHD_queue_response(connection->mhd, (unsigned)request->status, request->response);
    MHD_destroy_response(request->response);
    request->response = NULL;
    connection_enter(connection, PHASE_SENDING);
    return result;
}

/* Checks whose answer does not depend on who asks. */
static bool exchange_find_route(struct http_request *request, struct MHD_Connection *mhd)
{
    if (request->is_malformed) {
        http_reply_error(request, ERR_INVALID_REQUEST);
        return false;
    }
    if (header_size(mhd) > HEADER_SIZE_MAX) {
        http_reply_error(request, ERR_HEADERS_TOO_LARGE);
        return false;
    }
    router_match(request->loop->server->router, request->method_name, request->path, &request->arena,
                 &request->match);
    if (request->match.methods == 0) {
        http_reply_error(request, ERR_NOT_FOUND);
        return false;
    }
    if (request->match.route == NULL) {
        char allow[ALLOW_TEXT_SIZE];
        router_write_allow(request->match.methods, allow);
        http_reply_header(request, "Allow", allow);
        http_reply_error(request, ERR_METHOD_NOT_ALLOWED);
        return false;
    }
    return true;
}

static enum MHD_Result exchange_begin(struct http_connection *connection, struct MHD_Connection *mhd,
                                      const char *url, const char *method)
{
    struct http_loop *loop = connection->loop;
    struct http_request *request = request_acquire(loop, connection);
    connection->request = request;
    request->path = arena_text(&request->arena, url);
    request->method_name = arena_text(&request->arena, method);
    request->is_head = strcmp(method, "HEAD") == 0;
    request_read_headers(request, mhd);

    if (exchange_find_route(request, mhd)) {
        if (loop->server->config.on_headers != NULL)
            loop->server->config.on_headers(request);
        if (request->status == 0 && request->content_length > body_size_max(request))
            http_reply_error(request, ERR_BODY_TOO_LARGE);
        else if (request->status == 0 && request->content_length > 0 && !request->is_json)
            http_reply_error(request, ERR_UNSUPPORTED_MEDIA_TYPE);
    }
    if (request->status != 0 && (has_body(request) || request->is_malformed)) {
        connection->linger = true;
        return exchange_send(request); /* queued this early, the library closes after it */
    }
    connection_enter(connection, PHASE_RECEIVING);
    return MHD_YES;
}

static enum MHD_Result exchange_take_body(struct http_request *request, const char *data, size_t *size)
{
    enum err refusal = ERR_OK;
    if (!request->is_json)
        refusal = ERR_UNSUPPORTED_MEDIA_TYPE;
    else if (*size > body_size_max(request) - request->body.size)
        refusal = ERR_BODY_TOO_LARGE;
    if (refusal != ERR_OK) {
        reply_send_raw_error(request, refusal);
        request->connection->linger = true;
        return MHD_NO;
    }
    buf_put(&request->body, data, *size);
    *size = 0;
    return MHD_YES;
}

static void dispatch(struct http_request *request)
{
    const struct http_config *config = &request->loop->server->config;
    if (config->on_request != NULL)
        config->on_request(request);
    else
        request->match.route->handler(request);
}

static enum MHD_Result exchange_dispatch(struct http_request *request)
{
    request->is_dispatched = true;
    if (!buf_ok(&request->body))
        http_reply_error(request, ERR_OVERLOADED);
    else
        dispatch(request);
    if (request->is_suspended)
        return MHD_YES;
    CHECK(request->status != 0); /* a handler replies or defers */
    return exchange_send(request);
}

enum MHD_Result exchange_on_access(void *context, struct MHD_Connection *mhd, const char *url,
                                   const char *method, const char *version, const char *data, size_t *size,
                                   void **request_context)
{
    struct http_connection *connection = connection_of(mhd);
    struct http_request *request = connection->request;
    (void)context;
    (void)version;
    (void)request_context;
    if (connection->last_answer != NULL) {
        enum MHD_Result result =
            MHD_queue_response(mhd, (unsigned)connection->last_status, connection->last_answer);
        MHD_destroy_response(connection->last_answer);
        connection->last_answer = NULL;
        return result;
    }
    if (request == NULL)
        return exchange_begin(connection, mhd, url, method);
    if (*size > 0)
        return exchange_take_body(request, data, size);
    if (request->status != 0)
        return exchange_send(request);
    CHECK(!request->is_dispatched);
    return exchange_dispatch(request);
}

void exchange_on_completed(void *context, struct MHD_Connection *mhd, void **request_context,
                           enum MHD_RequestTerminationCode code)
{
    struct http_connection *connection = connection_of(mhd);
    (void)context;
    (void)request_context;
    (void)code;
    struct http_request *request = connection->request;
    connection->request = NULL;
    if (request != NULL) {
        /* The library reads before it goes on with a resumed connection, and takes "will send no
         * more" for "has gone". */
        if (request->is_dispatched)
            reply_send_unsent(request);
        request_release(request);
    }
    if (connection->phase != PHASE_DOOMED)
        connection_enter(connection, PHASE_WAITING);
}

void http_defer(struct http_request *request, void (*on_resume)(struct http_request *request))
{
    CHECK(request->status == 0);
    CHECK(request->is_dispatched);
    request->on_resume = on_resume;
    if (request->connection != NULL) {
        if (!request->is_suspended)
            MHD_suspend_connection(request->connection->mhd);
        connection_enter(request->connection, PHASE_DEFERRED);
    }
    request->is_suspended = true;
    request->defer_count++;
    if (atomic_load(&request->deferral) != DEFERRAL_ABANDONED)
        atomic_store(&request->deferral, DEFERRAL_PENDING);
}

void http_resume(struct http_request *request)
{
    int expected = DEFERRAL_PENDING;
    if (atomic_compare_exchange_strong(&request->deferral, &expected, DEFERRAL_RESUMED)) {
        /* The loop does not end before it has taken the request, nor while anybody is in here. */
        struct http_loop *loop = request->loop;
        atomic_fetch_add(&loop->resuming_count, 1);
        queue_push_always(&loop->resumed, &request->node);
        atomic_fetch_sub(&loop->resuming_count, 1);
        return;
    }
    CHECK(expected == DEFERRAL_ABANDONED); /* resumed twice, or never deferred */
    request->on_resume(request);
    if (request->status != 0)
        request_destroy(request);
}

void exchange_resume(struct http_request *request)
{
    int count = request->defer_count;
    request->on_resume(request);
    if (request->status == 0) {
        CHECK(request->defer_count != count); /* it replies or defers again */
        return;
    }
    request->is_suspended = false;
    if (request->connection != NULL) {
        MHD_resume_connection(request->connection->mhd);
        return;
    }
    list_remove(&request->orphan_node);
    request_release(request);
}
