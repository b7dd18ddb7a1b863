/* SPDX-License-Identifier: Apache-2.0
 * The hot tier: every seat of every event, every active hold and open checkout,
 * in memory, as committed. It belongs to the lane; what other threads may see
 * of it are the seat maps and the directory, which it keeps up to date.
 *
 * Invariants:
 *  1. What stands here was committed, but for the marks of what is under way:
 *     `busy`, `pending_…` and the bits of `free`.
 *  2. A held seat has its hold, an active hold its seat; a user's count is the
 *     length of their list; a block's counts are those of the seat map.
 *  3. `vacant` has a bit for every available seat, `free` for every one of those
 *     that is not busy.
 *  4. A hold is on the wheel exactly while no payment pins it. */
#ifndef HOLDFAST_HOT_HOT_H
#define HOLDFAST_HOT_HOT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/model.h"
#include "base/pool.h"
#include "hold/best.h"
#include "hold/rate.h"
#include "hot/directory.h"
#include "hot/seatmap.h"
#include "hot/wheel.h"

struct hot_hold;

struct hot_seat {
    struct hot_hold *hold; /* while held */
    int32_t version;
    bool busy; /* in an uncommitted batch */
};

struct hot_event {
    struct event_row row; /* owns row.name */
    struct seatmap *map;  /* a reference; NULL without layout */
    struct hot_seat *seats;
    uint64_t *vacant;
    uint64_t *free;
    struct bit_row *rows;      /* of the layout, for best available */
    int32_t *pending_by_block; /* seats to become taken in uncommitted batches */
    struct map users;          /* user id → struct hot_user */
    int64_t holds_ever;
    int32_t unit_count; /* uncommitted units that touch the event */
    bool exclusive;     /* a change of the event itself waits or is under way … */
    const void *gate;   /* … for this command, or the step it has become */
    bool snapshot_due;  /* something changed since the last snapshot … */
    bool occupancy_due; /* … or since Redis was told the occupancy */
};

struct hot_user { /* one user at one event */
    struct uuid user_id;
    struct hot_event *event;
    struct list holds;
    int32_t hold_count;
    int32_t pending_count; /* new holds in uncommitted batches */
    int32_t pending_more;  /* of those, the ones that add to hold_count */
    struct rate_window rate;
};

struct hot_checkout {
    struct checkout_row row; /* owns row.payment_token and row.notes */
    struct hot_event *event;
    struct list holds;
    struct wheel_timer timer; /* while processing: the payment's deadline */
    struct list waiters;      /* commands that wait for the payment's outcome */
    bool busy;                /* in an uncommitted batch */
    bool taking_over;         /* a command is under way that asks whether its payment is anybody's */
};

struct hot_hold {
    struct uuid id;
    struct hot_event *event;
    struct hot_user *user;
    struct hot_checkout *checkout; /* or NULL */
    char *cart_token;
    int64_t price_cents;
    int64_t created_ms;
    int64_t held_until_ms;
    struct list user_node;
    struct list checkout_node;
    struct wheel_timer timer; /* first the notice that it runs out, then the release */
    int32_t seat_index;
    uint8_t source;
    uint8_t try_count; /* of its release */
    bool noticed;      /* its owner was told that it runs out */
    bool reaped;       /* the reaper found it overdue */
    bool foreign;      /* another node made its last change, and releases it; this one a little later */
};

struct hot {
    struct directory *directory; /* borrows */
    struct map events;
    struct map holds;
    struct map checkouts; /* open, or owing a refund */
    struct pool hold_pool;
    struct pool user_pool;
    struct wheel wheel;          /* holds */
    struct wheel checkout_wheel; /* payments */
    int64_t notice_ms;           /* how long before its end a hold's owner is told */
};

enum err hot_create(struct directory *directory, int64_t now_ms, struct hot **out) MUST_CHECK;
void hot_destroy(struct hot *hot);

/* ---- Finding. Another organization's things are not found. ---- */
struct hot_event *hot_event(const struct hot *hot, const struct uuid *org_id, const struct uuid *event_id);
struct hot_hold *hot_hold(const struct hot *hot, const struct uuid *org_id, const struct uuid *hold_id);
struct hot_checkout *hot_checkout(const struct hot *hot, const struct uuid *org_id,
                                  const struct uuid *checkout_id);
struct hot_user *hot_user(struct hot *hot, struct hot_event *event, const struct uuid *user_id); /* or NULL */
struct hot_user *hot_user_make(struct hot *hot, struct hot_event *event, const struct uuid *user_id);
/* Forgets users who hold nothing and whom no limit remembers. */
void hot_users_sweep(struct hot *hot, int64_t now_ms);

static inline struct hot_seat *hot_seat_of(const struct hot_hold *hold)
{
    return &hold->event->seats[hold->seat_index];
}

static inline bool hot_hold_paying(const struct hot_hold *hold)
{
    return hold->checkout != NULL && hold->checkout->row.state == CHECKOUT_PROCESSING;
}

int64_t hot_hold_release_ms(const struct hot_hold *hold); /* when this node releases it */

/* Rows as the store has them. Text is borrowed. */
void hot_seat_row(const struct hot_event *event, int32_t index, struct seat_row *out);
void hot_hold_row(const struct hot_hold *hold, struct hold_row *out);

/* ---- Marks of what is under way ---- */
void hot_seat_set_busy(struct hot_event *event, int32_t index, bool busy);

/* ---- Changing: only with what was committed ---- */
void hot_put_event(struct hot *hot, const struct event_row *row);
enum err hot_put_layout(struct hot *hot, struct hot_event *event,
                        struct seatmap *map) MUST_CHECK; /* owns the reference */
void hot_put_seat(struct hot *hot, struct hot_event *event, const struct seat_row *row);
/* Inserts, changes or removes. `foreign`: another node wrote it. */
void hot_put_hold(struct hot *hot, const struct hold_row *row, bool foreign, int64_t now_ms);
void hot_put_checkout(struct hot *hot, const struct checkout_row *row);

#endif
