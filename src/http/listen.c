/* SPDX-License-Identifier: Apache-2.0
 * The one listening socket, and how many descriptors may come of it.
 *
 * All loops accept from the same socket: a loop that is busy or full leaves
 * connections to the others, and a port that some other program has is always
 * refused, which SO_REUSEPORT would not guarantee. Runs once, at start. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/http_int.h"

enum { LISTEN_BACKLOG = 4096 };

static bool address_parse(const char *text, uint16_t port, struct sockaddr_storage *out, socklen_t *size)
{
    memset(out, 0, sizeof *out);
    struct sockaddr_in *ipv4 = (struct sockaddr_in *)out;
    struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)out;
    if (inet_pton(AF_INET, text, &ipv4->sin_addr) == 1) {
        ipv4->sin_family = AF_INET;
        ipv4->sin_port = htons(port);
        *size = sizeof *ipv4;
        return true;
    }
    if (inet_pton(AF_INET6, text, &ipv6->sin6_addr) == 1) {
        ipv6->sin6_family = AF_INET6;
        ipv6->sin6_port = htons(port);
        *size = sizeof *ipv6;
        return true;
    }
    return false;
}

static uint16_t socket_port(int fd)
{
    struct sockaddr_storage bound;
    socklen_t size = sizeof bound;
    if (getsockname(fd, (struct sockaddr *)&bound, &size) != 0)
        return 0;
    if (bound.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)&bound)->sin6_port);
    return ntohs(((struct sockaddr_in *)&bound)->sin_port);
}

static void describe(const char *address, uint16_t port, int error, char *why, size_t why_size)
{
    const char *colon = strchr(address, ':');
    const char *left = colon != NULL ? "[" : "";
    const char *right = colon != NULL ? "]" : "";
    switch (error) {
    case EADDRINUSE:
        snprintf(why, why_size, "Port %u of %s%s%s is in use by another program.", port, left, address,
                 right);
        return;
    case EACCES:
        snprintf(why, why_size, "Port %u of %s%s%s may only be used by a privileged user.", port, left,
                 address, right);
        return;
    case EADDRNOTAVAIL:
        snprintf(why, why_size, "%s is not an address of this machine.", address);
        return;
    default:
        snprintf(why, why_size, "Cannot listen on %s%s%s:%u: %s.", left, address, right, port,
                 strerror(error));
        return;
    }
}

enum err listen_open(const char *address, uint16_t *port, int *out, char *why, size_t why_size)
{
    struct sockaddr_storage wanted;
    socklen_t size;
    *out = -1;
    if (!address_parse(address, *port, &wanted, &size)) {
        snprintf(why, why_size, "\"%.64s\" is not an IP address to listen on.", address);
        return ERR_LISTEN;
    }
    int yes = 1;
    int fd = socket(wanted.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        goto fail;
    /* So that a restart need not wait for old connections; it does not let two programs listen. */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0)
        goto fail;
    if (bind(fd, (struct sockaddr *)&wanted, size) != 0)
        goto fail;
    if (listen(fd, LISTEN_BACKLOG) != 0)
        goto fail;
    *port = socket_port(fd);
    *out = fd;
    return ERR_OK;

fail:
    describe(address, *port, errno, why, why_size);
    if (fd >= 0)
        close(fd);
    return ERR_LISTEN;
}

size_t listen_raise_file_limit(size_t wanted)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return wanted;
    rlim_t needed = (rlim_t)wanted + FILE_RESERVE_COUNT;
    if (limit.rlim_cur < needed) {
        struct rlimit raised = limit;
        raised.rlim_cur = limit.rlim_max < needed ? limit.rlim_max : needed;
        if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
            limit = raised;
    }
    if (limit.rlim_cur >= needed)
        return wanted;
    return limit.rlim_cur > 2 * FILE_RESERVE_COUNT ? (size_t)limit.rlim_cur - FILE_RESERVE_COUNT
                                                   : FILE_RESERVE_COUNT;
}
