/* SPDX-License-Identifier: Apache-2.0
 * Writes one unit inside the batch's open transaction, after guard.c has found
 * everything as the unit expects it, taken its key and set its seats.
 *
 * Invariants: (1) a hold ends once: writing one that has ended is refused as bad
 * data, so that statistics count each end once. (2) An update that finds no row
 * is refused as bad data, never passed over.
 *
 * Runs on the writing thread. It decides nothing: what to write was decided by
 * the lane. */
#include <stdio.h>

#include "store/sqlite/cells.h"
#include "store/sqlite/sqlite_int.h"

/* For updates by id: one row, or the data is wrong. */
static int unit_run_update(struct writer *writer, enum statement statement, const char *what)
{
    int rc = connection_run(&writer->connection, statement);
    if (rc == SQLITE_OK && connection_changes(&writer->connection) != 1) {
        snprintf(writer->why, sizeof(writer->why), "there is no such %s to update", what);
        return SQLITE_NOTFOUND;
    }
    return rc;
}

/* ---- One function a table ---- */

static void hold_bind_end(sqlite3_stmt *statement, int at, const struct hold_row *row)
{
    bind_time(statement, at, row->state == HOLD_EXPIRED ? row->ended_ms : 0);
    bind_time(statement, at + 1, row->state == HOLD_CONVERTED ? row->ended_ms : 0);
    bind_time(statement, at + 2, row->state == HOLD_CANCELLED ? row->ended_ms : 0);
    bind_text(statement, at + 3, row->reason == END_NONE ? NULL : end_reason_name(row->reason));
}

static int hold_insert(struct writer *writer, const struct hold_row *row)
{
    sqlite3_stmt *statement = connection_statement(&writer->connection, STATEMENT_HOLD_INSERT);
    bind_uuid(statement, 1, &row->org_id);
    bind_uuid(statement, 2, &row->id);
    bind_uuid(statement, 3, &row->event_id);
    bind_uuid(statement, 4, &row->seat_id);
    bind_uuid(statement, 5, &row->user_id);
    bind_uuid(statement, 6, &row->checkout_id);
    bind_text(statement, 7, row->cart_token != NULL ? row->cart_token : "");
    bind_text(statement, 8, hold_state_name(row->state));
    bind_text(statement, 9, hold_source_name(row->source));
    bind_int(statement, 10, row->price_cents);
    bind_int(statement, 11, row->created_ms);
    bind_int(statement, 12, row->held_until_ms);
    hold_bind_end(statement, 13, row);
    bind_text(statement, 17, row->notes);
    return connection_run(&writer->connection, STATEMENT_HOLD_INSERT);
}

static int hold_update(struct writer *writer, const struct hold_row *row)
{
    enum statement kind = row->state == HOLD_ACTIVE ? STATEMENT_HOLD_UPDATE : STATEMENT_HOLD_END;
    sqlite3_stmt *statement = connection_statement(&writer->connection, kind);
    bind_uuid(statement, 1, &row->org_id);
    bind_uuid(statement, 2, &row->id);
    bind_uuid(statement, 3, &row->checkout_id);
    bind_text(statement, 4, row->cart_token != NULL ? row->cart_token : "");
    bind_int(statement, 5, row->price_cents);
    bind_int(statement, 6, row->held_until_ms);
    bind_text(statement, 7, row->notes);
    if (kind == STATEMENT_HOLD_END) {
        bind_text(statement, 8, hold_state_name(row->state));
        hold_bind_end(statement, 9, row);
    }
    return unit_run_update(writer, kind, "active hold");
}

static int checkout_insert(struct writer *writer, const struct checkout_row *row)
{
    sqlite3_stmt *statement = connection_statement(&writer->connection, STATEMENT_CHECKOUT_INSERT);
    bind_uuid(statement, 1, &row->org_id);
    bind_uuid(statement, 2, &row->id);
    bind_uuid(statement, 3, &row->event_id);
    bind_uuid(statement, 4, &row->user_id);
    bind_text(statement, 5, checkout_state_name(row->state));
    bind_text(statement, 6, refund_state_name(row->refund));
    bind_text(statement, 7, row->reason == END_NONE ? NULL : end_reason_name(row->reason));
    bind_text(statement, 8, row->currency);
    bind_int(statement, 9, row->total_cents);
    bind_int(statement, 10, row->created_ms);
    bind_int(statement, 11, row->expires_ms);
    bind_time(statement, 12, row->paying_since_ms);
    bind_time(statement, 13, row->payment_deadline_ms);
    bind_time(statement, 14, row->ended_ms);
    bind_text(statement, 15, row->payment_token);
    bind_text(statement, 16, row->notes);
    bind_int(statement, 17, row->version);
    bind_uuid(statement, 18, &row->payer);
    bind_time(statement, 19, row->payer_until_ms);
    return connection_run(&writer->connection, STATEMENT_CHECKOUT_INSERT);
}

