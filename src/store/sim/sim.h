/* SPDX-License-Identifier: Apache-2.0
 * The simulator's store: tables in memory, commits that take time, fail before
 * or after they happen, or lose their answer, all by a seeded dice. It keeps the
 * contract of store.h to the letter, so that a lane cannot tell. */
#ifndef HOLDFAST_STORE_SIM_SIM_H
#define HOLDFAST_STORE_SIM_SIM_H

#include "base/map.h"
#include "base/rng.h"
#include "store/store.h"

struct sim_faults {        /* each in thousandths */
    uint32_t fail;         /* nothing is written, and the caller is told */
    uint32_t lose_before;  /* nothing is written, the answer is lost */
    uint32_t lose_after;   /* it is committed, the answer is lost */
    uint32_t stay_unknown; /* asking again does not help either */
    uint32_t lookup_fail;
    int64_t delay_ms_max;
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

/* Read-only for the test: what is committed. */
struct sim_tables {
    struct map orgs;      /* org_row */
    struct map events;    /* sim_event */
    struct map holds;     /* sim_hold, ended ones too */
    struct map checkouts; /* sim_checkout */
    struct map tickets;   /* ticket_row */
    struct map keys;      /* by organization and the first half of the hash */
    struct map batches;   /* ids that are used up */
    int64_t audit_count;
    int64_t audits[AUDIT_ACTION_COUNT];
    int64_t commit_count;
    int64_t miss_count;
};

struct store *sim_store_create(uint64_t seed);
const struct sim_tables *sim_store_tables(struct store *store);
void sim_store_set_faults(struct store *store, const struct sim_faults *faults);
void sim_store_set_now(struct store *store, int64_t now_ms);
int64_t sim_store_next_ms(struct store *store); /* when something will be due; INT64_MAX: never */
/* The node dies: what is under way is committed or not, and everything is answered as unknown.
 * Afterwards the store has nothing of the node's any more. */
void sim_store_crash(struct store *store);

#endif
