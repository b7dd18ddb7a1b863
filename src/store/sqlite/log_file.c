/* SPDX-License-Identifier: Apache-2.0
 * SQLite writes its log page by page, two system calls a page; a batch of holds
 * changes a thousand pages. Here they are gathered and written as one piece,
 * which makes batches of scattered seats about twice as fast.
 *
 * Invariants: (1) bytes reach the file in the order they were written: what is
 * gathered is one contiguous piece, and anything that does not follow it makes
 * it go out first. (2) Nothing is gathered any more when the log is
 * synchronized, read, measured or cut: a commit is on the disk exactly when it
 * is without this layer, for SQLite synchronizes the log before it tells anyone
 * of the commit. (3) A write that fails late is reported by that call, so before
 * the commit counts, and what could not be written is dropped. What is still
 * gathered when the file is closed is of no commit, and is dropped too.
 *
 * Used by connections that write: the writer's, and the copier's, which only
 * reads the log. Every other file, and every other connection, has the system's
 * own layer. */
#include "store/sqlite/log_file.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

enum { PIECE_SIZE_MAX = 124 * 1024 }; /* the system layer writes less than 128 KiB at once */

struct log_file {
    sqlite3_file base;  /* what SQLite sees */
    sqlite3_file *real; /* the system's, behind this struct */
    char *piece;        /* gathered bytes */
    int piece_size;
    sqlite3_int64 piece_at; /* where in the file they belong */
};

static sqlite3_vfs layer;
static sqlite3_vfs *system_layer;

static struct log_file *log_of(sqlite3_file *file)
{
    return CONTAINER_OF(file, struct log_file, base);
}

/* Writes out what was gathered. On failure it is dropped: the transaction fails, and its commit must not reach
 * the file later. */
static int log_flush(struct log_file *log)
{
    int size = log->piece_size;
    log->piece_size = 0;
    return size > 0 ? log->real->pMethods->xWrite(log->real, log->piece, size, log->piece_at) : SQLITE_OK;
}

static int log_write_bytes(sqlite3_file *file, const void *data, int size, sqlite3_int64 at)
{
    struct log_file *log = log_of(file);
    bool follows = log->piece_size > 0 && at == log->piece_at + log->piece_size;
    if (!follows || size > PIECE_SIZE_MAX - log->piece_size) {
        int rc = log_flush(log);
        if (rc != SQLITE_OK)
            return rc;
        log->piece_at = at;
    }
    if (size > PIECE_SIZE_MAX)
        return log->real->pMethods->xWrite(log->real, data, size, at);
    memcpy(log->piece + log->piece_size, data, (size_t)size);
    log->piece_size += size;
    return SQLITE_OK;
}

static int log_read_bytes(sqlite3_file *file, void *out, int size, sqlite3_int64 at)
{
    struct log_file *log = log_of(file);
    int rc = log_flush(log);
    return rc == SQLITE_OK ? log->real->pMethods->xRead(log->real, out, size, at) : rc;
}

static int log_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct log_file *log = log_of(file);
    int rc = log_flush(log);
    return rc == SQLITE_OK ? log->real->pMethods->xTruncate(log->real, size) : rc;
}

static int log_sync(sqlite3_file *file, int flags)
{
    struct log_file *log = log_of(file);
    int rc = log_flush(log);
    return rc == SQLITE_OK ? log->real->pMethods->xSync(log->real, flags) : rc;
}

static int log_size(sqlite3_file *file, sqlite3_int64 *size)
{
    struct log_file *log = log_of(file);
    int rc = log_flush(log);
    return rc == SQLITE_OK ? log->real->pMethods->xFileSize(log->real, size) : rc;
}

static int log_close(sqlite3_file *file)
{
    struct log_file *log = log_of(file);
    free(log->piece);
    return log->real->pMethods->xClose(log->real);
}

static int log_lock(sqlite3_file *file, int level)
{
    return log_of(file)->real->pMethods->xLock(log_of(file)->real, level);
}

static int log_unlock(sqlite3_file *file, int level)
{
    return log_of(file)->real->pMethods->xUnlock(log_of(file)->real, level);
}

static int log_check_lock(sqlite3_file *file, int *out)
{
    return log_of(file)->real->pMethods->xCheckReservedLock(log_of(file)->real, out);
}

static int log_control(sqlite3_file *file, int operation, void *argument)
{
    return log_of(file)->real->pMethods->xFileControl(log_of(file)->real, operation, argument);
}

static int log_sector_size(sqlite3_file *file)
{
    return log_of(file)->real->pMethods->xSectorSize(log_of(file)->real);
}

static int log_characteristics(sqlite3_file *file)
{
    return log_of(file)->real->pMethods->xDeviceCharacteristics(log_of(file)->real);
}

static const sqlite3_io_methods log_methods = {
    .iVersion = 1,
    .xClose = log_close,
    .xRead = log_read_bytes,
    .xWrite = log_write_bytes,
    .xTruncate = log_truncate,
    .xSync = log_sync,
    .xFileSize = log_size,
    .xLock = log_lock,
    .xUnlock = log_unlock,
    .xCheckReservedLock = log_check_lock,
    .xFileControl = log_control,
    .xSectorSize = log_sector_size,
    .xDeviceCharacteristics = log_characteristics,
};

static int layer_open(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags, int *out_flags)
{
    (void)vfs;
    if ((flags & SQLITE_OPEN_WAL) == 0)
        return system_layer->xOpen(system_layer, name, file, flags, out_flags);
    struct log_file *log = log_of(file);
    memset(log, 0, sizeof(*log));
    log->real = (sqlite3_file *)(log + 1);
    char *piece = malloc(PIECE_SIZE_MAX);
    if (piece == NULL)
        return SQLITE_NOMEM;
    int rc = system_layer->xOpen(system_layer, name, log->real, flags, out_flags);
    if (rc != SQLITE_OK) { /* without methods SQLite does not close it */
        free(piece);
        return rc;
    }
    log->piece = piece;
    log->base.pMethods = &log_methods;
    return SQLITE_OK;
}

static void layer_make(void)
{
    sqlite3_vfs *found = sqlite3_vfs_find(NULL);
    if (found == NULL)
        return;
    layer = *found;
    layer.pNext = NULL;
    layer.zName = "holdfast-log";
    layer.xOpen = layer_open;
    layer.szOsFile = (int)sizeof(struct log_file) + found->szOsFile;
    system_layer = found;
    if (sqlite3_vfs_register(&layer, 0) != SQLITE_OK)
        system_layer = NULL;
}

const char *log_file_layer(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    CHECK(pthread_once(&once, layer_make) == 0);
    return system_layer != NULL ? layer.zName : NULL;
}