static int checkout_update(struct writer *writer, const struct checkout_row *row)
{
    sqlite3_stmt *statement = connection_statement(&writer->connection, STATEMENT_CHECKOUT_UPDATE);
    bind_uuid(statement, 1, &row->org_id);
    bind_uuid(statement, 2, &row->id);
    bind_text(statement, 3, checkout_state_name(row->state));
    bind_text(statement, 4, refund_state_name(row->refund));
    bind_text(statement, 5, row->reason == END_NONE ? NULL : end_reason_name(row->reason));
    bind_int(statement, 6, row->total_cents);
    bind_int(statement, 7, row->expires_ms);
    bind_time(statement, 8, row->paying_since_ms);
    bind_time(statement, 9, row->payment_deadline_ms);
    bind_time(statement, 10, row->ended_ms);
    bind_text(statement, 11, row->payment_token);
    bind_text(statement, 12, row->notes);
    bind_int(statement, 13, row->version);
    bind_uuid(statement, 14, &row->payer);
    bind_time(statement, 15, row->payer_until_ms);
    return unit_run_update(writer, STATEMENT_CHECKOUT_UPDATE, "checkout");
}

static int ticket_write(struct writer *writer, const struct ticket_write *write)
{
    const struct ticket_row *row = &write->row;
    enum statement kind = write->insert ? STATEMENT_TICKET_INSERT : STATEMENT_TICKET_UPDATE;
    sqlite3_stmt *statement = connection_statement(&writer->connection, kind);
    bind_uuid(statement, 1, &row->org_id);
    bind_uuid(statement, 2, &row->id);
    if (!write->insert) {
        bind_time(statement, 3, row->refunded_ms);
        return unit_run_update(writer, kind, "ticket");
    }
    bind_uuid(statement, 3, &row->event_id);
    bind_uuid(statement, 4, &row->seat_id);
    bind_uuid(statement, 5, &row->hold_id);
    bind_uuid(statement, 6, &row->checkout_id);
    bind_uuid(statement, 7, &row->user_id);
    bind_int(statement, 8, row->price_cents);
    bind_text(statement, 9, row->code);
    bind_int(statement, 10, row->created_ms);
    bind_time(statement, 11, row->refunded_ms);
    return connection_run(&writer->connection, kind);
}

static int audit_insert(struct writer *writer, const struct audit_row *row)
{
    sqlite3_stmt *statement = connection_statement(&writer->connection, STATEMENT_AUDIT_INSERT);
    bind_uuid(statement, 1, &row->org_id);
    bind_uuid(statement, 2, &row->actor_id);
    bind_text(statement, 3, role_name(row->role));
    bind_text(statement, 4, audit_action_name(row->action));
    bind_text(statement, 5, row->entity_type);
    bind_uuid(statement, 6, &row->entity_id);
    bind_uuid(statement, 7, &row->seat_id);
    bind_uuid(statement, 8, &row->event_id);
    bind_uuid(statement, 9, &row->checkout_id);
    bind_uuid(statement, 10, &row->user_id);
    bind_text(statement, 11, row->scenario);
    bind_text(statement, 12, row->reason);
    bind_text(statement, 13, row->before);
    bind_text(statement, 14, row->after);
    bind_int_unless(statement, 15, row->held_duration_seconds, -1);
    bind_text(statement, 16, row->ip);
    bind_text(statement, 17, row->user_agent);
    bind_text(statement, 18, row->request_id);
    bind_int(statement, 19, row->created_ms);
    return connection_run(&writer->connection, STATEMENT_AUDIT_INSERT);
}

