/* SPDX-License-Identifier: Apache-2.0
 * The SQLite store as a whole: opens it in the right order, starts its five
 * threads, takes calls and hands them on, and closes it.
 *
 *   path → lock, made 0600 → open → check → write-ahead log → migrate → prepare → threads
 *
 * Invariants: (1) nobody else writes: the lock is held from before the file is
 * opened until after it is closed. (2) A store that opened can be read and
 * written; whatever stands against it is said in one sentence. (3) Closing
 * finishes what was submitted and runs every callback that is left.
 *
 * A read-only store takes no lock and answers only load, verify and lists; it
 * may be opened beside a running server. */
#include "store/sqlite/sqlite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "store/sqlite/sqlite_int.h"

static struct sqlite_store *sqlite_of(struct store *store)
{
    return CONTAINER_OF(store, struct sqlite_store, store);
}

static enum err sqlite_submit(struct store *store, struct store_batch *batch)
{
    batch->outcome = STORE_FAILED; /* until it is known to be otherwise; UNKNOWN would mean "resolve" */
    return worker_post(&sqlite_of(store)->writer.worker, &batch->node);
}

static enum err sqlite_resolve(struct store *store, struct store_batch *batch)
{
    return worker_post(&sqlite_of(store)->writer.worker, &batch->node);
}

static enum err sqlite_lookup(struct store *store, struct store_lookup *lookup)
{
    return worker_post(&sqlite_of(store)->lookups, &lookup->node);
}

static enum err sqlite_follow(struct store *store, struct store_follow *follow)
{
    return worker_post(&sqlite_of(store)->follows, &follow->node);
}

static enum err sqlite_query(struct store *store, struct store_query *query)
{
    return worker_post(&sqlite_of(store)->queries, &query->node);
}

static int sqlite_fd(struct store *store)
{
    return sqlite_of(store)->done.fd;
}

static void sqlite_poll(struct store *store)
{
    done_poll(&sqlite_of(store)->done);
}

static bool sqlite_is_up(struct store *store)
{
    return atomic_load(&sqlite_of(store)->up);
}

/* An embedded store has no clock but the machine's. */
static int64_t sqlite_now_ms(struct store *store)
{
    (void)store;
    return clock_now_ms();
}

static void sqlite_close(struct store *store)
{
    struct sqlite_store *sqlite = sqlite_of(store);
    worker_stop(&sqlite->writer.worker);
    worker_stop(&sqlite->copier.worker);
    worker_stop(&sqlite->lookups);
    worker_stop(&sqlite->follows);
    worker_stop(&sqlite->queries);
    if (sqlite->done.fd >= 0)
        done_poll(&sqlite->done);
    writer_close(sqlite);
    worker_deinit(&sqlite->writer.worker);
    worker_deinit(&sqlite->copier.worker);
    worker_deinit(&sqlite->lookups);
    worker_deinit(&sqlite->follows);
    worker_deinit(&sqlite->queries);
    done_deinit(&sqlite->done);
    file_unlock(&sqlite->file);
    free(sqlite);
}

static const struct store_functions sqlite_functions = {
    .submit = sqlite_submit,
    .resolve = sqlite_resolve,
    .lookup = sqlite_lookup,
    .follow = sqlite_follow,
    .query = sqlite_query,
    .load = sqlite_load,
    .fd = sqlite_fd,
    .poll = sqlite_poll,
    .is_up = sqlite_is_up,
    .now_ms = sqlite_now_ms,
    .verify = sqlite_verify,
    .close = sqlite_close,
};

/* The version is looked at and, unless forbidden, brought up to date. */
static enum err sqlite_bring_up(struct sqlite_store *sqlite, bool no_migrate, int *applied, int *version,
                                char *why, size_t why_size)
{
    struct connection *connection = &sqlite->writer.connection;
    enum err err = migrate_check(connection, version, why, why_size);
    if (err != ERR_OK)
        return err;
    if (no_migrate && *version < migrate_latest()) {
        snprintf(why, why_size, "The database \"%s\" has version %d and must be migrated to %d first.",
                 sqlite->file.path, *version, migrate_latest());
        return ERR_STORE_OPEN;
    }
    err = connection_make_durable(connection, sqlite->file.path, why, why_size);
    return err == ERR_OK ? migrate_apply(connection, applied, version, why, why_size) : err;
}

