/* SPDX-License-Identifier: Apache-2.0
 * What the files of the feed share.
 *
 *   lane ──feed_seat, feed_news──▶ feed.c: pending, per ring (feed->lock)
 *                                    │ taken every coalesce_ms
 *                                    ▼
 *                        feed_flush.c: frames, numbered ──▶ feed_ring.c (ring->lock)
 *                                    │ published, on_frames
 *                                    ▼
 *   loops ◀──feed_read── feed_reader.c: the frames of two rings, in order of number
 *
 * A flush also makes an event's statistics, feed_stats.c, when they are due.
 *
 * Invariants:
 *  1. One sequence numbers the frames of all rings. A reader of an event and of
 *     a user's news merges two rings by number, and one id resumes both.
 *  2. Readers see only numbers up to `published`, which moves when everything a
 *     flush made is in its ring. So no lower number appears after a higher one.
 *  3. A ring has every frame of its event or user whose number is above `floor`.
 *     A new ring's floor is a number of its own, above every id given out before:
 *     what happened while nobody watched can never look like "nothing missed".
 *  4. Rings are destroyed by the flushing thread alone, and only without readers.
 *  5. No lock is held while a callback runs. Lock order: feed, then ring. */
#ifndef HOLDFAST_PUBLISH_FEED_INT_H
#define HOLDFAST_PUBLISH_FEED_INT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/map.h"
#include "publish/feed.h"

enum {
    FRAME_SEAT_COUNT_MAX = 2000,              /* seats in one frame */
    USER_RING_SIZE_MAX = 256 * 1024,          /* bytes of one user's news */
    FRAMES_SIZE_MAX = 256 * 1024 * 1024,      /* bytes in all rings; beyond it a ring keeps only … */
    FRAME_COUNT_WHEN_FULL = 16,               /* … this many */
    PENDING_SEAT_COUNT_MAX = 256 * 1024,      /* of an event, before a flush; beyond it: a new snapshot */
    PENDING_SEAT_COUNT_KEPT = 8192,           /* memory a ring keeps between flushes */
    PENDING_NEWS_SIZE_MAX = 64 * 1024 * 1024, /* of all users, before a flush */
    IDLE_RING_COUNT_MAX = 65536,              /* rings kept although nobody reads them */
    IDLE_RING_MS_MAX = 600000,
    NEWS_NAME_SIZE_MAX = 32,
    EPOCH_SIZE = 32,
    STREAM_ID_SIZE = 64,
    STREAM_RETRY_MS = 2000, /* what we tell a browser to wait before it reconnects */
};

_Static_assert((int)PENDING_SEAT_COUNT_MAX > (int)EVENT_SEAT_COUNT_MAX,
               "a whole event may change in one flush");

struct feed_times {
    int64_t coalesce_ms;
    int64_t heartbeat_ms;
    int64_t idle_ms;
    int64_t stats_ms; /* between the statistics of an event */
};

/* Built once, shared by all who read it. */
struct feed_frame {
    _Atomic int32_t reference_count;
    uint64_t number;      /* of statistics: 0, they have none */
    struct uuid event_id; /* of news: what it is about, or nil */
    size_t size;
    char text[];
};

/* Where an event's occupancy comes from: shared by the reader that brought it and its ring. */
struct feed_source {
    _Atomic int32_t reference_count;
    feed_occupancy_writer write;
    feed_stats_reader read_stats;
    void (*release)(void *context);
    void *context;
};

struct seat_change {
    int32_t index;
    uint8_t state;  /* enum seat_state */
    uint8_t reason; /* enum end_reason */
};

struct news {
    struct list node; /* of its ring */
    struct uuid event_id;
    size_t size;
    char name[NEWS_NAME_SIZE_MAX];
    char data[];
};

/* What came in since the last flush. */
struct pending {
    struct seat_change *changes; /* owns */
    size_t change_count;
    size_t change_capacity;
    struct list news;
    bool reset; /* readers need a new snapshot, before the rest */
};

struct feed_ring {
    /* Under feed->lock */
    struct list dirty;  /* of feed->dirty, while something is pending */
    struct list idle;   /* of feed->idle, while nobody reads */
    struct uuid id;     /* of the event, or of the user */
    struct uuid org_id; /* of the user */
    bool is_user;
    struct feed_ring *next_of_id; /* a user of the same id in another organization */
    int32_t reader_count;
    int64_t idle_since_us;
    struct feed_source *source; /* shares; NULL for users */
    struct pending pending;
    bool stats_wanted; /* by a reader who needs all blocks */

    /* The flushing thread's */
    struct list taken_node;
    struct pending taken;
    struct feed_source *taken_source;
    bool taken_watched;      /* somebody read it when it was taken */
    bool stats_due;          /* something may have changed since the last statistics */
    bool stats_all_due;      /* somebody needs all blocks */
    struct list paced;       /* of feed->paced, for stats_ms after them */
    int64_t stats_us;        /* when they were made */
    struct feed_block *told; /* owns: what they said, all of them together */
    int32_t told_count;      /* 0: nothing to compare with */

    /* Under its own lock; the numbers are also read without it, as hints */
    pthread_mutex_t lock;
    struct feed_frame **frames; /* circular */
    uint32_t first;
    uint32_t count;
    uint32_t capacity;       /* zero or a power of two */
    size_t size;             /* bytes of the frames */
    _Atomic uint64_t newest; /* never below floor */
    _Atomic uint64_t floor;
    uint64_t reset_number;            /* whoever is before this needs a snapshot */
    struct feed_frame *stats_changed; /* for those who had the last ones; NULL: nothing new */
    struct feed_frame *stats_all;     /* for the others; NULL: nobody asked */
    _Atomic uint64_t stats_count;     /* how often there were any; one that counts on misses none */
};

