/* SPDX-License-Identifier: Apache-2.0
 * The warm tier: Redis. It filters (a lock per seat, taken before the store is
 * asked) and remembers (the registry that other programs read). It never
 * decides: whatever it says, the store has the last word, and whatever becomes
 * of it, a command goes on without it.
 *
 * One lane uses it, on its own thread. Nothing here blocks: what is asked is
 * queued, sent by warm_turn(), and answered in a callback inside a later
 * warm_turn(). A round that is not answered within WARM_ROUND_MS_MAX is over:
 * the connection is dropped and the round has failed.
 *
 *             five failures                PING answered
 *   CLOSED ─────────────────▶ OPEN ─────────────────────────▶ REBUILDING
 *      ▲                    (PING every 30 s; nothing is asked)    │
 *      └──────────── warm_rebuilt(): the lane wrote everything ◀───┘
 *
 * It begins REBUILDING. Only while CLOSED does it filter; registry keys are
 * written while CLOSED or REBUILDING. */
#ifndef HOLDFAST_WARM_WARM_H
#define HOLDFAST_WARM_WARM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/model.h"

struct warm; /* opaque; its first member is a table of these functions: see warm_int.h */

enum {
    WARM_ROUND_MS_MAX = 50,
    WARM_LOCK_YOUNG_MS = 5000,  /* a lock this young may belong to a commit under way elsewhere */
    WARM_LOCK_EXTRA_MS = 60000, /* a lock outlives its hold by this */
    WARM_READ_COUNT_MAX = 512,  /* members or locks in one reading */
};

enum warm_state { WARM_CLOSED, WARM_REBUILDING, WARM_OPEN };

struct warm_config {
    const char *url;     /* redis://, rediss://, unix:// …; several, separated by commas: tried in turn */
    const char *prefix;  /* of the registry's keys: "voelgoed" */
    struct uuid node_id; /* so that a node knows its own messages */
    void (*on_nudge)(void *context); /* another node published something; inside warm_turn() */
    void *context;
};

/* Does not wait for Redis: one that is away is a warm tier that is OPEN. An error means that the URL makes no sense,
 * and `why` says in one sentence what is wrong. */
enum err warm_create(const struct warm_config *config, struct warm **out, char *why,
                     size_t why_size) MUST_CHECK;
/* The same error, without a warm tier: before anything else is begun. */
enum err warm_check(const struct warm_config *config, char *why, size_t why_size) MUST_CHECK;
void warm_destroy(struct warm *warm); /* rounds under way fail; NULL is fine */

int warm_fd(struct warm *warm); /* readable when warm_turn() has something to do */
/* Sends what is queued, takes what came, ends what took too long, sees to the connection. Returns when it wants to be
 * called again at the latest (monotonic µs). */
int64_t warm_turn(struct warm *warm, int64_t now_us);
enum warm_state warm_state(const struct warm *warm);
void warm_rebuilt(struct warm *warm); /* while REBUILDING: everything stands again, filter from now on */

/* ---- Locks: the filter before the store ---- */

enum warm_lock_result {
    WARM_LOCK_TAKEN, /* it was free, and is now this hold's */
    WARM_LOCK_FOUND, /* somebody has it: see the fields below */
    WARM_LOCK_ERROR, /* Redis answered with an error (WRONGTYPE, …): the store decides */
};

struct warm_lock {
    struct uuid org_id;
    struct uuid event_id;
    struct uuid seat_id;
    struct uuid hold_id;
    struct uuid user_id;
    const char *cart_token;
    int64_t held_at_ms;
    int64_t held_until_ms;
    /* Filled in: */
    enum warm_lock_result result;
    const char *found; /* the value, in the round's arena */
    bool readable;     /* false: the value makes no sense, which counts as not held; else: */
    struct uuid found_hold_id;
    struct uuid found_user_id;
    int64_t found_held_at_ms;
    /* The asker's own: */
    bool refuses;
};

enum warm_outcome { WARM_ANSWERED, WARM_TIMED_OUT, WARM_FAILED };

struct warm_round {
    struct list node;    /* the warm tier's, while it has the round */
    struct arena *arena; /* borrows: for what was found */
    struct warm_lock *locks;
    int32_t count;
    void (*on_done)(struct warm_round *round);
    void *context;
    /* Filled in: */
    enum warm_outcome outcome; /* unless ANSWERED, any of the locks may have been taken: give them back */
};

/* One pipelined round trip. An error (not CLOSED, too much is queued) means that on_done never runs. */
enum err warm_lock(struct warm *warm, struct warm_round *round) MUST_CHECK;

