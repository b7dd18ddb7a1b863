/* SPDX-License-Identifier: Apache-2.0
 * The feed's own thread: turns what is pending into numbered frames, and lets
 * go of rings that nobody came back to.
 *
 *   asleep ──first change──▶ gathering (coalesce_ms) ──▶ take ─▶ make ─▶ publish ─▶ asleep
 *                                     ▲                                  │
 *                                     └──── stats_ms after statistics ───┘ if more changed since
 *
 * Invariants:
 *  1. A seat stands at most once in what one flush makes of it, with its last
 *     state. The frames of one flush are at most FRAME_SEAT_COUNT_MAX seats each.
 *  2. `published` moves once per flush, after all of its frames are in place,
 *     and on_frames runs after that, if there is anything new.
 *  3. With nothing pending, nothing idle and no statistics of the last second
 *     the thread sleeps without a timeout.
 *  4. What cannot be made, because memory ended, becomes a reset: readers take a
 *     new snapshot, and nothing is silently missing.
 *
 * The lane is never waited for: taking is a swap of pointers under the lock. */
#include <signal.h>
#include <time.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "publish/feed_int.h"

/* Keeps the last change of each seat, in order; they move to the end of the array. */
static struct seat_change *changes_coalesce(struct feed *feed, struct pending *taken, size_t *count)
{
    size_t kept = taken->change_count;
    for (size_t i = taken->change_count; i-- > 0;) {
        int32_t index = taken->changes[i].index;
        uint64_t bit = UINT64_C(1) << (index % 64);
        if (feed->seen[index / 64] & bit)
            continue;
        feed->seen[index / 64] |= bit;
        taken->changes[--kept] = taken->changes[i];
    }
    for (size_t i = kept; i < taken->change_count; i++)
        feed->seen[taken->changes[i].index / 64] = 0;
    *count = taken->change_count - kept;
    return taken->changes + kept;
}

static void frame_publish(struct feed *feed, struct feed_ring *ring, struct feed_frame *frame)
{
    if (frame == NULL) {
        feed_ring_reset(feed, ring, feed_next_number(feed));
        return;
    }
    feed_ring_append(feed, ring, frame);
    counter_add(COUNTER_STREAM_FRAMES, 1);
}

static void seats_publish(struct feed *feed, struct feed_ring *ring)
{
    struct buf occupancy;
    size_t count;
    struct seat_change *changes = changes_coalesce(feed, &ring->taken, &count);

    buf_init(&occupancy);
    feed_occupancy_write(ring->taken_source, &occupancy);
    for (size_t first = 0; first < count; first += FRAME_SEAT_COUNT_MAX) {
        size_t part = count - first < FRAME_SEAT_COUNT_MAX ? count - first : FRAME_SEAT_COUNT_MAX;
        struct feed_frame *frame = NULL;
        if (buf_ok(&occupancy))
            frame = feed_frame_seats(feed, feed_next_number(feed), changes + first, part, &occupancy);
        frame_publish(feed, ring, frame);
    }
    buf_deinit(&occupancy);
}

/* True: there is something new for readers. */
static bool ring_publish(struct feed *feed, struct feed_ring *ring)
{
    bool any = ring->taken.reset || ring->taken.change_count > 0 || !list_empty(&ring->taken.news);

    if (ring->taken.reset)
        feed_ring_reset(feed, ring, feed_next_number(feed));
    if (ring->taken.change_count > 0)
        seats_publish(feed, ring);
    LIST_FOR_EACH(node, &ring->taken.news) {
        const struct news *news = CONTAINER_OF(node, struct news, node);
        frame_publish(feed, ring, feed_frame_news(feed, feed_next_number(feed), news));
    }
    if (!ring->is_user && feed_stats_turn(feed, ring))
        any = true;
    return any;
}

/* `to` is empty but for memory that `from` uses next. */
static void pending_swap(struct pending *from, struct pending *to)
{
    struct seat_change *memory = to->changes;
    size_t capacity = to->change_capacity;

    to->changes = from->changes;
    to->change_count = from->change_count;
    to->change_capacity = from->change_capacity;
    to->reset = from->reset;
    list_splice(&to->news, &from->news);
    from->changes = memory;
    from->change_count = 0;
    from->change_capacity = capacity;
    from->reset = false;
}

/* Under the lock: everything pending becomes ours. */
static void rings_take(struct feed *feed, struct list *rings)
{
    struct list *node;
    while ((node = list_pop(&feed->dirty)) != NULL) {
        struct feed_ring *ring = CONTAINER_OF(node, struct feed_ring, dirty);
        pending_swap(&ring->pending, &ring->taken);
        ring->taken_watched = ring->reader_count > 0;
        ring->stats_all_due |= ring->stats_wanted;
        ring->stats_wanted = false;
        ring->taken_source = ring->source;
        if (ring->source != NULL)
            atomic_fetch_add_explicit(&ring->source->reference_count, 1, memory_order_relaxed);
        list_append(rings, &ring->taken_node);
    }
    feed->pending_news_size = 0;
}

