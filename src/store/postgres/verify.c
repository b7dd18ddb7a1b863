/* SPDX-License-Identifier: Apache-2.0
 * Proves the promises over the whole database. Each file under sql/verify/ is one
 * claim: its first line, a comment, says it; the statement returns how many
 * rows break it and one of them as an example.
 *
 * Invariants: (1) all claims are asked of one snapshot, so that a running
 * server does not disturb them. (2) A claim that cannot be asked counts as
 * broken, with the reason as its example.
 *
 * Runs on the caller's thread, over a connection of its own; it takes
 * no lock that a server would notice and repairs nothing. */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embed.h"
#include "base/log.h"
#include "store/postgres/postgres_int.h"

extern const struct embed postgres_claims[];
extern const struct embed postgres_sql[];

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
static int64_t claim_ask(struct pg_connection *connection, const struct embed *file, char *example,
                         size_t example_size)
{
    int64_t broken = 1;
    PGresult *result = pg_execute(connection, file->data);
    if (result != NULL && PQntuples(result) == 1) {
        broken = atoll(PQgetvalue(result, 0, 0));
        snprintf(example, example_size, "%s", PQgetvalue(result, 0, 1));
    } else {
        snprintf(example, example_size, "%s", connection->why);
    }
    PQclear(result);
    return broken;
}

enum err pg_verify(struct store *store,
                   void (*on_check)(void *context, const char *claim, int64_t broken, const char *example),
                   void *context)
{
    struct pg_store *pg = CONTAINER_OF(store, struct pg_store, store);
    struct pg_connection connection;
    char why[PG_WHY_SIZE], claim[CLAIM_SIZE], example[PG_WHY_SIZE];
    enum err err = pg_connection_open(&connection, pg->url, PG_USE_BARE, NULL, why, sizeof(why));
    if (err != ERR_OK)
        return err;
    PQclear(pg_execute(&connection, embed_find(postgres_sql, "begin_read.sql")->data));
    for (const struct embed *file = postgres_claims; file->name != NULL; file++) {
        example[0] = '\0';
        claim_sentence(file, claim);
        int64_t broken = claim_ask(&connection, file, example, sizeof(example));
        on_check(context, claim, broken, broken != 0 ? example : "");
    }
    pg_connection_close(&connection);
    return ERR_OK;
}
