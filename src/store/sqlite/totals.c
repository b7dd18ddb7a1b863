/* SPDX-License-Identifier: Apache-2.0
 * Applies a batch's statistics: the last statements of its transaction, one or
 * two a block that was touched, blocks in order.
 *
 * Invariants: (1) applied once per batch, in the batch's own transaction. (2) A
 * block without a row of statistics is an error in what the lane said, logged
 * and found by verify; it does not fail the neighbours.
 *
 * Runs on the writing thread. The sums are made in store/stats.c. */
#include "base/log.h"
#include "store/sqlite/cells.h"
#include "store/sqlite/sqlite_int.h"

static int totals_write_block(struct writer *writer, const struct stats_block *block)
{
    sqlite3_stmt *statement = connection_statement(&writer->connection, STATEMENT_STATS_UPDATE);
    bind_uuid(statement, 1, &block->org_id);
    bind_uuid(statement, 2, &block->event_id);
    bind_uuid(statement, 3, &block->block_id);
    bind_int(statement, 4, block->seats[SEAT_AVAILABLE]);
    bind_int(statement, 5, block->seats[SEAT_HELD]);
    bind_int(statement, 6, block->seats[SEAT_SOLD]);
    bind_int(statement, 7, block->seats[SEAT_BLOCKED]);
    bind_int(statement, 8, block->holds.created);
    bind_int(statement, 9, block->holds.ended[HOLD_CONVERTED]);
    bind_int(statement, 10, block->holds.ended[HOLD_EXPIRED]);
    bind_int(statement, 11, block->holds.ended[HOLD_CANCELLED]);
    int rc = connection_run(&writer->connection, STATEMENT_STATS_UPDATE);
    if (rc == SQLITE_OK && connection_changes(&writer->connection) != 1) {
        char id[UUID_TEXT_SIZE];
        uuid_format(&block->block_id, id);
        log_write(LOG_ERROR, "a block has no statistics", "\"block_id\":\"%s\"", id);
    }
    return rc;
}

static int totals_write_hour(struct writer *writer, const struct stats_block *block,
                             const struct stats_hour *hour)
{
    sqlite3_stmt *statement = connection_statement(&writer->connection, STATEMENT_HOURS_WRITE);
    bind_uuid(statement, 1, &block->org_id);
    bind_uuid(statement, 2, &block->event_id);
    bind_uuid(statement, 3, &block->block_id);
    bind_int(statement, 4, hour->hour_ms);
    bind_int(statement, 5, hour->holds.created);
    bind_int(statement, 6, hour->holds.ended[HOLD_CONVERTED]);
    bind_int(statement, 7, hour->holds.ended[HOLD_EXPIRED]);
    bind_int(statement, 8, hour->holds.ended[HOLD_CANCELLED]);
    bind_int(statement, 9, hour->holds.held_ms);
    return connection_run(&writer->connection, STATEMENT_HOURS_WRITE);
}

int totals_write(struct writer *writer)
{
    struct stats_block **blocks = stats_sorted(&writer->stats);
    int rc = SQLITE_OK;
    for (size_t i = 0; i < writer->stats.block_count && rc == SQLITE_OK; i++) {
        rc = totals_write_block(writer, blocks[i]);
        for (const struct stats_hour *hour = blocks[i]->hours; hour != NULL && rc == SQLITE_OK;
             hour = hour->next)
            rc = totals_write_hour(writer, blocks[i], hour);
    }
    return rc;
}
