/* SPDX-License-Identifier: Apache-2.0
 * What the API may ask of a request, and the request's memory.
 *
 * A request lives from its headers until its answer has left, or, if it was
 * deferred and its client was answered in the API's stead, until http_resume().
 *
 * 1. Everything that is asked after the client may be gone (path, parameters,
 *    id, address, body) is a copy in the request; headers and query belong to
 *    the library and read as absent when there is no connection any more.
 * 2. Used requests are kept with their arena for the next ones, up to a limit.
 *
 * Runs on the loop's thread; request_destroy() of an abandoned request on any. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/uuid.h"
#include "http/http_int.h"

/* ---- Memory ---- */

struct http_request *request_acquire(struct http_loop *loop, struct http_connection *connection)
{
    struct list *node = list_pop(&loop->spare);
    struct http_request *request = NULL;
    struct arena arena;
    struct buf body;
    if (node != NULL) {
        loop->spare_count--;
        request = CONTAINER_OF(node, struct http_request, node);
        arena = request->arena;
        body = request->body;
    } else {
        request = malloc(sizeof *request);
        CHECK(request != NULL);
        arena_init(&arena);
        buf_init(&body);
    }
    memset(request, 0, sizeof *request);
    request->arena = arena;
    request->body = body;
    list_init(&request->node);
    list_init(&request->orphan_node);
    request->loop = loop;
    request->connection = connection;
    request->context = loop->server->config.context;
    request->started_us = clock_monotonic_us();
    return request;
}

void request_destroy(struct http_request *request)
{
    reply_drop(request);
    arena_deinit(&request->arena);
    buf_deinit(&request->body);
    free(request);
}

void request_release(struct http_request *request)
{
    struct http_loop *loop = request->loop;
    if (loop->spare_count >= REQUEST_SPARE_COUNT_MAX) {
        request_destroy(request);
        return;
    }
    reply_drop(request);
    arena_reset(&request->arena);
    if (request->body.capacity > 2 * BODY_SIZE_MAX || !buf_ok(&request->body))
        buf_deinit(&request->body);
    else
        buf_clear(&request->body);
    list_append(&loop->spare, &request->node);
    loop->spare_count++;
}

/* ---- Headers ---- */

/* The characters of a header's name. Anything else, a blank before the colon above all, is read
 * differently by different servers. */
static bool is_token(const char *text, size_t length)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        bool is_alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!is_alnum && (c == '\0' || strchr(others, c) == NULL))
            return false;
    }
    return length > 0;
}

static bool is_request_id(const char *text, size_t length)
{
    if (length == 0 || length >= REQUEST_ID_SIZE)
        return false;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        bool is_alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!is_alnum && c != '.' && c != '_' && c != '-')
            return false;
    }
    return true;
}

static bool is_json_type(const char *value)
{
    static const char json[] = "application/json";
    if (strncasecmp(value, json, sizeof json - 1) != 0)
        return false;
    char next = value[sizeof json - 1];
    return next == '\0' || next == ';' || next == ' ' || next == '\t';
}

static void read_length(struct http_request *request, const char *value)
{
    if (request->has_length)
        request->is_malformed = true;
    request->has_length = true;
    request->content_length = strtoull(value, NULL, 10); /* the library has refused what is no number */
}

