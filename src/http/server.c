/* SPDX-License-Identifier: Apache-2.0
 * Starting and stopping the HTTP edge. A server is a listening socket, a
 * router and one to eight loops; it has no thread of its own.
 *
 * 1. Either everything runs or nothing is left: a failed start undoes itself.
 * 2. Stopping asks all loops at once and waits for all; memory goes last. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "http/http_int.h"

static int64_t seconds_us(int seconds, int otherwise)
{
    return (int64_t)(seconds > 0 ? seconds : otherwise) * 1000000;
}

static void server_init(struct http_server *server, const struct http_config *config)
{
    server->config = *config;
    server->port = config->port;
    server->loop_count = config->loop_count;
    server->router = router_create(config->routes, config->route_count);
    server->connection_count_max = listen_raise_file_limit(CONNECTION_COUNT_MAX);

    int64_t idle_us = seconds_us(config->idle_seconds, CONNECTION_IDLE_SECONDS);
    server->phase_us[PHASE_WAITING] = idle_us;
    server->phase_us[PHASE_RECEIVING] = seconds_us(config->receive_seconds, REQUEST_RECEIVE_SECONDS);
    server->phase_us[PHASE_DEFERRED] = seconds_us(config->defer_seconds, PAYMENT_WAIT_MS_MAX / 1000 + 20);
    server->phase_us[PHASE_SENDING] = idle_us / SEND_JUDGEMENT_COUNT;
}

static bool server_set_proxy(struct http_server *server, char *why, size_t why_size)
{
    const char *proxy = server->config.trusted_proxy;
    if (proxy == NULL || proxy[0] == '\0')
        return true;
    if (address_normalize(proxy, strlen(proxy), server->trusted_proxy))
        return true;
    snprintf(why, why_size, "The trusted proxy \"%.64s\" is not an IP address.", proxy);
    return false;
}

/* Ends the first `running` loops, of `made` that were set up. */
static void server_end(struct http_server *server, int made, int running)
{
    for (int i = 0; i < running; i++) {
        atomic_store(&server->loops[i].is_stopping, true);
        loop_wake(&server->loops[i]);
    }
    for (int i = 0; i < running; i++)
        pthread_join(server->loops[i].thread, NULL);
    for (int i = 0; i < made; i++)
        loop_deinit(&server->loops[i]);
    router_destroy(server->router);
    free(server);
}

enum err http_server_start(const struct http_config *config, struct http_server **out, char *why,
                           size_t why_size)
{
    CHECK(config->loop_count >= 1);
    CHECK(config->loop_count <= LOOP_COUNT_MAX);
    CHECK(config->write_error != NULL);
    int listen_fd = -1;
    int made = 0;
    int running = 0;
    *out = NULL;
    struct http_server *server = calloc(1, sizeof *server);
    CHECK(server != NULL);
    server_init(server, config);

    if (!server_set_proxy(server, why, why_size))
        goto fail;
    if (listen_open(config->address, &server->port, &listen_fd, why, why_size) != ERR_OK)
        goto fail;
    snprintf(why, why_size, "The HTTP loops could not be started: no descriptors or threads are left.");
    for (; made < server->loop_count; made++)
        if (loop_init(&server->loops[made], server, listen_fd) != ERR_OK)
            goto fail;
    for (; running < server->loop_count; running++)
        if (loop_start(&server->loops[running]) != ERR_OK)
            goto fail;
    close(listen_fd); /* each loop has its copy */
    why[0] = '\0';
    *out = server;
    return ERR_OK;

fail:
    if (listen_fd >= 0)
        close(listen_fd);
    server_end(server, made, running);
    return ERR_LISTEN;
}

uint16_t http_server_port(const struct http_server *server)
{
    return server->port;
}

void http_server_stop(struct http_server *server, int64_t drain_ms)
{
    server->drain_us = drain_ms * 1000;
    server_end(server, server->loop_count, server->loop_count);
}
