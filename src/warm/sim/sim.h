/* SPDX-License-Identifier: Apache-2.0
 * The simulator's warm tier: a Redis in memory that several nodes share, whose
 * answers come late, are lost, or never come, all by a seeded dice. It keeps the
 * contract of warm.h to the letter, so that a lane cannot tell. Time is the
 * test's. */
#ifndef HOLDFAST_WARM_SIM_SIM_H
#define HOLDFAST_WARM_SIM_SIM_H

#include "base/map.h"
#include "warm/warm.h"

struct warm_sim_faults {  /* each in thousandths, but for the times */
    uint32_t late;        /* a round happens, and its answer comes after the deadline */
    uint32_t lost;        /* a round never happens; its answer never comes */
    uint32_t fail;        /* the connection breaks: a round happened or not */
    uint32_t error;       /* a lock is answered by an error */
    uint32_t lose_write;  /* a call of warm_write() never happens */
    uint32_t lose_nudge;  /* per message and node */
    uint32_t spoil;       /* a stranger writes nonsense over a lock that was just taken */
    int64_t delay_ms_max; /* until something happens, and again until its answer */
    int64_t nudge_delay_ms_max;
    int64_t open_ms_max; /* how long a breaker stays open */
};

struct warm_sim_lock {
    char *text; /* as Redis has it */
    int64_t dies_ms;
};

struct warm_sim_hold {
    struct uuid hold_id;
    int64_t dies_ms;
};

struct warm_sim_member {
    struct uuid org_id;
    struct uuid event_id;
    struct warm_member member;
};

struct warm_sim_seat {
    struct uuid event_id;
    char section[4];
    int32_t subsection;
    int32_t bit;
    bool taken;
    int32_t version; /* that the bit is of */
};

/* Read-only for the test: what is in Redis. */
struct warm_sim_tables {
    struct map locks;   /* warm_sim_lock by seat */
    struct map holds;   /* warm_sim_hold by seat */
    struct map members; /* warm_sim_member by hold and end */
    struct map seats;   /* warm_sim_seat by seat */
    int64_t round_count;
    int64_t late_count;
    int64_t write_count;
    int64_t nudge_count;
};

struct warm_sim; /* opaque: the shared Redis */

struct warm_sim *warm_sim_create(uint64_t seed);
void warm_sim_destroy(struct warm_sim *sim); /* after its nodes */
const struct warm_sim_tables *warm_sim_tables(const struct warm_sim *sim);
void warm_sim_set_faults(struct warm_sim *sim, const struct warm_sim_faults *faults);
void warm_sim_set_now(struct warm_sim *sim,
                      int64_t now_ms);                   /* what is due happens; answers wait for the turns */
int64_t warm_sim_next_ms(const struct warm_sim *sim);    /* when something will be due; INT64_MAX: never */
void warm_sim_flush(struct warm_sim *sim);               /* everything is gone; nodes notice by and by */
void warm_sim_set_away(struct warm_sim *sim, bool away); /* nothing is answered, and breakers stay open */

/* A node's own: NULL as on_nudge is fine. To be destroyed by warm_destroy(). */
struct warm *warm_sim_attach(struct warm_sim *sim, uint64_t seed, void (*on_nudge)(void *context),
                             void *context);
/* The node dies: what it asked for happens or not, and nobody is told. Then warm_destroy() it; its rounds and their
 * arenas may go only after this. */
void warm_sim_crash(struct warm *warm);

#endif
