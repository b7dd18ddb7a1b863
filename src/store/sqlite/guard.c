/* SPDX-License-Identifier: Apache-2.0
 * Compares what a unit relies on with what is there, then takes its idempotency
 * key and sets its seats. What comes after a unit passed here can fail only
 * because its data is bad.
 *
 * Invariants: (1) nothing of a unit is written before everything it compares was
 * found as expected and its key was free; there is one writer, so what was found
 * stays so. (2) UNIT_MISSED fills every `missed` mark of the unit, and `current`
 * of its seats. (3) Statistics in the file are those before the batch: what its
 * earlier units changed is added. (4) The versions of events in memory are those
 * of the file inside the transaction at hand; after a rollback they are
 * forgotten and read again.
 *
 * Runs on the writing thread. */
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "store/sqlite/cells.h"
#include "store/sqlite/sqlite_int.h"

#define KEY_LIFE_MS ((int64_t)IDEMPOTENCY_HOURS * 3600 * 1000)

/* ---- Seats ---- */

/* The place of a seat; false if its event has no such place. */
static int seat_place(struct writer *writer, const struct seat_row *row, int64_t *place, bool *exists)
{
    int64_t first, count;
    int rc = layout_place(writer, &row->org_id, &row->event_id, &first, &count);
    *exists = rc == SQLITE_OK && row->index >= 0 && row->index < count;
    *place = *exists ? first + row->index : 0;
    return rc == SQLITE_NOTFOUND ? SQLITE_OK : rc;
}

/* Reads what is at the seat's place; all zero if there is no such seat. */
static int seat_read(struct writer *writer, const struct seat_row *wanted, struct seat_row *current)
{
    int64_t place;
    bool exists;
    *current = (struct seat_row){
        .org_id = wanted->org_id, .event_id = wanted->event_id, .id = wanted->id, .index = wanted->index};
    int rc = seat_place(writer, wanted, &place, &exists);
    if (rc != SQLITE_OK || !exists)
        return rc;
    sqlite3_stmt *statement = connection_statement(&writer->connection, STATEMENT_SEAT_AT);
    bind_int(statement, 1, place);
    bind_uuid(statement, 2, &wanted->id);
    bind_uuid(statement, 3, &wanted->org_id);
    rc = sqlite3_step(statement);
    bool known = rc != SQLITE_ROW || row_read_seat(statement, wanted->index, current);
    int reset = sqlite3_reset(statement);
    if (!known)
        return SQLITE_CORRUPT;
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : reset;
}

/* Reads every seat of the unit and marks those that are not as expected. */
static int seats_compare(struct writer *writer, struct store_unit *unit)
{
    for (struct seat_write *w = unit->seats; w != NULL; w = w->next) {
        int rc = seat_read(writer, &w->row, &w->current);
        if (rc != SQLITE_OK)
            return rc;
        w->missed = w->current.version != w->row.version - 1;
        if (w->missed)
            unit->result = UNIT_MISSED;
    }
    return SQLITE_OK;
}

/* One compare-and-set; *set says whether the row was as expected. */
static int seat_set(struct writer *writer, const struct seat_row *row, bool *set)
{
    int64_t place;
    bool exists;
    *set = false;
    int rc = seat_place(writer, row, &place, &exists);
    if (rc != SQLITE_OK || !exists)
        return rc;
    sqlite3_stmt *statement = connection_statement(&writer->connection, STATEMENT_SEAT_UPDATE);
    bind_int(statement, 1, place);
    bind_uuid(statement, 2, &row->id);
    bind_uuid(statement, 3, &row->org_id);
    bind_int(statement, 4, row->version - 1);
    bind_text(statement, 5, seat_state_name(row->state));
    bind_time(statement, 6, row->held_until_ms);
    bind_time(statement, 7, row->locked_ms);
    bind_uuid(statement, 8, &row->hold_id);
    bind_uuid(statement, 9, &row->ticket_id);
    rc = connection_run(&writer->connection, STATEMENT_SEAT_UPDATE);
    *set = rc == SQLITE_OK && connection_changes(&writer->connection) == 1;
    return rc;
}