static enum MHD_Result read_header(void *context, enum MHD_ValueKind kind, const char *name,
                                   size_t name_length, const char *value, size_t value_length)
{
    struct http_request *request = context;
    (void)kind;
    if (value == NULL)
        value = "";
    if (!is_token(name, name_length))
        request->is_malformed = true;
    switch (name[0] | 0x20) {
    case 'c':
        if (strcasecmp(name, "Content-Length") == 0)
            read_length(request, value);
        else if (strcasecmp(name, "Content-Type") == 0)
            request->is_json = is_json_type(value);
        break;
    case 't':
        if (strcasecmp(name, "Transfer-Encoding") == 0) {
            if (request->is_chunked || strcasecmp(value, "chunked") != 0)
                request->is_malformed = true;
            request->is_chunked = true;
        }
        break;
    case 'f':
        if (strcasecmp(name, "Forwarded") == 0)
            request->is_forwarded = true;
        break;
    case 'v':
        if (strcasecmp(name, "Via") == 0)
            request->is_forwarded = true;
        break;
    case 'x':
        if (strncasecmp(name, "X-Forwarded-", 12) == 0 || strcasecmp(name, "X-Real-IP") == 0)
            request->is_forwarded = true;
        if (strcasecmp(name, "X-Forwarded-For") == 0)
            request->forwarded_for = value;
        else if (strcasecmp(name, "X-Request-Id") == 0 && request->id[0] == '\0' &&
                 is_request_id(value, value_length))
            memcpy(request->id, value, value_length);
        break;
    default:
        break;
    }
    return MHD_YES;
}

/* The last hop is the one our own proxy saw; those before it are the client's word. */
static void read_remote_ip(struct http_request *request)
{
    const struct http_connection *connection = request->connection;
    if (connection->peer_is_trusted_proxy && request->forwarded_for != NULL) {
        const char *comma = strrchr(request->forwarded_for, ',');
        const char *last = comma == NULL ? request->forwarded_for : comma + 1;
        if (address_normalize(last, strlen(last), request->remote_ip))
            return;
    }
    memcpy(request->remote_ip, connection->peer_ip, sizeof request->remote_ip);
}

void request_read_headers(struct http_request *request, struct MHD_Connection *mhd)
{
    MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, read_header, request);
    if (request->has_length && request->is_chunked)
        request->is_malformed = true;
    if (request->id[0] == '\0') {
        struct uuid id = uuid_make(&request->loop->rng, clock_now_ms());
        uuid_format(&id, request->id);
    }
    request->is_loopback = request->connection->peer_is_loopback && !request->is_forwarded;
    read_remote_ip(request);
}

/* ---- What was asked ---- */

void *http_context(const struct http_request *request)
{
    return request->context;
}

const struct http_route *http_route(const struct http_request *request)
{
    return request->match.route;
}

enum http_method http_method(const struct http_request *request)
{
    return request->match.method;
}

const char *http_method_name(const struct http_request *request)
{
    return request->method_name;
}

const char *http_path(const struct http_request *request)
{
    return request->path;
}

const char *http_param(const struct http_request *request, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < request->match.param_count; i++)
        if (request->match.params[i].name_length == length &&
            memcmp(request->match.params[i].name, name, length) == 0)
            return request->match.params[i].value;
    return NULL;
}

const char *http_query(const struct http_request *request, const char *name)
{
    if (request->connection == NULL)
        return NULL;
    const char *raw = NULL;
    size_t size = 0;
    if (MHD_lookup_connection_value_n(request->connection->mhd, MHD_GET_ARGUMENT_KIND, name, strlen(name),
                                      &raw, &size) != MHD_YES)
        return NULL;
    if (raw == NULL)
        return "";
    if (strchr(raw, '%') == NULL)
        return raw;
    /* What cannot be decoded is given as it came: no valid value has a percent sign left in it. */
    char *decoded = arena_text((struct arena *)&request->arena, raw);
    return router_decode(decoded) ? decoded : raw;
}

const char *http_header(const struct http_request *request, const char *name)
{
    if (request->connection == NULL)
        return NULL;
    return MHD_lookup_connection_value(request->connection->mhd, MHD_HEADER_KIND, name);
}

const char *http_body(const struct http_request *request, size_t *size)
{
    *size = request->body.size;
    return buf_text((struct buf *)&request->body);
}

const char *http_request_id(const struct http_request *request)
{
    return request->id;
}

const char *http_remote_ip(const struct http_request *request)
{
    return request->remote_ip;
}

bool http_is_loopback(const struct http_request *request)
{
    return request->is_loopback;
}

struct arena *http_arena(struct http_request *request)
{
    return &request->arena;
}

void **http_user(struct http_request *request)
{
    return &request->user;
}

int64_t http_started_us(const struct http_request *request)
{
    return request->started_us;
}
