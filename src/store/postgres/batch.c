/* SPDX-License-Identifier: Apache-2.0
 * One batch, one transaction:
 *
 *   BEGIN, batch id, compare ─▶ write, (next wave: compare ─▶ write,) change row, purge, offsets, statistics, COMMIT
 *
 * Each arrow is a round trip; within one, statements go in a pipeline. A batch
 * of one wave, which nearly all are, takes two.
 *
 * Invariants: (1) a batch is committed whole or not at all; a unit in it
 * likewise. (2) Units' results are decided before COMMIT is sent, so they are
 * known even if its answer is lost. (3) One bad unit never fails its
 * neighbours: on a data error everything is rolled back and the batch is run
 * again with a savepoint around each unit. (4) Before COMMIT is sent trouble
 * means that nothing was written; after it only the server's word does.
 *
 * Runs on the writer's thread. */
#include <stdio.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "store/postgres/postgres_int.h"

enum { PURGE_ROW_COUNT_MAX = 1000 };                        /* per batch and table */
#define UNDELIVERED_LIFE_MS ((int64_t)7 * 24 * 3600 * 1000) /* of changes that a delivery has not passed */

struct pg_params *pg_writer_params(struct pg_writer *writer)
{
    pg_params_clear(&writer->params);
    return &writer->params;
}

enum pg_trouble pg_writer_receive(struct pg_writer *writer)
{
    int id_number = writer->id_number;
    writer->id_number = -1;
    enum pg_trouble trouble = pg_receive(&writer->connection, &writer->reply);
    if (trouble == PG_BAD_DATA && id_number >= 0 && writer->reply.failed <= id_number)
        return PG_OURS; /* the batch was written before, or was given up: no unit's fault */
    return trouble;
}

static enum pg_trouble round_trip(struct pg_writer *writer)
{
    enum pg_trouble trouble = pg_writer_receive(writer);
    pg_reply_clear(&writer->reply);
    return trouble;
}

static bool batch_has_layout(const struct store_batch *batch)
{
    LIST_FOR_EACH(node, &batch->units) {
        if (CONTAINER_OF(node, struct store_unit, node)->layouts != NULL)
            return true;
    }
    return false;
}

/* Queued only: it travels with the first comparison. */
static void batch_begin(struct pg_writer *writer, const struct store_batch *batch)
{
    struct pg_connection *connection = &writer->connection;
    (void)pg_send(connection, PG_BEGIN, NULL);
    if (batch_has_layout(batch))
        (void)pg_send(connection, PG_NO_TIME_LIMIT, NULL);
    struct pg_params *p = pg_writer_params(writer);
    pg_set_uuid(p, 0, &batch->id);
    pg_set_time(p, 1, batch->now_ms);
    writer->id_number = pg_send(connection, PG_BATCH_INSERT, p);
}

static void unit_refuse(struct pg_writer *writer, struct store_unit *unit)
{
    char quoted[PG_WHY_SIZE];
    log_quote(writer->connection.why, quoted, sizeof(quoted));
    log_write(LOG_ERROR, "a unit was refused", "\"error\":\"%s\"", quoted);
    unit->result = UNIT_BAD;
}

/* What was queued and is not wanted any more still has its answers, which must be taken. */
static enum pg_trouble queue_drain(struct pg_writer *writer)
{
    enum pg_trouble trouble = round_trip(writer);
    return trouble == PG_LOST ? PG_LOST : PG_NONE;
}

/* A wave of one unit inside a savepoint: bad data takes nothing else with it. */
static enum pg_trouble wave_run_carefully(struct pg_writer *writer, struct pg_wave *wave)
{
    struct pg_connection *connection = &writer->connection;
    (void)pg_send(connection, PG_SAVEPOINT, NULL);
    enum pg_trouble trouble = round_trip(writer);
    if (trouble != PG_NONE)
        return trouble;
    trouble = pg_wave_compare(writer, wave);
    if (trouble == PG_NONE)
        trouble = pg_wave_send(writer, wave);
    if (trouble == PG_NONE)
        trouble = round_trip(writer);
    if (trouble != PG_NONE && trouble != PG_BAD_DATA)
        return trouble;
    if (trouble == PG_BAD_DATA) {
        unit_refuse(writer, wave->units[0]);
        if (queue_drain(writer) == PG_LOST)
            return PG_LOST;
        (void)pg_send(connection, PG_SAVEPOINT_ROLLBACK, NULL);
    }
    (void)pg_send(connection, PG_SAVEPOINT_RELEASE, NULL);
    return round_trip(writer);
}

/* A batch of several waves takes the locks that it may have to wait for in one go, in their order; keys and new users,
 * which are inserted, still come wave by wave. Two nodes with the same key can so wait for each other: one of them is told
 * to let go, and tries again. */
static void batch_lock(struct pg_writer *writer, struct store_batch *batch)
{
    struct pg_wave all = {.batch = batch,
                          .units = ARENA_ARRAY(&writer->arena, struct store_unit *, batch->unit_count)};
    LIST_FOR_EACH(node, &batch->units)
        all.units[all.count++] = CONTAINER_OF(node, struct store_unit, node);
    pg_wave_lock(writer, &all);
}

