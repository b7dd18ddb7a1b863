/* SPDX-License-Identifier: Apache-2.0
 * Reading packed bytes that somebody else wrote: every length is checked, and
 * what does not fit is an error, not a crash. Written with buf_put() and
 * bytes_put_text(), in the byte order of the machine. */
#ifndef HOLDFAST_BASE_BYTES_H
#define HOLDFAST_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"

struct bytes {
    const char *data; /* borrows */
    size_t left;
};

bool bytes_take(struct bytes *bytes, void *out, size_t size);
/* Its length, then its bytes. NULL stays NULL. One of 65,535 bytes or more is written as "". */
void bytes_put_text(struct buf *out, const char *text);
bool bytes_take_text(struct bytes *bytes, struct arena *arena, const char **out); /* in the arena */

#endif
