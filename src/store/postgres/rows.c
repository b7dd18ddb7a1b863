/* SPDX-License-Identifier: Apache-2.0
 * Reads values and rows out of results: seat_current and load_seats, every
 * statement that selects holds, checkouts, tickets or events.
 *
 * Invariants: (1) statements that feed the same function select the same
 * columns in the same order. (2) A state that does not exist is said to be so,
 * never taken for another. (3) A value of an unexpected size is NULL, never
 * read past.
 *
 * Runs on whichever thread owns the result; keeps nothing. */
#include "store/postgres/rows.h"

#include <arpa/inet.h>
#include <endian.h>
#include <libpq-fe.h>
#include <string.h>

#include "base/clock.h"
#include "store/postgres/params.h"

bool pg_cell_is_null(const struct pg_result *result, int row, int at)
{
    return PQgetisnull(result, row, at) != 0;
}

int64_t pg_cell_int(const struct pg_result *result, int row, int at)
{
    const char *data = PQgetvalue(result, row, at);
    uint16_t narrow;
    uint32_t middle;
    uint64_t wide;
    switch (PQgetlength(result, row, at)) {
    case 1:
        return data[0];
    case 2:
        memcpy(&narrow, data, sizeof(narrow));
        return (int16_t)ntohs(narrow);
    case 4:
        memcpy(&middle, data, sizeof(middle));
        return (int32_t)ntohl(middle);
    case 8:
        memcpy(&wide, data, sizeof(wide));
        return (int64_t)be64toh(wide);
    default:
        return 0;
    }
}

