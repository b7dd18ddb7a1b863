/* SPDX-License-Identifier: Apache-2.0
 * Writes the rows of a wave, one statement per table, all of them queued for
 * one round trip. Only units whose result is UNIT_OK take part.
 *
 * Invariants: (1) every statement that updates is told how many rows it must
 * find, and fails if it finds fewer, so that nothing of the wave stays, even
 * if COMMIT is queued behind it.
 * (2) Holds that end are written before those that are made: a unit may end a
 * hold and make another on the same seat. (3) A hold ends once, so statistics
 * count each end once.
 *
 * Runs on the writer's thread. It decides nothing: what to write was decided by
 * the lane. */
#include "base/clock.h"
#include "store/postgres/postgres_int.h"

#define OK_FOR_EACH(unit, wave) PG_WAVE_FOR_EACH(unit, wave) if (unit->result == UNIT_OK)

static void rows_insert(struct pg_writer *writer, enum pg_statement statement, int32_t count)
{
    if (count > 0)
        (void)pg_send(&writer->connection, statement, &writer->params);
}

/* The last parameter of a statement that updates is how many rows it must find. */
static void rows_update(struct pg_writer *writer, enum pg_statement statement, int32_t count)
{
    if (count == 0)
        return;
    pg_set_int(&writer->params, writer->params.count, count);
    (void)pg_send(&writer->connection, statement, &writer->params);
}

/* ---- Seats, holds, checkouts, tickets ---- */

static void seats_set(struct pg_writer *writer, const struct pg_wave *wave)
{
    struct pg_params *p = pg_writer_params(writer);
    int32_t count = 0;
    OK_FOR_EACH(unit, wave)
    for (const struct seat_write *w = unit->seats; w != NULL; w = w->next, count++) {
        pg_add_uuid(p, 0, &w->row.org_id);
        pg_add_uuid(p, 1, &w->row.id);
        pg_add_int(p, 2, w->row.version);
        pg_add_text(p, 3, seat_state_name(w->row.state));
        pg_add_time(p, 4, w->row.held_until_ms);
        pg_add_time(p, 5, w->row.locked_ms);
        pg_add_uuid(p, 6, &w->row.hold_id);
        pg_add_uuid(p, 7, &w->row.ticket_id);
    }
    rows_update(writer, PG_SEAT_SET, count);
}

static const char *reason_text(enum end_reason reason)
{
    return reason == END_NONE ? NULL : end_reason_name(reason);
}

static const char *text_or_empty(const char *text)
{
    return text != NULL ? text : "";
}

static void hold_add_end(struct pg_params *p, int at, const struct hold_row *row)
{
    pg_add_time(p, at, row->state == HOLD_EXPIRED ? row->ended_ms : 0);
    pg_add_time(p, at + 1, row->state == HOLD_CONVERTED ? row->ended_ms : 0);
    pg_add_time(p, at + 2, row->state == HOLD_CANCELLED ? row->ended_ms : 0);
    pg_add_text(p, at + 3, reason_text(row->reason));
}

static void holds_change(struct pg_writer *writer, const struct pg_wave *wave, bool ends)
{
    struct pg_params *p = pg_writer_params(writer);
    int32_t count = 0;
    OK_FOR_EACH(unit, wave)
    for (const struct hold_write *w = unit->holds; w != NULL; w = w->next) {
        const struct hold_row *row = &w->row;
        if (w->insert || (row->state != HOLD_ACTIVE) != ends)
            continue;
        count++;
        pg_add_uuid(p, 0, &row->org_id);
        pg_add_uuid(p, 1, &row->id);
        pg_add_uuid(p, 2, &row->checkout_id);
        pg_add_text(p, 3, text_or_empty(row->cart_token));
        pg_add_bigint(p, 4, row->price_cents);
        pg_add_time_unless(p, 5, row->held_until_ms, TIME_NONE);
        pg_add_text(p, 6, row->notes);
        if (ends) {
            pg_add_text(p, 7, hold_state_name(row->state));
            hold_add_end(p, 8, row);
        }
    }
    if (count > 0)
        pg_set_text(p, p->count, hold_state_name(HOLD_ACTIVE));
    rows_update(writer, ends ? PG_HOLD_END : PG_HOLD_UPDATE, count);
}

