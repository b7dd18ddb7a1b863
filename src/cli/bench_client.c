/* SPDX-License-Identifier: Apache-2.0
 * Load: N keep-alive connections on one epoll loop, each with at most one
 * request under way, each request for a seat that nobody asked for before.
 *
 * It shares the cores with the server it measures, so it does as little as
 * possible: a connection's request is made once, and only the two ids in its
 * first line change; an answer costs one recv() and one send().
 *
 * Invariants: (1) Without a rate, a connection has exactly one request under way
 * until time or seats run out. (2) With a rate, requests are due at even
 * intervals whatever the server does; one that finds no idle connection is sent
 * when there is one. Connections take turns, so all of them are in use.
 * (3) Latency is from when the request was due (without a rate: from before
 * send()) to after the answer's last byte: a server that stalls cannot hide the
 * requests that were not sent meanwhile. (4) Requests still under way at the
 * end are waited for but not counted. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/bench.h"

enum {
    ANSWER_SIZE = 8192,
    EVENT_COUNT = 512,
    DRAIN_US = 5000000,
    EVENT_OFFSET = 17,                              /* in "POST /api/events/" */
    SEAT_OFFSET = EVENT_OFFSET + BENCH_ID_SIZE + 7, /* then "/seats/" */
    FAILURE_COUNT_MAX = 1000,
};

struct connection {
    int fd;
    char *request;
    size_t request_size;
    size_t sent;
    int64_t due_us;
    const struct bench_seat *seat;
    struct connection *next_idle;
    bool waiting; /* for an answer */
    size_t answer_size;
    char answer[ANSWER_SIZE];
};

struct bench_loop {
    const struct bench_load *load;
    struct bench_result *result;
    struct connection *connections;
    struct connection *idle_first, *idle_last; /* with a rate: who has waited longest goes first */
    struct bench_readers *readers;             /* NULL: none */
    int epoll_fd;
    int64_t seat_next;
    int64_t begun_us;
    int64_t due_count; /* with a rate: requests sent */
    int waiting_count;
    bool counting;
};

/* ---- One connection ---- */

int bench_connect(const struct bench_load *load)
{
    struct sockaddr_storage address = {0};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address;
    socklen_t size = sizeof *v4;
    int on = 1;

    if (inet_pton(AF_INET, load->host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(load->port);
    } else if (inet_pton(AF_INET6, load->host, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(load->port);
        size = sizeof *v6;
    } else {
        errno = EINVAL;
        return -1;
    }
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd, (struct sockaddr *)&address, size) != 0 || fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool connection_open(struct bench_loop *loop, struct connection *connection)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};

    connection->fd = bench_connect(loop->load);
    if (connection->fd < 0)
        return false;
    connection->waiting = false;
    connection->answer_size = 0;
    return epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, connection->fd, &event) == 0;
}

static void make_request(struct connection *connection, const struct bench_load *load, const char *token)
{
    static const char blank[] = "00000000-0000-0000-0000-000000000000";
    int length = asprintf(&connection->request,
                          "POST /api/events/%s/seats/%s/reserve HTTP/1.1\r\nHost: %s\r\n"
                          "Authorization: Bearer %s\r\nContent-Length: 0\r\n\r\n",
                          blank, blank, load->host, token);

    CHECK(length > 0);
    connection->request_size = (size_t)length;
}

/* ---- Asking ---- */

static void wait_writable(struct bench_loop *loop, struct connection *connection, bool writable)
{
    struct epoll_event event = {.events = EPOLLIN | (writable ? EPOLLOUT : 0u), .data.ptr = connection};
    epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, connection->fd, &event);
}

/* False if the connection is broken. */
static bool send_rest(struct bench_loop *loop, struct connection *connection)
{
    bool was_short = connection->sent > 0;

    while (connection->sent < connection->request_size) {
        ssize_t count = send(connection->fd, connection->request + connection->sent,
                             connection->request_size - connection->sent, MSG_NOSIGNAL);
        if (count < 0 && errno == EAGAIN) {
            wait_writable(loop, connection, true);
            return true;
        }
        if (count < 0)
            return false;
        connection->sent += (size_t)count;
    }
    if (was_short)
        wait_writable(loop, connection, false);
    return true;
}

