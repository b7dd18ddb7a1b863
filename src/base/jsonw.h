/* SPDX-License-Identifier: Apache-2.0
 * Writes JSON into a buf, in order, without building a tree: answers and
 * frames are written tens of thousands of times a second. Reading is jansson's,
 * whose names these must not meet. */
#ifndef HOLDFAST_BASE_JSONW_H
#define HOLDFAST_BASE_JSONW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/uuid.h"

/* A writer remembers only whether a comma is due. Nesting is the caller's. */
struct jsonw {
    struct buf *buf;
    bool comma;
};

void jsonw_begin(struct jsonw *json, struct buf *buf);
void jsonw_object_open(struct jsonw *json);
void jsonw_object_close(struct jsonw *json);
void jsonw_array_open(struct jsonw *json);
void jsonw_array_close(struct jsonw *json);
void jsonw_key(struct jsonw *json, const char *key); /* key is written as it is: no escapes */

/* Values: inside an array, or after jsonw_key(). */
void jsonw_null(struct jsonw *json);
void jsonw_bool(struct jsonw *json, bool value);
void jsonw_int(struct jsonw *json, int64_t value);
void jsonw_fixed(struct jsonw *json, double value, int decimals);
void jsonw_text(struct jsonw *json, const char *text); /* escaped; NULL is null */
void jsonw_text_n(struct jsonw *json, const char *text, size_t length);
void jsonw_uuid(struct jsonw *json, const struct uuid *uuid);        /* nil is null */
void jsonw_time(struct jsonw *json, int64_t time_ms);                /* ISO 8601 UTC, whole seconds */
void jsonw_raw(struct jsonw *json, const char *text, size_t length); /* already JSON */

/* Key and value in one call. */
void jsonw_key_null(struct jsonw *json, const char *key);
void jsonw_key_bool(struct jsonw *json, const char *key, bool value);
void jsonw_key_int(struct jsonw *json, const char *key, int64_t value);
void jsonw_key_fixed(struct jsonw *json, const char *key, double value, int decimals);
void jsonw_key_text(struct jsonw *json, const char *key, const char *text);
void jsonw_key_uuid(struct jsonw *json, const char *key, const struct uuid *uuid);
void jsonw_key_time(struct jsonw *json, const char *key, int64_t time_ms);

#endif
