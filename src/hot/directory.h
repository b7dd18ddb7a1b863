/* SPDX-License-Identifier: Apache-2.0
 * What other threads may ask without waiting for the lane: which organizations
 * and users exist, which events there are, where an event's seat map is.
 * Written by the lane (rarely), read by loops, under a read-write lock; what is
 * handed out is a copy or a counted reference. */
#ifndef HOLDFAST_HOT_DIRECTORY_H
#define HOLDFAST_HOT_DIRECTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/model.h"
#include "hot/seatmap.h"

struct directory;

enum err directory_create(struct directory **out) MUST_CHECK;
void directory_destroy(struct directory *directory);

enum user_standing { USER_UNKNOWN, USER_KNOWN, USER_DISABLED };

struct event_view { /* row.name and the array are in the caller's arena */
    struct event_row row;
    struct seatmap *map; /* a reference of the caller's: seatmap_release(); NULL without layout */
};

/* Any thread */
bool directory_has_org(struct directory *directory, const struct uuid *org_id);
enum user_standing directory_user(struct directory *directory, const struct uuid *org_id,
                                  const struct uuid *user_id);
/* False if it does not exist or is another organization's (nil org_id: any). */
bool directory_event(struct directory *directory, const struct uuid *org_id, const struct uuid *event_id,
                     struct arena *arena, struct event_view *out);
/* All events of an organization whose state's bit is in `states`, oldest first; nil org_id: of all
 * of them, one organization after the other. */
int32_t directory_events(struct directory *directory, const struct uuid *org_id, uint32_t states,
                         struct arena *arena, struct event_view **out);
/* The organization of an event, for operators; false if there is none such. */
bool directory_event_org(struct directory *directory, const struct uuid *event_id, struct uuid *org_id);

/* The lane only */
void directory_put_org(struct directory *directory, const struct uuid *org_id);
void directory_put_user(struct directory *directory, const struct user_row *user);
void directory_put_event(struct directory *directory, const struct event_row *event);
void directory_put_map(struct directory *directory, const struct uuid *event_id,
                       struct seatmap *map); /* acquires its own reference */

#endif