static enum err sqlite_open_writer(struct sqlite_store *sqlite, const char *path, bool no_migrate,
                                   int *applied, int *version, char *why, size_t why_size)
{
    enum err err = file_resolve(&sqlite->file, path, false, why, why_size);
    if (err == ERR_OK)
        err = file_lock(&sqlite->file, why, why_size);
    if (err == ERR_OK)
        err = writer_open(sqlite, why, why_size);
    if (err == ERR_OK)
        err = sqlite_bring_up(sqlite, no_migrate, applied, version, why, why_size);
    if (err == ERR_OK)
        err = writer_prepare(sqlite, why, why_size);
    return err;
}

static enum err sqlite_start_threads(struct sqlite_store *sqlite, bool read_only, char *why, size_t why_size)
{
    enum err err = ERR_OK;
    if (!read_only)
        err = worker_start(&sqlite->copier.worker, "store-copy", copier_main, sqlite);
    if (err == ERR_OK && !read_only)
        err = worker_start(&sqlite->writer.worker, "store-write", writer_main, sqlite);
    if (err == ERR_OK && !read_only)
        err = worker_start(&sqlite->lookups, "store-lookup", lookup_main, sqlite);
    if (err == ERR_OK && !read_only)
        err = worker_start(&sqlite->follows, "store-follow", follow_main, sqlite);
    if (err == ERR_OK)
        err = worker_start(&sqlite->queries, "store-query", query_main, sqlite);
    if (err != ERR_OK)
        snprintf(why, why_size, "The store's threads cannot be started.");
    return err;
}

/* Checks a file that will only be read. */
static enum err sqlite_open_reader(struct sqlite_store *sqlite, const char *path, char *why, size_t why_size)
{
    struct connection connection;
    int version = 0;
    enum err err = file_resolve(&sqlite->file, path, true, why, why_size);
    if (err != ERR_OK)
        return err;
    err = connection_open(&connection, sqlite->file.path, true, why, why_size);
    if (err == ERR_OK)
        err = migrate_check(&connection, &version, why, why_size);
    if (err == ERR_OK && version < migrate_latest()) {
        snprintf(why, why_size, "The database \"%s\" has version %d and must be migrated to %d first.",
                 sqlite->file.path, version, migrate_latest());
        err = ERR_STORE_OPEN;
    }
    connection_close(&connection);
    return err;
}

static struct sqlite_store *sqlite_create(void)
{
    struct sqlite_store *sqlite = calloc(1, sizeof(*sqlite));
    CHECK(sqlite != NULL);
    sqlite->store.functions = &sqlite_functions;
    sqlite->file.name_fd = -1;
    sqlite->file.fd = -1;
    sqlite->done.fd = -1;
    atomic_init(&sqlite->up, true);
    worker_init(&sqlite->writer.worker);
    worker_init(&sqlite->copier.worker);
    atomic_init(&sqlite->copier.is_busy, false);
    worker_init(&sqlite->lookups);
    worker_init(&sqlite->follows);
    worker_init(&sqlite->queries);
    return sqlite;
}

enum err sqlite_store_open(const char *path, const struct store_options *options, struct store **out,
                           char *why, size_t why_size)
{
    struct sqlite_store *sqlite = sqlite_create();
    int applied = 0, version = 0;
    enum err err = done_init(&sqlite->done);
    if (err != ERR_OK)
        snprintf(why, why_size, "The store cannot be opened: no event descriptor is left.");
    else if (options->read_only)
        err = sqlite_open_reader(sqlite, path, why, why_size);
    else
        err = sqlite_open_writer(sqlite, path, options->no_migrate, &applied, &version, why, why_size);
    if (err == ERR_OK)
        err = sqlite_start_threads(sqlite, options->read_only, why, why_size);
    if (err != ERR_OK) {
        sqlite_close(&sqlite->store);
        return err;
    }
    gauge_set(GAUGE_STORE_UP, 1);
    *out = &sqlite->store;
    return ERR_OK;
}

enum err sqlite_store_migrate(const char *path, int *applied, int *version, char *why, size_t why_size)
{
    struct sqlite_store *sqlite = sqlite_create();
    enum err err = sqlite_open_writer(sqlite, path, false, applied, version, why, why_size);
    sqlite_close(&sqlite->store);
    return err;
}
