/* SPDX-License-Identifier: Apache-2.0
 * Opens connections, keeps their prepared statements and translates SQLite's
 * results. Every file of this store talks to SQLite through what is opened
 * here.
 *
 * Invariants: (1) a writing connection is in WAL mode with synchronous=FULL: a
 * commit that returned is on the disk. (2) Checkpoints are made when the writer
 * chooses: see checkpoint.c. (3) A statement that was run is reset, so that it
 * holds no lock. (4) One thread uses a connection.
 *
 * It deliberately maps no file into memory: there an I/O error is a signal
 * that ends the process; here it is a result. */
#include "store/sqlite/connection.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/embed.h"
#include "base/log.h"
#include "store/sqlite/log_file.h"
#include "store/sqlite/page_cache.h"

enum {
    DEADLINE_CHECK_STEPS = 20000,
    SPARE_SIZE = 1024, /* of a statement's cursors and the like, which come and go with each run */
    SPARE_COUNT = 256,
};

extern const struct embed sqlite_sql[];

static const char *const statement_files[STATEMENT_COUNT] = {
#define STATEMENT_FILE(id, file, use) file ".sql",
    STATEMENT_MAP(STATEMENT_FILE)
#undef STATEMENT_FILE
};
static const unsigned statement_uses[STATEMENT_COUNT] = {
#define STATEMENT_USE(id, file, use) use,
    STATEMENT_MAP(STATEMENT_USE)
#undef STATEMENT_USE
};

/* Nothing here writes to the file. */
static const char write_pragmas[] = "PRAGMA cache_size = -262144;"
                                    "PRAGMA temp_store = MEMORY;"
                                    "PRAGMA trusted_schema = OFF;";
static const char read_pragmas[] = "PRAGMA query_only = ON;"
                                   "PRAGMA cache_size = -65536;"
                                   "PRAGMA temp_store = MEMORY;"
                                   "PRAGMA trusted_schema = OFF;";
/* The page size counts only before the first page is written; a file that exists keeps its own. */
static const char durable_pragmas[] = "PRAGMA page_size = 4096;"
                                      "PRAGMA journal_mode = WAL;"
                                      "PRAGMA synchronous = FULL;"
                                      "PRAGMA wal_autocheckpoint = 0;"
                                      "PRAGMA journal_size_limit = 268435456;";

static int connection_on_progress(void *context)
{
    const struct connection *connection = context;
    return connection->deadline_us != 0 && clock_monotonic_us() > connection->deadline_us;
}

/* One sentence for a result of opening, and its name. */
static enum err connection_explain(struct connection *connection, const char *path, int rc, char *why,
                                   size_t why_size)
{
    if (connection_trouble(rc) == TROUBLE_CORRUPT) {
        snprintf(why, why_size, "The file \"%s\" is not a database, or is corrupted: %s.", path,
                 sqlite3_errstr(rc));
        return ERR_STORE_CORRUPT;
    }
    snprintf(why, why_size, "The database \"%s\" cannot be opened: %s.", path,
             connection->db != NULL ? sqlite3_errmsg(connection->db) : sqlite3_errstr(rc));
    return ERR_STORE_OPEN;
}

/* SQLite counts its memory under one lock for the whole process, for a figure that nobody reads here. */
static void memory_set_up(void)
{
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    page_cache_set_up();
}

