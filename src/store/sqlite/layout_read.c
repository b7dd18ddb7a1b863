/* SPDX-License-Identifier: Apache-2.0
 * Reads an event's layout: the document, the blocks as they are now, where its
 * seats lie, and how many holds there ever were. For the load at start and for
 * lookups.
 *
 * Runs on the thread that owns the connection, inside its transaction: all that
 * is read was true at one moment. */
#include "store/sqlite/layout_read.h"

#include "store/sqlite/cells.h"

enum { BLOCK_COUNT_FIRST = 64 };

/* How a statement ended whose rows were all read, or of which one is enough. */
static enum err statement_end(sqlite3_stmt *statement, int rc)
{
    int reset = sqlite3_reset(statement);
    if (rc == SQLITE_DONE || rc == SQLITE_ROW)
        return ERR_OK;
    return connection_err(reset != SQLITE_OK ? reset : rc);
}

static sqlite3_stmt *statement_of(struct connection *connection, enum statement which,
                                  const struct uuid *org_id, const struct uuid *event_id)
{
    sqlite3_stmt *statement = connection_statement(connection, which);
    bind_uuid(statement, 1, org_id);
    bind_uuid(statement, 2, event_id);
    return statement;
}

static void read_block(sqlite3_stmt *statement, struct arena *arena, struct block_row *row)
{
    row->org_id = cell_uuid(statement, 0);
    row->event_id = cell_uuid(statement, 1);
    row->id = cell_uuid(statement, 2);
    cell_code(statement, 3, row->section);
    row->subsection = (int32_t)cell_int(statement, 4);
    row->ordinal = (int32_t)cell_int(statement, 5);
    row->name = arena_text(arena, cell_text(statement, 6));
    row->capacity = (int32_t)cell_int(statement, 7);
    row->price_cents = cell_int(statement, 8);
}

static enum err read_blocks(sqlite3_stmt *statement, struct arena *arena, struct layout_read *out)
{
    int32_t capacity = 0;
    int rc;
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
        if (out->block_count == capacity) {
            capacity = capacity == 0 ? BLOCK_COUNT_FIRST : capacity * 2;
            struct block_row *grown = ARENA_ARRAY(arena, struct block_row, capacity);
            for (int32_t i = 0; i < out->block_count; i++)
                grown[i] = out->blocks[i];
            out->blocks = grown;
        }
        read_block(statement, arena, &out->blocks[out->block_count++]);
    }
    return statement_end(statement, rc);
}

enum err layout_read(struct connection *connection, const struct uuid *org_id, const struct uuid *event_id,
                     struct arena *arena, struct layout_read *out)
{
    *out = (struct layout_read){.document = NULL};
    sqlite3_stmt *statement = statement_of(connection, STATEMENT_LAYOUT_AT, org_id, event_id);
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) {
        out->place_first = cell_int(statement, 0);
        out->seat_count = cell_int(statement, 1);
        out->document = arena_text(arena, cell_text(statement, 2));
    }
    enum err err = statement_end(statement, rc);
    if (err != ERR_OK || out->document == NULL)
        return err;
    err = read_blocks(statement_of(connection, STATEMENT_LOAD_BLOCKS, org_id, event_id), arena, out);
    if (err != ERR_OK)
        return err;
    statement = statement_of(connection, STATEMENT_HOLDS_EVER, org_id, event_id);
    rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW)
        out->holds_ever = cell_int(statement, 0);
    return statement_end(statement, rc);
}