double pg_cell_real(const struct pg_result *result, int row, int at)
{
    int64_t bits = pg_cell_int(result, row, at);
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

struct uuid pg_cell_uuid(const struct pg_result *result, int row, int at)
{
    struct uuid uuid = {{0}};
    if (PQgetlength(result, row, at) == (int)sizeof(uuid.bytes))
        memcpy(uuid.bytes, PQgetvalue(result, row, at), sizeof(uuid.bytes));
    return uuid;
}

const char *pg_cell_text(const struct pg_result *result, int row, int at)
{
    return pg_cell_is_null(result, row, at) ? NULL : PQgetvalue(result, row, at);
}

const void *pg_cell_bytes(const struct pg_result *result, int row, int at, size_t *size)
{
    *size = (size_t)PQgetlength(result, row, at);
    return pg_cell_text(result, row, at);
}

int64_t pg_cell_time_or(const struct pg_result *result, int row, int at, int64_t none)
{
    if (pg_cell_is_null(result, row, at))
        return none;
    int64_t micro = pg_cell_int(result, row, at);
    return micro / 1000 - (micro % 1000 < 0) + PG_EPOCH_MS; /* rounded down, also before 2000 */
}

int64_t pg_cell_time(const struct pg_result *result, int row, int at)
{
    return pg_cell_time_or(result, row, at, 0);
}

void pg_cell_code(const struct pg_result *result, int row, int at, char out[4])
{
    const char *text = pg_cell_text(result, row, at);
    memset(out, 0, 4);
    if (text != NULL)
        strncpy(out, text, 3);
}

static const char *row_text(const struct pg_result *result, int row, int at, struct arena *arena)
{
    const char *text = pg_cell_text(result, row, at);
    return arena != NULL ? arena_text(arena, text) : text;
}

/* A reason is NULL while there is none. */
static bool row_reason(const struct pg_result *result, int row, int at, enum end_reason *out)
{
    const char *text = pg_cell_text(result, row, at);
    *out = END_NONE;
    return text == NULL || end_reason_parse(text, out);
}

bool pg_row_read_seat(const struct pg_result *result, int row, int32_t index, struct seat_row *out)
{
    const char *state = pg_cell_text(result, row, 4);
    out->org_id = pg_cell_uuid(result, row, 0);
    out->event_id = pg_cell_uuid(result, row, 1);
    out->id = pg_cell_uuid(result, row, 2);
    out->index = index;
    out->version = (int32_t)pg_cell_int(result, row, 3);
    out->hold_id = pg_cell_uuid(result, row, 5);
    out->ticket_id = pg_cell_uuid(result, row, 6);
    out->held_until_ms = pg_cell_time(result, row, 7);
    out->locked_ms = pg_cell_time(result, row, 8);
    return state != NULL && seat_state_parse(state, &out->state);
}

bool pg_row_read_hold(const struct pg_result *result, int row, struct arena *arena, struct hold_row *out)
{
    const char *state = pg_cell_text(result, row, 7);
    const char *source = pg_cell_text(result, row, 9);
    out->org_id = pg_cell_uuid(result, row, 0);
    out->event_id = pg_cell_uuid(result, row, 1);
    out->id = pg_cell_uuid(result, row, 2);
    out->seat_id = pg_cell_uuid(result, row, 3);
    out->user_id = pg_cell_uuid(result, row, 4);
    out->checkout_id = pg_cell_uuid(result, row, 5);
    out->cart_token = row_text(result, row, 6, arena);
    out->price_cents = pg_cell_int(result, row, 10);
    out->created_ms = pg_cell_time(result, row, 11);
    out->held_until_ms = pg_cell_time(result, row, 12);
    out->ended_ms = pg_cell_time(result, row, 13);
    out->notes = row_text(result, row, 14, arena);
    return state != NULL && hold_state_parse(state, &out->state) && source != NULL &&
           hold_source_parse(source, &out->source) && row_reason(result, row, 8, &out->reason);
}

bool pg_row_read_checkout(const struct pg_result *result, int row, struct arena *arena,
                          struct checkout_row *out)
{
    const char *state = pg_cell_text(result, row, 4);
    const char *refund = pg_cell_text(result, row, 5);
    out->org_id = pg_cell_uuid(result, row, 0);
    out->event_id = pg_cell_uuid(result, row, 1);
    out->id = pg_cell_uuid(result, row, 2);
    out->user_id = pg_cell_uuid(result, row, 3);
    pg_cell_code(result, row, 7, out->currency);
    out->total_cents = pg_cell_int(result, row, 8);
    out->created_ms = pg_cell_time(result, row, 9);
    out->expires_ms = pg_cell_time(result, row, 10);
    out->paying_since_ms = pg_cell_time(result, row, 11);
    out->payment_deadline_ms = pg_cell_time(result, row, 12);
    out->ended_ms = pg_cell_time(result, row, 13);
    out->payment_token = row_text(result, row, 14, arena);
    out->notes = row_text(result, row, 15, arena);
    out->version = (int32_t)pg_cell_int(result, row, 16);
    out->payer = pg_cell_uuid(result, row, 17);
    out->payer_until_ms = pg_cell_time(result, row, 18);
    return state != NULL && checkout_state_parse(state, &out->state) && refund != NULL &&
           refund_state_parse(refund, &out->refund) && row_reason(result, row, 6, &out->reason);
}

bool pg_row_read_ticket(const struct pg_result *result, int row, struct ticket_row *out)
{
    const char *code = pg_cell_text(result, row, 8);
    out->org_id = pg_cell_uuid(result, row, 0);
    out->event_id = pg_cell_uuid(result, row, 1);
    out->id = pg_cell_uuid(result, row, 2);
    out->seat_id = pg_cell_uuid(result, row, 3);
    out->hold_id = pg_cell_uuid(result, row, 4);
    out->checkout_id = pg_cell_uuid(result, row, 5);
    out->user_id = pg_cell_uuid(result, row, 6);
    out->price_cents = pg_cell_int(result, row, 7);
    memset(out->code, 0, sizeof(out->code));
    if (code != NULL)
        strncpy(out->code, code, sizeof(out->code) - 1);
    out->created_ms = pg_cell_time(result, row, 9);
    out->refunded_ms = pg_cell_time(result, row, 10);
    return code != NULL;
}

bool pg_row_read_event(const struct pg_result *result, int row, struct arena *arena, struct event_row *out)
{
    const char *state = pg_cell_text(result, row, 3);
    out->org_id = pg_cell_uuid(result, row, 0);
    out->id = pg_cell_uuid(result, row, 1);
    out->name = row_text(result, row, 2, arena);
    out->sale_start_ms = pg_cell_time_or(result, row, 4, TIME_NONE);
    out->sale_end_ms = pg_cell_time_or(result, row, 5, TIME_MAX);
    pg_cell_code(result, row, 6, out->currency);
    out->created_ms = pg_cell_time(result, row, 7);
    out->updated_ms = pg_cell_time(result, row, 8);
    out->version = (int32_t)pg_cell_int(result, row, 9);
    int at = 10;
#define READ_POLICY(name, initial, least, most) out->policy.name = (int32_t)pg_cell_int(result, row, at++);
    POLICY_MAP(READ_POLICY)
#undef READ_POLICY
    return out->name != NULL && state != NULL && event_state_parse(state, &out->state);
}

void pg_row_read_block(const struct pg_result *result, int row, struct arena *arena, struct block_row *out)
{
    out->org_id = pg_cell_uuid(result, row, 0);
    out->event_id = pg_cell_uuid(result, row, 1);
    out->id = pg_cell_uuid(result, row, 2);
    pg_cell_code(result, row, 3, out->section);
    out->subsection = (int32_t)pg_cell_int(result, row, 4);
    out->ordinal = (int32_t)pg_cell_int(result, row, 5);
    out->name = row_text(result, row, 6, arena);
    out->capacity = (int32_t)pg_cell_int(result, row, 7);
    out->price_cents = pg_cell_int(result, row, 8);
}

void pg_row_read_organization(const struct pg_result *result, int row, struct arena *arena,
                              struct org_row *out)
{
    out->id = pg_cell_uuid(result, row, 0);
    out->name = row_text(result, row, 1, arena);
    out->created_ms = pg_cell_time(result, row, 2);
}

void pg_row_read_user(const struct pg_result *result, int row, struct user_row *out)
{
    out->org_id = pg_cell_uuid(result, row, 0);
    out->id = pg_cell_uuid(result, row, 1);
    out->disabled = pg_cell_int(result, row, 2) != 0;
    out->created_ms = pg_cell_time(result, row, 3);
}
