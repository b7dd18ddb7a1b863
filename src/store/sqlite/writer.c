/* SPDX-License-Identifier: Apache-2.0
 * The writing thread: takes batches in the order they were submitted and makes
 * each one transaction.
 *
 *   BEGIN IMMEDIATE · batch id · units · purge · change row · statistics · COMMIT
 *
 * Invariants:
 *  1. A batch is committed whole or not at all; a unit in it likewise.
 *  2. One bad unit never fails its neighbours: on a data error everything is
 *     rolled back and the batch is run again with a savepoint around each unit,
 *     so that any number of bad units costs one more run.
 *  3. After any error sqlite3_get_autocommit() is asked, for SQLite may have
 *     rolled back by itself; then the batch is abandoned.
 *  4. STORE_FAILED is final. The frame that commits is the last one written to
 *     the log, so a write error means that it is not complete there, and no
 *     recovery will take it for a commit. Only after an error of fsync is the
 *     outcome unknown, and then the process ends: what the kernel dropped cannot
 *     be written again by asking again.
 *  5. The log is copied back into the file when it has grown long enough, the
 *     last of it between two batches: see checkpoint.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/metrics.h"
#include "store/sqlite/cells.h"
#include "store/sqlite/sqlite_int.h"

enum {
    PROBE_INTERVAL_MS = 500,    /* while the store is down */
    PURGE_ROW_COUNT_MAX = 1000, /* per batch and table */
    PURGE_CHANGE_SIZE_MAX = 16 * 1024 * 1024,
};

#define DELIVERY_WAIT_MS_MAX ((int64_t)7 * 24 * 3600 * 1000) /* so long the feed is kept for a delivery */

/* What is remembered of the file may not be so any more. */
static void writer_forget(struct writer *writer)
{
    layout_forget(writer);
    guard_forget(writer);
}

/* ---- Opening, and opening again ---- */

static int writer_on_commit_size(void *context, sqlite3 *db, const char *name, int page_count)
{
    (void)db;
    (void)name;
    struct writer *writer = context;
    writer->log_page_count = page_count;
    return SQLITE_OK;
}

enum err writer_prepare(struct sqlite_store *sqlite, char *why, size_t why_size)
{
    struct writer *writer = &sqlite->writer;
    enum err err = connection_prepare(&writer->connection, USE_WRITE, why, why_size);
    if (err != ERR_OK)
        return err;
    sqlite3_wal_hook(writer->connection.db, writer_on_commit_size, writer);
    writer->log_page_count = 0;
    writer->checkpoint_at = CHECKPOINT_PAGE_COUNT;
    writer->only_rest = false;
    writer->prepared = true;
    return ERR_OK;
}

enum err writer_open(struct sqlite_store *sqlite, char *why, size_t why_size)
{
    struct writer *writer = &sqlite->writer;
    map_init(&writer->places);
    map_init(&writer->versions);
    stats_init(&writer->stats);
    buf_init(&writer->changes);
    return connection_open(&writer->connection, sqlite->file.path, false, why, why_size);
}

