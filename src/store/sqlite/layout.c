/* SPDX-License-Identifier: Apache-2.0
 * Where an event's seats lie, and replacing them all. The seats of an event
 * have contiguous places in layout order, so the place of a seat is the
 * event's first place plus the seat's index, and no index has to be searched
 * to write it.
 *
 * Invariants: (1) seats.place of an event are layouts.place_first … + seat_count
 * − 1. (2) The map in memory says what the file says inside the transaction at
 * hand; after a rollback of a layout it is emptied and read again. (3) A place
 * may be used again after its seats were replaced: every write also compares
 * the seat's id.
 *
 * Runs on the writing thread. Whether a layout may be replaced is not decided
 * here. */
#include <stdio.h>
#include <stdlib.h>

#include "store/sqlite/cells.h"
#include "store/sqlite/sqlite_int.h"

struct event_places {
    struct uuid org_id;
    int64_t first;
    int64_t count;
};

void layout_forget(struct writer *writer)
{
    void *places;
    for (size_t i = 0; (places = map_next(&writer->places, &i)) != NULL;)
        free(places);
    map_deinit(&writer->places);
    map_init(&writer->places);
}

static void layout_remember(struct writer *writer, const struct uuid *org_id, const struct uuid *event_id,
                            int64_t first, int64_t count)
{
    struct event_places *places = map_get(&writer->places, event_id);
    if (places == NULL) {
        places = malloc(sizeof(*places));
        CHECK(places != NULL);
        map_put(&writer->places, event_id, places);
    }
    *places = (struct event_places){.org_id = *org_id, .first = first, .count = count};
}

int layout_place(struct writer *writer, const struct uuid *org_id, const struct uuid *event_id,
                 int64_t *place, int64_t *count)
{
    struct event_places *places = map_get(&writer->places, event_id);
    if (places != NULL && uuid_equal(&places->org_id, org_id)) {
        *place = places->first;
        *count = places->count;
        return SQLITE_OK;
    }
    sqlite3_stmt *statement = connection_statement(&writer->connection, STATEMENT_LAYOUT_AT);
    bind_uuid(statement, 1, org_id);
    bind_uuid(statement, 2, event_id);
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) {
        *place = cell_int(statement, 0);
        *count = cell_int(statement, 1);
        layout_remember(writer, org_id, event_id, *place, *count);
    }
    int reset = sqlite3_reset(statement);
    if (rc == SQLITE_DONE)
        return SQLITE_NOTFOUND;
    return rc == SQLITE_ROW ? SQLITE_OK : reset;
}

/* Blocks, seats and statistics of the layout that is there, if one is. */
static int layout_clear(struct writer *writer, const struct layout_write *write)
{
    struct connection *connection = &writer->connection;
    int64_t first, count;
    int rc = layout_place(writer, &write->org_id, &write->event_id, &first, &count);
    if (rc == SQLITE_NOTFOUND)
        return SQLITE_OK;
    if (rc != SQLITE_OK)
        return rc;
    static const enum statement deletes[] = {STATEMENT_SEAT_DELETE_ALL, STATEMENT_BLOCK_DELETE_ALL,
                                             STATEMENT_STATS_DELETE_ALL};
    for (size_t i = 0; i < COUNT_OF(deletes) && rc == SQLITE_OK; i++) {
        sqlite3_stmt *statement = connection_statement(connection, deletes[i]);
        bind_uuid(statement, 1, &write->org_id);
        bind_uuid(statement, 2, &write->event_id);
        if (deletes[i] == STATEMENT_SEAT_DELETE_ALL) {
            bind_int(statement, 3, first);
            bind_int(statement, 4, count);
        }
        rc = connection_run(connection, deletes[i]);
    }
    return rc;
}

