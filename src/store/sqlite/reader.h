/* SPDX-License-Identifier: Apache-2.0
 * A thread that answers the lane's questions on a connection of its own. It
 * takes all that wait and answers them from one snapshot; a connection that
 * failed is opened again for those that come next. */
#ifndef HOLDFAST_STORE_SQLITE_READER_H
#define HOLDFAST_STORE_SQLITE_READER_H

#include "store/sqlite/sqlite_int.h"

struct reader {
    struct sqlite_store *sqlite;
    struct worker *worker; /* where questions wait */
    unsigned use;          /* the connection's: USE_… */
    /* Answers one, and says how it went; `begun` other than SQLITE_OK: it cannot, and fails with that. */
    int (*answer)(struct connection *connection, struct list *question, int begun);
    void (*post)(struct done *done, struct list *answered);
};

void reader_run(const struct reader *reader); /* until the worker is stopped */

#endif
