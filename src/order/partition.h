/* SPDX-License-Identifier: Apache-2.0
 * One partition that the broker gave to this node: the commands of it that wait,
 * those that the lane has, and how far all are done.
 *
 *   WANTED ─▶ LOOKING ─▶ CLAIMABLE ─▶ CLAIMING ─▶ CATCHING_UP ─▶ OPEN
 *     ▲   the store's row   epoch + 1, compared     the feed, as     commands
 *     └───────────── any failure, or fenced ──────  fresh as that ──  go to the lane
 *
 * Who was fenced may have lost it without having heard so: he asks the broker
 * first (is_doubted). So two who both believe that it is theirs do not take it
 * from each other again and again.
 *
 * Invariants: (1) `waiting` and `running` are in the order of offsets; a command
 * is in one of them until it is answered. (2) fence.next_offset is the lowest
 * offset that is not answered, and never above one that may be lost. (3) Nothing
 * is given to the lane before the claim is committed and memory is as fresh as
 * that. */
#ifndef HOLDFAST_ORDER_PARTITION_H
#define HOLDFAST_ORDER_PARTITION_H

#include "base/arena.h"
#include "lane/command.h"
#include "order/broker.h"
#include "order/wire.h"
#include "store/store.h"

struct shared;

enum partition_state {
    PARTITION_WANTED,      /* ours by the broker's word; the store's row is to be asked for */
    PARTITION_LOOKING,     /* … was asked for */
    PARTITION_CLAIMABLE,   /* … is known */
    PARTITION_CLAIMING,    /* … is being written */
    PARTITION_CATCHING_UP, /* it is ours; memory is brought up to date */
    PARTITION_OPEN,
};

struct partition {
    struct list node;
    struct shared *shared;
    struct order_fence fence;
    enum partition_state state;
    bool is_assigned;
    bool is_paused;
    bool is_in_batch;   /* a claim or note of it is being written */
    bool is_doubted;    /* another node has claimed it: the broker must say first that it is still ours */
    bool resets;        /* the log was made anew: its offsets begin again */
    int64_t anew_at_ms; /* so it seems; it is so if nothing else is seen until then */
    bool has_seen_end;  /* what comes now was sent after the claim: nobody can have decided it before */
    int64_t
        reading; /* goes up whenever it is read from an earlier place again: what came before that comes once more */
    int64_t seen_offset;  /* the next to come */
    int64_t noted_offset; /* next_offset as the store has it */
    int64_t retry_at_ms;  /* something failed: nothing is begun before, nor while the lane has some of it */
    int32_t try_count;
    struct list waiting; /* struct taken */
    struct list running;
    int32_t waiting_count;
    int32_t running_count;
    struct store_lookup lookup;
    struct arena arena; /* the lookup's */
    struct command sync;
    struct arena sync_arena;
};

enum { PARTITION_CONFIRM_MS = 1000 /* until the broker is asked once more */, PARTITION_ANEW_MS = 5000 };

struct taken { /* a command from the broker */
    struct list node;
    struct partition *partition;
    int64_t offset;
    int64_t sent_ms; /* as the broker says, or 0 */
    int64_t reading; /* of the partition, when it came */
    struct arena arena;
    const void *value; /* as it came, in the arena */
    size_t size;
    const char *fault; /* it cannot be decided, and why; or NULL */
    bool was_unknown;  /* what became of a try is not known */
    struct wire_sender sender;
    struct command command;
};

struct partition *partition_create(struct shared *shared, const char *topic, int32_t number);
void partition_destroy(struct partition *partition); /* the lane has nothing of it */

/* False: it was seen before. */
bool partition_take(struct partition *partition, const struct broker_message *message);
void partition_skip(struct partition *partition, int64_t offset); /* everything before it is done */
void partition_doubt(struct partition *partition); /* what waits may have been decided by whoever had it */
void partition_noted(struct partition *partition, int64_t offset); /* the store has written that */
/* Its log was made anew: it is claimed and read from its beginning. What was decided of it is settled by its keys. */
void partition_begin_anew(struct partition *partition);
void partition_fenced(struct partition *partition);        /* another node has claimed it */
bool partition_is_gone(const struct partition *partition); /* not ours, and nobody has anything of it */
/* Left to whoever has the partition next: those that wait, or one that the lane had. */
bool partition_comes_again(const struct partition *partition,
                           const struct taken *taken); /* its message does */
void partition_drop_waiting(struct partition *partition);
void partition_drop(struct partition *partition, struct taken *taken);
/* The first that waits, to the lane. */
struct taken *partition_give(struct partition *partition);
/* In its place among those that wait, to be decided once more. */
void partition_put_back(struct partition *partition, struct taken *taken);
void partition_forget(struct partition *partition, struct taken *taken); /* it is answered */
void taken_free(struct taken *taken);

#endif
