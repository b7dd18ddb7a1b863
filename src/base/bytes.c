/* SPDX-License-Identifier: Apache-2.0
 * See bytes.h. */
#include "base/bytes.h"

#include <stdint.h>
#include <string.h>

enum { TEXT_NONE = 0xffff, GROUP_SIZE = 8 };

bool bytes_take(struct bytes *bytes, void *out, size_t size)
{
    if (bytes->left < size)
        return false;
    if (size > 0)
        memcpy(out, bytes->data, size);
    bytes->data += size;
    bytes->left -= size;
    return true;
}

void bytes_put_text(struct buf *out, const char *text)
{
    size_t length = text != NULL ? strlen(text) : 0;
    uint16_t size = text == NULL ? TEXT_NONE : (uint16_t)(length < TEXT_NONE ? length : 0);
    buf_put(out, &size, sizeof(size));
    buf_put(out, text != NULL ? text : "", size == TEXT_NONE ? 0 : size);
}

bool bytes_take_text(struct bytes *bytes, struct arena *arena, const char **out)
{
    uint16_t size;
    *out = NULL;
    if (!bytes_take(bytes, &size, sizeof(size)))
        return false;
    if (size == TEXT_NONE)
        return true;
    if (bytes->left < size)
        return false;
    *out = arena_text_n(arena, bytes->data, size);
    bytes->data += size;
    bytes->left -= size;
    return true;
}

void bytes_put_squeezed(struct buf *out, const void *data, size_t size)
{
    const uint8_t *from = data;
    uint32_t whole = (uint32_t)size;
    buf_put(out, &whole, sizeof(whole));
    for (size_t at = 0; at < size; at += GROUP_SIZE) {
        uint8_t group[1 + GROUP_SIZE] = {0}; /* which ones, and they */
        size_t count = 1;
        for (size_t i = 0; i < GROUP_SIZE && at + i < size; i++) {
            if (from[at + i] == 0)
                continue;
            group[0] |= (uint8_t)(1u << i);
            group[count++] = from[at + i];
        }
        buf_put(out, group, count);
    }
}

bool bytes_take_squeezed(struct bytes *bytes, size_t size_max, struct buf *out)
{
    uint32_t whole;
    if (!bytes_take(bytes, &whole, sizeof(whole)) || whole > size_max)
        return false;
    for (size_t at = 0; at < whole; at += GROUP_SIZE) {
        uint8_t mask, group[GROUP_SIZE] = {0};
        size_t size = whole - at < GROUP_SIZE ? whole - at : GROUP_SIZE;
        if (!bytes_take(bytes, &mask, sizeof(mask)) || mask >> size != 0)
            return false;
        for (size_t i = 0; i < size; i++) {
            if ((mask >> i & 1) != 0 && !bytes_take(bytes, &group[i], 1))
                return false;
        }
        buf_put(out, group, size);
    }
    return bytes->left == 0 && buf_ok(out);
}
