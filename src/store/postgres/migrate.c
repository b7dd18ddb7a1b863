/* SPDX-License-Identifier: Apache-2.0
 * Numbered migrations. Files migrations/NNNN_*.sql are embedded in order; the
 * table schema_migrations says which were applied.
 *
 * Invariants: (1) a migration and its row are one transaction. (2) A database
 * of a higher version is refused untouched. (3) Nodes that start together
 * migrate one after the other: an advisory lock is held meanwhile. (4)
 * Migrations are never changed once released; a later one repairs.
 *
 * Runs on the opening thread. It never goes back. */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embed.h"
#include "base/log.h"
#include "store/postgres/postgres_int.h"

extern const struct embed postgres_migrations[];

/* "Hold", as a number: the key of the advisory lock. */
#define MIGRATION_LOCK "1215261796"

int pg_migrate_latest(void)
{
    int count = 0;
    while (postgres_migrations[count].name != NULL)
        count++;
    return count;
}

/* The first cell of the first row as a number; false on an error. */
static bool migrate_ask(struct pg_connection *connection, const char *sql, int *number)
{
    PGresult *result = pg_execute(connection, sql);
    if (result == NULL)
        return false;
    if (PQntuples(result) > 0 && PQnfields(result) > 0)
        *number = atoi(PQgetvalue(result, 0, 0));
    PQclear(result);
    return true;
}

enum err pg_migrate_check(struct pg_connection *connection, int *version, char *why, size_t why_size)
{
    int there = 0, tables = 0;
    *version = 0;
    bool good =
        migrate_ask(connection, "SELECT (to_regclass('schema_migrations') IS NOT NULL)::integer", &there);
    if (good && there != 0)
        good = migrate_ask(connection, "SELECT coalesce(max(version), 0) FROM schema_migrations", version);
    else if (good)
        good = migrate_ask(connection, "SELECT (to_regclass('seat_holds') IS NOT NULL)::integer", &tables);
    if (!good) {
        snprintf(why, why_size, "The database cannot be read: %.300s.", connection->why);
        return ERR_STORE_OPEN;
    }
    if (tables != 0) {
        snprintf(why, why_size, "The database has tables of another program.");
        return ERR_STORE_OPEN;
    }
    if (*version > pg_migrate_latest()) {
        snprintf(why, why_size, "The database has version %d, newer than this program's %d.", *version,
                 pg_migrate_latest());
        return ERR_STORE_NEWER;
    }
    return ERR_OK;
}

static bool migrate_run(struct pg_connection *connection, const char *sql)
{
    int ignored = 0;
    return migrate_ask(connection, sql, &ignored);
}

static bool migrate_one(struct pg_connection *connection, int number)
{
    const struct embed *file = &postgres_migrations[number - 1];
    char note[256];
    snprintf(note, sizeof(note), "INSERT INTO schema_migrations (version, name) VALUES (%d, '%.100s')",
             number, file->name);
    return migrate_run(connection, "BEGIN") && migrate_run(connection, file->data) &&
           migrate_run(connection, note) && migrate_run(connection, "COMMIT");
}

/* Under the lock. */
static enum err migrate_all(struct pg_connection *connection, int *applied, int *version, char *why,
                            size_t why_size)
{
    static const char table[] = "CREATE TABLE IF NOT EXISTS schema_migrations ("
                                "version integer PRIMARY KEY, name text NOT NULL, "
                                "applied_at timestamptz NOT NULL DEFAULT clock_timestamp())";
    /* Another node may have been faster. */
    enum err err = pg_migrate_check(connection, version, why, why_size);
    if (err != ERR_OK || *version == pg_migrate_latest())
        return err;
    if (!migrate_run(connection, table)) {
        snprintf(why, why_size, "The database cannot be migrated: %.300s.", connection->why);
        return ERR_STORE_OPEN;
    }
    while (*version < pg_migrate_latest()) {
        const char *name = postgres_migrations[*version].name;
        CHECK(atoi(name) == *version + 1);
        if (!migrate_one(connection, *version + 1)) {
            snprintf(why, why_size, "The migration %s failed: %.300s.", name, connection->why);
            (void)migrate_run(connection, "ROLLBACK");
            return ERR_STORE_OPEN;
        }
        log_write(LOG_INFO, "migration applied", "\"name\":\"%s\"", name);
        ++*version;
        ++*applied;
    }
    return ERR_OK;
}

enum err pg_migrate_apply(struct pg_connection *connection, int *applied, int *version, char *why,
                          size_t why_size)
{
    *applied = 0;
    if (!migrate_run(connection, "SELECT pg_advisory_lock(" MIGRATION_LOCK ")")) {
        snprintf(why, why_size, "Another program is migrating the database: %.300s.", connection->why);
        return ERR_STORE_OPEN;
    }
    enum err err = migrate_all(connection, applied, version, why, why_size);
    (void)migrate_run(connection, "SELECT pg_advisory_unlock(" MIGRATION_LOCK ")");
    return err;
}
