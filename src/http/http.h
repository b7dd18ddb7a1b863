/* SPDX-License-Identifier: Apache-2.0
 * The HTTP edge: libmicrohttpd driven by our own loop, a router, replies and
 * streams. It knows nothing of seats.
 *
 * A request runs on its loop's thread. When its headers are in, `on_headers`
 * may refuse it before a byte of the body is read; when the body is in, its
 * route's handler runs. The handler replies, or defers: then the connection is
 * suspended, some other thread calls http_resume() once, and `on_resume` runs
 * on the loop's thread and replies. Every request is replied to exactly once.
 *
 * A thousand resumes cost one wake-up of the loop. */
#ifndef HOLDFAST_HTTP_HTTP_H
#define HOLDFAST_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

struct http_server;
struct http_request;

enum http_method { HTTP_GET, HTTP_POST, HTTP_PUT, HTTP_PATCH, HTTP_DELETE, HTTP_METHOD_COUNT };

struct http_route {
    enum http_method method;
    const char *path; /* "/api/events/{event}/seats/{seat}/reserve"; HEAD is served by GET */
    void (*handler)(struct http_request *request);
    const void *context;  /* the API's: who may call, which body, … */
    size_t body_size_max; /* 0: BODY_SIZE_MAX */
};

struct http_config {
    const char *address; /* "127.0.0.1" or "::1" */
    uint16_t port;       /* 0: any; see http_server_port() */
    int loop_count;      /* 1 … 8 */
    const struct http_route *routes;
    size_t route_count;
    const char *trusted_proxy; /* address whose X-Forwarded-For is believed, or NULL */
    void *context;             /* http_context() */
    /* Runs when a known route's headers are in. May reply (then the body is not read) or set http_user(). */
    void (*on_headers)(struct http_request *request);
    /* In place of the route's handler, which it calls, now or after deferring; NULL: the handler itself. */
    void (*on_request)(struct http_request *request);
    /* Writes the body of an error answer: the API's shape. */
    void (*write_error)(struct http_request *request, enum err err, struct buf *out);
    /* 0: the limits of base/limits.h; tests set them short. */
    int idle_seconds;    /* no complete headers, or an answer that is not taken */
    int receive_seconds; /* headers are in, the body is not */
    int defer_seconds;   /* deferred and not resumed: the client is told outcome_unknown */
};

/* Fails with ERR_LISTEN, and says why in one sentence. Loops run until http_server_stop(). */
enum err http_server_start(const struct http_config *config, struct http_server **out, char *why,
                           size_t why_size) MUST_CHECK;
uint16_t http_server_port(const struct http_server *server);
/* Drains: no new connections, streams are ended, what is deferred gets its answer (at most
 * `drain_ms`), then the loops end. Frees everything. A request still deferred then has told its
 * client outcome_unknown; its memory lives until its http_resume(), which runs on_resume on the
 * calling thread and drops the answer. */
void http_server_stop(struct http_server *server, int64_t drain_ms);

/* ---- What was asked ---- */
void *http_context(const struct http_request *request); /* http_config.context */
const struct http_route *http_route(const struct http_request *request);
enum http_method http_method(const struct http_request *request);
const char *http_method_name(const struct http_request *request);
const char *http_path(const struct http_request *request);                    /* as sent, without the query */
const char *http_param(const struct http_request *request, const char *name); /* {name} of the route */
const char *http_query(const struct http_request *request, const char *name); /* decoded; or NULL */
const char *http_header(const struct http_request *request, const char *name); /* or NULL */
const char *http_body(const struct http_request *request, size_t *size);       /* size 0: none */
const char *http_request_id(const struct http_request *request);
const char *http_remote_ip(const struct http_request *request); /* the client's, through a trusted proxy */
bool http_is_loopback(const struct http_request *request);   /* the peer itself, and no forwarding header */
struct arena *http_arena(struct http_request *request);      /* lives as long as the request */
void **http_user(struct http_request *request);              /* a place for the API's own pointer */
int64_t http_started_us(const struct http_request *request); /* clock_monotonic_us() at its headers */

/* ---- Answering: each sends the one reply ---- */
void http_reply_header(struct http_request *request, const char *name,
                       const char *value); /* before the reply */
void http_reply(struct http_request *request, int status, const char *content_type,
                struct buf *body); /* transfers body's memory */
void http_reply_json(struct http_request *request, int status, struct buf *body);
void http_reply_error(struct http_request *request, enum err err); /* by write_error */
/* Borrowed memory that outlives the server, e.g. embedded files. */
void http_reply_static(struct http_request *request, int status, const char *content_type, const void *data,
                       size_t size);
/* Shared memory: released when sent. */
void http_reply_shared(struct http_request *request, int status, const char *content_type, const void *data,
                       size_t size, void (*on_release)(void *context), void *context);

/* Suspends; http_resume() from any thread then runs on_resume on the loop's thread, which replies
 * or defers again. Defer before handing the request to whoever resumes it. */
void http_defer(struct http_request *request, void (*on_resume)(struct http_request *request));
void http_resume(struct http_request *request);

/* ---- Streams (server-sent events) ---- */
struct http_stream {
    /* Writes at most `size` bytes. 0: nothing now; −1: the stream ends. Loop's thread. */
    int64_t (*read)(void *context, char *out, size_t size);
    bool (*ready)(void *context); /* would read() give something: cheap; loop's thread */
    void (*close)(void *context); /* the reader is gone; runs exactly once */
    void *context;
};
void http_reply_stream(struct http_request *request, const struct http_stream *stream);
/* Any thread: streams of this server may be ready. Cheap to call often; not after
 * http_server_stop() has returned. */
void http_streams_wake(struct http_server *server);

#endif
