/* SPDX-License-Identifier: Apache-2.0
 * A growing byte buffer. Failure sticks: after running out of memory or past
 * its limit every further put does nothing, and buf_ok() says so once. */
#ifndef HOLDFAST_BASE_BUF_H
#define HOLDFAST_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

struct buf {
    char *data; /* not NUL ended; see buf_text() */
    size_t size;
    size_t capacity;
    bool failed;
};

void buf_init(struct buf *buf);
void buf_deinit(struct buf *buf);
void buf_clear(struct buf *buf); /* keeps the memory */
bool buf_reserve(struct buf *buf, size_t more);
void buf_put(struct buf *buf, const void *data, size_t size);
void buf_put_text(struct buf *buf, const char *text);
void buf_put_char(struct buf *buf, char c);
void buf_put_int(struct buf *buf, int64_t value);
void buf_printf(struct buf *buf, const char *format, ...) PRINTF_LIKE(2, 3);
const char *buf_text(struct buf *buf);          /* borrows; NUL ended; "" when failed */
char *buf_steal(struct buf *buf, size_t *size); /* transfers the memory (free()) and resets */

static inline bool buf_ok(const struct buf *buf)
{
    return !buf->failed;
}

#endif