static enum pg_trouble waves_run(struct pg_writer *writer, struct store_batch *batch, bool careful)
{
    struct pg_wave wave = {.units = NULL};
    struct changes_packer packer;
    struct list *position = batch->units.next;
    const struct store_unit *first = CONTAINER_OF(position, struct store_unit, node);
    enum pg_trouble trouble = PG_NONE;
    stats_reset(&writer->stats);
    buf_clear(&writer->changes);
    changes_pack_begin(&packer, &writer->changes, &batch->node_id);
    while (trouble == PG_NONE && pg_wave_next(writer, batch, &position, careful, &wave)) {
        if (wave.count < batch->unit_count && wave.units[0] == first)
            batch_lock(writer, batch);
        if (careful) {
            trouble = wave_run_carefully(writer, &wave);
            continue;
        }
        /* Waves that ask nothing would fill the pipeline without anybody taking the answers. */
        if (writer->connection.queue_count > PG_PIPELINE_COUNT_MAX / 2)
            trouble = round_trip(writer);
        if (trouble == PG_NONE)
            trouble = pg_wave_compare(writer, &wave);
        if (trouble == PG_NONE)
            trouble = pg_wave_send(writer, &wave); /* travels with what comes next */
    }
    LIST_FOR_EACH(node, &batch->units) {
        const struct store_unit *unit = CONTAINER_OF(node, struct store_unit, node);
        if (trouble != PG_NONE || unit->result != UNIT_OK)
            continue;
        stats_add_unit(&writer->stats, unit);
        changes_pack_unit(&packer, unit);
    }
    return trouble == PG_NONE && !buf_ok(&writer->changes) ? PG_OUTSIDE : trouble;
}

static void purge_send(struct pg_writer *writer, const struct store_batch *batch)
{
    static const enum pg_statement purges[] = {PG_KEY_PURGE, PG_BATCH_PURGE, PG_CHANGE_PURGE};
    for (size_t i = 0; batch->purge_before_ms != 0 && i < COUNT_OF(purges); i++) {
        struct pg_params *p = pg_writer_params(writer);
        pg_set_time(p, 0, batch->purge_before_ms);
        pg_set_int(p, 1, PURGE_ROW_COUNT_MAX);
        if (purges[i] == PG_CHANGE_PURGE)
            pg_set_time(p, 2, batch->now_ms - UNDELIVERED_LIFE_MS);
        (void)pg_send(&writer->connection, purges[i], p);
    }
}

static enum pg_trouble batch_commit(struct pg_writer *writer, const struct store_batch *batch)
{
    struct pg_params *p = pg_writer_params(writer);
    if (writer->changes.size > 0) {
        pg_set_time(p, 0, batch->now_ms);
        pg_set_bytes(p, 1, writer->changes.data, writer->changes.size);
        pg_set_uuid(p, 2, &batch->node_id);
        (void)pg_send(&writer->connection, PG_CHANGE_INSERT, p);
    }
    purge_send(writer, batch);
    pg_orders_note(writer, batch);
    pg_totals_send(writer);
    (void)pg_send(&writer->connection, PG_COMMIT, NULL);
    writer->commit_sent = true;
    enum pg_trouble trouble = round_trip(writer);
    if (trouble != PG_LOST)
        writer->commit_sent = false; /* answered: if a statement failed, COMMIT was not run */
    return trouble;
}

static enum pg_trouble batch_try(struct pg_writer *writer, struct store_batch *batch, bool careful)
{
    arena_reset(&writer->arena);
    batch_begin(writer, batch);
    enum pg_trouble trouble = careful ? round_trip(writer) : PG_NONE;
    if (trouble == PG_NONE)
        trouble = waves_run(writer, batch, careful);
    if (trouble == PG_NONE)
        trouble = batch_commit(writer, batch);
    return trouble;
}

/* Ends the transaction after trouble; a connection on which that fails is lost. */
static enum pg_trouble batch_abandon(struct pg_writer *writer)
{
    if (queue_drain(writer) == PG_LOST)
        return PG_LOST;
    (void)pg_send(&writer->connection, PG_ROLLBACK, NULL);
    return round_trip(writer);
}

enum pg_trouble pg_batch_write(struct pg_writer *writer, struct store_batch *batch)
{
    struct pg_connection *connection = &writer->connection;
    writer->commit_sent = false;
    int64_t ms_max = batch_has_layout(batch) ? LAYOUT_MS_MAX : TRANSACTION_MS_MAX;
    connection->deadline_us = clock_monotonic_us() + ms_max * 1000;
    enum pg_trouble trouble = batch_try(writer, batch, false);
    if (trouble == PG_BAD_DATA) {
        trouble = batch_abandon(writer);
        if (trouble == PG_NONE)
            trouble = batch_try(writer, batch, true);
        if (trouble == PG_BAD_DATA)
            trouble = PG_OURS; /* not a unit's: each was tried alone */
    }
    if (trouble != PG_NONE && trouble != PG_LOST) {
        char why[PG_WHY_SIZE];
        snprintf(why, sizeof(why), "%s", connection->why);
        enum pg_trouble ended = batch_abandon(writer);
        snprintf(connection->why, sizeof(connection->why), "%s", why);
        if (ended != PG_NONE)
            trouble = PG_LOST;
    }
    connection->deadline_us = 0;
    return trouble;
}
