/* SPDX-License-Identifier: Apache-2.0
 * The channel that delivers domain events by HTTP: POST of a CloudEvents batch,
 * signed with HMAC-SHA256. docs/events.md tells receivers what to expect. */
#ifndef HOLDFAST_PUBLISH_WEBHOOK_H
#define HOLDFAST_PUBLISH_WEBHOOK_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "publish/delivery.h"

enum {
    WEBHOOK_CONNECT_MS = 3000,
    WEBHOOK_WHOLE_MS = 10000,
    WEBHOOK_ANSWER_SIZE_MAX = 64 * 1024, /* more is not read; nothing in it matters */
};

struct webhook_config { /* copied */
    const char *url;    /* http:// or https:// */
    const void *secret;
    size_t secret_size;
};

/* False and one sentence for a URL that cannot be used. */
bool webhook_url_check(const char *url, char *why, size_t why_size) MUST_CHECK;

enum err webhook_create(const struct webhook_config *config, struct delivery_channel **out) MUST_CHECK;

/* ---- For tests ---- */

enum { WEBHOOK_SIGNATURE_SIZE = 128 };
/* "t=<unix>,v1=<hex of HMAC-SHA256 over "<unix>.<body>">". */
void webhook_sign(const void *secret, size_t secret_size, int64_t now_s, const char *body, size_t size,
                  char out[WEBHOOK_SIGNATURE_SIZE]);
/* What an HTTP status says of a request with so many events. */
enum delivery_answer webhook_judge(long status, int32_t count);

#endif
