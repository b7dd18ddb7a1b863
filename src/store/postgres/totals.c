/* SPDX-License-Identifier: Apache-2.0
 * Applies a batch's statistics: two statements, sent together with COMMIT, so
 * that the rows that every batch of a block must change are locked for as
 * short as possible.
 *
 * Invariants: (1) applied once per batch, in the batch's own transaction, last.
 * (2) Blocks are locked in order, so that two writers, or two nodes, never wait
 * for each other. (3) A block without a row of statistics does not fail the
 * neighbours; verify finds it.
 *
 * Runs on the writer's thread. The sums are made in store/stats.c. */
#include "store/postgres/postgres_int.h"

static void blocks_send(struct pg_writer *writer, struct stats_block **blocks, size_t count)
{
    struct pg_params *p = pg_writer_params(writer);
    for (size_t i = 0; i < count; i++) {
        const struct stats_block *block = blocks[i];
        pg_add_uuid(p, 0, &block->org_id);
        pg_add_uuid(p, 1, &block->event_id);
        pg_add_uuid(p, 2, &block->block_id);
        pg_add_bigint(p, 3, block->seats[SEAT_AVAILABLE]);
        pg_add_bigint(p, 4, block->seats[SEAT_HELD]);
        pg_add_bigint(p, 5, block->seats[SEAT_SOLD]);
        pg_add_bigint(p, 6, block->seats[SEAT_BLOCKED]);
        pg_add_bigint(p, 7, block->holds.created);
        pg_add_bigint(p, 8, block->holds.ended[HOLD_CONVERTED]);
        pg_add_bigint(p, 9, block->holds.ended[HOLD_EXPIRED]);
        pg_add_bigint(p, 10, block->holds.ended[HOLD_CANCELLED]);
    }
    if (count > 0)
        (void)pg_send(&writer->connection, PG_STATS_UPDATE, p);
}

static void hours_send(struct pg_writer *writer, struct stats_block **blocks, size_t count)
{
    struct pg_params *p = pg_writer_params(writer);
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        for (const struct stats_hour *hour = blocks[i]->hours; hour != NULL; hour = hour->next) {
            any = true;
            pg_add_uuid(p, 0, &blocks[i]->org_id);
            pg_add_uuid(p, 1, &blocks[i]->event_id);
            pg_add_uuid(p, 2, &blocks[i]->block_id);
            pg_add_time_unless(p, 3, hour->hour_ms, INT64_MIN);
            pg_add_bigint(p, 4, hour->holds.created);
            pg_add_bigint(p, 5, hour->holds.ended[HOLD_CONVERTED]);
            pg_add_bigint(p, 6, hour->holds.ended[HOLD_EXPIRED]);
            pg_add_bigint(p, 7, hour->holds.ended[HOLD_CANCELLED]);
            pg_add_bigint(p, 8, hour->holds.held_ms);
        }
    }
    if (any)
        (void)pg_send(&writer->connection, PG_HOURS_WRITE, p);
}

void pg_totals_send(struct pg_writer *writer)
{
    struct stats_block **blocks = stats_sorted(&writer->stats);
    blocks_send(writer, blocks, writer->stats.block_count);
    hours_send(writer, blocks, writer->stats.block_count);
}
