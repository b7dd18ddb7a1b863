/* SPDX-License-Identifier: Apache-2.0
 * The PostgreSQL store as a whole: opens it in the right order, starts its
 * threads, takes calls and hands them on, and closes it.
 *
 *   connect → check settings → check version → migrate → writers connect → one writes → threads
 *
 * Why threads and not sockets on the lane's own loop: what a batch needs is
 * several round trips with decisions between them, which reads as straight code
 * on a thread and as a state machine on a loop; the hand-over costs two wake-ups
 * a batch.
 *
 * Invariants: (1) a store that opened can be read and written, by a server that
 * keeps what it confirms; whatever stands against it is said in one sentence.
 * (2) Closing finishes what was submitted and runs every callback that is left.
 *
 * A read-only store answers only load, verify and lists. Any number of nodes may
 * have the same database open. */
#include "store/postgres/postgres.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "store/postgres/postgres_int.h"

enum { FEED_RESTART_MS_MAX = 10000 };

static struct pg_store *store_of(struct store *store)
{
    return CONTAINER_OF(store, struct pg_store, store);
}

static enum err pg_submit(struct store *store, struct store_batch *batch)
{
    batch->outcome = STORE_FAILED; /* until it is known to be otherwise; UNKNOWN would mean "resolve" */
    return pg_queue_post(&store_of(store)->queue, batch);
}

static enum err pg_resolve(struct store *store, struct store_batch *batch)
{
    return pg_queue_post(&store_of(store)->queue, batch);
}

static enum err pg_lookup(struct store *store, struct store_lookup *lookup)
{
    return worker_post(&store_of(store)->lookups, &lookup->node);
}

static enum err pg_follow(struct store *store, struct store_follow *follow)
{
    return worker_post(&store_of(store)->follows, &follow->node);
}

static enum err pg_query(struct store *store, struct store_query *query)
{
    return worker_post(&store_of(store)->queries, &query->node);
}

static int pg_fd(struct store *store)
{
    return store_of(store)->done.fd;
}

static void pg_poll(struct store *store)
{
    done_poll(&store_of(store)->done);
}

static bool pg_is_up(struct store *store)
{
    return atomic_load(&store_of(store)->up);
}

/* The server's clock, as it was at the last connection. */
static int64_t pg_now_ms(struct store *store)
{
    return clock_monotonic_us() / 1000 + atomic_load(&store_of(store)->utc_minus_monotonic_ms);
}

static void pg_close(struct store *store)
{
    struct pg_store *pg = store_of(store);
    pg_queue_stop(&pg->queue);
    for (int i = 0; i < PG_WRITER_COUNT; i++) {
        if (pg->writers[i].running)
            pthread_join(pg->writers[i].thread, NULL);
    }
    worker_stop(&pg->lookups);
    worker_stop(&pg->follows);
    worker_stop(&pg->queries);
    if (pg->done.fd >= 0)
        done_poll(&pg->done);
    for (int i = 0; i < PG_WRITER_COUNT; i++)
        pg_writer_deinit(&pg->writers[i]);
    worker_deinit(&pg->lookups);
    worker_deinit(&pg->follows);
    worker_deinit(&pg->queries);
    pg_queue_deinit(&pg->queue);
    done_deinit(&pg->done);
    free(pg->url);
    free(pg);
}

static const struct store_functions pg_functions = {
    .submit = pg_submit,
    .resolve = pg_resolve,
    .lookup = pg_lookup,
    .follow = pg_follow,
    .query = pg_query,
    .load = pg_load,
    .fd = pg_fd,
    .poll = pg_poll,
    .is_up = pg_is_up,
    .now_ms = pg_now_ms,
    .verify = pg_verify,
    .close = pg_close,
};

static struct pg_store *pg_create(const char *url)
{
    struct pg_store *pg = calloc(1, sizeof(*pg));
    CHECK(pg != NULL);
    pg->store.functions = &pg_functions;
    pg->store.shared = true;
    pg->url = strdup(url);
    CHECK(pg->url != NULL);
    pg->done.fd = -1;
    atomic_init(&pg->up, true);
    pg_queue_init(&pg->queue);
    worker_init(&pg->lookups);
    worker_init(&pg->follows);
    worker_init(&pg->queries);
    for (int i = 0; i < PG_WRITER_COUNT; i++)
        pg_writer_init(&pg->writers[i], pg, i);
    return pg;
}

