/* SPDX-License-Identifier: Apache-2.0
 * The loop: one thread, one daemon of the library, driven from outside.
 *
 * The library's own epoll thread waits for ever when exactly as many events
 * arrive as it takes at once. Here it never waits: we poll its epoll
 * descriptor beside our own and only ever call MHD_run(), which does not block.
 *
 * One turn, in this order:
 *   1. wait for sockets, resumed requests, streams' sockets or the next deadline
 *   2. resumed requests: all of them, rendered, their connections let go
 *   3. events of sockets that are ours (streams, lingering ones, the wake-up)
 *   4. MHD_run(): accepts, reads, handlers, the answers of step 2
 *   5. streams, a few; deadlines; the drain, once asked to stop
 *
 * 1. A thousand resumes cost one wake-up: the queue is taken as a whole.
 * 2. Whatever MHD_run() left undone is seen again at once: its descriptor
 *    stays readable or MHD_get_timeout() says zero.
 * 3. Stopping: no new connections, streams end, deferred requests get their
 *    answer until the drain's end; then their clients are told that the
 *    outcome is unknown, and only the requests' memory outlives the loop. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "http/http_int.h"

enum { WATCH_EVENT_COUNT = 256 };

/* ---- Setting up ---- */

/* The router and http_query() decode for themselves: after splitting, not before. */
static size_t leave_escaped(void *context, struct MHD_Connection *mhd, char *text)
{
    (void)context;
    (void)mhd;
    size_t length = 0;
    while (text[length] != '\0')
        length++;
    return length;
}

static void wake_on_event(struct http_loop *loop, struct http_watch *watch, uint32_t events)
{
    uint64_t count;
    (void)loop;
    (void)events;
    (void)!read(watch->fd, &count, sizeof count);
}

enum err loop_watch(struct http_loop *loop, struct http_watch *watch, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};
    return epoll_ctl(loop->watch_epoll_fd, EPOLL_CTL_ADD, watch->fd, &event) == 0 ? ERR_OK : ERR_INTERNAL;
}

/* No timeouts of the library's: see connection.c. */
static struct MHD_Daemon *daemon_start(struct http_loop *loop)
{
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_TURBO;
    struct MHD_OptionItem options[] = {
        {MHD_OPTION_LISTEN_SOCKET, loop->listen_fd, NULL},
        {MHD_OPTION_CONNECTION_LIMIT, (intptr_t)loop->connection_count_max, NULL},
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY, NULL},
        {MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL},
        {MHD_OPTION_UNESCAPE_CALLBACK, (intptr_t)&leave_escaped, NULL},
        {MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)&exchange_on_completed, loop},
        {MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)&connection_on_notify, loop},
        {MHD_OPTION_END, 0, NULL},
    };
    return MHD_start_daemon(flags, 0, NULL, NULL, exchange_on_access, loop, MHD_OPTION_ARRAY, options,
                            MHD_OPTION_END);
}

enum err loop_init(struct http_loop *loop, struct http_server *server, int listen_fd)
{
    loop->server = server;
    loop->listen_fd = -1;
    loop->wake.fd = -1;
    loop->resumed.fd = -1;
    loop->wake.on_event = wake_on_event;
    loop->connection_count_max = server->connection_count_max / (size_t)server->loop_count;
    for (int phase = 0; phase < PHASE_COUNT; phase++)
        list_init(&loop->phases[phase]);
    struct list *lists[] = {&loop->orphans,          &loop->spare,
                            &loop->lingering,        &loop->streams_idle,
                            &loop->streams_checking, &loop->streams_blocked};
    for (size_t i = 0; i < COUNT_OF(lists); i++)
        list_init(lists[i]);
    rng_init_system(&loop->rng);
    loop->now_us = clock_monotonic_us();
    loop->scratch = malloc(SCRATCH_SIZE);
    CHECK(loop->scratch != NULL);

