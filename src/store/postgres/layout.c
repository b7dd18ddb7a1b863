/* SPDX-License-Identifier: Apache-2.0
 * Replaces the blocks, seats and statistics of an event, inside the batch's
 * transaction and under the lock of the event's row.
 *
 * Invariants: (1) seats.place of an event are 0 … seat_count − 1, in layout
 * order. (2) Seats are sent some thousands at a time, so that neither side
 * needs memory for all of them at once.
 *
 * Runs on the writer's thread. Whether a layout may be replaced is not decided
 * here. */
#include <stdio.h>
#include <stdlib.h>

#include "store/postgres/postgres_int.h"

enum { SEAT_COUNT_PER_STATEMENT = 5000 };

static enum pg_trouble receive(struct pg_writer *writer)
{
    enum pg_trouble trouble = pg_writer_receive(writer);
    pg_reply_clear(&writer->reply);
    return trouble;
}

static bool layout_fits(struct pg_writer *writer, const struct layout_write *write)
{
    for (int32_t i = 0; i < write->seat_count; i++) {
        if (write->seats[i].block < 0 || write->seats[i].block >= write->block_count) {
            snprintf(writer->connection.why, sizeof(writer->connection.why), "a seat is in block %d of %d",
                     write->seats[i].block, write->block_count);
            return false;
        }
    }
    return true;
}

static void blocks_send(struct pg_writer *writer, const struct layout_write *write)
{
    struct pg_params *p = pg_writer_params(writer);
    for (int32_t i = 0; i < write->block_count; i++) {
        const struct block_row *row = &write->blocks[i];
        pg_add_uuid(p, 0, &write->org_id);
        pg_add_uuid(p, 1, &write->event_id);
        pg_add_uuid(p, 2, &row->id);
        pg_add_int(p, 3, row->ordinal);
        pg_add_text(p, 4, row->section);
        pg_add_int(p, 5, row->subsection);
        pg_add_text(p, 6, row->name);
        pg_add_int(p, 7, row->capacity);
        pg_add_bigint(p, 8, row->price_cents);
    }
    if (write->block_count > 0)
        (void)pg_send(&writer->connection, PG_BLOCK_INSERT, p);
}

static void stats_send(struct pg_writer *writer, const struct layout_write *write)
{
    struct pg_params *p = pg_writer_params(writer);
    int64_t *seat_counts = calloc((size_t)write->block_count + 1, sizeof(*seat_counts));
    CHECK(seat_counts != NULL);
    for (int32_t i = 0; i < write->seat_count; i++)
        seat_counts[write->seats[i].block]++;
    for (int32_t i = 0; i < write->block_count; i++) {
        pg_add_uuid(p, 0, &write->org_id);
        pg_add_uuid(p, 1, &write->event_id);
        pg_add_uuid(p, 2, &write->blocks[i].id);
        pg_add_bigint(p, 3, seat_counts[i]);
    }
    if (write->block_count > 0)
        (void)pg_send(&writer->connection, PG_STATS_INSERT, p);
    free(seat_counts);
}

static enum pg_trouble seats_write(struct pg_writer *writer, const struct layout_write *write)
{
    enum pg_trouble trouble = PG_NONE;
    for (int32_t i = 0; i < write->seat_count && trouble == PG_NONE;) {
        struct pg_params *p = pg_writer_params(writer);
        int32_t first = i;
        pg_set_uuid(p, 0, &write->org_id);
        pg_set_uuid(p, 1, &write->event_id);
        for (; i < write->seat_count && i - first < SEAT_COUNT_PER_STATEMENT; i++) {
            const struct layout_seat *seat = &write->seats[i];
            pg_add_uuid(p, 2, &seat->id);
            pg_add_uuid(p, 3, &write->blocks[seat->block].id);
            pg_add_int(p, 4, i);
            pg_add_int(p, 5, seat->row);
            pg_add_int(p, 6, seat->seat);
            pg_add_text(p, 7, seat->row_label);
            pg_add_text(p, 8, seat->seat_label);
        }
        (void)pg_send(&writer->connection, PG_SEAT_INSERT, p);
        trouble = receive(writer);
    }
    return trouble;
}

enum pg_trouble pg_layout_write(struct pg_writer *writer, const struct layout_write *write)
{
    static const enum pg_statement deletes[] = {PG_SEAT_DELETE_ALL, PG_BLOCK_DELETE_ALL, PG_STATS_DELETE_ALL};
    if (!layout_fits(writer, write))
        return PG_BAD_DATA;
    for (size_t i = 0; i < COUNT_OF(deletes); i++) {
        struct pg_params *p = pg_writer_params(writer);
        pg_set_uuid(p, 0, &write->org_id);
        pg_set_uuid(p, 1, &write->event_id);
        (void)pg_send(&writer->connection, deletes[i], p);
    }
    struct pg_params *p = pg_writer_params(writer);
    pg_set_uuid(p, 0, &write->org_id);
    pg_set_uuid(p, 1, &write->event_id);
    pg_set_int(p, 2, write->seat_count);
    pg_set_text(p, 3, write->document);
    (void)pg_send(&writer->connection, PG_LAYOUT_WRITE, p);
    blocks_send(writer, write);
    stats_send(writer, write);
    enum pg_trouble trouble = receive(writer);
    return trouble == PG_NONE ? seats_write(writer, write) : trouble;
}
