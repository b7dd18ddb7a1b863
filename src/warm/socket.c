/* SPDX-License-Identifier: Apache-2.0
 * Connects, reads and writes without waiting, in clear or through OpenSSL.
 *
 *   CLOSED ──▶ CONNECTING ──▶ GREETING (TLS only) ──▶ OPEN ──▶ CLOSED
 *
 * A certificate is checked against the system's authorities or the given file,
 * and against the host's name or number. A failure anywhere closes the socket
 * and leaves one phrase in `why`. The lane's thread. It never retries. */
#include "warm/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"

struct tls {
    SSL_CTX *context;
    char host[ADDRESS_TEXT_SIZE];
    bool is_number;
};

enum err tls_create(const struct address *address, struct tls **out, char *why, size_t why_size)
{
    *out = NULL;
    if (!address->is_tls)
        return ERR_OK;
    struct tls *tls = calloc(1, sizeof(*tls));
    CHECK(tls != NULL);
    memcpy(tls->host, address->host, sizeof(tls->host));
    unsigned char number[sizeof(struct in6_addr)];
    tls->is_number =
        inet_pton(AF_INET, tls->host, number) == 1 || inet_pton(AF_INET6, tls->host, number) == 1;
    tls->context = SSL_CTX_new(TLS_client_method());
    CHECK(tls->context != NULL);
    SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION);
    SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_mode(tls->context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    int loaded = address->ca_file[0] != '\0'
                     ? SSL_CTX_load_verify_locations(tls->context, address->ca_file, NULL)
                     : SSL_CTX_set_default_verify_paths(tls->context);
    ERR_clear_error();
    if (loaded != 1) {
        snprintf(why, why_size, "The cafile of Redis' address holds no certificates that can be read: %s.",
                 address->ca_file);
        tls_destroy(tls);
        return ERR_CONFIG;
    }
    *out = tls;
    return ERR_OK;
}

void tls_destroy(struct tls *tls)
{
    if (tls == NULL)
        return;
    SSL_CTX_free(tls->context);
    free(tls);
}

void socket_init(struct stream_socket *stream)
{
    *stream = (struct stream_socket){.state = SOCKET_CLOSED, .fd = -1};
}

void socket_close(struct stream_socket *stream)
{
    if (stream->session != NULL)
        SSL_free(stream->session);
    if (stream->fd >= 0)
        close(stream->fd);
    stream->session = NULL;
    stream->fd = -1;
    stream->wants_out = false;
    stream->state = SOCKET_CLOSED;
}

static bool socket_fail(struct stream_socket *stream, const char *what, const char *why)
{
    snprintf(stream->why, sizeof(stream->why), "%s: %s", what, why);
    socket_close(stream);
    return false;
}

/* What OpenSSL says is wrong, best first: the certificate, its own error, the system's. */
static bool socket_fail_tls(struct stream_socket *stream, const char *what, int error, int number)
{
    long verified = SSL_get_verify_result(stream->session);
    unsigned long own = ERR_get_error();
    const char *why = verified != X509_V_OK                       ? X509_verify_cert_error_string(verified)
                      : own != 0 && ERR_reason_error_string(own)  ? ERR_reason_error_string(own)
                      : error == SSL_ERROR_SYSCALL && number != 0 ? strerror(number)
                                                                  : "the connection was closed";
    ERR_clear_error();
    return socket_fail(stream, what, why);
}

static bool socket_begin_tls(struct stream_socket *stream, const struct tls *tls)
{
    SSL *session = SSL_new(tls->context);
    CHECK(session != NULL);
    stream->session = session;
    SSL_set_connect_state(session);
    int named = tls->is_number
                    ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), tls->host)
                    : SSL_set_tlsext_host_name(session, tls->host) && SSL_set1_host(session, tls->host);
    if (named != 1 || SSL_set_fd(session, stream->fd) != 1)
        return socket_fail_tls(stream, "TLS", SSL_ERROR_SSL, 0);
    return true;
}

