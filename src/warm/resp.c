/* SPDX-License-Identifier: Apache-2.0
 * Redis' protocol, the sending half: "*3\r\n$3\r\nSET\r\n…". Pure. */
#include "warm/resp.h"

static void put_number(struct buf *out, char mark, size_t value)
{
    char text[24];
    char *at = text + sizeof(text);
    *--at = '\n';
    *--at = '\r';
    do {
        *--at = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    *--at = mark;
    buf_put(out, at, (size_t)(text + sizeof(text) - at));
}

void resp_array(struct buf *out, int64_t count)
{
    put_number(out, '*', (size_t)count);
}

void resp_head(struct buf *out, size_t size)
{
    put_number(out, '$', size);
}

void resp_bulk(struct buf *out, const char *data, size_t size)
{
    resp_head(out, size);
    buf_put(out, data, size);
    resp_tail(out);
}

void resp_int(struct buf *out, int64_t value)
{
    char text[24];
    char *at = text + sizeof(text);
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0)
        *--at = '-';
    resp_bulk(out, at, (size_t)(text + sizeof(text) - at));
}

void resp_uuid(struct buf *out, const struct uuid *uuid)
{
    char text[UUID_TEXT_SIZE];
    uuid_format(uuid, text);
    resp_bulk(out, text, UUID_TEXT_SIZE - 1);
}
