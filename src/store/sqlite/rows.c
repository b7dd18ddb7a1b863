/* SPDX-License-Identifier: Apache-2.0
 * Reads rows out of the statements that select them: seat_at and load_seats,
 * every statement that selects holds, checkouts, tickets or events.
 *
 * Invariants: (1) statements that feed the same function select the same
 * columns in the same order. (2) A state that does not exist is said to be so,
 * never taken for another.
 *
 * Runs on whichever thread owns the statement; keeps nothing. */
#include "store/sqlite/cells.h"

static const char *row_text(sqlite3_stmt *statement, int at, struct arena *arena)
{
    const char *text = cell_text(statement, at);
    return arena != NULL ? arena_text(arena, text) : text;
}

/* A reason is NULL while there is none. */
static bool row_reason(sqlite3_stmt *statement, int at, enum end_reason *out)
{
    const char *text = cell_text(statement, at);
    *out = END_NONE;
    return text == NULL || end_reason_parse(text, out);
}

bool row_read_seat(sqlite3_stmt *statement, int32_t index, struct seat_row *out)
{
    const char *state = cell_text(statement, 4);
    out->org_id = cell_uuid(statement, 0);
    out->event_id = cell_uuid(statement, 1);
    out->id = cell_uuid(statement, 2);
    out->index = index;
    out->version = (int32_t)cell_int(statement, 3);
    out->hold_id = cell_uuid(statement, 5);
    out->ticket_id = cell_uuid(statement, 6);
    out->held_until_ms = cell_int(statement, 7);
    out->locked_ms = cell_int(statement, 8);
    return state != NULL && seat_state_parse(state, &out->state);
}

bool row_read_hold(sqlite3_stmt *statement, struct arena *arena, struct hold_row *out)
{
    const char *state = cell_text(statement, 7);
    const char *source = cell_text(statement, 9);
    out->org_id = cell_uuid(statement, 0);
    out->event_id = cell_uuid(statement, 1);
    out->id = cell_uuid(statement, 2);
    out->seat_id = cell_uuid(statement, 3);
    out->user_id = cell_uuid(statement, 4);
    out->checkout_id = cell_uuid(statement, 5);
    out->cart_token = row_text(statement, 6, arena);
    out->price_cents = cell_int(statement, 10);
    out->created_ms = cell_int(statement, 11);
    out->held_until_ms = cell_int(statement, 12);
    out->ended_ms = cell_int(statement, 13);
    out->notes = row_text(statement, 14, arena);
    return state != NULL && hold_state_parse(state, &out->state) && source != NULL &&
           hold_source_parse(source, &out->source) && row_reason(statement, 8, &out->reason);
}

bool row_read_checkout(sqlite3_stmt *statement, struct arena *arena, struct checkout_row *out)
{
    const char *state = cell_text(statement, 4);
    const char *refund = cell_text(statement, 5);
    out->org_id = cell_uuid(statement, 0);
    out->event_id = cell_uuid(statement, 1);
    out->id = cell_uuid(statement, 2);
    out->user_id = cell_uuid(statement, 3);
    cell_code(statement, 7, out->currency);
    out->total_cents = cell_int(statement, 8);
    out->created_ms = cell_int(statement, 9);
    out->expires_ms = cell_int(statement, 10);
    out->paying_since_ms = cell_int(statement, 11);
    out->payment_deadline_ms = cell_int(statement, 12);
    out->ended_ms = cell_int(statement, 13);
    out->payment_token = row_text(statement, 14, arena);
    out->notes = row_text(statement, 15, arena);
    out->version = (int32_t)cell_int(statement, 16);
    out->payer = cell_uuid(statement, 17);
    out->payer_until_ms = cell_int(statement, 18);
    return state != NULL && checkout_state_parse(state, &out->state) && refund != NULL &&
           refund_state_parse(refund, &out->refund) && row_reason(statement, 6, &out->reason);
}

bool row_read_ticket(sqlite3_stmt *statement, struct ticket_row *out)
{
    const char *code = cell_text(statement, 8);
    out->org_id = cell_uuid(statement, 0);
    out->event_id = cell_uuid(statement, 1);
    out->id = cell_uuid(statement, 2);
    out->seat_id = cell_uuid(statement, 3);
    out->hold_id = cell_uuid(statement, 4);
    out->checkout_id = cell_uuid(statement, 5);
    out->user_id = cell_uuid(statement, 6);
    out->price_cents = cell_int(statement, 7);
    memset(out->code, 0, sizeof(out->code));
    if (code != NULL)
        strncpy(out->code, code, sizeof(out->code) - 1);
    out->created_ms = cell_int(statement, 9);
    out->refunded_ms = cell_int(statement, 10);
    return code != NULL;
}

bool row_read_event(sqlite3_stmt *statement, struct arena *arena, struct event_row *out)
{
    const char *state = cell_text(statement, 3);
    out->org_id = cell_uuid(statement, 0);
    out->id = cell_uuid(statement, 1);
    out->name = row_text(statement, 2, arena);
    out->sale_start_ms = cell_int_or(statement, 4, TIME_NONE);
    out->sale_end_ms = cell_int_or(statement, 5, TIME_MAX);
    cell_code(statement, 6, out->currency);
    out->created_ms = cell_int(statement, 7);
    out->updated_ms = cell_int(statement, 8);
    out->version = (int32_t)cell_int(statement, 9);
    int at = 10;
#define READ_POLICY(name, initial, least, most) out->policy.name = (int32_t)cell_int(statement, at++);
    POLICY_MAP(READ_POLICY)
#undef READ_POLICY
    return out->name != NULL && state != NULL && event_state_parse(state, &out->state);
}
