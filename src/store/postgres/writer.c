/* SPDX-License-Identifier: Apache-2.0
 * The writing threads: each has a connection, takes batches from the queue and
 * writes them. Also what happens when the server is not there.
 *
 *   connected ──lost──▶ waiting (0.1 s, doubling to 2 s) ──connects──▶ connected
 *
 * Invariants: (1) a batch whose COMMIT was not sent has not been written and
 * never will be: it fails, or is tried once more on a new connection. (2) A
 * batch whose COMMIT was sent and not answered is unknown until its id was
 * inserted by somebody: a conflict means that it committed, success that it
 * never can. (3) While the store is down batches are refused at once between
 * two tries to connect, and one writer looks by itself whether it is back.
 *
 * A writer's connection and buffers are touched by its own thread alone. */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/metrics.h"
#include "store/postgres/postgres_int.h"

enum {
    PROBE_INTERVAL_MS = 500, /* while the store is down */
    BACKOFF_US_FIRST = 100 * 1000,
    BACKOFF_US_MAX = 2000 * 1000,
};

void pg_writer_init(struct pg_writer *writer, struct pg_store *store, int number)
{
    memset(writer, 0, sizeof(*writer));
    writer->store = store;
    writer->number = number;
    writer->id_number = -1;
    pg_params_init(&writer->params);
    arena_init(&writer->arena);
    stats_init(&writer->stats);
    buf_init(&writer->changes);
}

void pg_writer_deinit(struct pg_writer *writer)
{
    pg_connection_close(&writer->connection);
    pg_params_deinit(&writer->params);
    arena_deinit(&writer->arena);
    stats_deinit(&writer->stats);
    buf_deinit(&writer->changes);
}

void pg_store_set_up(struct pg_store *store, bool up, const char *why)
{
    if (atomic_exchange(&store->up, up) == up)
        return;
    gauge_set(GAUGE_STORE_UP, up);
    char quoted[PG_WHY_SIZE];
    log_quote(why, quoted, sizeof(quoted));
    if (up)
        log_write(LOG_INFO, "the store can be written to again", NULL);
    else
        log_write(LOG_ERROR, "the store cannot be written to", "\"error\":\"%s\"", quoted);
}

bool pg_writer_ready(struct pg_writer *writer, bool now)
{
    struct pg_store *store = writer->store;
    struct pg_server server;
    char why[PG_WHY_SIZE];
    if (writer->connection.link != NULL)
        return true;
    if (!now && clock_monotonic_us() < writer->retry_at_us)
        return false;
    if (pg_connection_open(&writer->connection, store->url, PG_USE_WRITE, &server, why, sizeof(why)) ==
        ERR_OK) {
        atomic_store(&store->utc_minus_monotonic_ms, server.utc_minus_monotonic_ms);
        writer->backoff_us = 0;
        return true;
    }
    writer->backoff_us = writer->backoff_us == 0 ? BACKOFF_US_FIRST : writer->backoff_us * 2;
    if (writer->backoff_us > BACKOFF_US_MAX)
        writer->backoff_us = BACKOFF_US_MAX;
    writer->retry_at_us = clock_monotonic_us() + writer->backoff_us;
    pg_store_set_up(store, false, why);
    return false;
}

static void batch_fail(struct pg_writer *writer, struct store_batch *batch, enum pg_trouble trouble)
{
    struct pg_store *store = writer->store;
    if (trouble == PG_BAD_DATA || trouble == PG_OURS) {
        char quoted[PG_WHY_SIZE];
        log_quote(writer->connection.why, quoted, sizeof(quoted));
        log_write(LOG_ERROR, "a batch was refused", "\"error\":\"%s\"", quoted);
        batch->err = ERR_INTERNAL;
        return;
    }
    /* Others can write, and the next batch of ours may, too. */
    if (trouble == PG_BUSY || trouble == PG_AGAIN) {
        char quoted[PG_WHY_SIZE];
        log_quote(writer->connection.why, quoted, sizeof(quoted));
        log_write(LOG_WARN, "a batch waited too long for a lock", "\"error\":\"%s\"", quoted);
        return;
    }
    if (trouble == PG_LOST && writer->commit_sent)
        batch->outcome = STORE_UNKNOWN;
    pg_store_set_up(store, false, writer->connection.why);
    if (trouble == PG_LOST)
        pg_connection_close(&writer->connection);
}