/* ---- The idempotency key ---- */

static int key_insert(struct writer *writer, const struct key_write *key, bool *taken)
{
    struct connection *connection = &writer->connection;
    sqlite3_stmt *statement = connection_statement(connection, STATEMENT_KEY_INSERT);
    bind_uuid(statement, 1, &key->org_id);
    bind_blob(statement, 2, key->key, sizeof(key->key));
    bind_blob(statement, 3, key->body, sizeof(key->body));
    if (key->result != NULL)
        bind_blob(statement, 4, key->result, key->result_size);
    else
        bind_null(statement, 4);
    bind_int(statement, 5, key->created_ms);
    int rc = connection_run(connection, STATEMENT_KEY_INSERT);
    *taken = rc == SQLITE_OK && connection_changes(connection) == 0;
    return rc;
}

/* A key older than its life makes way: it is deleted, not changed, so that keys lie in order of making. */
static int key_take(struct writer *writer, const struct key_write *key, bool *taken)
{
    struct connection *connection = &writer->connection;
    int rc = key_insert(writer, key, taken);
    if (rc != SQLITE_OK || !*taken)
        return rc;
    sqlite3_stmt *statement = connection_statement(connection, STATEMENT_KEY_DELETE_OLD);
    bind_uuid(statement, 1, &key->org_id);
    bind_blob(statement, 2, key->key, sizeof(key->key));
    bind_int(statement, 3, key->created_ms - KEY_LIFE_MS);
    rc = connection_run(connection, STATEMENT_KEY_DELETE_OLD);
    if (rc == SQLITE_OK && connection_changes(connection) == 1)
        rc = key_insert(writer, key, taken);
    return rc;
}

/* ---- Versions ---- */

/* The first cell of a bound statement; 0 if it has no row. */
static int number_read(sqlite3_stmt *statement, int64_t *number)
{
    int rc = sqlite3_step(statement);
    *number = rc == SQLITE_ROW ? cell_int(statement, 0) : 0;
    int reset = sqlite3_reset(statement);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : reset;
}

struct event_version {
    struct uuid org_id;
    int64_t version;
};

void guard_forget(struct writer *writer)
{
    void *version;
    for (size_t i = 0; (version = map_next(&writer->versions, &i)) != NULL;)
        free(version);
    map_deinit(&writer->versions);
    map_init(&writer->versions);
}

void guard_remember_event(struct writer *writer, const struct uuid *org_id, const struct uuid *event_id,
                          int64_t version)
{
    struct event_version *known = map_get(&writer->versions, event_id);
    if (known == NULL) {
        known = malloc(sizeof(*known));
        CHECK(known != NULL);
        map_put(&writer->versions, event_id, known);
    }
    *known = (struct event_version){.org_id = *org_id, .version = version};
}

/* 0: there is no such event. */
static int event_version(struct writer *writer, const struct uuid *org_id, const struct uuid *event_id,
                         int64_t *version)
{
    const struct event_version *known = map_get(&writer->versions, event_id);
    if (known != NULL && uuid_equal(&known->org_id, org_id)) {
        *version = known->version;
        return SQLITE_OK;
    }
    sqlite3_stmt *statement = connection_statement(&writer->connection, STATEMENT_EVENT_VERSION);
    bind_uuid(statement, 1, org_id);
    bind_uuid(statement, 2, event_id);
    int rc = number_read(statement, version);
    if (rc == SQLITE_OK && *version != 0)
        guard_remember_event(writer, org_id, event_id, *version);
    return rc;
}

static int events_compare(struct writer *writer, struct store_unit *unit)
{
    int64_t version = 0;
    int rc = SQLITE_OK;
    for (struct event_check *w = unit->checks; w != NULL && rc == SQLITE_OK; w = w->next) {
        rc = event_version(writer, &w->org_id, &w->event_id, &version);
        w->missed = version != w->version;
        if (w->missed)
            unit->result = UNIT_MISSED;
    }
    for (struct event_write *w = unit->events; w != NULL && rc == SQLITE_OK; w = w->next) {
        w->missed = false;
        if (w->insert)
            continue;
        rc = event_version(writer, &w->row.org_id, &w->row.id, &version);
        w->missed = version != w->row.version - 1;
        if (w->missed)
            unit->result = UNIT_MISSED;
    }
    return rc;
}