/* ---- Writes: after the commit, not waited for ---- */

enum warm_write_kind {
    WARM_HELD,     /* a new hold: registry keys, bit, message; the lock too unless `locked` */
    WARM_EXTENDED, /* lock and keys live until held_until_ms; the member of previous_until_ms is replaced */
    WARM_RELEASED, /* the hold has ended and the seat is free: lock, keys and member go if they are this hold's */
    WARM_SOLD,     /* the hold was converted: the same, but the bit stays */
    WARM_SEAT,     /* no hold: blocked, unblocked, refunded; the bit alone, and a message */
    /* A lock was taken for nothing, or the hold ended and its seat is somebody's at once: whatever is of this hold
     * goes (lock, keys, member); no bit, no message. */
    WARM_UNLOCKED,
};

struct warm_write {
    enum warm_write_kind kind;
    struct uuid org_id;
    struct uuid event_id;
    struct uuid seat_id;
    enum seat_state state; /* after the change */
    int32_t version;       /* of the seat */
    char section[4];       /* its block … */
    int32_t subsection;
    int32_t bit; /* … and its bit there: (row − 1) × longest row + (seat − 1) */
    struct uuid hold_id;
    struct uuid user_id;
    const char *cart_token;
    int64_t created_ms;
    int64_t held_until_ms;
    int64_t previous_until_ms; /* EXTENDED: before */
    int64_t price_cents;
    enum hold_source source;
    enum end_reason reason; /* RELEASED */
    bool locked;            /* HELD: the lock was answered as taken by this hold */
    /* Not fresh from a commit (a repair, a rebuild, a commit long ago): nothing of it is written if Redis has seen a
     * newer version of the seat, and nothing is published. */
    bool repair;
};

/* All of one batch. Copied at once. Dropped while OPEN, or when more is queued than fits: a sweep makes it good. */
void warm_write(struct warm *warm, const struct warm_write *writes, int32_t count);
/* Tells the other nodes that there is something to follow: for a batch that changed no seat. */
void warm_nudge(struct warm *warm);
/* The occupancy key of an event; lives for 10 s, deleted by every write that changes a seat. */
void warm_occupancy(struct warm *warm, const struct uuid *org_id, const struct uuid *event_id,
                    const char *json, size_t size);

/* ---- Readings: for sweeps, reconciliation and the registry's status ---- */

enum warm_read_kind {
    WARM_MEMBERS, /* of the event's seat_holds: some, from `cursor` on */
    WARM_HOLDS,   /* of the given holds: are their keys there? */
    WARM_LOCKS,   /* of the given seats */
    WARM_COUNT,   /* how many members there are */
    WARM_BITS,    /* of a block */
};

struct warm_member {
    struct uuid seat_id;
    struct uuid hold_id;
    struct uuid user_id;
    int64_t held_until_ms;
    bool readable; /* false: nobody of ours wrote it; `text` says what it is */
    const char *text;
    size_t text_size; /* of text, which may hold NULs; 0: it has none */
};

struct warm_read {
    struct list node; /* the warm tier's, while it has it */
    enum warm_read_kind kind;
    struct uuid org_id;
    struct uuid event_id;
    char section[4]; /* BITS */
    int32_t subsection;
    int32_t bit_count;           /* BITS: of the block */
    uint64_t cursor;             /* MEMBERS: 0 to begin, then as filled in; 0 again: that was all */
    const struct uuid *seat_ids; /* HOLDS, LOCKS: WARM_READ_COUNT_MAX at most */
    const struct uuid *hold_ids; /* HOLDS: of those seats */
    int32_t seat_count;
    struct arena *arena; /* borrows: for the results */
    void (*on_done)(struct warm_read *read);
    void *context;
    /* Filled in: */
    enum warm_outcome outcome;
    struct warm_member *members; /* MEMBERS */
    int32_t member_count;
    bool *whole;             /* HOLDS: one per hold in order */
    struct warm_lock *locks; /* LOCKS: one per seat in order; result TAKEN means: there is none */
    int64_t count;           /* COUNT */
    const uint8_t *bits;     /* BITS: first seat in the highest bit of the first byte */
    size_t bits_size;        /* at least as many as were asked for */
};

/* An error (OPEN, too much is queued) means that on_done never runs. */
enum err warm_read(struct warm *warm, struct warm_read *read) MUST_CHECK;

/* Members that are nobody's, or of no active hold: they go, one by one, never the key. Not waited for. */
void warm_remove_members(struct warm *warm, const struct uuid *org_id, const struct uuid *event_id,
                         const struct warm_member *members, int32_t count);

#endif
