/* SPDX-License-Identifier: Apache-2.0
 * The columns of every list and the way a cell becomes JSON. A store reads its
 * cells into query_value and calls query_write_row(); it formats nothing.
 *
 * Invariants: (1) every kind of store_query() has its columns here. (2) A row
 * is one object with every column of its kind, a missing value being null.
 * (3) A cell of the wrong size (a UUID that is not 16 bytes) is null, never
 * read past.
 *
 * Runs on the store's reading thread. It deliberately knows no SQL. */
#include "store/query.h"

#include <string.h>

#define COLUMN(name, type) {name, QUERY_##type},
static const struct query_column audit_columns[] = {QUERY_AUDIT_COLUMNS(COLUMN)};
static const struct query_column checkouts_columns[] = {QUERY_CHECKOUTS_COLUMNS(COLUMN)};
static const struct query_column occupancy_history_columns[] = {QUERY_OCCUPANCY_HISTORY_COLUMNS(COLUMN)};
static const struct query_column analytics_columns[] = {QUERY_ANALYTICS_COLUMNS(COLUMN)};
static const struct query_column hold_count_columns[] = {QUERY_HOLD_COUNT_COLUMNS(COLUMN)};
static const struct query_column users_columns[] = {QUERY_USERS_COLUMNS(COLUMN)};
static const struct query_column dead_letters_columns[] = {QUERY_DEAD_LETTERS_COLUMNS(COLUMN)};
#undef COLUMN

struct query_form {
    const char *name;
    const struct query_column *columns;
    int count;
};

#define FORM(columns) columns, COUNT_OF(columns)
static const struct query_form forms[QUERY_KIND_COUNT] = {
    [QUERY_AUDIT] = {"audit", FORM(audit_columns)},
    [QUERY_CHECKOUTS] = {"checkouts", FORM(checkouts_columns)},
    [QUERY_OCCUPANCY_HISTORY] = {"occupancy history", FORM(occupancy_history_columns)},
    [QUERY_ANALYTICS] = {"analytics", FORM(analytics_columns)},
    [QUERY_HOLD_COUNT] = {"hold count", FORM(hold_count_columns)},
    [QUERY_USERS] = {"users", FORM(users_columns)},
    [QUERY_DEAD_LETTERS] = {"dead letters", FORM(dead_letters_columns)},
};
#undef FORM

_Static_assert(COUNT_OF(audit_columns) <= QUERY_COLUMN_COUNT_MAX, "the widest list fits");

const struct query_column *query_columns(enum query_kind kind, int *count)
{
    CHECK(kind < QUERY_KIND_COUNT);
    *count = forms[kind].count;
    return forms[kind].columns;
}

const char *query_name(enum query_kind kind)
{
    CHECK(kind < QUERY_KIND_COUNT);
    return forms[kind].name;
}

bool query_type_is_bytes(enum query_type type)
{
    return type == QUERY_UUID || type == QUERY_TEXT || type == QUERY_JSON;
}

bool query_type_is_real(enum query_type type)
{
    return type == QUERY_RATIO || type == QUERY_DECIMAL;
}

static void query_write_value(struct jsonw *json, enum query_type type, const struct query_value *value)
{
    struct uuid uuid;
    switch (type) {
    case QUERY_UUID:
        if (value->size != sizeof(uuid.bytes)) {
            jsonw_null(json);
            return;
        }
        memcpy(uuid.bytes, value->data, sizeof(uuid.bytes));
        jsonw_uuid(json, &uuid);
        return;
    case QUERY_TEXT:
        jsonw_text_n(json, value->data, value->size);
        return;
    case QUERY_JSON:
        jsonw_raw(json, value->data, value->size);
        return;
    case QUERY_INT:
        jsonw_int(json, value->integer);
        return;
    case QUERY_BOOL:
        jsonw_bool(json, value->integer != 0);
        return;
    case QUERY_TIME:
        jsonw_time(json, value->integer);
        return;
    case QUERY_RATIO:
        jsonw_fixed(json, value->real, 4);
        return;
    case QUERY_DECIMAL:
        jsonw_fixed(json, value->real, 1);
        return;
    }
}

void query_write_row(struct jsonw *json, enum query_kind kind, const struct query_value *values)
{
    int count;
    const struct query_column *columns = query_columns(kind, &count);
    jsonw_object_open(json);
    for (int i = 0; i < count; i++) {
        jsonw_key(json, columns[i].name);
        if (values[i].is_null)
            jsonw_null(json);
        else
            query_write_value(json, columns[i].type, &values[i]);
    }
    jsonw_object_close(json);
}