static int checkouts_compare(struct writer *writer, struct store_unit *unit)
{
    int64_t version = 0;
    int rc = SQLITE_OK;
    for (struct checkout_write *w = unit->checkouts; w != NULL && rc == SQLITE_OK; w = w->next) {
        w->missed = false;
        if (w->insert)
            continue;
        sqlite3_stmt *statement = connection_statement(&writer->connection, STATEMENT_CHECKOUT_VERSION);
        bind_uuid(statement, 1, &w->row.org_id);
        bind_uuid(statement, 2, &w->row.id);
        rc = number_read(statement, &version);
        w->missed = version != w->row.version - 1;
        if (w->missed)
            unit->result = UNIT_MISSED;
    }
    return rc;
}

static int deliveries_compare(struct writer *writer, struct store_unit *unit)
{
    int64_t version = 0;
    int rc = SQLITE_OK;
    for (struct delivery_write *w = unit->deliveries; w != NULL && rc == SQLITE_OK; w = w->next) {
        sqlite3_stmt *statement = connection_statement(&writer->connection, STATEMENT_DELIVERY_VERSION);
        bind_text(statement, 1, w->row.name);
        rc = number_read(statement, &version);
        w->missed = version != w->row.version - 1;
        if (w->missed)
            unit->result = UNIT_MISSED;
    }
    return rc;
}

/* 0: nobody has claimed it yet. */
static int order_epoch(struct writer *writer, const char *topic, int32_t partition, int64_t *epoch)
{
    sqlite3_stmt *statement = connection_statement(&writer->connection, STATEMENT_ORDER_EPOCH);
    bind_text(statement, 1, topic);
    bind_int(statement, 2, partition);
    return number_read(statement, epoch);
}

static int orders_compare(struct writer *writer, struct store_unit *unit)
{
    int64_t epoch = 0;
    int rc = SQLITE_OK;
    for (struct order_check *w = unit->order_checks; w != NULL && rc == SQLITE_OK; w = w->next) {
        rc = order_epoch(writer, w->topic, w->partition, &epoch);
        w->missed = epoch == 0 || epoch != w->epoch;
        if (w->missed)
            unit->result = UNIT_MISSED;
    }
    for (struct order_claim *w = unit->order_claims; w != NULL && rc == SQLITE_OK; w = w->next) {
        rc = order_epoch(writer, w->row.topic, w->row.partition, &epoch);
        w->missed = epoch != w->row.epoch - 1;
        if (w->missed)
            unit->result = UNIT_MISSED;
    }
    return rc;
}

/* ---- Room, and layouts that may still be replaced ---- */

/* Seats that earlier units of the batch took in the block. */
static int64_t claim_taken_before(const struct writer *writer, const struct block_claim *claim)
{
    const struct stats_block *block = map_get(&writer->stats.blocks, &claim->block_id);
    while (block != NULL &&
           !(uuid_equal(&block->org_id, &claim->org_id) && uuid_equal(&block->event_id, &claim->event_id)))
        block = block->same_id;
    return block != NULL ? block->seats[SEAT_HELD] + block->seats[SEAT_SOLD] : 0;
}

static bool claim_is_of(const struct block_claim *claim, const struct block_claim *other)
{
    return uuid_equal(&claim->block_id, &other->block_id) && uuid_equal(&claim->event_id, &other->event_id) &&
           uuid_equal(&claim->org_id, &other->org_id);
}

