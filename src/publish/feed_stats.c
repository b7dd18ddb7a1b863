/* SPDX-License-Identifier: Apache-2.0
 * Statistics: at most once a second an event's readers are told its totals and
 * the blocks whose counts changed; who comes new, or missed some, all blocks.
 *
 *   quiet ──change, or all wanted──▶ made, told ──▶ paced (stats_ms) ─┬─ nothing happened ─▶ quiet
 *                                        ▲                           │
 *                                        └── with the next flush ────┘ something did
 *
 * Invariants:
 *  1. Counts are whole numbers as they stand, never differences: whoever reads
 *     late, or twice, is not wrong, and no ring need keep any.
 *  2. `told` is what a reader knows who had all blocks once and everything since.
 *     Nothing is told when it is what stands there already.
 *  3. `stats_count` goes up by one each time. A reader whose number is one less
 *     takes `stats_changed`; any other waits for `stats_all`, and asks for it.
 *  4. Of each event at most two frames are kept, for as long as somebody reads.
 *
 * What is made belongs to the flushing thread; frames and their count are under
 * the ring's lock. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "publish/feed_int.h"

/* Marks what is not as told; how many. −1: other blocks than those told. */
static int32_t blocks_compare(struct feed *feed, const struct feed_ring *ring, int32_t count)
{
    int32_t changed = 0;

    if (ring->told_count != count)
        return -1;
    for (int32_t i = 0; i < count; i++) {
        const struct feed_block *told = &ring->told[i];
        const struct feed_block *block = &feed->blocks[i];
        if (!uuid_equal(&told->id, &block->id))
            return -1;
        feed->blocks_changed[i] = memcmp(told->counts, block->counts, sizeof told->counts) != 0;
        changed += feed->blocks_changed[i];
    }
    return changed;
}

/* Without memory nothing is remembered, and the next time everything is told. */
static void blocks_remember(const struct feed *feed, struct feed_ring *ring, int32_t count)
{
    if (ring->told_count != count) {
        free(ring->told);
        ring->told = malloc((size_t)count * sizeof *ring->told);
        ring->told_count = ring->told != NULL ? count : 0;
    }
    memcpy(ring->told, feed->blocks, (size_t)ring->told_count * sizeof *ring->told);
}

static void frames_replace(struct feed_ring *ring, struct feed_frame *changed, struct feed_frame *all,
                           uint64_t steps)
{
    pthread_mutex_lock(&ring->lock);
    struct feed_frame *changed_before = ring->stats_changed;
    struct feed_frame *all_before = ring->stats_all;
    ring->stats_changed = changed;
    ring->stats_all = all;
    atomic_fetch_add_explicit(&ring->stats_count, steps, memory_order_release);
    pthread_mutex_unlock(&ring->lock);
    feed_frame_release(changed_before);
    feed_frame_release(all_before);
}

/* True: something was told. */
static bool stats_make(struct feed *feed, struct feed_ring *ring)
{
    const struct feed_source *source = ring->taken_source;
    struct feed_frame *changed = NULL;
    struct feed_frame *all = NULL;

    ring->stats_due = false;
    if (source == NULL || source->read_stats == NULL)
        return false;
    int32_t count = source->read_stats(source->context, feed->blocks);
    CHECK(count <= EVENT_BLOCK_COUNT_MAX);
    if (count == 0)
        return false; /* no layout: who waits for all blocks waits for one */
    int32_t changed_count = blocks_compare(feed, ring, count);
    if (changed_count == 0 && !ring->stats_all_due)
        return false;

    int64_t now_ms = clock_now_ms();
    if (ring->stats_all_due || changed_count < 0)
        all = feed_frame_stats(feed->blocks, NULL, count, now_ms);
    if (changed_count > 0) {
        changed = feed_frame_stats(feed->blocks, feed->blocks_changed, count, now_ms);
    } else if (changed_count < 0 && all != NULL) {
        feed_frame_acquire(all);
        changed = all;
    }
    /* Where memory ended, a number is left out: everybody missed something, and asks for all. */
    bool is_missing = changed_count != 0 && changed == NULL;
    frames_replace(ring, changed, all, is_missing ? 2 : 1);
    counter_add(COUNTER_STREAM_FRAMES, (uint64_t)(changed != NULL) + (all != NULL && all != changed));

    blocks_remember(feed, ring, count);
    ring->stats_all_due = false;
    ring->stats_us = clock_monotonic_us();
    list_append(&feed->paced, &ring->paced);
    return true;
}

bool feed_stats_turn(struct feed *feed, struct feed_ring *ring)
{
    if (!ring->taken_watched) {
        feed_stats_forget(ring); /* the next to come wants all anyway */
        return false;
    }
    if (ring->taken.change_count > 0 || ring->taken.reset || ring->stats_all_due)
        ring->stats_due = true;
    return ring->stats_due && list_empty(&ring->paced) && stats_make(feed, ring);
}

void feed_stats_forget(struct feed_ring *ring)
{
    frames_replace(ring, NULL, NULL, 0);
    free(ring->told);
    ring->told = NULL;
    ring->told_count = 0;
    ring->stats_due = false;
}

int64_t feed_stats_due_us(const struct feed *feed)
{
    if (list_empty(&feed->paced))
        return INT64_MAX;
    const struct feed_ring *oldest = CONTAINER_OF(feed->paced.next, struct feed_ring, paced);
    return oldest->stats_us + feed->times.stats_ms * 1000;
}

void feed_stats_unpace(struct feed *feed, int64_t now_us)
{
    while (feed_stats_due_us(feed) <= now_us) {
        struct feed_ring *ring = CONTAINER_OF(feed->paced.next, struct feed_ring, paced);
        list_remove(&ring->paced);
        if (ring->stats_due)
            feed_ring_mark_dirty(feed, ring);
    }
}

void feed_stats_want(struct feed *feed, struct feed_ring *ring)
{
    ring->stats_wanted = true;
    feed_ring_mark_dirty(feed, ring);
}

/* ---- For readers ---- */

bool feed_stats_are_new(const struct feed_reader *reader)
{
    return reader->event != NULL &&
           atomic_load_explicit(&reader->event->stats_count, memory_order_acquire) != reader->stats_count;
}

struct feed_frame *feed_stats_next(struct feed_reader *reader)
{
    struct feed_ring *ring = reader->event;

    pthread_mutex_lock(&ring->lock);
    uint64_t count = atomic_load_explicit(&ring->stats_count, memory_order_relaxed);
    bool needs_all = reader->stats_all_due || count != reader->stats_count + 1;
    struct feed_frame *frame = needs_all ? ring->stats_all : ring->stats_changed;
    if (frame != NULL)
        feed_frame_acquire(frame);
    reader->stats_count = count;
    pthread_mutex_unlock(&ring->lock);

    reader->stats_all_due = needs_all && frame == NULL;
    if (reader->stats_all_due) {
        pthread_mutex_lock(&reader->feed->lock);
        feed_stats_want(reader->feed, ring);
        pthread_mutex_unlock(&reader->feed->lock);
    }
    return frame;
}
