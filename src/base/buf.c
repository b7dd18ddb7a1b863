/* SPDX-License-Identifier: Apache-2.0
 * A growing byte buffer, used for answers, frames and everything that is
 * written bit by bit.
 *
 * Invariants:
 *   1. size < capacity whenever data is not NULL: buf_text() always has room
 *      for its NUL without growing.
 *   2. Once failed, size stays as it was and nothing is written any more,
 *      until buf_clear() or buf_steal().
 *   3. A buffer never grows past SIZE_MAX_BUF: what would is a failure, not an
 *      abort, because its length may come from outside.
 *
 * One thread at a time. */
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_MIN_BUF ((size_t)256)
#define SIZE_MAX_BUF ((size_t)1 << 30)

void buf_init(struct buf *buf)
{
    *buf = (struct buf){0};
}

void buf_deinit(struct buf *buf)
{
    free(buf->data);
    buf_init(buf);
}

void buf_clear(struct buf *buf)
{
    buf->size = 0;
    buf->failed = false;
}

static bool buf_grow(struct buf *buf, size_t more)
{
    if (buf->failed)
        return false;
    if (more >= SIZE_MAX_BUF || buf->size + more + 1 > SIZE_MAX_BUF) {
        buf->failed = true;
        return false;
    }
    size_t needed = buf->size + more + 1;
    size_t capacity = buf->capacity < SIZE_MIN_BUF ? SIZE_MIN_BUF : buf->capacity;
    while (capacity < needed)
        capacity *= 2;
    char *data = realloc(buf->data, capacity);
    if (data == NULL) {
        buf->failed = true;
        return false;
    }
    buf->data = data;
    buf->capacity = capacity;
    return true;
}

bool buf_reserve(struct buf *buf, size_t more)
{
    if (!buf->failed && more < buf->capacity - buf->size)
        return true;
    return buf_grow(buf, more);
}

void buf_put(struct buf *buf, const void *data, size_t size)
{
    if (size == 0 || !buf_reserve(buf, size))
        return;
    memcpy(buf->data + buf->size, data, size);
    buf->size += size;
}

void buf_put_text(struct buf *buf, const char *text)
{
    buf_put(buf, text, strlen(text));
}

void buf_put_char(struct buf *buf, char c)
{
    if (buf_reserve(buf, 1))
        buf->data[buf->size++] = c;
}

void buf_put_int(struct buf *buf, int64_t value)
{
    char digits[20]; /* of INT64_MIN, with its sign */
    char *at = digits + sizeof(digits);
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0)
        *--at = '-';
    buf_put(buf, at, (size_t)(digits + sizeof(digits) - at));
}

void buf_printf(struct buf *buf, const char *format, ...)
{
    if (!buf_reserve(buf, 64))
        return;
    va_list arguments;
    va_start(arguments, format);
    size_t room = buf->capacity - buf->size;
    int length = vsnprintf(buf->data + buf->size, room, format, arguments);
    va_end(arguments);
    CHECK(length >= 0);
    if ((size_t)length >= room) {
        if (!buf_reserve(buf, (size_t)length))
            return;
        va_start(arguments, format);
        vsnprintf(buf->data + buf->size, buf->capacity - buf->size, format, arguments);
        va_end(arguments);
    }
    buf->size += (size_t)length;
}

const char *buf_text(struct buf *buf)
{
    if (buf->failed || buf->data == NULL)
        return "";
    buf->data[buf->size] = '\0';
    return buf->data;
}

char *buf_steal(struct buf *buf, size_t *size)
{
    char *data = buf->data;
    *size = buf->size;
    if (data != NULL)
        data[buf->size] = '\0';
    buf_init(buf);
    return data;
}
