/* SPDX-License-Identifier: Apache-2.0
 * Following the change feed: what other nodes committed comes into memory here.
 *
 * The feed is asked every FOLLOW_INTERVAL_MS, or when another node nudges, or
 * when a command needs to know. One question is under way at a time; its
 * changes are applied in order, one batch of another node at a time. A change
 * of an event itself is read from the store before anything after it is
 * applied.
 *
 * Freshness: questions are numbered. Whatever was committed before question n
 * was asked is in memory once `fresh` has reached n. So a command that would be
 * told that something is not there takes the number of the next question and
 * waits until it is reached. */
#ifndef HOLDFAST_LANE_FOLLOW_H
#define HOLDFAST_LANE_FOLLOW_H

#include "lane/command.h"
#include "store/changes.h"
#include "store/store.h"

struct lane;
struct hot_event;

struct follow_mark { /* an event or user that is to be read again */
    enum lookup_kind kind;
    struct uuid org_id;
    struct uuid id;
};

struct follow_change { /* one batch of another node, unpacked */
    struct store_unit unit;
    struct follow_mark *marks;
    int32_t mark_count;
    int32_t mark_at; /* the first that was not read yet */
};

struct follow_reload { /* an event or user that is read from the store */
    struct store_lookup lookup;
    struct arena arena;
    bool asked;
    bool answered;
    struct hot_event *gated; /* nothing new may begin there until it is in place */
    int64_t retry_at_ms;
};

struct follow {
    struct feed_position position; /* everything before it is in memory */
    struct store_follow request;
    struct arena arena;
    bool asked;         /* the store has the request */
    bool answered;      /* its changes are being applied … */
    int64_t own_number; /* … when this batch of ours, and those before it, have their outcome … */
    int32_t at;         /* … this one next */
    struct follow_change *change; /* it, or NULL: not unpacked yet */
    struct follow_reload reload;
    int64_t next_at_ms;
    bool nudged;
    int64_t number;  /* of the last question asked */
    int64_t needed;  /* the highest that somebody waits for */
    int64_t fresh;   /* reached; 0: still catching up after the start */
    int64_t goal;    /* the question that is to be reached next, or 0 … */
    int64_t horizon; /* … and where that is */
};

void follow_init(struct lane *lane);
void follow_deinit(struct lane *lane);
void follow_turn(struct lane *lane);
int64_t follow_next_ms(const struct lane *lane);
void follow_nudge(struct lane *lane); /* there may be something new */

/* True when everything that was committed before the command came is in memory. Otherwise the command is deferred by
 * its caller, and decided again then. Always true where nobody else writes to the store. */
bool follow_is_fresh(struct lane *lane, struct command *command);
/* Does the answer rest on something not being there, or being over, that may be otherwise in truth? */
bool follow_must_wait(struct lane *lane, struct command *command, enum err err);
/* The store had something newer than memory: the command is not decided again before that is here. */
void follow_missed(struct lane *lane, struct command *command);
/* The number of the next question: what was committed before now is in memory when it is reached. */
int64_t follow_next_number(struct lane *lane);
bool follow_has_reached(const struct lane *lane, const struct command *command);
bool follow_has_caught_up(const struct lane *lane); /* since the start */

/* follow_apply.c */
/* NULL: it is this node's own, or says nothing. In the follower's arena. */
struct follow_change *follow_unpack(struct lane *lane, const struct store_change *change);
void follow_apply(struct lane *lane, struct follow_change *change);
/* Reads what the mark names again, in as many turns as it takes. True: it is in memory. */
bool follow_reload(struct lane *lane, const struct follow_mark *mark);

#endif
