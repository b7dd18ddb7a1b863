/* SPDX-License-Identifier: Apache-2.0
 * For the files of the PostgreSQL store only: its parts and who owns them.
 *
 *   lane ──submit──▶ queue ──▶ writer threads ──one transaction a batch──▶ server
 *     ▲                │            (queue.c: which may run side by side)
 *     └── store_poll ◀─┴─ done ◀── lookup thread ◀──lookup── lane
 *                                  follow thread ◀──follow── lane
 *                                  query thread  ◀──query─── loops */
#ifndef HOLDFAST_STORE_POSTGRES_POSTGRES_INT_H
#define HOLDFAST_STORE_POSTGRES_POSTGRES_INT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "store/changes.h"
#include "store/postgres/connection.h"
#include "store/stats.h"
#include "store/store_int.h"
#include "store/worker.h"

enum { PG_WRITER_COUNT = 2 };

/* ---- Which batches may run side by side ---- */

struct pg_job {          /* a batch, from submit to its callback */
    struct list node;    /* in pg_queue.waiting, until it runs */
    struct list ordered; /* in pg_queue.ordered, until it is handed back */
    struct store_batch *batch;
    bool running;
    bool finished;
    bool alone;        /* changes the catalogue: nothing runs beside it */
    struct map things; /* while it runs: the seats, checkouts, users and deliveries it changes */
};

struct pg_queue {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct list waiting; /* all under lock */
    struct list ordered;
    bool stopping;
};

void pg_queue_init(struct pg_queue *queue);
void pg_queue_deinit(struct pg_queue *queue);
enum err pg_queue_post(struct pg_queue *queue, struct store_batch *batch) MUST_CHECK;
void pg_queue_stop(struct pg_queue *queue); /* what waits is still given out */
/* The next batch that may run now. *job is NULL after timeout_ms (−1: never). False: stopping, and nothing left. */
bool pg_queue_take(struct pg_queue *queue, struct pg_job **job, int timeout_ms);
/* Hands back this batch and those finished after it, in the order they were submitted. */
void pg_queue_finish(struct pg_queue *queue, struct pg_job *job, struct done *done);

/* ---- Writing ---- */

struct pg_store;

struct pg_wave { /* units that touch nothing in common: one round of statements */
    struct store_batch *batch;
    struct store_unit **units;
    int32_t count;
    bool careful; /* a unit by itself, that may be bad */
};

struct pg_writer {
    struct pg_store *store;
    int number;
    pthread_t thread;
    bool running;
    struct pg_connection connection;
    int64_t retry_at_us; /* not before this is the connection tried again */
    int64_t backoff_us;
    struct pg_params params;
    struct pg_reply reply;
    int id_number;      /* of the statement that inserts the batch's id, while it is queued; −1 */
    bool commit_sent;   /* from here on a lost answer is unknown */
    struct arena arena; /* of the batch at hand */
    struct stats stats;
    struct buf changes;
};

void pg_writer_init(struct pg_writer *writer, struct pg_store *store, int number);
void pg_writer_deinit(struct pg_writer *writer);
/* Connects, unless that failed a moment ago. `now`: also then. */
bool pg_writer_ready(struct pg_writer *writer, bool now);
void *pg_writer_main(void *writer);

/* One batch, one transaction. PG_NONE: committed, and each unit has its result. */
enum pg_trouble pg_batch_write(struct pg_writer *writer, struct store_batch *batch) MUST_CHECK;
/* The answers to what is queued. Bad data in the batch's own id is not a unit's. */
enum pg_trouble pg_writer_receive(struct pg_writer *writer) MUST_CHECK;
struct pg_params *pg_writer_params(struct pg_writer *writer); /* empty */

/* Splits what is left of the batch: the next wave begins at *position. `single`: one unit each. */
bool pg_wave_next(struct pg_writer *writer, struct store_batch *batch, struct list **position, bool single,
                  struct pg_wave *wave);
struct uuid pg_key_id(const struct key_write *key); /* of (organization, key) */
/* Its key is taken before anything is written, so that it is known whether somebody has it; a new one is simply written
 * with the rest, at a third of the price. If one is there after all, the batch is run again with care. */
bool pg_wave_takes_key(const struct pg_wave *wave, const struct store_unit *unit);
struct uuid pg_name_id(const char *name);
struct uuid pg_order_id(const char *topic, int32_t partition);
/* Queues the locking of all partitions, events, blocks and checkouts of these units: for a batch of several waves. */
void pg_wave_lock(struct pg_writer *writer, const struct pg_wave *wave);
/* Compares. Fills each unit's result, and what is there instead of what was expected. */
enum pg_trouble pg_wave_compare(struct pg_writer *writer, struct pg_wave *wave) MUST_CHECK;
/* Queues the writing of the units whose result is UNIT_OK. */
enum pg_trouble pg_wave_send(struct pg_writer *writer, const struct pg_wave *wave) MUST_CHECK;

#define PG_WAVE_FOR_EACH(unit, wave)                                                                         \
    for (int32_t unit##_at = 0; unit##_at < (wave)->count; unit##_at++)                                      \
        for (struct store_unit *unit = (wave)->units[unit##_at]; unit != NULL; unit = NULL)

/* Parameters of the statements that write them. */
void pg_user_add(struct pg_params *p, const struct user_row *row);
void pg_key_add(struct pg_params *p, const struct key_write *key);
void pg_delivery_add(struct pg_params *p, const struct delivery_row *row);

enum pg_trouble pg_layout_write(struct pg_writer *writer, const struct layout_write *write) MUST_CHECK;
/* Partitions of the log that change hands, but for new ones; and how far the batch's units say that they are done. */
void pg_orders_update(struct pg_writer *writer, const struct pg_wave *wave);
void pg_orders_note(struct pg_writer *writer, const struct store_batch *batch);
void pg_totals_send(struct pg_writer *writer); /* the statistics of the batch */

/* ---- The store ---- */

struct pg_store {
    struct store store;
    char *url;
    struct done done;
    _Atomic bool up;
    _Atomic int64_t utc_minus_monotonic_ms; /* the server's clock */
    struct pg_queue queue;
    struct pg_writer writers[PG_WRITER_COUNT];
    struct worker lookups;
    struct worker follows;
    struct worker queries;
};

void pg_store_set_up(struct pg_store *store, bool up, const char *why);

void *pg_lookup_main(void *store);
void *pg_follow_main(void *store);
void *pg_query_main(void *store);
enum err pg_load(struct store *store, const struct store_loader *loader, void *context) MUST_CHECK;
enum err pg_verify(struct store *store,
                   void (*on_check)(void *context, const char *claim, int64_t broken, const char *example),
                   void *context) MUST_CHECK;

/* ---- Versions ---- */

/* Ours, and not newer. Writes nothing. */
enum err pg_migrate_check(struct pg_connection *connection, int *version, char *why,
                          size_t why_size) MUST_CHECK;
/* To the latest, under a lock that only one node has at a time. */
enum err pg_migrate_apply(struct pg_connection *connection, int *applied, int *version, char *why,
                          size_t why_size) MUST_CHECK;
int pg_migrate_latest(void);

#endif
