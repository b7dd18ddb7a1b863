/* SPDX-License-Identifier: Apache-2.0
 * Proves the promises over the whole file. Each file under sql/verify/ is one
 * claim: its first line, a comment, says it; the statement returns how many
 * rows break it and one of them as an example.
 *
 * Invariants: (1) all claims are asked of one snapshot, so that a running
 * server does not disturb them. (2) A claim that cannot be asked counts as
 * broken, with the reason as its example.
 *
 * Runs on the caller's thread, over a read-only connection of its own; it takes
 * no lock that a server would notice and repairs nothing. */
#include <stdio.h>
#include <string.h>

#include "base/embed.h"
#include "base/log.h"
#include "store/sqlite/sqlite_int.h"

extern const struct embed sqlite_claims[];

enum { CLAIM_SIZE = 256 };

/* The first line without its "-- ". */
static void claim_sentence(const struct embed *file, char out[CLAIM_SIZE])
{
    const char *end = strchr(file->data, '\n');
    size_t length = end != NULL ? (size_t)(end - file->data) : file->size;
    CHECK(length > 3);
    CHECK(memcmp(file->data, "-- ", 3) == 0);
    snprintf(out, CLAIM_SIZE, "%.*s", (int)(length - 3), file->data + 3);
}

/* How many rows break the claim. A claim that cannot be asked is broken once. */
static int64_t claim_ask(struct connection *connection, const struct embed *file, char *example,
                         size_t example_size)
{
    sqlite3_stmt *statement = NULL;
    int64_t broken = 0;
    int rc = sqlite3_prepare_v2(connection->db, file->data, (int)file->size + 1, &statement, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) {
        broken = sqlite3_column_int64(statement, 0);
        const unsigned char *text = sqlite3_column_text(statement, 1);
        snprintf(example, example_size, "%s", text != NULL ? (const char *)text : "");
    } else {
        broken = 1;
        snprintf(example, example_size, "%s", sqlite3_errmsg(connection->db));
    }
    (void)sqlite3_finalize(statement);
    return broken;
}

enum err sqlite_verify(struct store *store,
                       void (*on_check)(void *context, const char *claim, int64_t broken,
                                        const char *example),
                       void *context)
{
    struct sqlite_store *sqlite = CONTAINER_OF(store, struct sqlite_store, store);
    struct connection connection;
    char why[SQLITE_WHY_SIZE], claim[CLAIM_SIZE], example[SQLITE_WHY_SIZE];
    enum err err = connection_open(&connection, sqlite->file.path, true, why, sizeof(why));
    if (err == ERR_OK)
        err = connection_prepare(&connection, USE_LOAD, why, sizeof(why));
    if (err == ERR_OK)
        err = connection_err(connection_run(&connection, STATEMENT_BEGIN_READ));
    for (const struct embed *file = sqlite_claims; err == ERR_OK && file->name != NULL; file++) {
        example[0] = '\0';
        claim_sentence(file, claim);
        int64_t broken = claim_ask(&connection, file, example, sizeof(example));
        on_check(context, claim, broken, broken != 0 ? example : "");
    }
    connection_rollback(&connection);
    connection_close(&connection);
    return err;
}
