/* SPDX-License-Identifier: Apache-2.0
 * Numbered migrations. Files migrations/NNNN_*.sql are embedded in order; the
 * file's user_version says how many were applied, its application_id that it
 * is ours.
 *
 * Invariants: (1) a migration and its new version are one transaction. (2) A
 * file of a higher version, or of another program, is refused untouched. (3)
 * Migrations are never changed once released; a later one repairs.
 *
 * Runs on the opening thread, under the file's lock. It never goes back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embed.h"
#include "base/log.h"
#include "store/sqlite/sqlite_int.h"

enum {
    APPLICATION_ID = 0x486f6c64,             /* "Hold" */
    QUICK_CHECK_SIZE_MAX = 64 * 1024 * 1024, /* larger files are checked as they are loaded, and by verify */
};

extern const struct embed sqlite_migrations[];

int migrate_latest(void)
{
    int count = 0;
    while (sqlite_migrations[count].name != NULL)
        count++;
    return count;
}

/* The first cell of the first row, as a number and as text. */
static int migrate_ask(struct connection *connection, const char *sql, int64_t *number, char *text,
                       size_t text_size)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(connection->db, sql, -1, &statement, NULL);
    if (rc != SQLITE_OK)
        return rc;
    rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) {
        *number = sqlite3_column_int64(statement, 0);
        const unsigned char *cell = sqlite3_column_text(statement, 0);
        if (text != NULL)
            snprintf(text, text_size, "%s", cell != NULL ? (const char *)cell : "");
    }
    int end = sqlite3_finalize(statement);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : (end != SQLITE_OK ? end : rc);
}

/* A small file is looked through before it is used. */
static enum err migrate_check_pages(struct connection *connection, char *why, size_t why_size)
{
    int64_t count = 0, size = 0, ignored = 0;
    char answer[256] = "ok";
    int rc = migrate_ask(connection, "PRAGMA page_count", &count, NULL, 0);
    if (rc == SQLITE_OK)
        rc = migrate_ask(connection, "PRAGMA page_size", &size, NULL, 0);
    if (rc == SQLITE_OK && count * size <= QUICK_CHECK_SIZE_MAX)
        rc = migrate_ask(connection, "PRAGMA quick_check(1)", &ignored, answer, sizeof(answer));
    if (rc == SQLITE_OK && strcmp(answer, "ok") == 0)
        return ERR_OK;
    for (char *c = answer; *c != '\0'; c++) {
        if (*c == '\n')
            *c = ' ';
    }
    snprintf(why, why_size, "The database is corrupted: %s.", rc != SQLITE_OK ? sqlite3_errstr(rc) : answer);
    return rc == SQLITE_OK || connection_trouble(rc) == TROUBLE_CORRUPT ? ERR_STORE_CORRUPT : ERR_STORE_OPEN;
}

enum err migrate_check(struct connection *connection, int *version, char *why, size_t why_size)
{
    int64_t application = 0, number = 0, tables = 0;
    int rc = migrate_ask(connection, "PRAGMA application_id", &application, NULL, 0);
    if (rc == SQLITE_OK)
        rc = migrate_ask(connection, "PRAGMA user_version", &number, NULL, 0);
    if (rc == SQLITE_OK)
        rc = migrate_ask(connection, "SELECT count(*) FROM sqlite_schema", &tables, NULL, 0);
    if (rc != SQLITE_OK) {
        bool corrupt = connection_trouble(rc) == TROUBLE_CORRUPT;
        snprintf(why, why_size,
                 corrupt ? "The file is not a database, or is corrupted: %s."
                         : "The database cannot be read: %s.",
                 sqlite3_errmsg(connection->db));
        return corrupt ? ERR_STORE_CORRUPT : ERR_STORE_OPEN;
    }
    if (application != APPLICATION_ID && (application != 0 || number != 0 || tables != 0)) {
        snprintf(why, why_size, "The file is a database of another program.");
        return ERR_STORE_OPEN;
    }
    if (number < 0 || number > migrate_latest()) {
        snprintf(why, why_size, "The database has version %lld, newer than this program's %d.",
                 (long long)number, migrate_latest());
        return ERR_STORE_NEWER;
    }
    *version = (int)number;
    return migrate_check_pages(connection, why, why_size);
}

static int migrate_one(struct connection *connection, int number)
{
    char version[96];
    snprintf(version, sizeof(version), "PRAGMA application_id = %d; PRAGMA user_version = %d;",
             APPLICATION_ID, number);
    int rc = sqlite3_exec(connection->db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(connection->db, sqlite_migrations[number - 1].data, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(connection->db, version, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(connection->db, "COMMIT", NULL, NULL, NULL);
    return rc;
}

enum err migrate_apply(struct connection *connection, int *applied, int *version, char *why, size_t why_size)
{
    *applied = 0;
    while (*version < migrate_latest()) {
        const char *name = sqlite_migrations[*version].name;
        CHECK(atoi(name) == *version + 1);
        int rc = migrate_one(connection, *version + 1);
        if (rc != SQLITE_OK) {
            snprintf(why, why_size, "The migration %s failed: %s.", name, sqlite3_errmsg(connection->db));
            if (!sqlite3_get_autocommit(connection->db))
                (void)sqlite3_exec(connection->db, "ROLLBACK", NULL, NULL, NULL);
            return ERR_STORE_OPEN;
        }
        log_write(LOG_INFO, "migration applied", "\"name\":\"%s\"", name);
        ++*version;
        ++*applied;
    }
    return ERR_OK;
}