static int event_write(struct writer *writer, const struct event_write *write)
{
    const struct event_row *row = &write->row;
    enum statement kind = write->insert ? STATEMENT_EVENT_INSERT : STATEMENT_EVENT_UPDATE;
    sqlite3_stmt *statement = connection_statement(&writer->connection, kind);
    bind_uuid(statement, 1, &row->org_id);
    bind_uuid(statement, 2, &row->id);
    bind_text(statement, 3, row->name);
    bind_text(statement, 4, event_state_name(row->state));
    bind_int_unless(statement, 5, row->sale_start_ms, TIME_NONE);
    bind_int_unless(statement, 6, row->sale_end_ms, TIME_MAX);
    bind_text(statement, 7, row->currency);
    if (write->insert)
        bind_int(statement, 8, row->created_ms);
    bind_int(statement, 9, row->updated_ms);
    bind_int(statement, 10, row->version);
    int at = 11;
#define BIND_POLICY(name, initial, least, most) bind_int(statement, at++, row->policy.name);
    POLICY_MAP(BIND_POLICY)
#undef BIND_POLICY
    int rc =
        write->insert ? connection_run(&writer->connection, kind) : unit_run_update(writer, kind, "event");
    if (rc == SQLITE_OK)
        guard_remember_event(writer, &row->org_id, &row->id, row->version);
    return rc;
}

static int catalogue_write(struct writer *writer, const struct store_unit *unit)
{
    struct connection *connection = &writer->connection;
    int rc = SQLITE_OK;
    for (const struct org_write *w = unit->orgs; w != NULL && rc == SQLITE_OK; w = w->next) {
        sqlite3_stmt *statement = connection_statement(connection, STATEMENT_ORGANIZATION_INSERT);
        bind_uuid(statement, 1, &w->row.id);
        bind_text(statement, 2, w->row.name);
        bind_int(statement, 3, w->row.created_ms);
        rc = connection_run(connection, STATEMENT_ORGANIZATION_INSERT);
    }
    for (const struct user_write *w = unit->users; w != NULL && rc == SQLITE_OK; w = w->next) {
        enum statement kind = w->seen ? STATEMENT_USER_SEEN : STATEMENT_USER_WRITE;
        sqlite3_stmt *statement = connection_statement(connection, kind);
        bind_uuid(statement, 1, &w->row.org_id);
        bind_uuid(statement, 2, &w->row.id);
        bind_int(statement, 3, w->row.disabled);
        bind_int(statement, 4, w->row.created_ms);
        rc = connection_run(connection, kind);
    }
    for (const struct event_write *w = unit->events; w != NULL && rc == SQLITE_OK; w = w->next)
        rc = event_write(writer, w);
    for (const struct layout_write *w = unit->layouts; w != NULL && rc == SQLITE_OK; w = w->next)
        rc = layout_replace(writer, w);
    for (const struct block_write *w = unit->blocks; w != NULL && rc == SQLITE_OK; w = w->next) {
        sqlite3_stmt *statement = connection_statement(connection, STATEMENT_BLOCK_UPDATE);
        bind_uuid(statement, 1, &w->row.org_id);
        bind_uuid(statement, 2, &w->row.event_id);
        bind_uuid(statement, 3, &w->row.id);
        bind_text(statement, 4, w->row.name);
        bind_int(statement, 5, w->row.capacity);
        bind_int(statement, 6, w->row.price_cents);
        rc = unit_run_update(writer, STATEMENT_BLOCK_UPDATE, "block");
    }
    return rc;
}

static int snapshot_write(struct writer *writer, const struct snapshot_write *write)
{
    sqlite3_stmt *statement = connection_statement(&writer->connection, STATEMENT_SNAPSHOT_WRITE);
    bind_uuid(statement, 1, &write->org_id);
    bind_uuid(statement, 2, &write->event_id);
    bind_int(statement, 3, write->at_ms);
    bind_int(statement, 4, write->counts[SEAT_AVAILABLE]);
    bind_int(statement, 5, write->counts[SEAT_HELD]);
    bind_int(statement, 6, write->counts[SEAT_SOLD]);
    bind_int(statement, 7, write->counts[SEAT_BLOCKED]);
    return connection_run(&writer->connection, STATEMENT_SNAPSHOT_WRITE);
}

static int delivery_write(struct writer *writer, const struct delivery_row *row)
{
    sqlite3_stmt *statement = connection_statement(&writer->connection, STATEMENT_DELIVERY_WRITE);
    bind_text(statement, 1, row->name);
    bind_int(statement, 2, row->position.from);
    bind_int(statement, 3, row->position.to);
    bind_int(statement, 4, row->position.id);
    bind_uuid(statement, 5, &row->node);
    bind_int(statement, 6, row->lease_until_ms);
    bind_int(statement, 7, row->version);
    return connection_run(&writer->connection, STATEMENT_DELIVERY_WRITE);
}

