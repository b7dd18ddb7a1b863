/* SPDX-License-Identifier: Apache-2.0
 * A PostgreSQL for tests that need one, another node and a third party; see
 * party.h. */
#include "party.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

enum { WAIT_MS_MAX = 20000 };

/* ---- The server ---- */

static char server_folder[64]; /* of our own server, or "" */

static void script_run(const char *command, char *out, size_t out_size)
{
    char line[256];
    snprintf(line, sizeof(line), "test/lib/postgres.sh %s %s", command, server_folder);
    FILE *script = popen(line, "r");
    assert_non_null(script);
    size_t size = fread(out, 1, out_size - 1, script);
    while (size > 0 && out[size - 1] == '\n')
        size--;
    out[size] = '\0';
    assert_int_equal(pclose(script), 0);
}

int server_start(void **state)
{
    (void)state;
    char url[256], whole[300];
    const char *given = getenv("HOLDFAST_TEST_STORE");
    if (given != NULL && strncmp(given, "postgres", 8) == 0)
        return 0;
    strcpy(server_folder, "/tmp/holdfast-postgres-XXXXXX"); /* where PostgreSQL's own user can reach it */
    assert_non_null(mkdtemp(server_folder));
    script_run("start", url, sizeof(url));
    snprintf(whole, sizeof(whole), "%s/postgres", url);
    return setenv("HOLDFAST_TEST_STORE", whole, 1);
}

int server_stop(void **state)
{
    (void)state;
    char ignored[64], line[128];
    if (server_folder[0] == '\0')
        return 0;
    script_run("stop", ignored, sizeof(ignored));
    snprintf(line, sizeof(line), "rm -rf %s", server_folder);
    return system(line);
}

/* ---- Another node, and a third party ---- */

/* The same tenant seen by another node. */
void node_open(struct fixture *other, const struct fixture *f)
{
    char why[512] = "";
    *other = *f;
    rng_init_system(&other->rng);
    arena_init(&other->arena);
    other->node_id = fixture_id(other);
    if (store_open(f->url, NULL, &other->store, why, sizeof(why)) != ERR_OK)
        fail_msg("%s", why);
}

void node_close(struct fixture *other)
{
    store_close(other->store);
    arena_deinit(&other->arena);
}

PGconn *party_open(const struct fixture *f)
{
    PGconn *party = PQconnectdb(f->url);
    assert_int_equal(PQstatus(party), CONNECTION_OK);
    PQclear(PQexec(party, "SET lock_timeout = '20s'")); /* a test that failed may have left a lock */
    return party;
}

int64_t party_ask(PGconn *party, const char *sql)
{
    PGresult *result = PQexec(party, sql);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(party));
    int64_t number = status == PGRES_TUPLES_OK && PQntuples(result) > 0 ? atoll(PQgetvalue(result, 0, 0)) : 0;
    PQclear(result);
    return number;
}

/* A statement with "%s" for the hexadecimal id. */
void party_do(PGconn *party, const char *sql, const struct uuid *id)
{
    char text[UUID_TEXT_SIZE], statement[512];
    uuid_format(id, text);
    snprintf(statement, sizeof(statement), sql, text);
    (void)party_ask(party, statement);
}

/* Until a session of this database waits for a lock that the party has. */
void party_await_waiter(PGconn *party)
{
    int64_t end_us = clock_monotonic_us() + WAIT_MS_MAX * 1000ll;
    while (party_ask(party, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                            "AND pg_backend_pid() = ANY (pg_blocking_pids(pid))") == 0) {
        assert_true(clock_monotonic_us() < end_us);
        usleep(5000);
    }
}

/* ---- Batches that run meanwhile ---- */

void batch_start(struct fixture *f, struct store_batch *batch)
{
    *(bool *)batch->context = false;
    assert_int_equal(store_submit(f->store, batch), ERR_OK);
}

enum unit_result batch_end(struct fixture *f, struct store_batch *batch)
{
    assert_true(fixture_wait(f, batch->context));
    assert_int_equal(batch->outcome, STORE_COMMITTED);
    return CONTAINER_OF(batch->units.next, struct store_unit, node)->result;
}