void pg_key_add(struct pg_params *p, const struct key_write *key)
{
    pg_add_uuid(p, 0, &key->org_id);
    pg_add_bytes(p, 1, key->key, sizeof(key->key));
    pg_add_bytes(p, 2, key->body, sizeof(key->body));
    pg_add_bytes(p, 3, key->result, key->result_size);
    pg_add_time_unless(p, 4, key->created_ms, INT64_MIN);
}

static void keys_insert(struct pg_writer *writer, const struct pg_wave *wave)
{
    struct pg_params *p = pg_writer_params(writer);
    int32_t count = 0;
    OK_FOR_EACH(unit, wave)
    {
        if (unit->key == NULL || pg_wave_takes_key(wave, unit))
            continue;
        count++;
        pg_key_add(p, unit->key);
    }
    rows_insert(writer, PG_KEY_INSERT, count);
}

static void holds_insert(struct pg_writer *writer, const struct pg_wave *wave)
{
    struct pg_params *p = pg_writer_params(writer);
    int32_t count = 0;
    OK_FOR_EACH(unit, wave)
    for (const struct hold_write *w = unit->holds; w != NULL; w = w->next) {
        const struct hold_row *row = &w->row;
        if (!w->insert)
            continue;
        count++;
        pg_add_uuid(p, 0, &row->org_id);
        pg_add_uuid(p, 1, &row->id);
        pg_add_uuid(p, 2, &row->event_id);
        pg_add_uuid(p, 3, &row->seat_id);
        pg_add_uuid(p, 4, &row->user_id);
        pg_add_uuid(p, 5, &row->checkout_id);
        pg_add_text(p, 6, text_or_empty(row->cart_token));
        pg_add_text(p, 7, hold_state_name(row->state));
        pg_add_text(p, 8, hold_source_name(row->source));
        pg_add_bigint(p, 9, row->price_cents);
        pg_add_time_unless(p, 10, row->created_ms, TIME_NONE);
        pg_add_time_unless(p, 11, row->held_until_ms, TIME_NONE);
        hold_add_end(p, 12, row);
        pg_add_text(p, 16, row->notes);
    }
    rows_insert(writer, PG_HOLD_INSERT, count);
}

static void checkouts_insert(struct pg_writer *writer, const struct pg_wave *wave)
{
    struct pg_params *p = pg_writer_params(writer);
    int32_t count = 0;
    OK_FOR_EACH(unit, wave)
    for (const struct checkout_write *w = unit->checkouts; w != NULL; w = w->next) {
        const struct checkout_row *row = &w->row;
        if (!w->insert)
            continue;
        count++;
        pg_add_uuid(p, 0, &row->org_id);
        pg_add_uuid(p, 1, &row->id);
        pg_add_uuid(p, 2, &row->event_id);
        pg_add_uuid(p, 3, &row->user_id);
        pg_add_text(p, 4, checkout_state_name(row->state));
        pg_add_text(p, 5, refund_state_name(row->refund));
        pg_add_text(p, 6, reason_text(row->reason));
        pg_add_text(p, 7, row->currency);
        pg_add_bigint(p, 8, row->total_cents);
        pg_add_time_unless(p, 9, row->created_ms, TIME_NONE);
        pg_add_time_unless(p, 10, row->expires_ms, TIME_NONE);
        pg_add_time(p, 11, row->paying_since_ms);
        pg_add_time(p, 12, row->payment_deadline_ms);
        pg_add_time(p, 13, row->ended_ms);
        pg_add_text(p, 14, row->payment_token);
        pg_add_text(p, 15, row->notes);
        pg_add_uuid(p, 16, &row->payer);
        pg_add_time(p, 17, row->payer_until_ms);
    }
    rows_insert(writer, PG_CHECKOUT_INSERT, count);
}

