/* SPDX-License-Identifier: Apache-2.0
 * What every test over a store needs: a store, an organization with an event of
 * 2 blocks of 20 seats, and short ways to write, look up and list.
 *
 * The store is HOLDFAST_TEST_STORE if that is set, else a new SQLite file. Each
 * test has its own organization, so that tests can share a store. Tests of what
 * the simulator's store promises too run over it as well: OVER_EVERY_STORE. */
#ifndef HOLDFAST_TEST_STORE_FIXTURE_H
#define HOLDFAST_TEST_STORE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "store/store.h"

enum { FIXTURE_BLOCK_COUNT = 2, FIXTURE_SEAT_COUNT = 40, FIXTURE_PRICE = 4500 };

struct fixture {
    struct store *store;
    char path[256]; /* of the SQLite file, or "" */
    char url[512];
    struct rng rng;
    int64_t now_ms;
    struct uuid org_id;
    struct uuid event_id;
    struct uuid user_id;
    struct uuid block_ids[FIXTURE_BLOCK_COUNT];
    struct uuid seat_ids[FIXTURE_SEAT_COUNT];
    struct uuid node_id;
    int64_t sim_ms;     /* the simulator's clock; 0: this is no simulation */
    struct arena arena; /* of the test */
};

int fixture_setup(void **state);
int fixture_setup_sim(void **state);                      /* over the simulator's store */
int fixture_setup_past(void **state, bool sim, int days); /* everything happens that many days ago */
int fixture_teardown(void **state);
void fixture_reopen(struct fixture *f);
struct uuid fixture_id(struct fixture *f);
const char *fixture_name(struct fixture *f); /* of this test alone */
/* A new organization and event become the fixture's; returns nothing of the old ones. */
void fixture_new_tenant(struct fixture *f);
void fixture_remove(const char *path);

/* Two entries of a table of tests. */
#define OVER_EVERY_STORE(test)                                                                               \
    {#test, test, fixture_setup, fixture_teardown, NULL},                                                    \
    {                                                                                                        \
        "sim: " #test, test, fixture_setup_sim, fixture_teardown, NULL                                       \
    }

struct store_batch *batch_new(struct fixture *f);
struct store_unit *unit_new(struct store_batch *batch);
void batch_run(struct fixture *f, struct store_batch *batch); /* submits and waits */
void batch_free(struct store_batch *batch);
/* Runs it, expects that it was committed, frees it, and gives the first unit's result. */
enum unit_result batch_commit(struct fixture *f, struct store_batch *batch);
bool fixture_wait(struct fixture *f, const bool *flag); /* polls the store until the flag is set */

/* Adds to a unit. `version` is what the seat has now. */
struct seat_write *unit_seat(struct fixture *f, struct store_batch *batch, struct store_unit *unit,
                             int32_t seat, int32_t version, enum seat_state before, enum seat_state after);
void unit_audit(struct fixture *f, struct store_batch *batch, struct store_unit *unit,
                enum audit_action action, const struct hold_row *hold);
/* Seat, hold and audit row of a new hold. */
struct hold_row *unit_hold(struct fixture *f, struct store_batch *batch, struct store_unit *unit,
                           int32_t seat, int32_t version);
/* Seat, hold and audit row of its end. */
void unit_end(struct fixture *f, struct store_batch *batch, struct store_unit *unit,
              const struct hold_row *hold, int32_t seat, int32_t version, enum hold_state state,
              enum end_reason reason);
struct hold_row hold_seat(struct fixture *f, int32_t seat, int32_t version); /* in a batch of its own */
struct key_write *unit_key(struct fixture *f, struct store_batch *batch, struct store_unit *unit,
                           uint8_t key);
struct checkout_write *unit_checkout(struct store_batch *batch, struct store_unit *unit,
                                     const struct checkout_row *row, bool insert);
/* For the fixture's node. */
struct order_claim *unit_order_claim(struct fixture *f, struct store_batch *batch, struct store_unit *unit,
                                     const char *topic, int32_t partition, int64_t epoch);
struct order_check *unit_order_check(struct store_batch *batch, struct store_unit *unit, const char *topic,
                                     int32_t partition, int64_t epoch, int64_t next_offset);
struct event_row fixture_event(struct fixture *f); /* as the tenant's event was made */
/* A whole purchase of a seat that is free at `version`; the checkout's id. */
struct uuid buy_seat(struct fixture *f, int32_t seat, int32_t version);

struct store_lookup lookup_run(struct fixture *f, enum lookup_kind kind, const struct uuid *id);
struct store_lookup lookup_key_run(struct fixture *f, uint8_t key, int64_t now_ms);
struct store_lookup lookup_delivery_run(struct fixture *f, const char *name);
struct store_lookup lookup_order_run(struct fixture *f, const char *topic, int32_t partition);
/* Of the fixture's organization unless another is set; query.rows is to be freed with buf_deinit(). */
void query_run(struct fixture *f, struct store_query *query);
void query_run_all(struct fixture *f, struct store_query *query); /* of every organization */
bool query_has(struct store_query *query, const char *text);

/* Follows from `after` until everything that is committed now was given out, `limit` changes a page. */
struct followed {
    struct feed_position position; /* to go on from */
    struct store_change *changes;  /* all of them, in the test's arena */
    int32_t count;
    int32_t page_count;
    bool lost;
};
struct followed follow_run(struct fixture *f, struct feed_position after, int32_t limit);
struct store_follow follow_once(struct fixture *f, struct feed_position after, int32_t limit);
struct feed_position fixture_position(struct fixture *f); /* that a load gives */

/* How many claims of store_verify() are broken; `claim` of the first is copied. */
int verify_run(struct fixture *f, char claim[256]);

#endif
