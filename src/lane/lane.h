/* SPDX-License-Identifier: Apache-2.0
 * The lane: decides every command of a node, one after another, in batches.
 *
 * A turn takes what waits, decides it by the rules of hold/ on what the hot
 * tier knows, and submits what is to be written as one batch. While one batch
 * commits, the next gathers. When the store says a batch is committed, and not
 * before, the hot tier is changed, commands are answered and news goes out.
 *
 *   inbox ─▶ looked up? ─▶ decide ─┬─▶ answered (rests on committed facts)
 *             (key, ended things)  ├─▶ batch ─▶ store ─▶ hot, answer, news
 *                                  └─▶ waiting (touches something uncommitted)
 *
 * Invariants:
 *  1. A seat, checkout or user's limit is in at most one uncommitted batch.
 *  2. A refusal rests on committed facts; otherwise the command waits.
 *  3. Nothing leaves before its commit.
 *  4. Everything here is touched by one thread; lane_post() is the way in.
 *  5. Given the same posts, store answers and `now`, a lane does the same. */
#ifndef HOLDFAST_LANE_LANE_H
#define HOLDFAST_LANE_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "hot/directory.h"
#include "lane/command.h"
#include "publish/feed.h"
#include "store/store.h"
#include "warm/warm.h"

struct lane;

/* A payment to be asked for, or money to be given back. Text is borrowed for the call. */
struct lane_charge {
    struct uuid org_id;
    struct uuid checkout_id; /* the gateway's idempotency key */
    int64_t amount_cents;
    const char *currency;
    const char *token;
    int32_t attempt; /* 1; 2 when asked again after a restart */
};

/* Something to be done on the lane's thread, where the store may be asked: whoever delivers the change feed. */
struct lane_call {
    struct list node;
    void (*run)(struct lane_call *call, struct store *store);
};

/* Where a command belongs if several nodes share the work: commands of one block are decided by one node at a time. */
struct lane_place {
    struct uuid event_id;
    const char *section; /* borrows */
    int32_t subsection;
};

/* How commands get to the node that decides them, and back; order/ implements it. All on the lane's thread. */
struct lane_router {
    /* Takes the command until lane_settle(), or lane_return(). ERR_…: not taken. */
    enum err (*send)(void *context, struct command *command, const struct lane_place *place);
    /* Is the answer of this command of the organization's still to come? With one that came late: its data, borrowed for
     * the call. */
    bool (*find)(void *context, const struct uuid *org_id, const struct uuid *id, const void **answer,
                 size_t *size);
    void (*on_event)(void *context, const struct uuid *event_id); /* it can be sold, or could be all along */
    int64_t (*turn)(void *context, int64_t now_ms); /* returns when it wants to run again at the latest */
    bool (*is_idle)(void *context);                 /* nothing of it is under way, here or elsewhere */
    void (*leave)(void *context);                   /* the node stops: no more commands from elsewhere */
    int fd;                                         /* readable when `turn` has something to do */
    void *context;
};

struct lane_config {
    struct store *store;         /* borrows */
    struct warm *warm;           /* borrows; NULL: none */
    struct uuid node_id;         /* another one at every start */
    struct directory *directory; /* borrows; filled by the lane */
    struct feed *feed;           /* borrows; NULL: no news */
    uint64_t seed;               /* 0: from the system */
    /* The gateway's side. Each answers later with a COMMAND_PAYMENT_SETTLED or
     * COMMAND_REFUND_SETTLED, posted to the lane. Called on the lane's thread. */
    void (*charge)(void *context, const struct lane_charge *charge);
    void (*refund)(void *context, const struct lane_charge *charge);
    void (*on_lost)(
        void *context); /* memory can no longer follow the store: the node must be started again */
    void *context;
};

/* Loads everything from the store. `why` says in one sentence what went wrong. */
enum err lane_create(const struct lane_config *config, int64_t now_ms, struct lane **out, char *why,
                     size_t why_size) MUST_CHECK;
void lane_destroy(struct lane *lane); /* answers what is left with ERR_OVERLOADED */

/* Any thread. ERR_OVERLOADED: the inbox is full and on_done never runs; never for
 * releases, cancels and settlements. */
enum err lane_post(struct lane *lane, struct command *command) MUST_CHECK;

/* Any thread. `run` runs once, on the lane's thread, unless the lane ends before. */
void lane_call(struct lane *lane, struct lane_call *call);

/* ---- Commands that travel. Before lane_start(); the rest on the lane's thread ---- */
void lane_set_router(struct lane *lane, const struct lane_router *router);
/* One that another node, or this one, sent: it is decided here, in turn. */
void lane_take(struct lane *lane, struct command *command);
/* One that this node sent is answered: `answer` is borrowed for the call. */
void lane_settle(struct lane *lane, struct command *command, const void *answer, size_t size);
/* One that this node sent is given back with the result it has by now: refused, or still pending. */
void lane_return(struct lane *lane, struct command *command);
/* Its answer came late: its user's streams are told. */
void lane_tell_settled(struct lane *lane, const struct command *command);
/* The answer of a command that was taken, for lane_settle(); in its arena. */
const void *lane_pack_answer(const struct command *command, size_t *size);

/* The lane's thread: another node may have committed something. */
void lane_nudge(struct lane *lane);

/* One turn: what waits in the inbox, what the store finished, what is due. Returns
 * when it wants to run again at the latest. */
int64_t lane_turn(struct lane *lane, int64_t now_ms);
bool lane_is_idle(const struct lane *lane); /* nothing in flight, waiting or due */

/* A thread that turns the lane whenever there is something to do. */
enum err lane_start(struct lane *lane) MUST_CHECK;
/* Finishes what is in flight, at most drain_ms, then ends the thread. Close the store before the lane is
 * destroyed: what it still answers is the lane's. */
void lane_stop(struct lane *lane, int64_t drain_ms);

#endif
