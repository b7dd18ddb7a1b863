/* SPDX-License-Identifier: Apache-2.0
 * A stream socket that never waits: TCP, unix, or TLS over TCP. */
#ifndef HOLDFAST_WARM_SOCKET_H
#define HOLDFAST_WARM_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/err.h"
#include "warm/url.h"

struct tls; /* opaque: whom to trust, for one address; NULL where there is no TLS */

/* An error: the file of authorities cannot be read; `why` says so. */
enum err tls_create(const struct address *address, struct tls **out, char *why, size_t why_size) MUST_CHECK;
void tls_destroy(struct tls *tls); /* NULL is fine */

enum socket_state { SOCKET_CLOSED, SOCKET_CONNECTING, SOCKET_GREETING, SOCKET_OPEN };

struct stream_socket {
    enum socket_state state;
    int fd;         /* −1 while closed */
    void *session;  /* TLS */
    bool wants_out; /* cannot go on before the socket takes more */
    char why[160];  /* it was closed */
};

void socket_init(struct stream_socket *socket);
/* Begins; false, and `why`, if that fails at once. `tls` may be NULL. */
bool socket_connect(struct stream_socket *socket, const struct sockaddr *address, socklen_t size,
                    const struct tls *tls);
/* Goes on with what was begun. False: it failed, and is closed. */
bool socket_continue(struct stream_socket *socket);
/* Bytes; 0: not now; −1: it is over, and closed. While OPEN only. */
ssize_t socket_read(struct stream_socket *socket, void *data, size_t size);
ssize_t socket_write(struct stream_socket *socket, const void *data, size_t size);
void socket_close(struct stream_socket *socket); /* twice is fine */

#endif
