/* SPDX-License-Identifier: Apache-2.0
 * Writes JSON into a buf. Every answer and frame passes here, so each call
 * reserves once and writes straight into the buffer.
 *
 * Invariants:
 *   1. A comma is written before a key or array element, never after one.
 *   2. Text is escaped so that any well-formed UTF-8 becomes valid JSON.
 *   3. Failure is the buffer's, and sticks there.
 *
 * Whose thread: whoever owns the buffer. It does not check nesting, and it
 * does not check UTF-8: that happened at the edge. */
#include "base/jsonw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

void jsonw_begin(struct jsonw *json, struct buf *buf)
{
    json->buf = buf;
    json->comma = false;
}

static void put_comma(struct jsonw *json)
{
    if (json->comma)
        buf_put_char(json->buf, ',');
    json->comma = true;
}

static void put_open(struct jsonw *json, char bracket)
{
    put_comma(json);
    buf_put_char(json->buf, bracket);
    json->comma = false;
}

static void put_close(struct jsonw *json, char bracket)
{
    buf_put_char(json->buf, bracket);
    json->comma = true;
}

void jsonw_object_open(struct jsonw *json)
{
    put_open(json, '{');
}

void jsonw_object_close(struct jsonw *json)
{
    put_close(json, '}');
}

void jsonw_array_open(struct jsonw *json)
{
    put_open(json, '[');
}

void jsonw_array_close(struct jsonw *json)
{
    put_close(json, ']');
}

void jsonw_key(struct jsonw *json, const char *key)
{
    size_t length = strlen(key);
    if (!buf_reserve(json->buf, length + 4))
        return;
    char *out = json->buf->data + json->buf->size;
    char *start = out;
    if (json->comma)
        *out++ = ',';
    *out++ = '"';
    memcpy(out, key, length);
    out += length;
    *out++ = '"';
    *out++ = ':';
    json->buf->size += (size_t)(out - start);
    json->comma = false;
}

void jsonw_raw(struct jsonw *json, const char *text, size_t length)
{
    put_comma(json);
    buf_put(json->buf, text, length);
}

void jsonw_null(struct jsonw *json)
{
    jsonw_raw(json, "null", 4);
}

void jsonw_bool(struct jsonw *json, bool value)
{
    jsonw_raw(json, value ? "true" : "false", value ? 4 : 5);
}

void jsonw_int(struct jsonw *json, int64_t value)
{
    put_comma(json);
    buf_put_int(json->buf, value);
}

void jsonw_fixed(struct jsonw *json, double value, int decimals)
{
    if (!isfinite(value)) {
        jsonw_null(json); /* JSON has no word for it */
        return;
    }
    put_comma(json);
    buf_printf(json->buf, "%.*f", decimals, value);
}

/* Bytes that may not stand in a JSON string as they are. */
static bool needs_escape(unsigned char c)
{
    return c < 0x20 || c == '"' || c == '\\';
}

static void put_escape(struct buf *buf, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    static const char shorts[32] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    if (c >= 0x20 || shorts[c] != 0) {
        char escape[2] = {'\\', c >= 0x20 ? (char)c : shorts[c]};
        buf_put(buf, escape, sizeof(escape));
    } else {
        char escape[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
        buf_put(buf, escape, sizeof(escape));
    }
}

void jsonw_text_n(struct jsonw *json, const char *text, size_t length)
{
    put_comma(json);
    if (!buf_reserve(json->buf, length + 2)) /* enough when nothing needs an escape */
        return;
    buf_put_char(json->buf, '"');
    size_t done = 0;
    for (size_t i = 0; i < length; i++) {
        if (!needs_escape((unsigned char)text[i]))
            continue;
        buf_put(json->buf, text + done, i - done);
        put_escape(json->buf, (unsigned char)text[i]);
        done = i + 1;
    }
    buf_put(json->buf, text + done, length - done);
    buf_put_char(json->buf, '"');
}

void jsonw_text(struct jsonw *json, const char *text)
{
    if (text == NULL)
        jsonw_null(json);
    else
        jsonw_text_n(json, text, strlen(text));
}

void jsonw_uuid(struct jsonw *json, const struct uuid *uuid)
{
    if (uuid_is_nil(uuid)) {
        jsonw_null(json);
        return;
    }
    put_comma(json);
    if (!buf_reserve(json->buf, UUID_TEXT_SIZE + 2))
        return;
    char *out = json->buf->data + json->buf->size;
    out[0] = '"';
    uuid_format(uuid, out + 1);
    out[UUID_TEXT_SIZE] = '"'; /* over the NUL */
    json->buf->size += UUID_TEXT_SIZE + 1;
}

void jsonw_time(struct jsonw *json, int64_t time_ms)
{
    char text[TIME_TEXT_SIZE];
    time_format(time_ms, text);
    jsonw_text_n(json, text, strlen(text));
}

void jsonw_key_null(struct jsonw *json, const char *key)
{
    jsonw_key(json, key);
    jsonw_null(json);
}

void jsonw_key_bool(struct jsonw *json, const char *key, bool value)
{
    jsonw_key(json, key);
    jsonw_bool(json, value);
}

void jsonw_key_int(struct jsonw *json, const char *key, int64_t value)
{
    jsonw_key(json, key);
    jsonw_int(json, value);
}

void jsonw_key_fixed(struct jsonw *json, const char *key, double value, int decimals)
{
    jsonw_key(json, key);
    jsonw_fixed(json, value, decimals);
}

void jsonw_key_text(struct jsonw *json, const char *key, const char *text)
{
    jsonw_key(json, key);
    jsonw_text(json, text);
}

void jsonw_key_uuid(struct jsonw *json, const char *key, const struct uuid *uuid)
{
    jsonw_key(json, key);
    jsonw_uuid(json, uuid);
}

void jsonw_key_time(struct jsonw *json, const char *key, int64_t time_ms)
{
    jsonw_key(json, key);
    jsonw_time(json, time_ms);
}
