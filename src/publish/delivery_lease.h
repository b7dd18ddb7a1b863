/* SPDX-License-Identifier: Apache-2.0
 * Who delivers: of all nodes on a store, the one whose name is in the
 * delivery's row and whose time there has not run out.
 *
 *   nobody, or time ran out ──take──▶ ours ──renew, save──▶ ours
 *                                      └─ a write misses, or time ran out ─▶ not ours: stop at once
 *
 * Every write of the row is a compare-and-set on its version, so a node that
 * lost it cannot move the position. Pure: these functions only fill in rows. */
#ifndef HOLDFAST_PUBLISH_DELIVERY_LEASE_H
#define HOLDFAST_PUBLISH_DELIVERY_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/model.h"

enum {
    DELIVERY_LEASE_MS = 10000,
    DELIVERY_RENEW_MS = 3000, /* this long after the last write of the row */
    DELIVERY_LOOK_MS = 3000,  /* the others look this often, or when it runs out */
};
_Static_assert(DELIVERY_RENEW_MS * 3 <= DELIVERY_LEASE_MS, "two renewals may fail");

/* Would this node take it? `alone`: nobody else can have the store open, so whoever had it is dead. */
bool lease_is_free(const struct delivery_row *row, const struct uuid *node, bool alone, int64_t now_ms);
bool lease_is_ours(const struct delivery_row *row, const struct uuid *node, int64_t now_ms);
/* When to look again at a row that somebody else has. */
int64_t lease_look_ms(const struct delivery_row *row, int64_t now_ms);

/* The row to write next: ours for another while; its version is one more than the row's. */
struct delivery_row lease_hold(const struct delivery_row *row, const struct uuid *node, int64_t now_ms);
/* The row that gives it back, position and all. */
struct delivery_row lease_give_back(const struct delivery_row *row);

#endif