struct feed {
    struct feed_times times;
    char epoch[EPOCH_SIZE];
    void (*on_frames)(void *context);
    void *context;
    pthread_t thread;

    pthread_mutex_t lock;
    pthread_cond_t wake; /* on the monotonic clock */
    struct map events;   /* event id → ring */
    struct map users;    /* user id → first ring of that id */
    struct list dirty;
    int64_t dirty_since_us;
    struct list idle; /* longest idle first */
    size_t idle_count;
    struct list paced; /* events whose statistics were made a moment ago, oldest first */
    size_t pending_news_size;
    int32_t reader_count;
    bool flushing;
    bool stopping;

    _Atomic uint64_t sequence;  /* the last number given */
    _Atomic uint64_t published; /* the last number readers may see */
    _Atomic size_t frames_size; /* bytes in all rings */
    /* The flushing thread's: one bit a seat, clear between uses */
    uint64_t seen[(EVENT_SEAT_COUNT_MAX + 63) / 64];
    struct feed_block blocks[EVENT_BLOCK_COUNT_MAX]; /* scratch */
    bool blocks_changed[EVENT_BLOCK_COUNT_MAX];      /* scratch */
};

struct feed_reader {
    struct feed *feed;          /* borrows */
    struct feed_ring *event;    /* or NULL; not destroyed while we read it */
    struct feed_ring *user;     /* or NULL */
    struct feed_source *source; /* shares; NULL without event */
    uint64_t position;          /* everything up to here was given, or is in the snapshot */
    uint64_t stats_count;       /* of the ring, when we looked last */
    bool stats_all_due;         /* we have not been told all blocks, or missed something since */
    bool snapshot_due;
    bool dropped;
    struct feed_frame *frame; /* shares: being sent */
    size_t frame_sent;
    struct buf own; /* snapshot or heartbeat, being sent */
    size_t own_sent;
    int64_t last_bytes_us;
};

/* ---- feed.c ---- */
enum err feed_create_with(const struct feed_times *times, void (*on_frames)(void *context), void *context,
                          struct feed **out) MUST_CHECK;
uint64_t feed_next_number(struct feed *feed);
void feed_source_release(struct feed_source *source); /* NULL is fine */
/* Under the lock. The first change after a flush wakes the thread; the others find it awake. */
void feed_ring_mark_dirty(struct feed *feed, struct feed_ring *ring);

/* ---- feed_flush.c ---- */
void *feed_flush_thread(void *feed);

/* ---- feed_frame.c ---- */
void feed_epoch_make(int64_t now_ms, char out[EPOCH_SIZE]);
void feed_id_format(const struct feed *feed, uint64_t number, char out[STREAM_ID_SIZE]);
bool feed_id_parse(const struct feed *feed, const char *text, uint64_t *number);
/* NULL when memory ends. One reference, the caller's. */
struct feed_frame *feed_frame_seats(const struct feed *feed, uint64_t number,
                                    const struct seat_change *changes, size_t count,
                                    const struct buf *occupancy);
struct feed_frame *feed_frame_news(const struct feed *feed, uint64_t number, const struct news *news);
/* Sums over all blocks; lists those marked in `listed`, or all if that is NULL. */
struct feed_frame *feed_frame_stats(const struct feed_block *blocks, const bool *listed, int32_t count,
                                    int64_t now_ms);
void feed_frame_acquire(struct feed_frame *frame);
void feed_frame_release(struct feed_frame *frame); /* NULL is fine */
void feed_snapshot_write(const struct feed *feed, uint64_t number, const struct feed_source *source,
                         struct buf *out);
void feed_occupancy_write(const struct feed_source *source, struct buf *out);

/* ---- feed_ring.c ---- */
enum ring_peek { PEEK_NOTHING, PEEK_FRAME, PEEK_RESET, PEEK_BEHIND };

struct feed_ring *feed_ring_create(const struct uuid *id, const struct uuid *org_id, bool is_user);
void feed_ring_destroy(struct feed *feed, struct feed_ring *ring);
void feed_ring_append(struct feed *feed, struct feed_ring *ring, struct feed_frame *frame); /* transfers */
void feed_ring_reset(struct feed *feed, struct feed_ring *ring, uint64_t number);
/* The first frame above `position` and up to `limit`; only those about `about` unless NULL. */
enum ring_peek feed_ring_peek(struct feed_ring *ring, uint64_t position, uint64_t limit,
                              const struct uuid *about, struct feed_frame **out);

/* ---- feed_stats.c ---- */
/* The flushing thread: with what was taken of an event. True: readers have something new. */
bool feed_stats_turn(struct feed *feed, struct feed_ring *ring);
void feed_stats_forget(struct feed_ring *ring); /* the same thread: frees what is kept */
/* The same thread, under the lock: those whose time has come are dirty again. */
void feed_stats_unpace(struct feed *feed, int64_t now_us);
int64_t feed_stats_due_us(const struct feed *feed);
void feed_stats_want(struct feed *feed, struct feed_ring *ring); /* under the lock */
/* The reader's loop. What it should be told next, a reference, or NULL. */
bool feed_stats_are_new(const struct feed_reader *reader);
struct feed_frame *feed_stats_next(struct feed_reader *reader);

/* ---- feed_ring.c, what is pending ---- */
void feed_pending_init(struct pending *pending);
void feed_pending_clear(struct pending *pending); /* keeps some memory */
void feed_pending_deinit(struct pending *pending);

#endif
