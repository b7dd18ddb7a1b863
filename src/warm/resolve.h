/* SPDX-License-Identifier: Apache-2.0
 * Names to addresses, without ever making the lane wait for a name server. */
#ifndef HOLDFAST_WARM_RESOLVE_H
#define HOLDFAST_WARM_RESOLVE_H

#include <stdbool.h>
#include <sys/socket.h>

#include "warm/url.h"

enum { RESOLVED_COUNT_MAX = 4 };

struct resolved {
    struct sockaddr_storage addresses[RESOLVED_COUNT_MAX];
    socklen_t sizes[RESOLVED_COUNT_MAX];
    int count; /* 0: the name means nothing */
};

/* Paths and numbers: at once. False: it is a name, and resolver_start() must look it up. */
bool resolve_plain(const struct address *address, struct resolved *out);

struct resolver; /* opaque: one lookup under way on a thread of its own */

/* NULL: there is no thread to be had. */
struct resolver *resolver_start(const struct address *address);
int resolver_fd(const struct resolver *resolver); /* readable once it is done */
bool resolver_take(struct resolver *resolver, struct resolved *out);
void resolver_drop(struct resolver *resolver); /* whether it is done or not; NULL is fine */

#endif
