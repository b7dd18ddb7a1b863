/* SPDX-License-Identifier: Apache-2.0
 * Builds the binary parameters of a statement; see params.h.
 *
 * An array is a head of five numbers — dimensions, whether it has NULLs, type
 * of the elements, how many, number of the first — and per element its length
 * and bytes. The head is written empty and filled in when the array is
 * complete.
 *
 * Invariants: (1) all arrays of a statement have one element per row, because
 * every row adds to every column. (2) Running out of memory shows once, in
 * pg_params_finish().
 *
 * Runs on whichever thread owns the parameters. It knows no statement. */
#include "store/postgres/params.h"

#include <arpa/inet.h>
#include <endian.h>
#include <string.h>

#include "base/check.h"

enum { ARRAY_HEAD_SIZE = 20 };

void pg_params_init(struct pg_params *params)
{
    memset(params, 0, sizeof(*params));
    for (int i = 0; i < PG_PARAM_COUNT_MAX; i++)
        buf_init(&params->items[i].data);
}

void pg_params_deinit(struct pg_params *params)
{
    for (int i = 0; i < PG_PARAM_COUNT_MAX; i++)
        buf_deinit(&params->items[i].data);
}

void pg_params_clear(struct pg_params *params)
{
    for (int i = 0; i < params->count; i++) {
        struct pg_param *param = &params->items[i];
        buf_clear(&param->data);
        param->type = 0;
        param->row_count = 0;
        param->has_null = false;
    }
    params->count = 0;
}

bool pg_params_finish(struct pg_params *params, const char *values[], int lengths[], int formats[])
{
    bool good = true;
    for (int i = 0; i < params->count; i++) {
        struct pg_param *param = &params->items[i];
        good = good && buf_ok(&param->data);
        if (good && param->type != 0) {
            uint32_t head[5] = {htonl(1), htonl(param->has_null), htonl(param->type),
                                htonl((uint32_t)param->row_count), htonl(1)};
            memcpy(param->data.data, head, sizeof(head));
        }
        /* A value that is NULL has no bytes; one that is empty has a place of no bytes. */
        values[i] =
            param->type == 0 && param->has_null ? NULL : (param->data.size > 0 ? param->data.data : "");
        lengths[i] = (int)param->data.size;
        formats[i] = 1;
    }
    return good;
}

static struct pg_param *param_at(struct pg_params *params, int at)
{
    CHECK(at < PG_PARAM_COUNT_MAX);
    if (at >= params->count)
        params->count = at + 1;
    return &params->items[at];
}

static void element_add(struct pg_params *params, int at, enum pg_type type, const void *data, size_t size)
{
    static const char head[ARRAY_HEAD_SIZE];
    struct pg_param *param = param_at(params, at);
    if (param->row_count++ == 0) {
        buf_put(&param->data, head, sizeof(head));
        param->type = type;
    }
    CHECK(param->type == type);
    uint32_t length = htonl((uint32_t)size);
    buf_put(&param->data, &length, sizeof(length));
    buf_put(&param->data, data, size);
}

static void null_add(struct pg_params *params, int at, enum pg_type type)
{
    static const uint32_t none = UINT32_MAX;
    element_add(params, at, type, "", 0);
    struct pg_param *param = &params->items[at];
    param->has_null = true;
    if (buf_ok(&param->data))
        memcpy(param->data.data + param->data.size - sizeof(none), &none, sizeof(none));
}

static uint64_t time_bytes(int64_t time_ms)
{
    return htobe64((uint64_t)((time_ms - PG_EPOCH_MS) * 1000));
}

void pg_add_uuid(struct pg_params *params, int at, const struct uuid *uuid)
{
    if (uuid_is_nil(uuid))
        null_add(params, at, PG_UUID);
    else
        element_add(params, at, PG_UUID, uuid->bytes, sizeof(uuid->bytes));
}

void pg_add_int(struct pg_params *params, int at, int32_t value)
{
    uint32_t bytes = htonl((uint32_t)value);
    element_add(params, at, PG_INTEGER, &bytes, sizeof(bytes));
}

void pg_add_bigint(struct pg_params *params, int at, int64_t value)
{
    uint64_t bytes = htobe64((uint64_t)value);
    element_add(params, at, PG_BIGINT, &bytes, sizeof(bytes));
}

void pg_add_bigint_unless(struct pg_params *params, int at, int64_t value, int64_t none)
{
    if (value == none)
        null_add(params, at, PG_BIGINT);
    else
        pg_add_bigint(params, at, value);
}

void pg_add_bool(struct pg_params *params, int at, bool value)
{
    char byte = value;
    element_add(params, at, PG_BOOL, &byte, sizeof(byte));
}

void pg_add_text(struct pg_params *params, int at, const char *text)
{
    if (text == NULL)
        null_add(params, at, PG_TEXT);
    else
        element_add(params, at, PG_TEXT, text, strlen(text));
}

void pg_add_bytes(struct pg_params *params, int at, const void *data, size_t size)
{
    if (data == NULL)
        null_add(params, at, PG_BYTEA);
    else
        element_add(params, at, PG_BYTEA, data, size);
}

void pg_add_time_unless(struct pg_params *params, int at, int64_t time_ms, int64_t none)
{
    if (time_ms == none) {
        null_add(params, at, PG_TIME);
    } else {
        uint64_t bytes = time_bytes(time_ms);
        element_add(params, at, PG_TIME, &bytes, sizeof(bytes));
    }
}

void pg_add_time(struct pg_params *params, int at, int64_t time_ms)
{
    pg_add_time_unless(params, at, time_ms, 0);
}

static void value_set(struct pg_params *params, int at, const void *data, size_t size)
{
    struct pg_param *param = param_at(params, at);
    param->has_null = data == NULL;
    if (data != NULL)
        buf_put(&param->data, data, size);
}

void pg_set_uuid(struct pg_params *params, int at, const struct uuid *uuid)
{
    value_set(params, at, uuid_is_nil(uuid) ? NULL : uuid->bytes, sizeof(uuid->bytes));
}

void pg_set_int(struct pg_params *params, int at, int32_t value)
{
    uint32_t bytes = htonl((uint32_t)value);
    value_set(params, at, &bytes, sizeof(bytes));
}

void pg_set_bigint(struct pg_params *params, int at, int64_t value)
{
    uint64_t bytes = htobe64((uint64_t)value);
    value_set(params, at, &bytes, sizeof(bytes));
}

void pg_set_text(struct pg_params *params, int at, const char *text)
{
    value_set(params, at, text, text != NULL ? strlen(text) : 0);
}

void pg_set_bytes(struct pg_params *params, int at, const void *data, size_t size)
{
    value_set(params, at, data, size);
}

void pg_set_time(struct pg_params *params, int at, int64_t time_ms)
{
    uint64_t bytes = time_bytes(time_ms);
    value_set(params, at, &bytes, sizeof(bytes));
}

void pg_set_time_or_null(struct pg_params *params, int at, int64_t time_ms)
{
    if (time_ms == 0)
        value_set(params, at, NULL, 0);
    else
        pg_set_time(params, at, time_ms);
}
