/* SPDX-License-Identifier: Apache-2.0
 * See bytes.h. */
#include "base/bytes.h"

#include <string.h>

enum { TEXT_NONE = 0xffff };

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