    loop->watch_epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->wake.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (loop->watch_epoll_fd < 0 || loop->wake.fd < 0)
        goto fail;
    if (loop_watch(loop, &loop->wake, EPOLLIN) != ERR_OK)
        goto fail;
    if (queue_init(&loop->resumed, SIZE_MAX) != ERR_OK)
        goto fail;
    loop->listen_fd = fcntl(listen_fd, F_DUPFD_CLOEXEC, 0);
    if (loop->listen_fd < 0)
        goto fail;
    loop->daemon = daemon_start(loop);
    if (loop->daemon == NULL)
        goto fail;
    loop->mhd_epoll_fd = MHD_get_daemon_info(loop->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    return ERR_OK;

fail:
    loop_deinit(loop);
    return ERR_LISTEN;
}

void loop_deinit(struct http_loop *loop)
{
    if (loop->daemon != NULL)
        MHD_stop_daemon(loop->daemon); /* closes listen_fd, unless it was quiesced */
    else if (loop->listen_fd >= 0)
        close(loop->listen_fd);
    loop->daemon = NULL;
    linger_end(loop);
    for (struct list *node; (node = list_pop(&loop->spare)) != NULL;)
        request_destroy(CONTAINER_OF(node, struct http_request, node));
    if (loop->resumed.fd >= 0)
        queue_deinit(&loop->resumed);
    if (loop->wake.fd >= 0)
        close(loop->wake.fd);
    if (loop->watch_epoll_fd >= 0)
        close(loop->watch_epoll_fd);
    free(loop->scratch);
}

void loop_wake(struct http_loop *loop)
{
    uint64_t one = 1;
    while (write(loop->wake.fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

/* ---- A turn ---- */

static int loop_poll_ms(struct http_loop *loop)
{
    MHD_UNSIGNED_LONG_LONG mhd_ms;
    if (MHD_get_timeout(loop->daemon, &mhd_ms) == MHD_YES && mhd_ms == 0)
        return 0;
    int64_t next_us = loop->now_us + POLL_MS_MAX * 1000;
    int64_t others[] = {connections_next_us(loop), streams_next_us(loop), linger_next_us(loop),
                        loop->is_draining ? loop->drain_until_us : INT64_MAX};
    for (size_t i = 0; i < COUNT_OF(others); i++)
        if (others[i] < next_us)
            next_us = others[i];
    if (next_us <= loop->now_us)
        return 0;
    int64_t left_us = next_us - clock_monotonic_us();
    return left_us <= 0 ? 0 : (int)((left_us + 999) / 1000);
}

static void loop_take_resumed(struct http_loop *loop)
{
    struct list resumed;
    list_init(&resumed);
    queue_take(&loop->resumed, &resumed);
    for (struct list *node; (node = list_pop(&resumed)) != NULL;)
        exchange_resume(CONTAINER_OF(node, struct http_request, node));
}

static void loop_handle_watches(struct http_loop *loop)
{
    struct epoll_event events[WATCH_EVENT_COUNT];
    int count = epoll_wait(loop->watch_epoll_fd, events, WATCH_EVENT_COUNT, 0);
    for (int i = 0; i < count; i++) {
        struct http_watch *watch = events[i].data.ptr;
        watch->on_event(loop, watch, events[i].events);
    }
}

static void loop_turn(struct http_loop *loop)
{
    struct pollfd fds[] = {
        {.fd = loop->mhd_epoll_fd, .events = POLLIN},
        {.fd = loop->resumed.fd, .events = POLLIN},
        {.fd = loop->watch_epoll_fd, .events = POLLIN},
    };
    int count = poll(fds, COUNT_OF(fds), loop_poll_ms(loop));
    loop->now_us = clock_monotonic_us();
    if (count > 0 && fds[1].revents != 0)
        loop_take_resumed(loop);
    if (count > 0 && fds[2].revents != 0)
        loop_handle_watches(loop);
    MHD_run(loop->daemon);
    streams_turn(loop);
    connections_judge(loop);
    linger_sweep(loop);
}

/* ---- Stopping ---- */

static void loop_begin_drain(struct http_loop *loop)
{
    loop->is_draining = true;
    loop->drain_until_us = loop->now_us + loop->server->drain_us;
    if (MHD_quiesce_daemon(loop->daemon) >= 0)
        close(loop->listen_fd);
    loop->listen_fd = -1;
    streams_end(loop);
}

static void loop_orphan_deferred(struct http_loop *loop)
{
    LIST_FOR_EACH_SAFE(node, &loop->phases[PHASE_DEFERRED]) {
        struct http_connection *connection = CONTAINER_OF(node, struct http_connection, node);
        log_write(LOG_WARN, "request still deferred at the end of the drain", "\"request_id\":\"%s\"",
                  connection->request->id);
        connection_orphan(connection);
    }
}

/* True when nothing is left to wait for. */
static bool loop_drain(struct http_loop *loop)
{
    bool is_answering =
        !list_empty(&loop->phases[PHASE_RECEIVING]) || !list_empty(&loop->phases[PHASE_SENDING]);
    bool is_deferring = !list_empty(&loop->phases[PHASE_DEFERRED]) || !list_empty(&loop->orphans);
    if (!is_answering && (!is_deferring || loop->is_drain_over))
        return true;
    if (loop->now_us < loop->drain_until_us)
        return false;
    if (loop->is_drain_over)
        return true;
    loop->is_drain_over = true;
    loop->drain_until_us = loop->now_us + DRAIN_SEND_MS * 1000;
    loop_orphan_deferred(loop);
    return false;
}

/* Leaves orphans to their resumers, but for those that are on their way here already. */
static void loop_abandon_orphans(struct http_loop *loop)
{
    while (!list_empty(&loop->orphans)) {
        struct list orphans;
        list_init(&orphans);
        list_splice(&orphans, &loop->orphans);
        for (struct list *node; (node = list_pop(&orphans)) != NULL;) {
            struct http_request *request = CONTAINER_OF(node, struct http_request, orphan_node);
            int expected = DEFERRAL_PENDING;
            if (!atomic_compare_exchange_strong(&request->deferral, &expected, DEFERRAL_ABANDONED))
                list_append(&loop->orphans, &request->orphan_node);
        }
        loop_take_resumed(loop);
        sched_yield();
    }
    while (atomic_load(&loop->resuming_count) > 0)
        sched_yield();
}

static void *loop_main(void *context)
{
    struct http_loop *loop = context;
    for (;;) {
        loop_turn(loop);
        if (!atomic_load(&loop->is_stopping))
            continue;
        if (!loop->is_draining)
            loop_begin_drain(loop);
        if (loop_drain(loop))
            break;
    }
    loop->is_drain_over = true;
    loop_orphan_deferred(loop); /* what came in since */
    loop_abandon_orphans(loop);
    return NULL;
}

enum err loop_start(struct http_loop *loop)
{
    char name[16];
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the main thread */
    int failure = pthread_create(&loop->thread, NULL, loop_main, loop);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failure != 0)
        return ERR_INTERNAL;
    snprintf(name, sizeof name, "http-%d", (int)(loop - loop->server->loops));
    pthread_setname_np(loop->thread, name);
    return ERR_OK;
}