bool socket_connect(struct stream_socket *stream, const struct sockaddr *address, socklen_t size,
                    const struct tls *tls)
{
    CHECK(stream->state == SOCKET_CLOSED);
    stream->fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (stream->fd < 0)
        return socket_fail(stream, "connect", strerror(errno));
    if (address->sa_family != AF_UNIX) {
        int on = 1;
        setsockopt(stream->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        setsockopt(stream->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    }
    stream->state = SOCKET_CONNECTING;
    stream->wants_out = true;
    /* A unix socket whose queue is full says EAGAIN: it would not tell us when there is room. */
    if (connect(stream->fd, address, size) != 0 && errno != EINPROGRESS)
        return socket_fail(stream, "connect", strerror(errno));
    return tls == NULL || socket_begin_tls(stream, tls);
}

static bool socket_greet(struct stream_socket *stream)
{
    ERR_clear_error();
    int done = SSL_do_handshake(stream->session);
    int number = errno;
    if (done == 1) {
        stream->state = SOCKET_OPEN;
        stream->wants_out = false;
        return true;
    }
    int error = SSL_get_error(stream->session, done);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
        return socket_fail_tls(stream, "TLS", error, number);
    stream->wants_out = error == SSL_ERROR_WANT_WRITE;
    return true;
}

bool socket_continue(struct stream_socket *stream)
{
    if (stream->state == SOCKET_CONNECTING) {
        int error = 0;
        socklen_t size = sizeof(error);
        if (getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
            error = errno;
        if (error != 0)
            return socket_fail(stream, "connect", strerror(error));
        struct sockaddr_storage peer;
        size = sizeof(peer);
        if (getpeername(stream->fd, (struct sockaddr *)&peer, &size) != 0)
            return errno == ENOTCONN || socket_fail(stream, "connect", strerror(errno)); /* not yet */
        stream->state = stream->session == NULL ? SOCKET_OPEN : SOCKET_GREETING;
        stream->wants_out = false;
    }
    return stream->state != SOCKET_GREETING || socket_greet(stream);
}

static ssize_t socket_take_tls(struct stream_socket *stream, const char *what, int result)
{
    int number = errno;
    if (result > 0)
        return result;
    int error = SSL_get_error(stream->session, result);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
        stream->wants_out = error == SSL_ERROR_WANT_WRITE;
        return 0;
    }
    socket_fail_tls(stream, what, error, number);
    return -1;
}

static int int_size(size_t size)
{
    return size > 1 << 20 ? 1 << 20 : (int)size;
}

ssize_t socket_read(struct stream_socket *stream, void *data, size_t size)
{
    CHECK(stream->state == SOCKET_OPEN);
    if (stream->session != NULL) {
        ERR_clear_error();
        return socket_take_tls(stream, "read", SSL_read(stream->session, data, int_size(size)));
    }
    ssize_t got;
    do {
        got = recv(stream->fd, data, size, 0);
    } while (got < 0 && errno == EINTR);
    if (got > 0)
        return got;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return 0;
    socket_fail(stream, "read", got == 0 ? "the connection was closed" : strerror(errno));
    return -1;
}

ssize_t socket_write(struct stream_socket *stream, const void *data, size_t size)
{
    CHECK(stream->state == SOCKET_OPEN);
    if (stream->session != NULL) {
        ERR_clear_error();
        stream->wants_out = false;
        return socket_take_tls(stream, "write", SSL_write(stream->session, data, int_size(size)));
    }
    ssize_t put;
    do {
        put = send(stream->fd, data, size, MSG_NOSIGNAL);
    } while (put < 0 && errno == EINTR);
    stream->wants_out = put < (ssize_t)size;
    if (put >= 0)
        return put;
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return 0;
    socket_fail(stream, "write", strerror(errno));
    return -1;
}
