/* SPDX-License-Identifier: Apache-2.0
 * A request's JSON body as typed, checked fields. The first thing that is wrong
 * sticks; body_close() says it once. */
#ifndef HOLDFAST_API_BODY_H
#define HOLDFAST_API_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/uuid.h"

enum { BODY_DEPTH_MAX = 16 };

struct body {
    struct arena *arena; /* borrows: what is handed out lives there */
    json_t *root;        /* NULL: no body, or one that cannot be read */
    json_t *object;      /* where fields are looked for: root, or see body_enter() */
    const char *prefix;  /* of the object's fields in messages, or NULL */
    /* The first fault: */
    const char *field;
    const char *message; /* NULL: none so far */
};

/* `size` 0: an empty object. */
void body_open(struct body *body, struct arena *arena, const char *text, size_t size);
/* Frees the tree. False if anything was wrong: see field and message. */
bool body_close(struct body *body) MUST_CHECK;

/* From here on fields are those of the object under `key`; false if there is none. */
bool body_enter(struct body *body, const char *key);
void body_leave(struct body *body);

/* A key that is none of these is wrong: for objects where a misspelt one would do harm silently. */
void body_allow_only(struct body *body, const char *const *keys, size_t count);

bool body_has(const struct body *body, const char *key);     /* there, and not null */
bool body_is_null(const struct body *body, const char *key); /* there, and null */
void body_require(struct body *body, const char *key);
void body_wrong(struct body *body, const char *key, const char *format, ...) PRINTF_LIKE(3, 4);

/* Each leaves `out` alone, and returns false, if the field is absent, null or wrong. */
bool body_text(struct body *body, const char *key, size_t character_count_max, const char **out);
bool body_uuid(struct body *body, const char *key, struct uuid *out);
bool body_int(struct body *body, const char *key, int64_t least, int64_t most, int64_t *out);
bool body_bool(struct body *body, const char *key, bool *out);
bool body_time(struct body *body, const char *key, int64_t *time_ms);
/* Distinct ids. */
bool body_uuids(struct body *body, const char *key, int32_t count_min, int32_t count_max, struct uuid **out,
                int32_t *count);

#endif
