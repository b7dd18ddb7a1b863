/* SPDX-License-Identifier: Apache-2.0
 * Server-sent events: long answers that are written as news come.
 *
 * The library answers requests; a stream is not one for long. So its socket is
 * copied and the library lets go of the connection (with MHD_USE_TURBO it
 * closes its own descriptor without shutting the socket down). What is left of
 * a reader is this small struct: no 32 KiB of parser memory, no place among
 * the suspended connections, which the library walks at every resume, and one
 * send() a frame. The body ends when the socket closes.
 *
 *             published, or once a second
 *      idle ────────────────────────────────▶ checking ─ ready? read, send
 *        ▲                                        │ │
 *        └───────────── nothing to read ──────────┘ └─ socket full ─▶ blocked
 *                                                                     │
 *      closed ◀── gone, ended, or stuck for idle_seconds ◀────────────┘
 *
 * 1. Nobody is looked at when nothing was published, but once a second, which
 *    is how heartbeats come about.
 * 2. At most STREAM_READERS_PER_TURN readers a turn: requests do not wait.
 * 3. A blocked reader is not read for: it falls behind and is dropped, by its
 *    source when it comes back or here when it does not.
 * 4. close() of the source runs exactly once.
 *
 * Runs on the loop's thread; http_streams_wake() on any. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/metrics.h"
#include "http/http_int.h"

struct stream {
    struct list node; /* of one of the loop's three lists */
    struct http_watch watch;
    struct http_stream source;
    struct buf unsent;
    size_t sent;        /* of it */
    int64_t blocked_us; /* when the socket last took a byte */
    bool is_blocked;
};

static void stream_close(struct http_loop *loop, struct stream *stream)
{
    list_remove(&stream->node);
    close(stream->watch.fd);
    stream->source.close(stream->source.context);
    buf_deinit(&stream->unsent);
    free(stream);
    loop->stream_count--;
    gauge_add(GAUGE_STREAM_READERS, -1);
    gauge_add(GAUGE_CONNECTIONS, -1);
}

static void stream_enter(struct stream *stream, struct list *list)
{
    list_remove(&stream->node);
    list_append(list, &stream->node);
}

/* How much the socket took; −1: it is broken. */
static ssize_t stream_send(struct stream *stream, const char *data, size_t size)
{
    ssize_t sent;
    do {
        sent = send(stream->watch.fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0)
        return errno == EAGAIN ? 0 : -1;
    return sent;
}

static void stream_block(struct http_loop *loop, struct stream *stream)
{
    stream->is_blocked = true;
    stream->blocked_us = loop->now_us;
    stream_enter(stream, &loop->streams_blocked);
}

/* Sends or keeps. False: the socket is broken. */
static bool stream_write(struct http_loop *loop, struct stream *stream, const char *data, size_t size)
{
    ssize_t sent = stream_send(stream, data, size);
    if (sent < 0)
        return false;
    if ((size_t)sent < size) {
        buf_put(&stream->unsent, data + sent, size - (size_t)sent);
        stream->sent = 0;
        stream_block(loop, stream);
    }
    return buf_ok(&stream->unsent);
}

/* The socket has room again. False: it is broken. */
static bool stream_flush(struct http_loop *loop, struct stream *stream)
{
    ssize_t sent =
        stream_send(stream, stream->unsent.data + stream->sent, stream->unsent.size - stream->sent);
    if (sent < 0)
        return false;
    stream->sent += (size_t)sent;
    if (stream->sent < stream->unsent.size) {
        if (sent > 0)
            stream_block(loop, stream);
        return true;
    }
    buf_deinit(&stream->unsent);
    stream->is_blocked = false;
    stream_enter(stream, &loop->streams_checking);
    return true;
}

/* Reads a few times and leaves the stream in the list where it belongs. */
static void stream_pump(struct http_loop *loop, struct stream *stream)
{
    for (int i = 0; i < STREAM_READS_PER_TURN; i++) {
        int64_t size = stream->source.read(stream->source.context, loop->scratch, SCRATCH_SIZE);
        if (size == 0) {
            stream_enter(stream, &loop->streams_idle);
            return;
        }
        CHECK(size <= SCRATCH_SIZE);
        if (size < 0 || !stream_write(loop, stream, loop->scratch, (size_t)size)) {
            stream_close(loop, stream);
            return;
        }
        if (stream->is_blocked)
            return;
    }
    stream_enter(stream, &loop->streams_checking);
}

static void stream_on_event(struct http_loop *loop, struct http_watch *watch, uint32_t events)
{
    struct stream *stream = CONTAINER_OF(watch, struct stream, watch);
    if (events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP))
        stream_close(loop, stream);
    else if (stream->is_blocked && !stream_flush(loop, stream))
        stream_close(loop, stream);
}