/* Called, and returns, with the lock held; works without it. */
static void feed_flush(struct feed *feed)
{
    struct list rings;
    struct list *node;
    bool any = false;

    list_init(&rings);
    rings_take(feed, &rings);
    feed->flushing = true;
    pthread_mutex_unlock(&feed->lock);

    while ((node = list_pop(&rings)) != NULL) {
        struct feed_ring *ring = CONTAINER_OF(node, struct feed_ring, taken_node);
        any |= ring_publish(feed, ring);
        feed_pending_clear(&ring->taken);
        feed_source_release(ring->taken_source);
        ring->taken_source = NULL;
    }

    pthread_mutex_lock(&feed->lock);
    feed->flushing = false;
    /* Numbers that subscribers took meanwhile have no frames: publishing them too is right. */
    atomic_store_explicit(&feed->published, atomic_load(&feed->sequence), memory_order_release);
    if (!any || feed->on_frames == NULL)
        return;
    pthread_mutex_unlock(&feed->lock);
    feed->on_frames(feed->context);
    pthread_mutex_lock(&feed->lock);
}

/* Under the lock: out of the map, so that nobody finds it any more. */
static void ring_forget(struct feed *feed, struct feed_ring *ring)
{
    list_remove(&ring->dirty);
    list_remove(&ring->idle);
    list_remove(&ring->paced);
    feed->idle_count--;
    if (!ring->is_user) {
        map_remove(&feed->events, &ring->id);
        return;
    }
    struct feed_ring *head = map_get(&feed->users, &ring->id);
    if (head == ring) {
        if (ring->next_of_id != NULL)
            map_put(&feed->users, &ring->id, ring->next_of_id);
        else
            map_remove(&feed->users, &ring->id);
        return;
    }
    while (head->next_of_id != ring)
        head = head->next_of_id;
    head->next_of_id = ring->next_of_id;
}

static int64_t idle_due_us(const struct feed *feed)
{
    if (list_empty(&feed->idle))
        return INT64_MAX;
    if (feed->idle_count > IDLE_RING_COUNT_MAX)
        return INT64_MIN;
    const struct feed_ring *oldest = CONTAINER_OF(feed->idle.next, struct feed_ring, idle);
    return oldest->idle_since_us + feed->times.idle_ms * 1000;
}

/* Called, and returns, with the lock held. */
static void rings_sweep(struct feed *feed, int64_t now_us)
{
    struct list dead;
    struct list *node;

    list_init(&dead);
    while (idle_due_us(feed) <= now_us) {
        struct feed_ring *ring = CONTAINER_OF(feed->idle.next, struct feed_ring, idle);
        ring_forget(feed, ring);
        list_append(&dead, &ring->idle);
    }
    if (list_empty(&dead))
        return;
    pthread_mutex_unlock(&feed->lock); /* a source's release is a callback */
    while ((node = list_pop(&dead)) != NULL)
        feed_ring_destroy(feed, CONTAINER_OF(node, struct feed_ring, idle));
    pthread_mutex_lock(&feed->lock);
}

static void wait_until(struct feed *feed, int64_t due_us)
{
    if (due_us == INT64_MAX) {
        pthread_cond_wait(&feed->wake, &feed->lock);
        return;
    }
    struct timespec due = {.tv_sec = due_us / 1000000, .tv_nsec = due_us % 1000000 * 1000};
    pthread_cond_timedwait(&feed->wake, &feed->lock, &due);
}

void *feed_flush_thread(void *context)
{
    struct feed *feed = context;
    sigset_t signals;

    sigfillset(&signals); /* they are the main thread's */
    pthread_sigmask(SIG_SETMASK, &signals, NULL);
    pthread_setname_np(pthread_self(), "feed");

    pthread_mutex_lock(&feed->lock);
    while (!feed->stopping) {
        int64_t now_us = clock_monotonic_us();
        rings_sweep(feed, now_us);
        feed_stats_unpace(feed, now_us);
        int64_t due_us = idle_due_us(feed);
        int64_t stats_us = feed_stats_due_us(feed);
        due_us = stats_us < due_us ? stats_us : due_us;
        if (!list_empty(&feed->dirty)) {
            int64_t flush_us = feed->dirty_since_us + feed->times.coalesce_ms * 1000;
            if (flush_us <= now_us) {
                feed_flush(feed);
                continue;
            }
            due_us = flush_us < due_us ? flush_us : due_us;
        }
        /* Everything above may have let go of the lock, but not since the lists were read. */
        wait_until(feed, due_us);
    }
    pthread_mutex_unlock(&feed->lock);
    return NULL;
}
