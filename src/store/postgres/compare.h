/* SPDX-License-Identifier: Apache-2.0
 * For the files that compare a wave with what the server has: what was asked,
 * and where in the reply its answer is. Asking only queues; all questions of a
 * wave travel together. */
#ifndef HOLDFAST_STORE_POSTGRES_COMPARE_H
#define HOLDFAST_STORE_POSTGRES_COMPARE_H

#include "store/postgres/postgres_int.h"

struct pg_marks { /* rows that are asked for by position: `missed` of each, until it was found */
    bool **marks;
    int32_t count;
    int32_t capacity;
    int number; /* of the statement; −1: there was nothing to ask */
};

struct pg_comparison { /* numbers of statements are −1 if there was nothing to ask */
    int keys_number, users_number, events_number, rooms_number, new_deliveries_number;
    int orders_number, new_orders_number;
    struct pg_marks layouts, checkouts, deliveries, seats, order_claims;
    struct map orders; /* partitions of the log, with the epoch that was found: see orders.c */
    struct map keys;   /* units that hope for a key; after the judging: did not get it */
    struct map users;  /* who were not there before */
    struct map events; /* with the version that was found: see versions.c */
    struct map rooms;  /* blocks that are locked: see claims.c */
};

void pg_comparison_init(struct pg_comparison *c);
void pg_comparison_deinit(struct pg_comparison *c);

int32_t pg_marks_add(struct pg_writer *writer, struct pg_marks *marks, bool *mark); /* its position */
void pg_marks_send(struct pg_writer *writer, struct pg_marks *marks, enum pg_statement statement);
void pg_marks_judge(struct pg_writer *writer, const struct pg_marks *marks);

/* Two ids as one: as good as an id. */
struct uuid pg_pair_id(const struct uuid *a, const struct uuid *b);

/* Partitions that are relied on or claimed. New ones are inserted here, as deliveries are. */
void pg_orders_gate(struct pg_writer *writer, const struct pg_wave *wave); /* queues the waiting alone */
void pg_orders_ask(struct pg_writer *writer, const struct pg_wave *wave, struct pg_comparison *c);
void pg_orders_judge(struct pg_writer *writer, const struct pg_wave *wave, struct pg_comparison *c);
void pg_orders_give_back(struct pg_writer *writer, const struct pg_wave *wave);
/* Events that are relied on or changed; layouts that are replaced. */
void pg_events_ask(struct pg_writer *writer, const struct pg_wave *wave, struct pg_comparison *c);
void pg_events_judge(struct pg_writer *writer, const struct pg_wave *wave, struct pg_comparison *c);
/* Blocks in which there must be room, or that change. */
void pg_claims_ask(struct pg_writer *writer, const struct pg_wave *wave, struct pg_comparison *c);
void pg_claims_judge(struct pg_writer *writer, const struct pg_wave *wave,
                     struct pg_comparison *c); /* when all else of the wave was judged */
void pg_checkouts_ask(struct pg_writer *writer, const struct pg_wave *wave, struct pg_comparison *c);
/* New ones are inserted here: whoever does not get to write gives them back. */
void pg_deliveries_ask(struct pg_writer *writer, const struct pg_wave *wave, struct pg_comparison *c);
void pg_deliveries_judge(struct pg_writer *writer, const struct pg_wave *wave, struct pg_comparison *c);
void pg_deliveries_give_back(struct pg_writer *writer, const struct pg_wave *wave);

#endif