static bool send_next(struct bench_loop *loop, struct connection *connection, int64_t due_us)
{
    const struct bench_load *load = loop->load;
    const struct bench_seat *seat = &load->seats[loop->seat_next++];
    memcpy(connection->request + EVENT_OFFSET, load->events[seat->event], BENCH_ID_SIZE);
    memcpy(connection->request + SEAT_OFFSET, seat->id, BENCH_ID_SIZE);
    connection->sent = 0;
    connection->answer_size = 0;
    connection->waiting = true;
    loop->waiting_count++;
    connection->due_us = due_us;
    connection->seat = seat;
    if (loop->readers != NULL)
        bench_readers_asked(loop->readers, seat, due_us);
    return send_rest(loop, connection);
}

static bool may_ask(const struct bench_loop *loop)
{
    return loop->counting && loop->seat_next < loop->load->seat_count;
}

static void make_idle(struct bench_loop *loop, struct connection *connection)
{
    connection->next_idle = NULL;
    if (loop->idle_first == NULL)
        loop->idle_first = connection;
    else
        loop->idle_last->next_idle = connection;
    loop->idle_last = connection;
}

/* For a connection without a request under way. False if it is broken. */
static bool go_on(struct bench_loop *loop, struct connection *connection)
{
    if (loop->load->rate == 0)
        return !may_ask(loop) || send_next(loop, connection, clock_monotonic_us());
    make_idle(loop, connection);
    return true;
}

/* ---- Being answered ---- */

/* Size of the whole answer if its head is complete, 0 if more is needed. */
static size_t answer_whole_size(struct connection *connection)
{
    connection->answer[connection->answer_size] = '\0';
    const char *end = strstr(connection->answer, "\r\n\r\n");
    if (end == NULL)
        return 0;
    const char *length = strcasestr(connection->answer, "\r\nContent-Length:");
    size_t body_size = length != NULL && length < end ? strtoul(length + 17, NULL, 10) : 0;
    return (size_t)(end - connection->answer) + 4 + body_size;
}

static void count_answer(struct bench_loop *loop, const struct connection *connection, int64_t now_us)
{
    struct bench_result *result = loop->result;
    int status = atoi(connection->answer + 9);
    int64_t latency_us = now_us - connection->due_us;

    if (status == 201 && loop->readers != NULL)
        bench_readers_held(loop->readers, connection->seat);
    if (!loop->counting)
        return;
    if (status == 201)
        result->held_count++;
    else if (status >= 500)
        result->failed_count++;
    else
        result->refused_count++;
    if (status != 201 && result->status_example == 0)
        result->status_example = status;
    bench_steps_add(result->latencies, latency_us);
    if (latency_us > result->latency_max_us)
        result->latency_max_us = latency_us;
}

/* False if the connection is broken. */
static bool on_readable(struct bench_loop *loop, struct connection *connection)
{
    ssize_t count = recv(connection->fd, connection->answer + connection->answer_size,
                         ANSWER_SIZE - 1 - connection->answer_size, 0);

    if (count < 0 && errno == EAGAIN)
        return true;
    if (count <= 0 || !connection->waiting)
        return false;
    connection->answer_size += (size_t)count;
    size_t whole = answer_whole_size(connection);
    if (whole > ANSWER_SIZE - 1)
        return false;
    if (whole == 0 || connection->answer_size < whole)
        return connection->answer_size < ANSWER_SIZE - 1;
    connection->waiting = false;
    loop->waiting_count--;
    count_answer(loop, connection, clock_monotonic_us());
    return go_on(loop, connection);
}

/* Counts the loss and goes on with a new connection. */
static bool replace_connection(struct bench_loop *loop, struct connection *connection)
{
    bool was_idle = loop->load->rate > 0 && !connection->waiting; /* and is in that list already */

    if (connection->waiting)
        loop->waiting_count--;
    close(connection->fd);
    connection->fd = -1;
    connection->waiting = false;
    if (!loop->counting)
        return true;
    loop->result->failed_count++;
    return loop->result->failed_count < FAILURE_COUNT_MAX && connection_open(loop, connection) &&
           (was_idle || go_on(loop, connection));
}