void writer_close(struct sqlite_store *sqlite)
{
    struct writer *writer = &sqlite->writer;
    if (writer->prepared && writer->connection.db != NULL) {
        (void)sqlite3_wal_checkpoint_v2(writer->connection.db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
        /* The log is empty: let the last connection remove it. */
        sqlite3_db_config(writer->connection.db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    }
    connection_close(&writer->connection);
    writer_forget(writer);
    map_deinit(&writer->places);
    map_deinit(&writer->versions);
    stats_deinit(&writer->stats);
    buf_deinit(&writer->changes);
}

/* False while the file cannot be opened for writing. */
static bool writer_ready(struct sqlite_store *sqlite)
{
    struct writer *writer = &sqlite->writer;
    char why[SQLITE_WHY_SIZE];
    if (!writer->broken)
        return true;
    connection_close(&writer->connection);
    writer_forget(writer);
    enum err err = connection_open(&writer->connection, sqlite->file.path, false, why, sizeof(why));
    if (err == ERR_OK)
        err = connection_make_durable(&writer->connection, sqlite->file.path, why, sizeof(why));
    if (err == ERR_OK)
        err = writer_prepare(sqlite, why, sizeof(why));
    if (err != ERR_OK)
        connection_close(&writer->connection);
    writer->broken = err != ERR_OK;
    return err == ERR_OK;
}

/* ---- Trouble ---- */

void writer_give_up(int rc)
{
    log_write(
        LOG_ERROR,
        "the disk did not confirm what was written; stopping, so that the next start finds out what is there",
        "\"error\":\"%s\"", sqlite3_errstr(rc));
    _exit(EXIT_FAILURE);
}

static void writer_set_up(struct sqlite_store *sqlite, bool up, const char *why)
{
    if (atomic_exchange(&sqlite->up, up) == up)
        return;
    gauge_set(GAUGE_STORE_UP, up);
    char quoted[SQLITE_WHY_SIZE];
    log_quote(why, quoted, sizeof(quoted));
    if (up)
        log_write(LOG_INFO, "the store can be written to again", NULL);
    else
        log_write(LOG_ERROR, "the store cannot be written to", "\"error\":\"%s\"", quoted);
}

/* Ends what is open after an error and says what the batch's failure is called. */
static enum err writer_fail(struct sqlite_store *sqlite, int rc)
{
    struct writer *writer = &sqlite->writer;
    enum trouble trouble = connection_trouble(rc);
    char why[SQLITE_WHY_SIZE];
    if (trouble == TROUBLE_FSYNC)
        writer_give_up(rc);
    snprintf(why, sizeof(why), "%s", sqlite3_errmsg(writer->connection.db));
    connection_rollback(&writer->connection);
    writer_forget(writer);
    if (trouble == TROUBLE_DATA || trouble == TROUBLE_OURS) {
        char quoted[SQLITE_WHY_SIZE];
        log_quote(why, quoted, sizeof(quoted));
        log_write(LOG_ERROR, "a batch was refused", "\"error\":\"%s\"", quoted);
        return ERR_INTERNAL;
    }
    int primary = rc & 0xff;
    writer->broken = primary != SQLITE_FULL && primary != SQLITE_BUSY && primary != SQLITE_INTERRUPT;
    if (!sqlite3_get_autocommit(writer->connection.db))
        writer->broken = true;
    if (primary == SQLITE_FULL)
        writer->checkpoint_at = 0; /* copying the log back and cutting it may be all the room there is */
    writer_set_up(sqlite, false, why);
    return ERR_STORE_UNAVAILABLE;
}

/* ---- One batch ---- */

static bool batch_has_layout(const struct store_batch *batch)
{
    LIST_FOR_EACH(node, &batch->units) {
        if (CONTAINER_OF(node, struct store_unit, node)->layouts != NULL)
            return true;
    }
    return false;
}

static int batch_begin(struct writer *writer, const struct uuid *id, int64_t now_ms)
{
    int rc = connection_run(&writer->connection, STATEMENT_BEGIN_WRITE);
    if (rc != SQLITE_OK)
        return rc;
    sqlite3_stmt *statement = connection_statement(&writer->connection, STATEMENT_BATCH_INSERT);
    bind_uuid(statement, 1, id);
    bind_int(statement, 2, now_ms);
    return connection_run(&writer->connection, STATEMENT_BATCH_INSERT);
}

static void unit_refuse(struct writer *writer, struct store_unit *unit)
{
    char quoted[SQLITE_WHY_SIZE];
    log_quote(writer->why, quoted, sizeof(quoted));
    log_write(LOG_ERROR, "a unit was refused", "\"error\":\"%s\"", quoted);
    unit->result = UNIT_BAD;
}

/* A unit inside a savepoint of its own: bad data takes nothing else with it. */
static int unit_write_carefully(struct writer *writer, struct store_unit *unit)
{
    struct connection *connection = &writer->connection;
    int rc = connection_run(connection, STATEMENT_SAVEPOINT);
    if (rc != SQLITE_OK)
        return rc;
    int written = unit_write(writer, unit);
    if (written != SQLITE_OK &&
        (connection_trouble(written) != TROUBLE_DATA || sqlite3_get_autocommit(connection->db)))
        return written;
    if (written != SQLITE_OK) {
        rc = connection_run(connection, STATEMENT_SAVEPOINT_ROLLBACK);
        if (unit->layouts != NULL || unit->events != NULL)
            writer_forget(writer);
        unit_refuse(writer, unit);
    }
    return rc == SQLITE_OK ? connection_run(connection, STATEMENT_SAVEPOINT_RELEASE) : rc;
}

static int units_write(struct writer *writer, struct store_batch *batch, bool careful)
{
    struct changes_packer packer;
    stats_reset(&writer->stats);
    buf_clear(&writer->changes);
    changes_pack_begin(&packer, &writer->changes, &batch->node_id);
    LIST_FOR_EACH(node, &batch->units) {
        struct store_unit *unit = CONTAINER_OF(node, struct store_unit, node);
        int64_t deadline_us = writer->connection.deadline_us;
        if (deadline_us != 0 && clock_monotonic_us() > deadline_us)
            return SQLITE_INTERRUPT;
        int rc = careful ? unit_write_carefully(writer, unit) : unit_write(writer, unit);
        if (rc != SQLITE_OK)
            return rc;
        if (unit->result != UNIT_OK)
            continue;
        stats_add_unit(&writer->stats, unit);
        changes_pack_unit(&packer, unit);
    }
    return buf_ok(&writer->changes) ? SQLITE_OK : SQLITE_NOMEM;
}

static int changes_purge(struct writer *writer, const struct store_batch *batch)
{
    sqlite3_stmt *statement = connection_statement(&writer->connection, STATEMENT_CHANGE_PURGE);
    bind_int(statement, 1, batch->purge_before_ms);
    bind_int(statement, 2, PURGE_ROW_COUNT_MAX);
    bind_int(statement, 3, batch->now_ms - DELIVERY_WAIT_MS_MAX);
    bind_int(statement, 4, PURGE_CHANGE_SIZE_MAX);
    return connection_run(&writer->connection, STATEMENT_CHANGE_PURGE);
}

static int batch_purge(struct writer *writer, const struct store_batch *batch)
{
    static const enum statement purges[] = {STATEMENT_KEY_PURGE, STATEMENT_BATCH_PURGE};
    int rc = SQLITE_OK;
    for (size_t i = 0; batch->purge_before_ms != 0 && i < COUNT_OF(purges) && rc == SQLITE_OK; i++) {
        sqlite3_stmt *statement = connection_statement(&writer->connection, purges[i]);
        bind_int(statement, 1, batch->purge_before_ms);
        bind_int(statement, 2, PURGE_ROW_COUNT_MAX);
        rc = connection_run(&writer->connection, purges[i]);
    }
    return batch->purge_before_ms != 0 && rc == SQLITE_OK ? changes_purge(writer, batch) : rc;
}

static int batch_write_change(struct writer *writer, const struct store_batch *batch)
{
    if (writer->changes.size == 0)
        return SQLITE_OK;
    sqlite3_stmt *statement = connection_statement(&writer->connection, STATEMENT_CHANGE_INSERT);
    bind_int(statement, 1, batch->now_ms);
    bind_blob(statement, 2, writer->changes.data, writer->changes.size);
    return connection_run(&writer->connection, STATEMENT_CHANGE_INSERT);
}

/* SQLITE_OK: committed. *unit_failed: the error came from a unit's data. */
static int batch_try(struct writer *writer, struct store_batch *batch, bool careful, bool *unit_failed)
{
    *unit_failed = false;
    int rc = batch_begin(writer, &batch->id, batch->now_ms);
    if (rc != SQLITE_OK)
        return rc;
    rc = units_write(writer, batch, careful);
    if (rc != SQLITE_OK) {
        *unit_failed = connection_trouble(rc) == TROUBLE_DATA;
        return rc;
    }
    rc = batch_purge(writer, batch);
    if (rc == SQLITE_OK)
        rc = batch_write_change(writer, batch);
    if (rc == SQLITE_OK)
        rc = totals_write(writer);
    if (rc == SQLITE_OK)
        rc = connection_run(&writer->connection, STATEMENT_COMMIT);
    return rc;
}

static void batch_write(struct sqlite_store *sqlite, struct store_batch *batch)
{
    struct writer *writer = &sqlite->writer;
    int64_t start_us = clock_monotonic_us();
    bool unit_failed = false;
    batch->err = ERR_STORE_UNAVAILABLE;
    if (writer_ready(sqlite)) {
        writer->connection.deadline_us =
            batch_has_layout(batch) ? 0 : start_us + (int64_t)TRANSACTION_MS_MAX * 1000;
        int rc = batch_try(writer, batch, false, &unit_failed);
        if (unit_failed) {
            connection_rollback(&writer->connection);
            writer_forget(writer);
            rc = batch_try(writer, batch, true, &unit_failed);
        }
        writer->connection.deadline_us = 0;
        batch->err = rc == SQLITE_OK ? ERR_OK : writer_fail(sqlite, rc);
    }
    batch->outcome = batch->err == ERR_OK ? STORE_COMMITTED : STORE_FAILED;
    if (batch->err == ERR_OK)
        writer_set_up(sqlite, true, "");
    batch->commit_us = clock_monotonic_us() - start_us;
}

/* Inserts the id: a conflict means that the batch committed, success that it never can. */
static void batch_resolve(struct sqlite_store *sqlite, struct store_batch *batch)
{
    struct writer *writer = &sqlite->writer;
    int64_t start_us = clock_monotonic_us();
    batch->err = ERR_STORE_UNAVAILABLE;
    if (writer_ready(sqlite)) {
        int rc = batch_begin(writer, &batch->id, batch->now_ms);
        if (rc == SQLITE_OK)
            rc = connection_run(&writer->connection, STATEMENT_COMMIT);
        if (rc == SQLITE_CONSTRAINT_PRIMARYKEY || rc == SQLITE_CONSTRAINT_UNIQUE) {
            connection_rollback(&writer->connection);
            batch->outcome = STORE_COMMITTED;
            batch->err = ERR_OK;
        } else if (rc == SQLITE_OK) {
            batch->outcome = STORE_FAILED;
        } else {
            batch->err = writer_fail(sqlite, rc);
        }
    }
    batch->commit_us = clock_monotonic_us() - start_us;
}

/* ---- Between batches ---- */

/* While the store is down and nobody submits: does a small write succeed again? */
static void writer_probe(struct sqlite_store *sqlite)
{
    struct writer *writer = &sqlite->writer;
    if (!writer_ready(sqlite))
        return;
    sqlite3_stmt *statement = connection_statement(&writer->connection, STATEMENT_BATCH_PROBE);
    bind_int(statement, 1, clock_now_ms());
    int rc = connection_run(&writer->connection, STATEMENT_BATCH_PROBE);
    if (rc == SQLITE_OK)
        writer_set_up(sqlite, true, "");
    else
        (void)writer_fail(sqlite, rc);
}

void *writer_main(void *argument)
{
    struct sqlite_store *sqlite = argument;
    struct list batches;
    list_init(&batches);
    for (;;) {
        bool up = atomic_load(&sqlite->up);
        if (!worker_take(&sqlite->writer.worker, &batches, up ? -1 : PROBE_INTERVAL_MS))
            break;
        if (list_empty(&batches))
            writer_probe(sqlite);
        struct list *node;
        while ((node = list_pop(&batches)) != NULL) {
            struct store_batch *batch = CONTAINER_OF(node, struct store_batch, node);
            if (batch->outcome == STORE_UNKNOWN)
                batch_resolve(sqlite, batch);
            else
                batch_write(sqlite, batch);
            done_post_batch(&sqlite->done, batch); /* it is the lane's again */
            writer_checkpoint(sqlite);
        }
    }
    return NULL;
}