static void socket_tune(int fd, int64_t idle_us)
{
    int yes = 1;
    int no = 0;
    int size = STREAM_SOCKET_SIZE;
    unsigned idle_ms = (unsigned)(idle_us / 1000);
    setsockopt(fd, IPPROTO_TCP, TCP_CORK, &no, sizeof no);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &idle_ms, sizeof idle_ms);
}

bool stream_take_over(struct http_request *request)
{
    struct http_loop *loop = request->loop;
    struct buf head;
    int fd = fcntl(request->connection->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) {
        reply_drop(request);
        return false;
    }
    struct stream *stream = calloc(1, sizeof *stream);
    CHECK(stream != NULL);
    list_init(&stream->node);
    buf_init(&stream->unsent);
    stream->watch.fd = fd;
    stream->watch.on_event = stream_on_event;
    stream->source = request->stream;
    request->has_stream = false;
    loop->stream_count++;
    gauge_add(GAUGE_STREAM_READERS, 1);
    gauge_add(GAUGE_CONNECTIONS, 1);
    stream_enter(stream, &loop->streams_checking);
    socket_tune(fd, loop->server->phase_us[PHASE_WAITING]);

    buf_init(&head);
    reply_write_head(request, request->status, "text/event-stream", -1, &head);
    bool is_open = buf_ok(&head) && stream_write(loop, stream, head.data, head.size) &&
                   loop_watch(loop, &stream->watch, EPOLLOUT | EPOLLRDHUP | EPOLLET) == ERR_OK;
    if (!is_open || loop->is_draining)
        stream_close(loop, stream);
    buf_deinit(&head);
    return true;
}

static void streams_drop_stuck(struct http_loop *loop)
{
    while (!list_empty(&loop->streams_blocked)) {
        struct stream *first = CONTAINER_OF(loop->streams_blocked.next, struct stream, node);
        if (loop->now_us - first->blocked_us < loop->server->phase_us[PHASE_WAITING])
            return;
        counter_add(COUNTER_STREAM_DROPPED, 1);
        counter_add(COUNTER_HTTP_TIMEOUTS, 1);
        stream_close(loop, first);
    }
}

void streams_turn(struct http_loop *loop)
{
    if (loop->stream_count == 0)
        return;
    bool is_due = atomic_exchange(&loop->are_streams_due, false);
    if (is_due || loop->now_us >= loop->stream_sweep_us) {
        loop->stream_sweep_us = loop->now_us + STREAM_SWEEP_MS * 1000;
        list_splice(&loop->streams_checking, &loop->streams_idle);
    }
    for (int i = 0; i < STREAM_READERS_PER_TURN && !list_empty(&loop->streams_checking); i++) {
        struct stream *stream = CONTAINER_OF(list_pop(&loop->streams_checking), struct stream, node);
        if (stream->source.ready(stream->source.context))
            stream_pump(loop, stream);
        else
            stream_enter(stream, &loop->streams_idle);
    }
    streams_drop_stuck(loop);
}

int64_t streams_next_us(const struct http_loop *loop)
{
    if (!list_empty(&loop->streams_checking))
        return loop->now_us;
    return loop->stream_count == 0 ? INT64_MAX : loop->stream_sweep_us;
}

void streams_end(struct http_loop *loop)
{
    struct list *lists[] = {&loop->streams_idle, &loop->streams_checking, &loop->streams_blocked};
    for (size_t i = 0; i < COUNT_OF(lists); i++)
        while (!list_empty(lists[i]))
            stream_close(loop, CONTAINER_OF(lists[i]->next, struct stream, node));
}

void http_streams_wake(struct http_server *server)
{
    for (int i = 0; i < server->loop_count; i++)
        if (!atomic_exchange(&server->loops[i].are_streams_due, true))
            loop_wake(&server->loops[i]);
}
