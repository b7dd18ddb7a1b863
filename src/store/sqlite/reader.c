/* SPDX-License-Identifier: Apache-2.0
 * See reader.h. */
#include "store/sqlite/reader.h"

/* A closed connection is one that failed: it is opened again for the next turn. */
static int turn_begin(const struct reader *reader, struct connection *connection)
{
    char why[SQLITE_WHY_SIZE];
    if (connection->db == NULL) {
        if (connection_open(connection, reader->sqlite->file.path, true, why, sizeof(why)) != ERR_OK)
            return SQLITE_CANTOPEN;
        if (connection_prepare(connection, reader->use, why, sizeof(why)) != ERR_OK) {
            connection_close(connection);
            return SQLITE_CANTOPEN;
        }
    }
    return connection_run(connection, STATEMENT_BEGIN_READ);
}

void reader_run(const struct reader *reader)
{
    struct connection connection = {.db = NULL};
    struct list questions;
    list_init(&questions);
    while (worker_take(reader->worker, &questions, -1)) {
        int begun = turn_begin(reader, &connection), worst = begun;
        LIST_FOR_EACH(node, &questions) {
            int rc = reader->answer(&connection, node, begun);
            if (rc != SQLITE_OK)
                worst = rc;
        }
        if (begun == SQLITE_OK)
            connection_rollback(&connection);
        if (worst != SQLITE_OK)
            connection_close(&connection);
        reader->post(&reader->sqlite->done, &questions);
    }
    connection_close(&connection);
}
