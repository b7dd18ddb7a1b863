/* SPDX-License-Identifier: Apache-2.0
 * getaddrinfo() waits as long as a name server likes, so a name is looked up on
 * a short-lived thread, and numbers are read at once. (glibc's getaddrinfo_a()
 * does the same with a thread, but is glibc's alone and hard to abandon.)
 *
 * The lookup is shared by its thread and its owner; whoever lets go last frees
 * it. `done` is what crosses: everything else is written before it by the
 * thread and read after it by the owner. */
#include "warm/resolve.h"

#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"

struct resolver {
    char host[ADDRESS_TEXT_SIZE];
    char port[6];
    struct resolved result;
    int fd;
    _Atomic bool done;
    _Atomic int users;
};

static void resolve_name(const char *host, const char *port, int flags, struct resolved *out)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
    struct addrinfo *list = NULL;
    out->count = 0;
    if (getaddrinfo(host, port, &hints, &list) != 0)
        return;
    for (struct addrinfo *one = list; one != NULL && out->count < RESOLVED_COUNT_MAX; one = one->ai_next) {
        if (one->ai_addrlen > sizeof(out->addresses[0]))
            continue;
        memcpy(&out->addresses[out->count], one->ai_addr, one->ai_addrlen);
        out->sizes[out->count++] = one->ai_addrlen;
    }
    freeaddrinfo(list);
}

bool resolve_plain(const struct address *address, struct resolved *out)
{
    memset(out, 0, sizeof(*out));
    if (!address->is_unix) {
        resolve_name(address->host, address->port, AI_NUMERICHOST | AI_NUMERICSERV, out);
        return out->count > 0;
    }
    struct sockaddr_un *path = (struct sockaddr_un *)&out->addresses[0];
    _Static_assert(sizeof(address->path) == sizeof(path->sun_path), "every path that was read fits");
    path->sun_family = AF_UNIX;
    memcpy(path->sun_path, address->path, sizeof(path->sun_path));
    out->sizes[0] = sizeof(*path);
    out->count = 1;
    return true;
}

void resolver_drop(struct resolver *resolver)
{
    if (resolver == NULL || atomic_fetch_sub(&resolver->users, 1) > 1)
        return;
    close(resolver->fd);
    free(resolver);
}

static void *resolver_run(void *argument)
{
    struct resolver *resolver = argument;
    resolve_name(resolver->host, resolver->port, AI_NUMERICSERV, &resolver->result);
    atomic_store(&resolver->done, true);
    uint64_t one = 1;
    ssize_t written = write(resolver->fd, &one, sizeof(one));
    CHECK(written == sizeof(one));
    resolver_drop(resolver);
    return NULL;
}

struct resolver *resolver_start(const struct address *address)
{
    struct resolver *resolver = calloc(1, sizeof(*resolver));
    CHECK(resolver != NULL);
    memcpy(resolver->host, address->host, sizeof(resolver->host));
    memcpy(resolver->port, address->port, sizeof(resolver->port));
    atomic_store(&resolver->users, 2);
    resolver->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (resolver->fd < 0)
        goto no_event;
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int failed = pthread_create(&thread, &attributes, resolver_run, resolver);
    pthread_attr_destroy(&attributes);
    if (failed == 0)
        return resolver;
    close(resolver->fd);
no_event:
    free(resolver);
    return NULL;
}

int resolver_fd(const struct resolver *resolver)
{
    return resolver->fd;
}

bool resolver_take(struct resolver *resolver, struct resolved *out)
{
    if (!atomic_load(&resolver->done))
        return false;
    *out = resolver->result;
    return true;
}