enum err connection_open(struct connection *connection, const char *path, bool read_only, char *why,
                         size_t why_size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, memory_set_up);
    memset(connection, 0, sizeof(*connection));
    int flags = (read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE) | SQLITE_OPEN_NOMUTEX |
                SQLITE_OPEN_EXRESCODE;
    int rc = sqlite3_open_v2(path, &connection->db, flags, read_only ? NULL : log_file_layer());
    if (rc != SQLITE_OK)
        goto open_failed;
    /* Closing must not stop for a long checkpoint; the store makes its own at the end. */
    sqlite3_db_config(connection->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_db_config(connection->db, SQLITE_DBCONFIG_LOOKASIDE, NULL, SPARE_SIZE, SPARE_COUNT);
    sqlite3_busy_timeout(connection->db, BUSY_TIMEOUT_MS);
    sqlite3_progress_handler(connection->db, DEADLINE_CHECK_STEPS, connection_on_progress, connection);
    if (!read_only && sqlite3_db_readonly(connection->db, "main") == 1) {
        snprintf(why, why_size, "The database \"%s\" cannot be written to.", path);
        connection_close(connection);
        return ERR_STORE_OPEN;
    }
    rc = sqlite3_exec(connection->db, read_only ? read_pragmas : write_pragmas, NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        goto open_failed;
    return ERR_OK;

open_failed:;
    enum err err = connection_explain(connection, path, rc, why, why_size);
    connection_close(connection);
    return err;
}

static int connection_on_journal_mode(void *context, int count, char **values, char **names)
{
    (void)names;
    if (count == 1 && values[0] != NULL && strcmp(values[0], "wal") == 0)
        *(bool *)context = true;
    return 0;
}

enum err connection_make_durable(struct connection *connection, const char *path, char *why, size_t why_size)
{
    bool wal = false;
    int rc = sqlite3_exec(connection->db, durable_pragmas, connection_on_journal_mode, &wal, NULL);
    if (rc != SQLITE_OK)
        return connection_explain(connection, path, rc, why, why_size);
    if (!wal) {
        snprintf(why, why_size, "The database \"%s\" cannot keep a write-ahead log where it is.", path);
        return ERR_STORE_OPEN;
    }
    return ERR_OK;
}

enum err connection_prepare(struct connection *connection, unsigned use, char *why, size_t why_size)
{
    for (int i = 0; i < STATEMENT_COUNT; i++) {
        if ((statement_uses[i] & use) == 0 || connection->statements[i] != NULL)
            continue;
        const struct embed *file = embed_find(sqlite_sql, statement_files[i]);
        CHECK(file != NULL);
        int rc = sqlite3_prepare_v3(connection->db, file->data, (int)file->size + 1,
                                    SQLITE_PREPARE_PERSISTENT, &connection->statements[i], NULL);
        if (rc != SQLITE_OK) {
            snprintf(why, why_size, "The database does not take the statement %s: %s.", file->name,
                     sqlite3_errmsg(connection->db));
            return connection_trouble(rc) == TROUBLE_CORRUPT ? ERR_STORE_CORRUPT : ERR_STORE_OPEN;
        }
    }
    return ERR_OK;
}

void connection_close(struct connection *connection)
{
    for (int i = 0; i < STATEMENT_COUNT; i++) {
        sqlite3_finalize(connection->statements[i]);
        connection->statements[i] = NULL;
    }
    if (connection->db != NULL && sqlite3_close(connection->db) != SQLITE_OK)
        log_write(LOG_ERROR, "a connection to the database could not be closed", NULL);
    connection->db = NULL;
}

sqlite3_stmt *connection_statement(struct connection *connection, enum statement statement)
{
    CHECK(connection->statements[statement] != NULL);
    return connection->statements[statement];
}

int connection_run(struct connection *connection, enum statement statement)
{
    sqlite3_stmt *prepared = connection_statement(connection, statement);
    int rc;
    do {
        rc = sqlite3_step(prepared);
    } while (rc == SQLITE_ROW);
    int reset = sqlite3_reset(prepared);
    return rc == SQLITE_DONE ? SQLITE_OK : (reset != SQLITE_OK ? reset : rc);
}

int connection_changes(struct connection *connection)
{
    return sqlite3_changes(connection->db);
}

void connection_rollback(struct connection *connection)
{
    if (connection->db == NULL || sqlite3_get_autocommit(connection->db))
        return;
    if (connection_run(connection, STATEMENT_ROLLBACK) != SQLITE_OK)
        log_write(LOG_ERROR, "a transaction could not be rolled back", NULL);
}

enum trouble connection_trouble(int result)
{
    if (result == SQLITE_IOERR_FSYNC || result == SQLITE_IOERR_DIR_FSYNC)
        return TROUBLE_FSYNC;
    switch (result & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return TROUBLE_NONE;
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG:
    case SQLITE_NOTFOUND: /* ours: a row to be updated was not there */
        return TROUBLE_DATA;
    case SQLITE_FULL:
    case SQLITE_READONLY:
    case SQLITE_IOERR:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_PROTOCOL:
    case SQLITE_NOMEM:
    case SQLITE_INTERRUPT:
        return TROUBLE_OUTSIDE;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return TROUBLE_CORRUPT;
    default:
        return TROUBLE_OURS;
    }
}

enum err connection_err(int result)
{
    switch (connection_trouble(result)) {
    case TROUBLE_NONE:
        return ERR_OK;
    case TROUBLE_CORRUPT:
        return ERR_STORE_CORRUPT;
    case TROUBLE_DATA:
    case TROUBLE_OURS:
        return ERR_INTERNAL;
    case TROUBLE_OUTSIDE:
    case TROUBLE_FSYNC:
        break;
    }
    return ERR_STORE_UNAVAILABLE;
}