static void batch_write(struct pg_writer *writer, struct store_batch *batch)
{
    int64_t start_us = clock_monotonic_us();
    batch->outcome = STORE_FAILED;
    batch->err = ERR_STORE_UNAVAILABLE;
    if (pg_writer_ready(writer, false)) {
        enum pg_trouble trouble = pg_batch_write(writer, batch);
        bool in_time = clock_monotonic_us() - start_us < (int64_t)TRANSACTION_MS_MAX * 1000;
        if (trouble == PG_LOST && !writer->commit_sent && in_time) {
            /* An idle connection may have been cut long ago, which only shows when it is used. */
            pg_connection_close(&writer->connection);
            trouble = pg_writer_ready(writer, true) ? pg_batch_write(writer, batch) : PG_NONE;
            if (writer->connection.link == NULL)
                goto done; /* still not there: said already */
        } else if (trouble == PG_AGAIN) {
            trouble = pg_batch_write(writer, batch);
        }
        if (trouble == PG_NONE) {
            batch->outcome = STORE_COMMITTED;
            batch->err = ERR_OK;
            pg_store_set_up(writer->store, true, "");
        } else {
            batch_fail(writer, batch, trouble);
        }
    }
done:
    batch->commit_us = clock_monotonic_us() - start_us;
}

/* A statement of its own, committed by itself. Waits for a transaction that has the id and is still open. */
static void batch_resolve(struct pg_writer *writer, struct store_batch *batch)
{
    int64_t start_us = clock_monotonic_us();
    batch->err = ERR_STORE_UNAVAILABLE;
    if (pg_writer_ready(writer, false)) {
        struct pg_params *p = pg_writer_params(writer);
        pg_set_uuid(p, 0, &batch->id);
        pg_set_time(p, 1, batch->now_ms);
        writer->connection.deadline_us = start_us + (int64_t)TRANSACTION_MS_MAX * 1000;
        int number = pg_send(&writer->connection, PG_BATCH_RESOLVE, p);
        enum pg_trouble trouble = pg_writer_receive(writer);
        if (trouble == PG_NONE && atoi(PQcmdTuples(writer->reply.results[number])) == 0) {
            batch->outcome = STORE_COMMITTED;
            batch->err = ERR_OK;
        } else if (trouble == PG_NONE) {
            batch->outcome = STORE_FAILED;
        } else if (trouble == PG_LOST) {
            pg_connection_close(&writer->connection);
        }
        pg_reply_clear(&writer->reply);
        if (trouble == PG_NONE)
            pg_store_set_up(writer->store, true, "");
        writer->connection.deadline_us = 0;
    }
    batch->commit_us = clock_monotonic_us() - start_us;
}

/* While the store is down and nobody submits: does a small write succeed again? */
static void writer_probe(struct pg_writer *writer)
{
    if (!pg_writer_ready(writer, false))
        return;
    writer->connection.deadline_us = clock_monotonic_us() + (int64_t)TRANSACTION_MS_MAX * 1000;
    (void)pg_send(&writer->connection, PG_BATCH_PROBE, NULL);
    enum pg_trouble trouble = pg_writer_receive(writer);
    pg_reply_clear(&writer->reply);
    writer->connection.deadline_us = 0;
    if (trouble == PG_NONE)
        pg_store_set_up(writer->store, true, "");
    else if (trouble == PG_LOST)
        pg_connection_close(&writer->connection);
}

void *pg_writer_main(void *argument)
{
    struct pg_writer *writer = argument;
    struct pg_store *store = writer->store;
    struct pg_job *job;
    for (;;) {
        bool probes = writer->number == 0 && !atomic_load(&store->up);
        if (!pg_queue_take(&store->queue, &job, writer->number == 0 ? PROBE_INTERVAL_MS : -1))
            break;
        if (job == NULL) {
            if (probes)
                writer_probe(writer);
            continue;
        }
        if (job->batch->outcome == STORE_UNKNOWN)
            batch_resolve(writer, job->batch);
        else
            batch_write(writer, job->batch);
        pg_queue_finish(&store->queue, job, &store->done);
    }
    return NULL;
}
