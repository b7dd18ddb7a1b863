/* SPDX-License-Identifier: Apache-2.0
 * Closing on a client that is still sending.
 *
 * A socket closed with bytes unread resets the connection, and the reset may
 * overtake the answer: a client that was refused in the middle of its upload
 * would see a broken pipe instead of 413. So a copy of the descriptor stays
 * behind for a moment, says that nothing more will come, and throws away what
 * arrives until the client closes.
 *
 * 1. Bounded in number, time and bytes; past any bound it is simply closed.
 * 2. Runs on the loop's thread. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/http_int.h"

struct linger_socket {
    struct list node; /* of loop->lingering, oldest first */
    struct http_watch watch;
    int64_t until_us;
    size_t size; /* thrown away so far */
};

static void linger_close(struct http_loop *loop, struct linger_socket *lingering)
{
    list_remove(&lingering->node);
    loop->linger_count--;
    close(lingering->watch.fd);
    free(lingering);
}

static void linger_on_event(struct http_loop *loop, struct http_watch *watch, uint32_t events)
{
    struct linger_socket *lingering = CONTAINER_OF(watch, struct linger_socket, watch);
    (void)events;
    ssize_t got = recv(watch->fd, loop->scratch, SCRATCH_SIZE, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0) {
        lingering->size += (size_t)got;
        if (lingering->size < LINGER_SIZE_MAX)
            return;
    }
    linger_close(loop, lingering);
}

void linger_begin(struct http_loop *loop, int fd)
{
    if (loop->linger_count >= LINGER_COUNT_MAX || loop->is_drain_over)
        return;
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0)
        return;
    struct linger_socket *lingering = calloc(1, sizeof *lingering);
    CHECK(lingering != NULL);
    lingering->watch.fd = copy;
    lingering->watch.on_event = linger_on_event;
    lingering->until_us = loop->now_us + LINGER_MS * 1000;
    list_append(&loop->lingering, &lingering->node);
    loop->linger_count++;
    shutdown(copy, SHUT_WR);
    if (loop_watch(loop, &lingering->watch, EPOLLIN | EPOLLRDHUP) != ERR_OK)
        linger_close(loop, lingering);
}

void linger_sweep(struct http_loop *loop)
{
    while (!list_empty(&loop->lingering)) {
        struct linger_socket *first = CONTAINER_OF(loop->lingering.next, struct linger_socket, node);
        if (loop->now_us < first->until_us)
            return;
        linger_close(loop, first);
    }
}

void linger_end(struct http_loop *loop)
{
    while (!list_empty(&loop->lingering))
        linger_close(loop, CONTAINER_OF(loop->lingering.next, struct linger_socket, node));
}

int64_t linger_next_us(const struct http_loop *loop)
{
    if (list_empty(&loop->lingering))
        return INT64_MAX;
    return CONTAINER_OF(loop->lingering.next, struct linger_socket, node)->until_us;
}
