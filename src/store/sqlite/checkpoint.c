/* SPDX-License-Identifier: Apache-2.0
 * Copies the write-ahead log back into the file, so that it can begin again.
 *
 *   log long enough ──▶ copying thread: all but the last of it, while batches go on
 *                                      ──▶ writer: the rest, between two batches ──▶ the log begins again
 *
 * SQLite begins the log again only when all of it was copied, which a thread
 * beside a busy writer never achieves; a writer that copies all of it itself
 * lets everybody wait meanwhile, an eighth of the time under full load.
 *
 * Invariants: (1) at most one of the two copies: the writer leaves it alone
 * while it has asked. (2) Nothing waits for readers for long: what they still
 * need stays in the log until a later time. (3) A file that the disk does not
 * confirm ends the process, whoever copied. */
#include <unistd.h>

#include "store/sqlite/sqlite_int.h"

enum {
    CHECKPOINT_FORCE_COUNT = 80000, /* pages of the log: when to wait a little for readers */
    CHECKPOINT_WAIT_MS = 50,
    CHECKPOINT_RETRY_COUNT = 2000, /* pages written since a checkpoint that readers cut short */
    COPY_COUNT_MAX = 4,            /* one copy leaves what was written meanwhile to the next … */
    COPY_REST_COUNT = 1000,        /* … until it was only so many pages */
};

/* ---- Beside the writer ---- */

/* Opens the connection if it is not open. False: not to be had now. */
static bool copier_is_ready(struct sqlite_store *sqlite, struct connection *connection)
{
    char why[SQLITE_WHY_SIZE];
    if (connection->db != NULL)
        return true;
    if (connection_open(connection, sqlite->file.path, false, why, sizeof(why)) != ERR_OK)
        return false;
    if (connection_make_durable(connection, sqlite->file.path, why, sizeof(why)) == ERR_OK)
        return true;
    connection_close(connection);
    return false;
}

static void copier_run(struct sqlite_store *sqlite, struct connection *connection)
{
    int copied_before = 0;
    for (int i = 0; i < COPY_COUNT_MAX && copier_is_ready(sqlite, connection); i++) {
        int log_count = 0, copied_count = 0;
        int rc = sqlite3_wal_checkpoint_v2(connection->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &log_count,
                                           &copied_count);
        if (connection_trouble(rc) == TROUBLE_FSYNC)
            writer_give_up(rc);
        if (rc != SQLITE_OK) {
            connection_close(connection); /* the writer meets the same trouble, and says so */
            return;
        }
        /* SQLite does so only when all was copied: then the writer would wait for all of it. */
        if (fdatasync(sqlite->file.fd) != 0)
            writer_give_up(SQLITE_IOERR_FSYNC);
        if (copied_count - copied_before < COPY_REST_COUNT)
            return;
        copied_before = copied_count;
    }
}

void *copier_main(void *argument)
{
    struct sqlite_store *sqlite = argument;
    struct connection connection = {.db = NULL};
    struct list wishes;
    list_init(&wishes);
    while (worker_take(&sqlite->copier.worker, &wishes, -1)) {
        list_init(&wishes);
        copier_run(sqlite, &connection);
        atomic_store(&sqlite->copier.is_busy, false);
    }
    connection_close(&connection);
    return NULL;
}

static bool copier_ask(struct copier *copier)
{
    atomic_store(&copier->is_busy, true);
    list_init(&copier->wish);
    bool is_taken = worker_post(&copier->worker, &copier->wish) == ERR_OK;
    if (!is_taken)
        atomic_store(&copier->is_busy, false);
    return is_taken;
}

/* ---- Between batches ---- */

/* Passive first: it copies what no reader still needs and waits for nobody. When readers have kept the log
 * growing for long, wait for them a moment so that it can begin again. */
static int checkpoint_mode(const struct writer *writer)
{
    if (writer->checkpoint_at == 0)
        return SQLITE_CHECKPOINT_TRUNCATE;
    return writer->log_page_count >= CHECKPOINT_FORCE_COUNT ? SQLITE_CHECKPOINT_RESTART
                                                            : SQLITE_CHECKPOINT_PASSIVE;
}

void writer_checkpoint(struct sqlite_store *sqlite)
{
    struct writer *writer = &sqlite->writer;
    if (writer->broken || writer->log_page_count < writer->checkpoint_at ||
        atomic_load(&sqlite->copier.is_busy))
        return;
    int mode = checkpoint_mode(writer);
    if (mode == SQLITE_CHECKPOINT_PASSIVE && !writer->only_rest) {
        writer->only_rest = true;
        if (copier_ask(&sqlite->copier))
            return;
    }
    writer->only_rest = false;
    int log_count = 0, copied_count = 0;
    sqlite3_busy_timeout(writer->connection.db, CHECKPOINT_WAIT_MS);
    int rc = sqlite3_wal_checkpoint_v2(writer->connection.db, NULL, mode, &log_count, &copied_count);
    sqlite3_busy_timeout(writer->connection.db, BUSY_TIMEOUT_MS);
    if (connection_trouble(rc) == TROUBLE_FSYNC)
        writer_give_up(rc);
    if (rc == SQLITE_OK && copied_count >= log_count)
        writer->checkpoint_at = CHECKPOINT_PAGE_COUNT;
    else
        writer->checkpoint_at = writer->log_page_count + CHECKPOINT_RETRY_COUNT;
}
