/* SPDX-License-Identifier: Apache-2.0
 * The demo: places to sell, buyers who come and go, guests who look. */
#ifndef HOLDFAST_CLI_DEMO_H
#define HOLDFAST_CLI_DEMO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/node.h"

/* ---- demo_venues.c: layout documents ---- */

void demo_arena_layout(struct buf *out);   /* about 10,000 seats in a bowl around a stage */
void demo_theatre_layout(struct buf *out); /* stalls and a balcony, curved rows */
void demo_club_layout(struct buf *out);    /* one small room */

/* ---- demo_events.c: what is on sale ---- */

enum { DEMO_EVENT_COUNT = 3 };

struct demo_events {
    struct node *node;
    struct uuid org_id;
    struct uuid operator_id;
    struct uuid event_ids[DEMO_EVENT_COUNT]; /* the arena first; replaced by the next show */
    int show;                                /* of the arena, from 1 */
};

/* Makes the organization and its events, unless the store has them from an earlier demo. Waits. */
enum err demo_events_create(struct demo_events *events, struct node *node) MUST_CHECK;
/* Publishes the arena's next show and returns its id; does not change `events`. Waits. */
enum err demo_events_next_show(const struct demo_events *events, int show, struct uuid *out) MUST_CHECK;

/* ---- demo_buyers.c ---- */

struct demo_buyers;

/* Starts a thread of simulated buyers on the events. */
enum err demo_buyers_start(const struct demo_events *events, int count, struct demo_buyers **out) MUST_CHECK;
/* Stops asking and waits for what is under way. Before node_stop(). NULL is fine. */
void demo_buyers_stop(struct demo_buyers *buyers);

#endif
