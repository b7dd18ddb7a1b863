/* SPDX-License-Identifier: Apache-2.0
 * Writes commands for Redis straight into a buffer. hiredis' formatter builds
 * each command in memory of its own and has it copied; at a dozen commands a
 * hold that costs more than everything else the warm tier does. */
#ifndef HOLDFAST_WARM_RESP_H
#define HOLDFAST_WARM_RESP_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/uuid.h"

void resp_array(struct buf *out, int64_t count); /* a command of so many arguments begins */
void resp_head(struct buf *out,
               size_t size); /* an argument of `size` bytes begins: put them, then resp_tail() */
void resp_bulk(struct buf *out, const char *data, size_t size);
void resp_int(struct buf *out, int64_t value);
void resp_uuid(struct buf *out, const struct uuid *uuid);

static inline void resp_tail(struct buf *out)
{
    buf_put(out, "\r\n", 2);
}

static inline void resp_text(struct buf *out, const char *text)
{
    resp_bulk(out, text, strlen(text));
}

/* A literal that is known to the compiler: head, text and tail in one copy. `size` is its length in digits. */
#define RESP_WORD(out, size, text)                                                                           \
    buf_put((out), "$" size "\r\n" text "\r\n", sizeof("$" size "\r\n" text "\r\n") - 1)

#endif