/* ---- The loop ---- */

/* With a rate: sends what is due, as far as there are connections. False if the server breaks too many. */
static bool send_due(struct bench_loop *loop)
{
    while (may_ask(loop) && loop->idle_first != NULL) {
        int64_t due_us = loop->begun_us + loop->due_count * 1000000 / loop->load->rate;
        if (due_us > clock_monotonic_us())
            break;
        struct connection *connection = loop->idle_first;
        loop->idle_first = connection->next_idle;
        loop->due_count++;
        if (!send_next(loop, connection, due_us) && !replace_connection(loop, connection))
            return false;
    }
    return true;
}

/* Until then, or until there is nothing to wait for: no request under way, and none to come. */
static bool run_until(struct bench_loop *loop, int64_t end_us)
{
    struct epoll_event events[EVENT_COUNT];
    bool paced = loop->load->rate > 0;

    while (clock_monotonic_us() < end_us && (loop->waiting_count > 0 || (paced && may_ask(loop)))) {
        if (paced && !send_due(loop))
            return false;
        int count = epoll_wait(loop->epoll_fd, events, EVENT_COUNT, paced ? 1 : 100);
        for (int i = 0; i < count; i++) {
            struct connection *connection = events[i].data.ptr;
            bool good = true;
            if (connection == NULL) {
                bench_readers_turn(loop->readers);
                continue;
            }
            if (events[i].events & EPOLLOUT)
                good = send_rest(loop, connection);
            if (good && events[i].events & ~(uint32_t)EPOLLOUT)
                good = on_readable(loop, connection);
            if (!good && !replace_connection(loop, connection))
                return false;
        }
    }
    return true;
}

/* Streams have a poll of their own, which is one more descriptor of ours. */
static bool open_readers(struct bench_loop *loop, char *why, size_t why_size)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};

    if (loop->load->reader_count == 0)
        return true;
    loop->readers = bench_readers_open(loop->load, why, why_size);
    return loop->readers != NULL &&
           epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, bench_readers_fd(loop->readers), &event) == 0;
}

bool bench_drive(const struct bench_load *load, struct bench_result *result, char *why, size_t why_size)
{
    struct bench_loop loop = {.load = load, .result = result, .counting = true};
    bool good = false;

    result->latencies = calloc(BENCH_LATENCY_STEP_COUNT + 1, sizeof *result->latencies);
    loop.connections = calloc((size_t)load->connection_count, sizeof *loop.connections);
    loop.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    CHECK(result->latencies != NULL && loop.connections != NULL);
    for (int i = 0; i < load->connection_count; i++)
        loop.connections[i].fd = -1;
    for (int i = 0; i < load->connection_count; i++) {
        make_request(&loop.connections[i], load, load->tokens[i]);
        if (!connection_open(&loop, &loop.connections[i])) {
            snprintf(why, why_size, "connection %d to port %u could not be made: %s", i + 1,
                     (unsigned)load->port, strerror(errno));
            goto done;
        }
    }
    if (!open_readers(&loop, why, why_size))
        goto done;
    loop.begun_us = clock_monotonic_us();
    good = true;
    for (int i = 0; i < load->connection_count && good; i++)
        good = go_on(&loop, &loop.connections[i]);
    good = good && run_until(&loop, loop.begun_us + load->seconds * 1000000);
    result->elapsed_us = clock_monotonic_us() - loop.begun_us;
    result->seats_ran_out = loop.seat_next == load->seat_count;
    loop.counting = false;
    if (!good)
        snprintf(why, why_size, "the server breaks connections: %lld were lost",
                 (long long)result->failed_count);
    else if (run_until(&loop, clock_monotonic_us() + DRAIN_US) && loop.waiting_count > 0)
        result->failed_count += loop.waiting_count;
    if (good && loop.readers != NULL)
        result->lag = bench_readers_finish(loop.readers);
done:
    bench_readers_close(loop.readers);
    for (int i = 0; i < load->connection_count; i++) {
        if (loop.connections[i].fd >= 0)
            close(loop.connections[i].fd);
        free(loop.connections[i].request);
    }
    close(loop.epoll_fd);
    free(loop.connections);
    return good;
}