static void checkouts_update(struct pg_writer *writer, const struct pg_wave *wave)
{
    struct pg_params *p = pg_writer_params(writer);
    int32_t count = 0;
    OK_FOR_EACH(unit, wave)
    for (const struct checkout_write *w = unit->checkouts; w != NULL; w = w->next) {
        const struct checkout_row *row = &w->row;
        if (w->insert)
            continue;
        count++;
        pg_add_uuid(p, 0, &row->org_id);
        pg_add_uuid(p, 1, &row->id);
        pg_add_text(p, 2, checkout_state_name(row->state));
        pg_add_text(p, 3, refund_state_name(row->refund));
        pg_add_text(p, 4, reason_text(row->reason));
        pg_add_bigint(p, 5, row->total_cents);
        pg_add_time_unless(p, 6, row->expires_ms, TIME_NONE);
        pg_add_time(p, 7, row->paying_since_ms);
        pg_add_time(p, 8, row->payment_deadline_ms);
        pg_add_time(p, 9, row->ended_ms);
        pg_add_text(p, 10, row->payment_token);
        pg_add_text(p, 11, row->notes);
        pg_add_uuid(p, 12, &row->payer);
        pg_add_time(p, 13, row->payer_until_ms);
        pg_add_int(p, 14, row->version);
    }
    rows_update(writer, PG_CHECKOUT_UPDATE, count);
}

static void tickets_insert(struct pg_writer *writer, const struct pg_wave *wave)
{
    struct pg_params *p = pg_writer_params(writer);
    int32_t count = 0;
    OK_FOR_EACH(unit, wave)
    for (const struct ticket_write *w = unit->tickets; w != NULL; w = w->next) {
        const struct ticket_row *row = &w->row;
        if (!w->insert)
            continue;
        count++;
        pg_add_uuid(p, 0, &row->org_id);
        pg_add_uuid(p, 1, &row->id);
        pg_add_uuid(p, 2, &row->event_id);
        pg_add_uuid(p, 3, &row->seat_id);
        pg_add_uuid(p, 4, &row->hold_id);
        pg_add_uuid(p, 5, &row->checkout_id);
        pg_add_uuid(p, 6, &row->user_id);
        pg_add_bigint(p, 7, row->price_cents);
        pg_add_text(p, 8, row->code);
        pg_add_time_unless(p, 9, row->created_ms, TIME_NONE);
        pg_add_time(p, 10, row->refunded_ms);
    }
    rows_insert(writer, PG_TICKET_INSERT, count);
}

static void tickets_update(struct pg_writer *writer, const struct pg_wave *wave)
{
    struct pg_params *p = pg_writer_params(writer);
    int32_t count = 0;
    OK_FOR_EACH(unit, wave)
    for (const struct ticket_write *w = unit->tickets; w != NULL; w = w->next) {
        if (w->insert)
            continue;
        count++;
        pg_add_uuid(p, 0, &w->row.org_id);
        pg_add_uuid(p, 1, &w->row.id);
        pg_add_time(p, 2, w->row.refunded_ms);
    }
    rows_update(writer, PG_TICKET_UPDATE, count);
}

/* ---- The log, snapshots ---- */

static void audits_insert(struct pg_writer *writer, const struct pg_wave *wave)
{
    struct pg_params *p = pg_writer_params(writer);
    int32_t count = 0;
    OK_FOR_EACH(unit, wave)
    for (const struct audit_write *w = unit->audits; w != NULL; w = w->next, count++) {
        const struct audit_row *row = &w->row;
        pg_add_uuid(p, 0, &row->org_id);
        pg_add_uuid(p, 1, &row->actor_id);
        pg_add_text(p, 2, role_name(row->role));
        pg_add_text(p, 3, audit_action_name(row->action));
        pg_add_text(p, 4, row->entity_type);
        pg_add_uuid(p, 5, &row->entity_id);
        pg_add_uuid(p, 6, &row->seat_id);
        pg_add_uuid(p, 7, &row->event_id);
        pg_add_uuid(p, 8, &row->checkout_id);
        pg_add_uuid(p, 9, &row->user_id);
        pg_add_text(p, 10, row->scenario);
        pg_add_text(p, 11, row->reason);
        pg_add_text(p, 12, row->before);
        pg_add_text(p, 13, row->after);
        pg_add_bigint_unless(p, 14, row->held_duration_seconds, -1);
        pg_add_text(p, 15, row->ip);
        pg_add_text(p, 16, row->user_agent);
        pg_add_text(p, 17, row->request_id);
        pg_add_time_unless(p, 18, row->created_ms, TIME_NONE);
    }
    rows_insert(writer, PG_AUDIT_INSERT, count);
}

