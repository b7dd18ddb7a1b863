/* SPDX-License-Identifier: Apache-2.0
 * The simulator's store: tables in memory, commits that take time, fail before
 * or after they happen, or lose their answer, all by a seeded dice. It keeps the
 * contract of store.h to the letter, so that a lane cannot tell.
 *
 * Several nodes may have a store each over the same tables. Then it behaves as a
 * database server does: what one node is writing is missed by the others, and
 * commits come out of the change feed late, and not in the order in which they
 * were made unless they have something in common. */
#ifndef HOLDFAST_STORE_SIM_SIM_H
#define HOLDFAST_STORE_SIM_SIM_H

#include "base/map.h"
#include "base/rng.h"
#include "store/store.h"

struct sim_faults {       /* each in thousandths */
    uint32_t fail;        /* nothing is written, and the caller is told */
    uint32_t lose_before; /* nothing is written, the answer is lost */
    uint32_t lose_after;  /* it is committed, the answer is lost */
    uint32_t hang; /* the answer is lost, and whether it is committed comes out only when that is asked for */
    uint32_t stay_unknown; /* asking again does not help either */
    uint32_t lookup_fail;  /* following too */
    uint32_t locked;       /* what another node's batch under way writes, or relies on, is missed */
    int64_t delay_ms_max;
    int64_t feed_delay_ms_max; /* how long a commit may stay out of the change feed */
};

struct sim_seat {
    struct seat_row row;
    struct uuid block_id;
    int32_t times_sold; /* and not refunded since */
};

struct sim_event {
    struct event_row row;
    char *document;
    struct block_row *blocks;
    int32_t block_count;
    struct sim_seat *seats;
    int32_t seat_count;
    int64_t holds_ever;
};

struct sim_hold {
    struct hold_row row;
};

struct sim_checkout {
    struct checkout_row row;
};

struct sim_delivery {
    struct sim_delivery *next;
    struct delivery_row row;
};

struct sim_order {
    struct sim_order *next;
    struct order_row row;
};

/* Read-only for the test: what is committed. */
struct sim_tables {
    struct map orgs;         /* org_row */
    struct map users;        /* user_row, by organization and id */
    struct map events;       /* sim_event */
    struct map holds;        /* sim_hold, ended ones too */
    struct map checkouts;    /* sim_checkout */
    struct map tickets;      /* ticket_row */
    struct map keys;         /* by organization and the first half of the hash */
    struct map batches;      /* ids that are used up */
    struct map dead_letters; /* dead_letter_row, by id and delivery */
    struct sim_delivery *deliveries;
    struct sim_order *orders;
    int64_t audit_count;
    int64_t audits[AUDIT_ACTION_COUNT];
    int64_t commit_count;
    int64_t miss_count;
};

struct store *sim_store_create(uint64_t seed); /* the tables, and their first node's store */
/* The store of one more node over the same tables. From now on all of them are shared (store_is_shared()): attach what
 * is needed before the first lane is made. Faults, and what is under way, are each node's own. The tables go with the
 * last store that is closed. */
struct store *sim_store_attach(struct store *first, uint64_t seed);
const struct sim_tables *sim_store_tables(struct store *store);
void sim_store_set_faults(struct store *store, const struct sim_faults *faults);
void sim_store_set_now(struct store *store, int64_t now_ms); /* of all nodes: it is the tables' clock */
int64_t
sim_store_next_ms(struct store *store); /* when something of this node will be due; INT64_MAX: never */
/* What is due happens though the node does not look, because it is slow, or stopped: its answers wait for
 * store_poll(). */
void sim_store_run(struct store *store);
/* The node dies: what it has under way is committed or not, and everything is answered as unknown.
 * Afterwards the store has nothing of the node's any more; the other nodes' go on. */
void sim_store_crash(struct store *store);

#endif
