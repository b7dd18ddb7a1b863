/* SPDX-License-Identifier: Apache-2.0
 * Connections and how long each may stay in a phase.
 *
 *            accept                headers, body to come
 *   ────▶ WAITING ────────────────────▶ RECEIVING
 *            ▲                              │ body is in: the handler runs
 *            │ reply has left               ├──────────▶ DEFERRED
 *            └───────── SENDING ◀───────────┴────────────────┘
 *
 * 1. A phase is a list in order of entry and has one length for all, so only
 *    the first of each list is ever looked at.
 * 2. Bytes that trickle in do not extend WAITING or RECEIVING: the library's
 *    own timeout counts activity, which a dribbling client has for ever.
 * 3. An overdue connection is shut down, not closed: the descriptor is the
 *    library's, which notices and cleans up.
 * 4. A deferred request is never ended here: its client is told that the
 *    outcome is unknown, and the request waits on as an orphan for its resume.
 *
 * Runs on the loop's thread. */
#include <limits.h>
#include <linux/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/metrics.h"
#include "http/http_int.h"

struct http_connection *connection_of(struct MHD_Connection *mhd)
{
    return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

void connection_enter(struct http_connection *connection, enum http_phase phase)
{
    CHECK(phase < PHASE_COUNT);
    list_remove(&connection->node);
    connection->phase = phase;
    connection->since_us = connection->loop->now_us;
    connection->acked_bytes = 0;
    connection->quiet_count = 0;
    list_append(&connection->loop->phases[phase], &connection->node);
}

static void connection_doom(struct http_connection *connection)
{
    list_remove(&connection->node);
    connection->phase = PHASE_DOOMED;
    connection->linger = false;
    shutdown(connection->fd, SHUT_RDWR);
}

static struct http_connection *connection_create(struct http_loop *loop, struct MHD_Connection *mhd)
{
    struct http_connection *connection = calloc(1, sizeof *connection);
    CHECK(connection != NULL);
    list_init(&connection->node);
    connection->loop = loop;
    connection->mhd = mhd;
    connection->fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    address_format(MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr,
                   connection->peer_ip);
    connection->peer_is_loopback = address_is_loopback(connection->peer_ip);
    connection->peer_is_trusted_proxy = loop->server->trusted_proxy[0] != '\0' &&
                                        strcmp(loop->server->trusted_proxy, connection->peer_ip) == 0;
    connection_enter(connection, PHASE_WAITING);
    loop->connection_count++;
    gauge_add(GAUGE_CONNECTIONS, 1);
    return connection;
}

/* The library closes the descriptor right after this. */
static void connection_destroy(struct http_connection *connection)
{
    struct http_loop *loop = connection->loop;
    char byte;
    bool is_unread =
        connection->phase != PHASE_DOOMED && recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
    if (connection->linger || is_unread)
        linger_begin(loop, connection->fd);
    CHECK(connection->request == NULL);
    if (connection->last_answer != NULL)
        MHD_destroy_response(connection->last_answer);
    list_remove(&connection->node);
    loop->connection_count--;
    gauge_add(GAUGE_CONNECTIONS, -1);
    free(connection);
}

void connection_on_notify(void *context, struct MHD_Connection *mhd, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http_loop *loop = context;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        connection_destroy(*socket_context);
        return;
    }
    struct http_connection *connection = connection_create(loop, mhd);
    *socket_context = connection;
    /* Streams are connections the library no longer counts. */
    if (loop->connection_count + loop->stream_count > loop->connection_count_max)
        connection_doom(connection);
}

void connection_orphan(struct http_connection *connection)
{
    struct http_loop *loop = connection->loop;
    struct http_request *request = connection->request;
    CHECK(connection->phase == PHASE_DEFERRED);
    http_reply_error(request, ERR_OUTCOME_UNKNOWN);
    connection->last_answer = request->response;
    connection->last_status = request->status;
    connection->request = NULL;
    request->response = NULL;
    request->status = 0;
    request->connection = NULL;
    list_append(&loop->orphans, &request->orphan_node);
    connection_enter(connection, PHASE_SENDING);
    MHD_resume_connection(connection->mhd);
}

static bool connection_takes_bytes(struct http_connection *connection)
{
    struct tcp_info info;
    socklen_t size = sizeof info;
    memset(&info, 0, sizeof info);
    if (getsockopt(connection->fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0)
        return false;
    if (info.tcpi_bytes_acked < connection->acked_bytes + SEND_PROGRESS_MIN)
        return false;
    connection->acked_bytes = info.tcpi_bytes_acked;
    return true;
}

static void connection_judge(struct http_connection *connection)
{
    switch (connection->phase) {
    case PHASE_WAITING:
    case PHASE_RECEIVING:
        counter_add(COUNTER_HTTP_TIMEOUTS, 1);
        connection_doom(connection);
        return;
    case PHASE_DEFERRED:
        counter_add(COUNTER_HTTP_TIMEOUTS, 1);
        log_write(LOG_ERROR, "deferred request was not resumed in time", "\"request_id\":\"%s\"",
                  connection->request->id);
        connection_orphan(connection);
        return;
    case PHASE_SENDING:
        connection->quiet_count = connection_takes_bytes(connection) ? 0 : connection->quiet_count + 1;
        if (connection->quiet_count >= SEND_JUDGEMENT_COUNT) {
            counter_add(COUNTER_HTTP_TIMEOUTS, 1);
            connection_doom(connection);
            return;
        }
        connection->since_us = connection->loop->now_us;
        list_remove(&connection->node);
        list_append(&connection->loop->phases[PHASE_SENDING], &connection->node);
        return;
    default:
        CHECK(connection->phase < PHASE_COUNT);
    }
}

void connections_judge(struct http_loop *loop)
{
    for (int phase = 0; phase < PHASE_COUNT; phase++) {
        struct list *list = &loop->phases[phase];
        while (!list_empty(list)) {
            struct http_connection *first = CONTAINER_OF(list->next, struct http_connection, node);
            if (loop->now_us - first->since_us < loop->server->phase_us[phase])
                break;
            connection_judge(first);
        }
    }
}

int64_t connections_next_us(const struct http_loop *loop)
{
    int64_t next_us = INT64_MAX;
    for (int phase = 0; phase < PHASE_COUNT; phase++) {
        const struct list *list = &loop->phases[phase];
        if (list_empty(list))
            continue;
        const struct http_connection *first = CONTAINER_OF(list->next, struct http_connection, node);
        int64_t due_us = first->since_us + loop->server->phase_us[phase];
        if (due_us < next_us)
            next_us = due_us;
    }
    return next_us;
}