static void snapshots_write(struct pg_writer *writer, const struct pg_wave *wave)
{
    struct pg_params *p = pg_writer_params(writer);
    int32_t count = 0;
    OK_FOR_EACH(unit, wave)
    for (const struct snapshot_write *w = unit->snapshots; w != NULL; w = w->next, count++) {
        pg_add_uuid(p, 0, &w->org_id);
        pg_add_uuid(p, 1, &w->event_id);
        pg_add_time_unless(p, 2, w->at_ms, TIME_NONE);
        pg_add_int(p, 3, w->counts[SEAT_AVAILABLE]);
        pg_add_int(p, 4, w->counts[SEAT_HELD]);
        pg_add_int(p, 5, w->counts[SEAT_SOLD]);
        pg_add_int(p, 6, w->counts[SEAT_BLOCKED]);
    }
    rows_insert(writer, PG_SNAPSHOT_WRITE, count);
}

/* ---- The catalogue ---- */

static void organizations_insert(struct pg_writer *writer, const struct pg_wave *wave)
{
    struct pg_params *p = pg_writer_params(writer);
    int32_t count = 0;
    OK_FOR_EACH(unit, wave)
    for (const struct org_write *w = unit->orgs; w != NULL; w = w->next, count++) {
        pg_add_uuid(p, 0, &w->row.id);
        pg_add_text(p, 1, w->row.name);
        pg_add_time_unless(p, 2, w->row.created_ms, TIME_NONE);
    }
    rows_insert(writer, PG_ORGANIZATION_INSERT, count);
}

void pg_user_add(struct pg_params *p, const struct user_row *row)
{
    pg_add_uuid(p, 0, &row->org_id);
    pg_add_uuid(p, 1, &row->id);
    pg_add_bool(p, 2, row->disabled);
    pg_add_time_unless(p, 3, row->created_ms, TIME_NONE);
}

/* Those who were merely seen were written by the comparison. */
static void users_write(struct pg_writer *writer, const struct pg_wave *wave)
{
    struct pg_params *p = pg_writer_params(writer);
    int32_t count = 0;
    OK_FOR_EACH(unit, wave)
    for (const struct user_write *w = unit->users; w != NULL; w = w->next) {
        if (w->seen)
            continue;
        count++;
        pg_user_add(p, &w->row);
    }
    rows_insert(writer, PG_USER_WRITE, count);
}

/* Where the next parameter goes. */
static int event_add(struct pg_params *p, const struct event_row *row)
{
    pg_add_uuid(p, 0, &row->org_id);
    pg_add_uuid(p, 1, &row->id);
    pg_add_text(p, 2, row->name);
    pg_add_text(p, 3, event_state_name(row->state));
    pg_add_time_unless(p, 4, row->sale_start_ms, TIME_NONE);
    pg_add_time_unless(p, 5, row->sale_end_ms, TIME_MAX);
    pg_add_text(p, 6, row->currency);
    pg_add_time_unless(p, 7, row->created_ms, TIME_NONE);
    pg_add_time_unless(p, 8, row->updated_ms, TIME_NONE);
    int at = 9;
#define ADD_POLICY(name, initial, least, most) pg_add_int(p, at++, row->policy.name);
    POLICY_MAP(ADD_POLICY)
#undef ADD_POLICY
    return at;
}

static void events_write(struct pg_writer *writer, const struct pg_wave *wave, bool insert)
{
    struct pg_params *p = pg_writer_params(writer);
    int32_t count = 0;
    OK_FOR_EACH(unit, wave)
    for (const struct event_write *w = unit->events; w != NULL; w = w->next) {
        if (w->insert != insert)
            continue;
        count++;
        int at = event_add(p, &w->row);
        if (!insert)
            pg_add_int(p, at, w->row.version);
    }
    if (insert)
        rows_insert(writer, PG_EVENT_INSERT, count);
    else
        rows_update(writer, PG_EVENT_UPDATE, count);
}

