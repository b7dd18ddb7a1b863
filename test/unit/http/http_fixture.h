/* SPDX-License-Identifier: Apache-2.0
 * For the tests of the HTTP edge: a client that writes raw bytes and reads
 * replies with a time limit, and the start of a server on a free port. */
#ifndef HOLDFAST_TEST_UNIT_HTTP_FIXTURE_H
#define HOLDFAST_TEST_UNIT_HTTP_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "http/http.h"

enum { CLIENT_WAIT_MS = 30000, CLIENT_BUFFER_SIZE = 256 * 1024 };

#define UNUSED __attribute__((unused))

struct client {
    int fd;
    size_t size; /* read, not yet used */
    char data[CLIENT_BUFFER_SIZE];
};

struct reply {
    int status;
    char head[4096];
    char body[65536];
    size_t body_size;
};

UNUSED static struct client *client_open(const struct http_server *server)
{
    struct client *client = calloc(1, sizeof *client);
    assert_non_null(client);
    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(client->fd >= 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(http_server_port(server))};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(client->fd, (struct sockaddr *)&to, sizeof to), 0);
    return client;
}

UNUSED static void client_close(struct client *client)
{
    close(client->fd);
    free(client);
}

/* False when the peer had closed: for most tests no failure, they look at what it said. */
UNUSED static bool client_send_n(struct client *client, const void *data, size_t size)
{
    const char *at = data;
    while (size > 0) {
        ssize_t sent = send(client->fd, at, size, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        at += sent;
        size -= (size_t)sent;
    }
    return true;
}

UNUSED static void client_send(struct client *client, const char *text)
{
    client_send_n(client, text, strlen(text));
}

/* More bytes: how many; 0: closed; −1: none in time; −2: reset. */
UNUSED static ssize_t client_fill(struct client *client, int wait_ms)
{
    struct pollfd poll_fd = {.fd = client->fd, .events = POLLIN};
    if (poll(&poll_fd, 1, wait_ms) <= 0)
        return -1;
    ssize_t got = recv(client->fd, client->data + client->size, sizeof client->data - 1 - client->size, 0);
    if (got < 0)
        return -2;
    client->size += (size_t)got;
    client->data[client->size] = '\0';
    return got;
}

UNUSED static const char *reply_header(const struct reply *reply, const char *name)
{
    static char value[1024];
    size_t length = strlen(name);
    for (const char *line = strstr(reply->head, "\r\n"); line != NULL; line = strstr(line + 2, "\r\n")) {
        if (strncasecmp(line + 2, name, length) != 0 || line[2 + length] != ':')
            continue;
        const char *from = line + 2 + length + 1;
        while (*from == ' ')
            from++;
        size_t size = strcspn(from, "\r\n");
        assert_true(size < sizeof value);
        memcpy(value, from, size);
        value[size] = '\0';
        return value;
    }
    return NULL;
}

/* False: the connection ended, or nothing came in time. */
UNUSED static bool client_read_head(struct client *client, struct reply *reply)
{
    memset(reply, 0, sizeof *reply);
    const char *end;
    while (client->size == 0 || (end = strstr(client->data, "\r\n\r\n")) == NULL)
        if (client_fill(client, CLIENT_WAIT_MS) <= 0)
            return false;
    size_t size = (size_t)(end - client->data) + 4;
    assert_true(size < sizeof reply->head);
    memcpy(reply->head, client->data, size - 2);
    client->size -= size;
    memmove(client->data, client->data + size, client->size + 1);
    assert_int_equal(sscanf(reply->head, "HTTP/1.1 %d", &reply->status), 1);
    return true;
}

UNUSED static bool client_read(struct client *client, struct reply *reply)
{
    if (!client_read_head(client, reply))
        return false;
    const char *length = reply_header(reply, "Content-Length");
    reply->body_size = length == NULL ? 0 : (size_t)atoi(length);
    assert_true(reply->body_size < sizeof reply->body);
    while (client->size < reply->body_size)
        if (client_fill(client, CLIENT_WAIT_MS) <= 0)
            return false;
    memcpy(reply->body, client->data, reply->body_size);
    client->size -= reply->body_size;
    memmove(client->data, client->data + reply->body_size, client->size + 1);
    return true;
}

UNUSED static int client_ask(struct client *client, struct reply *reply, const char *request)
{
    client_send(client, request);
    assert_true(client_read(client, reply));
    return reply->status;
}

/* True when the peer closes in time; bytes that still come are thrown away. */
UNUSED static bool client_sees_close(struct client *client, int wait_ms)
{
    int64_t until_us = clock_monotonic_us() + (int64_t)wait_ms * 1000;
    for (;;) {
        int64_t left_ms = (until_us - clock_monotonic_us()) / 1000;
        if (left_ms <= 0)
            return false;
        client->size = 0;
        ssize_t got = client_fill(client, (int)left_ms);
        if (got == 0 || got == -2)
            return true;
    }
}

UNUSED static void write_error(struct http_request *request, enum err err, struct buf *out)
{
    buf_printf(out, "{\"error\":{\"code\":\"%s\",\"request_id\":\"%s\"}}", err_code(err),
               http_request_id(request));
}

UNUSED static struct http_server *server_start(struct http_config config, const struct http_route *routes,
                                               size_t count)
{
    struct http_server *server = NULL;
    char why[256] = "";
    config.address = "127.0.0.1";
    config.routes = routes;
    config.route_count = count;
    config.write_error = write_error;
    if (config.loop_count == 0)
        config.loop_count = 1;
    if (http_server_start(&config, &server, why, sizeof why) != ERR_OK)
        fail_msg("%s", why);
    return server;
}

/* Waits for a condition, with a limit. */
#define WAIT_UNTIL(condition)                                                                                \
    do {                                                                                                     \
        int64_t wait_until_us = clock_monotonic_us() + CLIENT_WAIT_MS * 1000;                                \
        while (!(condition)) {                                                                               \
            if (clock_monotonic_us() > wait_until_us)                                                        \
                fail_msg("%s did not come about", #condition);                                               \
            usleep(1000);                                                                                    \
        }                                                                                                    \
    } while (0)

#endif