static int claim_compare(struct writer *writer, const struct store_unit *unit, struct block_claim *claim)
{
    int64_t capacity = 0, taken = 0;
    sqlite3_stmt *statement = connection_statement(&writer->connection, STATEMENT_BLOCK_ROOM);
    bind_uuid(statement, 1, &claim->org_id);
    bind_uuid(statement, 2, &claim->event_id);
    bind_uuid(statement, 3, &claim->block_id);
    int rc = sqlite3_step(statement);
    bool found = rc == SQLITE_ROW;
    if (found) {
        capacity = cell_int(statement, 0);
        taken = cell_int(statement, 1);
    }
    int reset = sqlite3_reset(statement);
    if (!found && rc != SQLITE_DONE)
        return reset;
    for (const struct block_write *w = unit->blocks; w != NULL; w = w->next) {
        if (uuid_equal(&w->row.id, &claim->block_id) && uuid_equal(&w->row.event_id, &claim->event_id))
            capacity = w->row.capacity;
    }
    for (const struct block_claim *w = unit->claims; w != claim; w = w->next)
        taken += claim_is_of(claim, w) ? w->count : 0;
    taken += claim_taken_before(writer, claim);
    claim->missed = !found || taken + claim->count > capacity;
    return SQLITE_OK;
}

static int claims_compare(struct writer *writer, struct store_unit *unit)
{
    int rc = SQLITE_OK;
    for (struct block_claim *w = unit->claims; w != NULL && rc == SQLITE_OK; w = w->next) {
        rc = claim_compare(writer, unit, w);
        if (w->missed)
            unit->result = UNIT_MISSED;
    }
    return rc;
}

/* Was a hold of the event made by an earlier unit of the batch? */
static bool layout_held_before(const struct writer *writer, const struct layout_write *write)
{
    const struct stats_block *block;
    for (size_t i = 0; (block = map_next(&writer->stats.blocks, &i)) != NULL;) {
        for (; block != NULL; block = block->same_id) {
            if (block->holds.created > 0 && uuid_equal(&block->event_id, &write->event_id) &&
                uuid_equal(&block->org_id, &write->org_id))
                return true;
        }
    }
    return false;
}

static int layouts_compare(struct writer *writer, struct store_unit *unit)
{
    int64_t count = 0;
    int rc = SQLITE_OK;
    for (struct layout_write *w = unit->layouts; w != NULL && rc == SQLITE_OK; w = w->next) {
        sqlite3_stmt *statement = connection_statement(&writer->connection, STATEMENT_HOLDS_EVER);
        bind_uuid(statement, 1, &w->org_id);
        bind_uuid(statement, 2, &w->event_id);
        rc = number_read(statement, &count);
        w->missed = count > 0 || layout_held_before(writer, w);
        if (w->missed)
            unit->result = UNIT_MISSED;
    }
    return rc;
}

/* ---- The unit ---- */

static int conditions_compare(struct writer *writer, struct store_unit *unit)
{
    int rc = orders_compare(writer, unit);
    if (rc == SQLITE_OK)
        rc = events_compare(writer, unit);
    if (rc == SQLITE_OK)
        rc = checkouts_compare(writer, unit);
    if (rc == SQLITE_OK)
        rc = claims_compare(writer, unit);
    if (rc == SQLITE_OK)
        rc = layouts_compare(writer, unit);
    if (rc == SQLITE_OK)
        rc = deliveries_compare(writer, unit);
    return rc;
}

/* A lone seat without a key needs no look beforehand: its update is the comparison. */
int guard_unit(struct writer *writer, struct store_unit *unit)
{
    bool taken = false, set = true;
    int rc = conditions_compare(writer, unit);
    bool look = unit->result == UNIT_MISSED || unit->key != NULL ||
                (unit->seats != NULL && unit->seats->next != NULL);
    if (rc == SQLITE_OK && look)
        rc = seats_compare(writer, unit);
    if (rc == SQLITE_OK && unit->result == UNIT_OK && unit->key != NULL) {
        rc = key_take(writer, unit->key, &taken);
        if (taken)
            unit->result = UNIT_KEY_TAKEN;
    }
    for (struct seat_write *w = unit->seats; w != NULL && rc == SQLITE_OK && unit->result == UNIT_OK;
         w = w->next) {
        rc = seat_set(writer, &w->row, &set);
        if (rc != SQLITE_OK || set)
            continue;
        if (look) { /* the same seat twice in one unit */
            snprintf(writer->why, sizeof(writer->why), "a seat is written twice");
            return SQLITE_NOTFOUND;
        }
        rc = seats_compare(writer, unit);
        unit->result = UNIT_MISSED;
    }
    return rc;
}