static int dead_letter_insert(struct writer *writer, const struct dead_letter_row *row)
{
    sqlite3_stmt *statement = connection_statement(&writer->connection, STATEMENT_DEAD_LETTER_INSERT);
    bind_uuid(statement, 1, &row->org_id);
    bind_uuid(statement, 2, &row->id);
    bind_text(statement, 3, row->delivery);
    bind_text(statement, 4, row->type);
    bind_text(statement, 5, row->body);
    bind_text(statement, 6, row->reason);
    bind_int(statement, 7, row->try_count);
    bind_int(statement, 8, row->created_ms);
    return connection_run(&writer->connection, STATEMENT_DEAD_LETTER_INSERT);
}

static int order_claim(struct writer *writer, const struct order_claim *claim)
{
    const struct order_row *row = &claim->row;
    sqlite3_stmt *statement = connection_statement(&writer->connection, STATEMENT_ORDER_CLAIM);
    bind_text(statement, 1, row->topic);
    bind_int(statement, 2, row->partition);
    bind_int(statement, 3, row->epoch);
    bind_int(statement, 4, row->next_offset);
    bind_uuid(statement, 5, &row->node);
    bind_int(statement, 6, row->claimed_ms);
    bind_int(statement, 7, claim->resets);
    return connection_run(&writer->connection, STATEMENT_ORDER_CLAIM);
}

static int order_note(struct writer *writer, const struct order_check *check)
{
    if (check->next_offset == 0)
        return SQLITE_OK;
    sqlite3_stmt *statement = connection_statement(&writer->connection, STATEMENT_ORDER_NOTE);
    bind_text(statement, 1, check->topic);
    bind_int(statement, 2, check->partition);
    bind_int(statement, 3, check->next_offset);
    return connection_run(&writer->connection, STATEMENT_ORDER_NOTE);
}

/* Holds that end come first: a unit may end a hold and make another on the same seat. */
static int holds_write(struct writer *writer, const struct hold_write *first)
{
    int rc = SQLITE_OK;
    for (const struct hold_write *w = first; w != NULL && rc == SQLITE_OK; w = w->next) {
        if (!w->insert)
            rc = hold_update(writer, &w->row);
    }
    for (const struct hold_write *w = first; w != NULL && rc == SQLITE_OK; w = w->next) {
        if (w->insert)
            rc = hold_insert(writer, &w->row);
    }
    return rc;
}

static int rest_write(struct writer *writer, const struct store_unit *unit)
{
    int rc = catalogue_write(writer, unit);
    for (const struct checkout_write *w = unit->checkouts; w != NULL && rc == SQLITE_OK; w = w->next)
        rc = w->insert ? checkout_insert(writer, &w->row) : checkout_update(writer, &w->row);
    if (rc == SQLITE_OK)
        rc = holds_write(writer, unit->holds);
    for (const struct ticket_write *w = unit->tickets; w != NULL && rc == SQLITE_OK; w = w->next)
        rc = ticket_write(writer, w);
    for (const struct snapshot_write *w = unit->snapshots; w != NULL && rc == SQLITE_OK; w = w->next)
        rc = snapshot_write(writer, w);
    for (const struct delivery_write *w = unit->deliveries; w != NULL && rc == SQLITE_OK; w = w->next)
        rc = delivery_write(writer, &w->row);
    for (const struct dead_letter_write *w = unit->dead_letters; w != NULL && rc == SQLITE_OK; w = w->next)
        rc = dead_letter_insert(writer, &w->row);
    for (const struct order_claim *w = unit->order_claims; w != NULL && rc == SQLITE_OK; w = w->next)
        rc = order_claim(writer, w);
    for (const struct order_check *w = unit->order_checks; w != NULL && rc == SQLITE_OK; w = w->next)
        rc = order_note(writer, w);
    for (const struct audit_write *w = unit->audits; w != NULL && rc == SQLITE_OK; w = w->next)
        rc = audit_insert(writer, &w->row);
    return rc;
}

int unit_write(struct writer *writer, struct store_unit *unit)
{
    unit->result = UNIT_OK;
    writer->why[0] = '\0';
    int rc = guard_unit(writer, unit);
    if (rc == SQLITE_OK && unit->result == UNIT_OK)
        rc = rest_write(writer, unit);
    if (rc != SQLITE_OK && writer->why[0] == '\0')
        snprintf(writer->why, sizeof(writer->why), "%s", sqlite3_errmsg(writer->connection.db));
    return rc;
}
