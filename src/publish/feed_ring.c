/* SPDX-License-Identifier: Apache-2.0
 * The recent frames of one event, or of one user's news, in a ring; and what
 * waits to become the next ones.
 *
 *   floor ≤ … frames, numbers rising … ≤ newest
 *
 * Invariants:
 *  1. Every frame with a number above `floor` is here; `floor` is the number of
 *     the last one given up, of the last reset, or of the ring's beginning.
 *  2. At most FRAME_RING_COUNT frames and FRAME_RING_SIZE_MAX bytes (fewer of
 *     one user's news), but always the newest one.
 *  3. A reader before `reset_number` is told to take a snapshot rather than
 *     that it fell behind: the layout changed, and that is not its fault.
 *
 * The flushing thread writes, loops read, under the ring's lock; nothing here
 * allocates for a reader. */
#include <stdlib.h>

#include "publish/feed_int.h"

enum { RING_CAPACITY_FIRST = 16 };

_Static_assert((FRAME_RING_COUNT & (FRAME_RING_COUNT - 1)) == 0, "places are found by bits");

void feed_pending_init(struct pending *pending)
{
    *pending = (struct pending){0};
    list_init(&pending->news);
}

static void news_free_all(struct list *news)
{
    struct list *node;
    while ((node = list_pop(news)) != NULL)
        free(CONTAINER_OF(node, struct news, node));
}

void feed_pending_clear(struct pending *pending)
{
    news_free_all(&pending->news);
    pending->change_count = 0;
    pending->reset = false;
    if (pending->change_capacity > PENDING_SEAT_COUNT_KEPT) {
        free(pending->changes);
        pending->changes = NULL;
        pending->change_capacity = 0;
    }
}

void feed_pending_deinit(struct pending *pending)
{
    news_free_all(&pending->news);
    free(pending->changes);
    pending->changes = NULL;
}

struct feed_ring *feed_ring_create(const struct uuid *id, const struct uuid *org_id, bool is_user)
{
    struct feed_ring *ring = calloc(1, sizeof *ring);
    if (ring == NULL)
        return NULL;
    list_init(&ring->dirty);
    list_init(&ring->idle);
    list_init(&ring->taken_node);
    list_init(&ring->paced);
    ring->id = *id;
    ring->org_id = *org_id;
    ring->is_user = is_user;
    feed_pending_init(&ring->pending);
    feed_pending_init(&ring->taken);
    pthread_mutex_init(&ring->lock, NULL);
    return ring;
}

static struct feed_frame *frame_at(const struct feed_ring *ring, uint32_t i)
{
    return ring->frames[(ring->first + i) & (ring->capacity - 1)];
}

/* Gives up the oldest frame. Whoever is sending it has a reference of its own. */
static void drop_oldest(struct feed *feed, struct feed_ring *ring)
{
    struct feed_frame *frame = frame_at(ring, 0);
    atomic_store_explicit(&ring->floor, frame->number, memory_order_relaxed);
    ring->first = (ring->first + 1) & (ring->capacity - 1);
    ring->count--;
    ring->size -= frame->size;
    atomic_fetch_sub_explicit(&feed->frames_size, frame->size, memory_order_relaxed);
    feed_frame_release(frame);
}

void feed_ring_destroy(struct feed *feed, struct feed_ring *ring)
{
    while (ring->count > 0)
        drop_oldest(feed, ring);
    free(ring->frames);
    feed_stats_forget(ring);
    feed_pending_deinit(&ring->pending);
    feed_pending_deinit(&ring->taken);
    feed_source_release(ring->source);
    feed_source_release(ring->taken_source);
    pthread_mutex_destroy(&ring->lock);
    free(ring);
}

/* Doubles the room, up to FRAME_RING_COUNT; false when memory ends. */
static bool ring_grow(struct feed_ring *ring)
{
    uint32_t capacity = ring->capacity == 0 ? RING_CAPACITY_FIRST : ring->capacity * 2;
    struct feed_frame **frames = malloc(capacity * sizeof *frames);
    if (frames == NULL)
        return false;
    for (uint32_t i = 0; i < ring->count; i++)
        frames[i] = frame_at(ring, i);
    free(ring->frames);
    ring->frames = frames;
    ring->first = 0;
    ring->capacity = capacity;
    return true;
}

static bool ring_is_over(const struct feed *feed, const struct feed_ring *ring)
{
    size_t size_max = ring->is_user ? USER_RING_SIZE_MAX : FRAME_RING_SIZE_MAX;
    if (ring->count <= 1)
        return false;
    if (ring->size > size_max)
        return true;
    return atomic_load_explicit(&feed->frames_size, memory_order_relaxed) > FRAMES_SIZE_MAX &&
           ring->count > FRAME_COUNT_WHEN_FULL;
}

void feed_ring_append(struct feed *feed, struct feed_ring *ring, struct feed_frame *frame)
{
    pthread_mutex_lock(&ring->lock);
    if (ring->count == ring->capacity && ring->capacity < FRAME_RING_COUNT && !ring_grow(ring) &&
        ring->capacity == 0) {
        /* Not even the first place: as if it had been there and was given up. */
        atomic_store_explicit(&ring->floor, frame->number, memory_order_relaxed);
        atomic_store_explicit(&ring->newest, frame->number, memory_order_release);
        pthread_mutex_unlock(&ring->lock);
        feed_frame_release(frame);
        return;
    }
    if (ring->count == ring->capacity)
        drop_oldest(feed, ring);
    ring->frames[(ring->first + ring->count) & (ring->capacity - 1)] = frame;
    ring->count++;
    ring->size += frame->size;
    atomic_fetch_add_explicit(&feed->frames_size, frame->size, memory_order_relaxed);
    while (ring_is_over(feed, ring))
        drop_oldest(feed, ring);
    atomic_store_explicit(&ring->newest, frame->number, memory_order_release);
    pthread_mutex_unlock(&ring->lock);
}

void feed_ring_reset(struct feed *feed, struct feed_ring *ring, uint64_t number)
{
    pthread_mutex_lock(&ring->lock);
    while (ring->count > 0)
        drop_oldest(feed, ring);
    ring->reset_number = number;
    atomic_store_explicit(&ring->floor, number, memory_order_relaxed);
    atomic_store_explicit(&ring->newest, number, memory_order_release);
    pthread_mutex_unlock(&ring->lock);
}

/* How many frames have a number up to `position`. */
static uint32_t count_up_to(const struct feed_ring *ring, uint64_t position)
{
    uint32_t low = 0;
    uint32_t high = ring->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (frame_at(ring, middle)->number <= position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

enum ring_peek feed_ring_peek(struct feed_ring *ring, uint64_t position, uint64_t limit,
                              const struct uuid *about, struct feed_frame **out)
{
    enum ring_peek found = PEEK_NOTHING;

    pthread_mutex_lock(&ring->lock);
    if (ring->reset_number > position) {
        /* One that is not published yet comes a moment later. */
        found = ring->reset_number <= limit ? PEEK_RESET : PEEK_NOTHING;
        goto out;
    }
    if (atomic_load_explicit(&ring->floor, memory_order_relaxed) > position) {
        found = PEEK_BEHIND;
        goto out;
    }
    for (uint32_t i = count_up_to(ring, position); i < ring->count; i++) {
        struct feed_frame *frame = frame_at(ring, i);
        if (frame->number > limit)
            break;
        if (about != NULL && !uuid_equal(&frame->event_id, about))
            continue;
        feed_frame_acquire(frame);
        *out = frame;
        found = PEEK_FRAME;
        break;
    }

out:
    pthread_mutex_unlock(&ring->lock);
    return found;
}
