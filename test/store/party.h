/* SPDX-License-Identifier: Apache-2.0
 * For tests of several nodes over one PostgreSQL: the server, another node, and
 * a third party, which is a plain connection that holds a lock or a transaction
 * open until the store is seen to wait for it.
 *
 * The server is HOLDFAST_TEST_STORE if that is a PostgreSQL, else one of the
 * test's own, which is started by test/lib/postgres.sh: run it from the
 * project's folder. */
#ifndef HOLDFAST_TEST_STORE_PARTY_H
#define HOLDFAST_TEST_STORE_PARTY_H

#include "fixture.h"

#include <libpq-fe.h>

int server_start(void **state); /* of a group of tests */
int server_stop(void **state);

/* The same tenant seen by another node. */
void node_open(struct fixture *other, const struct fixture *f);
void node_close(struct fixture *other);

PGconn *party_open(const struct fixture *f);
int64_t party_ask(PGconn *party, const char *sql); /* the first number of the answer */
/* A statement with "%s" for the hexadecimal id. */
void party_do(PGconn *party, const char *sql, const struct uuid *id);
/* Until a session of this database waits for a lock that the party has. */
void party_await_waiter(PGconn *party);

/* Batches that run meanwhile. */
void batch_start(struct fixture *f, struct store_batch *batch);
enum unit_result batch_end(struct fixture *f, struct store_batch *batch);

#endif