static int layout_write_blocks(struct writer *writer, const struct layout_write *write)
{
    struct connection *connection = &writer->connection;
    int64_t *seat_counts = calloc((size_t)write->block_count + 1, sizeof(*seat_counts));
    CHECK(seat_counts != NULL);
    int rc = SQLITE_OK;
    for (int32_t i = 0; i < write->seat_count; i++)
        seat_counts[write->seats[i].block]++;
    for (int32_t i = 0; i < write->block_count && rc == SQLITE_OK; i++) {
        const struct block_row *row = &write->blocks[i];
        sqlite3_stmt *statement = connection_statement(connection, STATEMENT_BLOCK_INSERT);
        bind_uuid(statement, 1, &write->org_id);
        bind_uuid(statement, 2, &write->event_id);
        bind_uuid(statement, 3, &row->id);
        bind_int(statement, 4, row->ordinal);
        bind_text(statement, 5, row->section);
        bind_int(statement, 6, row->subsection);
        bind_text(statement, 7, row->name);
        bind_int(statement, 8, row->capacity);
        bind_int(statement, 9, row->price_cents);
        rc = connection_run(connection, STATEMENT_BLOCK_INSERT);
        if (rc != SQLITE_OK)
            break;
        statement = connection_statement(connection, STATEMENT_STATS_INSERT);
        bind_uuid(statement, 1, &write->org_id);
        bind_uuid(statement, 2, &write->event_id);
        bind_uuid(statement, 3, &row->id);
        bind_int(statement, 4, seat_counts[i]);
        rc = connection_run(connection, STATEMENT_STATS_INSERT);
    }
    free(seat_counts);
    return rc;
}

static int layout_write_seats(struct writer *writer, const struct layout_write *write, int64_t first)
{
    struct connection *connection = &writer->connection;
    sqlite3_stmt *statement = connection_statement(connection, STATEMENT_SEAT_INSERT);
    int rc = SQLITE_OK;
    bind_uuid(statement, 3, &write->org_id);
    bind_uuid(statement, 4, &write->event_id);
    for (int32_t i = 0; i < write->seat_count && rc == SQLITE_OK; i++) {
        const struct layout_seat *seat = &write->seats[i];
        bind_int(statement, 1, first + i);
        bind_uuid(statement, 2, &seat->id);
        bind_uuid(statement, 5, &write->blocks[seat->block].id);
        bind_int(statement, 6, seat->row);
        bind_int(statement, 7, seat->seat);
        bind_text(statement, 8, seat->row_label);
        bind_text(statement, 9, seat->seat_label);
        rc = connection_run(connection, STATEMENT_SEAT_INSERT);
    }
    return rc;
}

/* The first place after all that are taken. */
static int layout_place_next(struct writer *writer, int64_t *place)
{
    sqlite3_stmt *statement = connection_statement(&writer->connection, STATEMENT_SEAT_PLACE_NEXT);
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW)
        *place = cell_int(statement, 0);
    int reset = sqlite3_reset(statement);
    return rc == SQLITE_ROW ? SQLITE_OK : reset;
}

int layout_replace(struct writer *writer, const struct layout_write *write)
{
    struct connection *connection = &writer->connection;
    int64_t first = 0;
    for (int32_t i = 0; i < write->seat_count; i++) {
        if (write->seats[i].block < 0 || write->seats[i].block >= write->block_count) {
            snprintf(writer->why, sizeof(writer->why), "a seat is in block %d of %d", write->seats[i].block,
                     write->block_count);
            return SQLITE_NOTFOUND;
        }
    }
    int rc = layout_clear(writer, write);
    if (rc == SQLITE_OK)
        rc = layout_place_next(writer, &first);
    if (rc == SQLITE_OK) {
        sqlite3_stmt *statement = connection_statement(connection, STATEMENT_LAYOUT_WRITE);
        bind_uuid(statement, 1, &write->org_id);
        bind_uuid(statement, 2, &write->event_id);
        bind_int(statement, 3, first);
        bind_int(statement, 4, write->seat_count);
        bind_text(statement, 5, write->document);
        rc = connection_run(connection, STATEMENT_LAYOUT_WRITE);
    }
    if (rc == SQLITE_OK)
        rc = layout_write_blocks(writer, write);
    if (rc == SQLITE_OK)
        rc = layout_write_seats(writer, write, first);
    if (rc == SQLITE_OK)
        layout_remember(writer, &write->org_id, &write->event_id, first, write->seat_count);
    return rc;
}
