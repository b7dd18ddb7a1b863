/* SPDX-License-Identifier: Apache-2.0
 * Parameters of a statement, in PostgreSQL's binary format. A parameter is one
 * value (pg_set_…) or an array with one element per row (pg_add_…), so that a
 * statement writes the rows of a whole batch. Nil ids, NULL text and absent
 * times are NULL. */
#ifndef HOLDFAST_STORE_POSTGRES_PARAMS_H
#define HOLDFAST_STORE_POSTGRES_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/uuid.h"

enum { PG_PARAM_COUNT_MAX = 24 };

/* Type numbers of PostgreSQL; they are the same in every server. */
enum pg_type {
    PG_BOOL = 16,
    PG_BYTEA = 17,
    PG_BIGINT = 20,
    PG_INTEGER = 23,
    PG_TEXT = 25,
    PG_TIME = 1184, /* timestamptz */
    PG_UUID = 2950,
};

struct pg_param {
    struct buf data;
    enum pg_type type; /* of the elements; 0: one value */
    int32_t row_count;
    bool has_null;
};

struct pg_params {
    int count;
    struct pg_param items[PG_PARAM_COUNT_MAX];
};

void pg_params_init(struct pg_params *params);
void pg_params_deinit(struct pg_params *params);
void pg_params_clear(struct pg_params *params); /* keeps the memory */
/* Completes the arrays; false if memory ended. */
bool pg_params_finish(struct pg_params *params, const char *values[], int lengths[], int formats[]);

void pg_add_uuid(struct pg_params *params, int at, const struct uuid *uuid); /* nil is NULL */
void pg_add_int(struct pg_params *params, int at, int32_t value);
void pg_add_bigint(struct pg_params *params, int at, int64_t value);
void pg_add_bigint_unless(struct pg_params *params, int at, int64_t value, int64_t none);
void pg_add_bool(struct pg_params *params, int at, bool value);
void pg_add_text(struct pg_params *params, int at, const char *text); /* NULL is NULL */
void pg_add_bytes(struct pg_params *params, int at, const void *data, size_t size);
void pg_add_time(struct pg_params *params, int at, int64_t time_ms); /* 0 is NULL */
void pg_add_time_unless(struct pg_params *params, int at, int64_t time_ms, int64_t none);

void pg_set_uuid(struct pg_params *params, int at, const struct uuid *uuid); /* nil is NULL */
void pg_set_int(struct pg_params *params, int at, int32_t value);
void pg_set_bigint(struct pg_params *params, int at, int64_t value);
void pg_set_text(struct pg_params *params, int at, const char *text); /* NULL is NULL */
void pg_set_bytes(struct pg_params *params, int at, const void *data, size_t size);
void pg_set_time(struct pg_params *params, int at, int64_t time_ms);         /* any time */
void pg_set_time_or_null(struct pg_params *params, int at, int64_t time_ms); /* 0 is NULL */

/* Between our milliseconds and PostgreSQL's microseconds since 2000. */
#define PG_EPOCH_MS 946684800000ll

#endif