static void blocks_update(struct pg_writer *writer, const struct pg_wave *wave)
{
    struct pg_params *p = pg_writer_params(writer);
    int32_t count = 0;
    OK_FOR_EACH(unit, wave)
    for (const struct block_write *w = unit->blocks; w != NULL; w = w->next, count++) {
        pg_add_uuid(p, 0, &w->row.org_id);
        pg_add_uuid(p, 1, &w->row.event_id);
        pg_add_uuid(p, 2, &w->row.id);
        pg_add_text(p, 3, w->row.name);
        pg_add_int(p, 4, w->row.capacity);
        pg_add_bigint(p, 5, w->row.price_cents);
    }
    rows_update(writer, PG_BLOCK_UPDATE, count);
}

/* ---- Deliveries of the change feed ---- */

void pg_delivery_add(struct pg_params *p, const struct delivery_row *row)
{
    pg_add_text(p, 0, row->name);
    pg_add_bigint(p, 1, row->position.from);
    pg_add_bigint(p, 2, row->position.to);
    pg_add_bigint(p, 3, row->position.id);
    pg_add_uuid(p, 4, &row->node);
    pg_add_time(p, 5, row->lease_until_ms);
    pg_add_int(p, 6, row->version);
}

/* New ones were inserted by the comparison. */
static void deliveries_update(struct pg_writer *writer, const struct pg_wave *wave)
{
    struct pg_params *p = pg_writer_params(writer);
    int32_t count = 0;
    OK_FOR_EACH(unit, wave)
    for (const struct delivery_write *w = unit->deliveries; w != NULL; w = w->next) {
        if (w->row.version == 1)
            continue;
        count++;
        pg_delivery_add(p, &w->row);
    }
    rows_update(writer, PG_DELIVERY_UPDATE, count);
}

static void dead_letters_insert(struct pg_writer *writer, const struct pg_wave *wave)
{
    struct pg_params *p = pg_writer_params(writer);
    int32_t count = 0;
    OK_FOR_EACH(unit, wave)
    for (const struct dead_letter_write *w = unit->dead_letters; w != NULL; w = w->next, count++) {
        pg_add_uuid(p, 0, &w->row.org_id);
        pg_add_uuid(p, 1, &w->row.id);
        pg_add_text(p, 2, w->row.delivery);
        pg_add_text(p, 3, w->row.type);
        pg_add_text(p, 4, w->row.body);
        pg_add_text(p, 5, w->row.reason);
        pg_add_int(p, 6, w->row.try_count);
        pg_add_time_unless(p, 7, w->row.created_ms, TIME_NONE);
    }
    rows_insert(writer, PG_DEAD_LETTER_INSERT, count);
}

static void rest_send(struct pg_writer *writer, const struct pg_wave *wave)
{
    checkouts_insert(writer, wave);
    checkouts_update(writer, wave);
    deliveries_update(writer, wave);
    pg_orders_update(writer, wave);
    seats_set(writer, wave);
    holds_change(writer, wave, true);
    holds_change(writer, wave, false);
    holds_insert(writer, wave);
    tickets_insert(writer, wave);
    tickets_update(writer, wave);
    snapshots_write(writer, wave);
    dead_letters_insert(writer, wave);
    keys_insert(writer, wave);
    audits_insert(writer, wave);
}

enum pg_trouble pg_wave_send(struct pg_writer *writer, const struct pg_wave *wave)
{
    enum pg_trouble trouble = PG_NONE;
    organizations_insert(writer, wave);
    users_write(writer, wave);
    events_write(writer, wave, true);
    events_write(writer, wave, false);
    OK_FOR_EACH(unit, wave)
    for (const struct layout_write *w = unit->layouts; w != NULL && trouble == PG_NONE; w = w->next)
        trouble = pg_layout_write(writer, w);
    if (trouble == PG_NONE) {
        blocks_update(writer, wave);
        rest_send(writer, wave);
    }
    return trouble;
}
