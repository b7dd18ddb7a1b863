/* SPDX-License-Identifier: Apache-2.0
 * Where Redis is: one address, or several that are tried in turn. */
#ifndef HOLDFAST_WARM_URL_H
#define HOLDFAST_WARM_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
    ADDRESS_COUNT_MAX = 8,
    ADDRESS_TEXT_SIZE = 256,
    ADDRESS_PATH_SIZE = 108, /* what a unix socket's address has room for */
    ADDRESS_SECRET_SIZE = 1024,
    ADDRESS_DATABASE_MAX = 65535,
    ADDRESS_RETRY_MS_MAX = 3600000,
};

struct address {
    bool is_unix;
    bool is_tls;
    char host[ADDRESS_TEXT_SIZE]; /* without the brackets of IPv6 */
    char port[6];
    char path[ADDRESS_PATH_SIZE];       /* of a unix socket */
    char user[ADDRESS_TEXT_SIZE];       /* "": none is named */
    char password[ADDRESS_SECRET_SIZE]; /* "": none is asked for */
    int32_t database;
    char ca_file[ADDRESS_TEXT_SIZE]; /* "": the system's authorities */
};

struct address_list {
    struct address addresses[ADDRESS_COUNT_MAX];
    int32_t count;
    int64_t retry_ms; /* between tries while the breaker is open; 0: not said */
};

/* An error leaves one sentence in `why`, which names no password. */
enum err url_parse(const char *text, struct address_list *out, char *why, size_t why_size) MUST_CHECK;

#endif