/* Over a connection of its own: the version is looked at and, if allowed, brought up to date. */
static enum err pg_bring_up(struct pg_store *pg, bool migrate, int *applied, int *version, char *why,
                            size_t why_size)
{
    struct pg_connection connection;
    struct pg_server server;
    enum err err = pg_connection_open(&connection, pg->url, PG_USE_BARE, &server, why, why_size);
    if (err != ERR_OK)
        return err;
    atomic_store(&pg->utc_minus_monotonic_ms, server.utc_minus_monotonic_ms);
    err = pg_migrate_check(&connection, version, why, why_size);
    if (err == ERR_OK && *version < pg_migrate_latest()) {
        if (migrate) {
            err = pg_migrate_apply(&connection, applied, version, why, why_size);
        } else {
            snprintf(why, why_size, "The database has version %d and must be migrated to %d first.", *version,
                     pg_migrate_latest());
            err = ERR_STORE_OPEN;
        }
    }
    pg_connection_close(&connection);
    return err;
}

/* The first write of all: it also shows that the database can be written to. */
static enum err feed_restart(struct pg_writer *writer, char *why, size_t why_size)
{
    writer->connection.deadline_us = clock_monotonic_us() + (int64_t)FEED_RESTART_MS_MAX * 1000;
    (void)pg_send(&writer->connection, PG_FEED_RESTART, NULL);
    enum pg_trouble trouble = pg_writer_receive(writer);
    pg_reply_clear(&writer->reply);
    writer->connection.deadline_us = 0;
    if (trouble == PG_NONE)
        return ERR_OK;
    snprintf(why, why_size, "The database cannot be written to: %.300s.", writer->connection.why);
    return ERR_STORE_OPEN;
}

static enum err pg_start(struct pg_store *pg, char *why, size_t why_size)
{
    enum err err = ERR_OK;
    for (int i = 0; i < PG_WRITER_COUNT && err == ERR_OK; i++)
        err = pg_connection_open(&pg->writers[i].connection, pg->url, PG_USE_WRITE, NULL, why, why_size);
    if (err == ERR_OK)
        err = feed_restart(&pg->writers[0], why, why_size);
    if (err != ERR_OK)
        return err;
    for (int i = 0; i < PG_WRITER_COUNT && err == ERR_OK; i++) {
        struct pg_writer *writer = &pg->writers[i];
        err = pthread_create(&writer->thread, NULL, pg_writer_main, writer) == 0 ? ERR_OK : ERR_STORE_OPEN;
        writer->running = err == ERR_OK;
        if (err == ERR_OK)
            pthread_setname_np(writer->thread, "store-write");
    }
    if (err == ERR_OK)
        err = worker_start(&pg->lookups, "store-lookup", pg_lookup_main, pg);
    if (err == ERR_OK)
        err = worker_start(&pg->follows, "store-follow", pg_follow_main, pg);
    if (err == ERR_OK)
        err = worker_start(&pg->queries, "store-query", pg_query_main, pg);
    if (err != ERR_OK)
        snprintf(why, why_size, "The store's threads cannot be started.");
    return err;
}

enum err postgres_store_open(const char *url, const struct store_options *options, struct store **out,
                             char *why, size_t why_size)
{
    struct pg_store *pg = pg_create(url);
    int applied = 0, version = 0;
    bool migrate = !options->read_only && !options->no_migrate;
    enum err err = done_init(&pg->done);
    if (err != ERR_OK)
        snprintf(why, why_size, "The store cannot be opened: no event descriptor is left.");
    if (err == ERR_OK)
        err = pg_bring_up(pg, migrate, &applied, &version, why, why_size);
    if (err == ERR_OK && !options->read_only)
        err = pg_start(pg, why, why_size);
    if (err == ERR_OK && options->read_only)
        err = worker_start(&pg->queries, "store-query", pg_query_main, pg);
    if (err != ERR_OK) {
        pg_close(&pg->store);
        return err;
    }
    gauge_set(GAUGE_STORE_UP, 1);
    *out = &pg->store;
    return ERR_OK;
}

enum err postgres_store_migrate(const char *url, int *applied, int *version, char *why, size_t why_size)
{
    struct pg_store *pg = pg_create(url);
    *applied = 0;
    enum err err = pg_bring_up(pg, true, applied, version, why, why_size);
    pg_close(&pg->store);
    return err;
}
