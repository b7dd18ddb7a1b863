/* SPDX-License-Identifier: Apache-2.0
 * For the files of the SQLite store only: its parts and who owns them.
 *
 *   lane ──submit──▶ writer thread ──one transaction a batch──▶ file
 *     ▲                   │
 *     │                   └──asks──▶ copying thread ──log──▶ file
 *     └── store_poll ◀── done ◀── lookup thread ◀──lookup── lane
 *                          └───── follow thread ◀──follow── lane
 *                                 query thread  ◀──query─── loops */
#ifndef HOLDFAST_STORE_SQLITE_SQLITE_INT_H
#define HOLDFAST_STORE_SQLITE_SQLITE_INT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "store/changes.h"
#include "store/sqlite/connection.h"
#include "store/stats.h"
#include "store/store_int.h"
#include "store/worker.h"

/* ---- The file ---- */

enum { SQLITE_PATH_SIZE = 4096, SQLITE_WHY_SIZE = 512 };

struct file {
    char path[SQLITE_PATH_SIZE]; /* without symbolic links, so that one file has one log */
    int name_fd;                 /* PATH.lock; −1: not locked */
    int fd;                      /* the database itself; −1: not locked */
};

enum err file_resolve(struct file *file, const char *path, bool must_exist, char *why,
                      size_t why_size) MUST_CHECK;
/* Makes the database if it is not there: empty, 0600. */
enum err file_lock(struct file *file, char *why, size_t why_size) MUST_CHECK;
void file_unlock(struct file *file); /* after SQLite has closed */

/* ---- Writing ---- */

enum { CHECKPOINT_PAGE_COUNT = 20000 }; /* of the log: when to copy it back */

struct writer {
    struct worker worker;
    struct connection connection;
    bool prepared;             /* it was ready for batches once */
    bool broken;               /* open the connection again before the next use */
    int log_page_count;        /* pages in the write-ahead log after the last commit */
    int checkpoint_at;         /* that many pages: time for the next checkpoint */
    bool only_rest;            /* the copier had its turn: the rest is the writer's */
    struct map places;         /* by event id: struct event_places */
    struct map versions;       /* by event id: struct event_version */
    struct stats stats;        /* of the batch at hand */
    struct buf changes;        /* the same */
    char why[SQLITE_WHY_SIZE]; /* why the last unit was refused */
};

/* See checkpoint.c. */
struct copier {
    struct worker worker;
    struct list wish;     /* what the writer posts */
    _Atomic bool is_busy; /* asked and not done yet */
};

struct sqlite_store {
    struct store store;
    struct file file;
    struct done done;
    _Atomic bool up;
    struct writer writer;
    struct copier copier;
    struct worker lookups;
    struct worker follows;
    struct worker queries;
};

enum err writer_open(struct sqlite_store *sqlite, char *why,
                     size_t why_size) MUST_CHECK; /* writes nothing yet */
enum err writer_prepare(struct sqlite_store *sqlite, char *why, size_t why_size) MUST_CHECK;
void writer_close(struct sqlite_store *sqlite);
void *writer_main(void *sqlite);
/* The disk did not confirm: nobody knows what is there, but the next start will. */
void writer_give_up(int result) __attribute__((noreturn));
void writer_checkpoint(struct sqlite_store *sqlite); /* after a batch: if it is time */
void *copier_main(void *sqlite);

/* One unit inside the open transaction. SQLITE_OK and unit->result, or an SQLite error with
 * writer->why filled; SQLITE_NOTFOUND means that a row to be updated was not there. */
int unit_write(struct writer *writer, struct store_unit *unit) MUST_CHECK;

/* Everything the unit compares, its key and its seats: UNIT_OK, or nothing of it was written. Results as above. */
int guard_unit(struct writer *writer, struct store_unit *unit) MUST_CHECK;
void guard_remember_event(struct writer *writer, const struct uuid *org_id, const struct uuid *event_id,
                          int64_t version);
void guard_forget(struct writer *writer); /* after something was rolled back */

int layout_replace(struct writer *writer, const struct layout_write *write) MUST_CHECK;
/* Where the seats of an event begin; SQLITE_NOTFOUND if it has none. */
int layout_place(struct writer *writer, const struct uuid *org_id, const struct uuid *event_id,
                 int64_t *place, int64_t *count) MUST_CHECK;
void layout_forget(struct writer *writer); /* after a rollback of something that changed a layout */

int totals_write(struct writer *writer) MUST_CHECK; /* the statistics of the batch */

/* ---- Reading ---- */

void *lookup_main(void *sqlite);
void *follow_main(void *sqlite);
void *query_main(void *sqlite);
enum err sqlite_load(struct store *store, const struct store_loader *loader, void *context) MUST_CHECK;
enum err sqlite_verify(struct store *store,
                       void (*on_check)(void *context, const char *claim, int64_t broken,
                                        const char *example),
                       void *context) MUST_CHECK;

/* ---- Versions ---- */

/* Ours, not newer, and if it is small enough to be looked through, not corrupted. Writes nothing. */
enum err migrate_check(struct connection *connection, int *version, char *why, size_t why_size) MUST_CHECK;
/* From *version, as migrate_check() found it, to the latest. */
enum err migrate_apply(struct connection *connection, int *applied, int *version, char *why,
                       size_t why_size) MUST_CHECK;
int migrate_latest(void);

#endif
