/* SPDX-License-Identifier: Apache-2.0
 * The feed's way in: what the lane tells it, and who subscribes.
 *
 * Invariants:
 *  1. An event or user whom nobody watches has no ring, and news of it cost one
 *     look into a map.
 *  2. What is pending is bounded; past the bound it is thrown away and becomes
 *     one reset, after which readers have a new snapshot.
 *  3. A change told to the feed is already in the hot tier. So whatever is read
 *     there after an id was taken is at least as new as that id.
 *  4. A reader resumes only where nothing after its id is missing from either of
 *     its rings; otherwise it begins with a snapshot.
 *
 * Any thread. The lane holds the lock for an append; the flushing thread holds
 * it to swap pointers. Frames are made in feed_flush.c, read in feed_reader.c. */
#include "publish/feed.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "publish/feed_int.h"

uint64_t feed_next_number(struct feed *feed)
{
    return atomic_fetch_add(&feed->sequence, 1) + 1;
}

void feed_source_release(struct feed_source *source)
{
    if (source == NULL || atomic_fetch_sub_explicit(&source->reference_count, 1, memory_order_acq_rel) != 1)
        return;
    if (source->release != NULL)
        source->release(source->context);
    free(source);
}

enum err feed_create_with(const struct feed_times *times, void (*on_frames)(void *context), void *context,
                          struct feed **out)
{
    struct feed *feed = calloc(1, sizeof *feed);
    if (feed == NULL)
        return ERR_INTERNAL;
    feed->times = *times;
    feed->on_frames = on_frames;
    feed->context = context;
    feed_epoch_make(clock_now_ms(), feed->epoch);
    map_init(&feed->events);
    map_init(&feed->users);
    list_init(&feed->dirty);
    list_init(&feed->idle);
    list_init(&feed->paced);
    pthread_mutex_init(&feed->lock, NULL);

    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&feed->wake, &attributes);
    pthread_condattr_destroy(&attributes);

    if (pthread_create(&feed->thread, NULL, feed_flush_thread, feed) != 0)
        goto no_thread;
    *out = feed;
    return ERR_OK;

no_thread:
    pthread_cond_destroy(&feed->wake);
    pthread_mutex_destroy(&feed->lock);
    free(feed);
    return ERR_INTERNAL;
}

enum err feed_create(int64_t coalesce_ms, void (*on_frames)(void *context), void *context, struct feed **out)
{
    struct feed_times times = {
        .coalesce_ms = coalesce_ms,
        .heartbeat_ms = STREAM_HEARTBEAT_MS,
        .idle_ms = IDLE_RING_MS_MAX,
        .stats_ms = STREAM_STATS_MS,
    };
    return feed_create_with(&times, on_frames, context, out);
}

void feed_destroy(struct feed *feed)
{
    if (feed == NULL)
        return;
    pthread_mutex_lock(&feed->lock);
    feed->stopping = true;
    pthread_cond_signal(&feed->wake);
    pthread_mutex_unlock(&feed->lock);
    pthread_join(feed->thread, NULL);
    CHECK(feed->reader_count == 0);

    struct feed_ring *ring;
    for (size_t i = 0; (ring = map_next(&feed->events, &i)) != NULL;)
        feed_ring_destroy(feed, ring);
    for (size_t i = 0; (ring = map_next(&feed->users, &i)) != NULL;) {
        while (ring != NULL) {
            struct feed_ring *next = ring->next_of_id;
            feed_ring_destroy(feed, ring);
            ring = next;
        }
    }
    map_deinit(&feed->events);
    map_deinit(&feed->users);
    pthread_cond_destroy(&feed->wake);
    pthread_mutex_destroy(&feed->lock);
    free(feed);
}

/* ---- What the lane tells ---- */

void feed_ring_mark_dirty(struct feed *feed, struct feed_ring *ring)
{
    if (!list_empty(&ring->dirty))
        return;
    if (list_empty(&feed->dirty)) {
        feed->dirty_since_us = clock_monotonic_us();
        pthread_cond_signal(&feed->wake);
    }
    list_append(&feed->dirty, &ring->dirty);
}

/* Under the lock: room for one more; false when there is none to be had. */
static bool pending_reserve(struct pending *pending)
{
    if (pending->change_count < pending->change_capacity)
        return true;
    size_t capacity = pending->change_capacity == 0 ? 64 : pending->change_capacity * 2;
    if (capacity > PENDING_SEAT_COUNT_MAX)
        return false;
    struct seat_change *changes = realloc(pending->changes, capacity * sizeof *changes);
    if (changes == NULL)
        return false;
    pending->changes = changes;
    pending->change_capacity = capacity;
    return true;
}

static void pending_to_reset(struct pending *pending)
{
    feed_pending_clear(pending);
    pending->reset = true;
}

void feed_seat(struct feed *feed, const struct uuid *event_id, int32_t index, enum seat_state state,
               enum end_reason reason)
{
    CHECK(index >= 0);
    CHECK(index < EVENT_SEAT_COUNT_MAX);

    pthread_mutex_lock(&feed->lock);
    struct feed_ring *ring = map_get(&feed->events, event_id);
    if (ring != NULL) {
        struct pending *pending = &ring->pending;
        if (pending_reserve(pending))
            pending->changes[pending->change_count++] =
                (struct seat_change){.index = index, .state = (uint8_t)state, .reason = (uint8_t)reason};
        else
            pending_to_reset(pending); /* the snapshot will have this change */
        feed_ring_mark_dirty(feed, ring);
    }
    pthread_mutex_unlock(&feed->lock);
}

static struct feed_ring *user_ring_find(const struct feed *feed, const struct uuid *org_id,
                                        const struct uuid *user_id)
{
    struct feed_ring *ring = map_get(&feed->users, user_id);
    while (ring != NULL && !uuid_equal(&ring->org_id, org_id))
        ring = ring->next_of_id;
    return ring;
}

/* NULL when memory ends. Line breaks, which JSON has only between tokens, become spaces. */
static struct news *news_create(const struct uuid *event_id, const char *name, const char *data, size_t size)
{
    struct news *news = malloc(sizeof *news + size);
    if (news == NULL)
        return NULL;
    list_init(&news->node);
    news->event_id = *event_id;
    strcpy(news->name, name);
    news->size = size;
    for (size_t i = 0; i < size; i++)
        news->data[i] = data[i] == '\n' || data[i] == '\r' ? ' ' : data[i];
    return news;
}

void feed_news(struct feed *feed, const struct uuid *org_id, const struct uuid *user_id,
               const struct uuid *event_id, const char *name, const char *data, size_t size)
{
    static const struct uuid nil;
    CHECK(strlen(name) < NEWS_NAME_SIZE_MAX);

    pthread_mutex_lock(&feed->lock);
    struct feed_ring *ring = user_ring_find(feed, org_id, user_id);
    if (ring != NULL) {
        struct news *news = NULL;
        if (feed->pending_news_size + size <= PENDING_NEWS_SIZE_MAX)
            news = news_create(event_id != NULL ? event_id : &nil, name, data, size);
        if (news != NULL) {
            list_append(&ring->pending.news, &news->node);
            feed->pending_news_size += size;
        } else {
            pending_to_reset(&ring->pending);
        }
        feed_ring_mark_dirty(feed, ring);
    }
    pthread_mutex_unlock(&feed->lock);
}

void feed_event_reset(struct feed *feed, const struct uuid *event_id)
{
    pthread_mutex_lock(&feed->lock);
    struct feed_ring *ring = map_get(&feed->events, event_id);
    if (ring != NULL) {
        pending_to_reset(&ring->pending); /* indexes of the old layout mean nothing now */
        feed_ring_mark_dirty(feed, ring);
    }
    pthread_mutex_unlock(&feed->lock);
}

void feed_stream_id(struct feed *feed, const struct uuid *event_id, char out[64])
{
    /* One sequence numbers all events, and up to `published` nothing of this one is missing. */
    (void)event_id;
    feed_id_format(feed, atomic_load_explicit(&feed->published, memory_order_acquire), out);
}

/* ---- Who subscribes ---- */

/* Under the lock. NULL when memory ends. */
static struct feed_ring *ring_add(struct feed *feed, const struct uuid *id, const struct uuid *org_id,
                                  bool is_user)
{
    struct feed_ring *ring = feed_ring_create(id, org_id, is_user);
    if (ring == NULL)
        return NULL;

    uint64_t number = feed_next_number(feed);
    atomic_init(&ring->floor, number);
    atomic_init(&ring->newest, number);
    if (!feed->flushing) /* otherwise the end of the flush publishes it */
        atomic_store_explicit(&feed->published, number, memory_order_release);

    struct map *map = is_user ? &feed->users : &feed->events;
    if (is_user)
        ring->next_of_id = map_get(map, id);
    map_put(map, id, ring);
    ring->idle_since_us = clock_monotonic_us();
    list_append(&feed->idle, &ring->idle);
    feed->idle_count++;
    return ring;
}

static void ring_join(struct feed *feed, struct feed_ring *ring)
{
    if (ring->reader_count++ == 0) {
        list_remove(&ring->idle);
        feed->idle_count--;
    }
}

static void ring_leave(struct feed *feed, struct feed_ring *ring)
{
    if (--ring->reader_count > 0)
        return;
    ring->idle_since_us = clock_monotonic_us();
    list_append(&feed->idle, &ring->idle);
    if (!ring->is_user)
        feed_ring_mark_dirty(feed, ring); /* lets go of its statistics */
    if (feed->idle_count++ == 0 || feed->idle_count > IDLE_RING_COUNT_MAX)
        pthread_cond_signal(&feed->wake); /* it may be asleep without a timeout */
}

/* Under the lock: where this reader begins, and whether it needs a snapshot for that. */
static void reader_place(struct feed *feed, struct feed_reader *reader, const char *last_event_id)
{
    uint64_t floor = 0;
    if (reader->event != NULL)
        floor = atomic_load(&reader->event->floor);
    if (reader->user != NULL && atomic_load(&reader->user->floor) > floor)
        floor = atomic_load(&reader->user->floor);

    uint64_t number;
    bool known = last_event_id != NULL && feed_id_parse(feed, last_event_id, &number) &&
                 number <= atomic_load(&feed->sequence); /* else ours by its epoch, but never given out */
    if (known && number >= floor) {
        reader->position = number;
        return;
    }
    /* What has a number by now was in the hot tier before, where the snapshot will find it. */
    uint64_t published = atomic_load(&feed->published);
    reader->position = published > floor ? published : floor;
    reader->snapshot_due = true;
}

/* Under the lock: finds or makes the rings; ERR_INTERNAL, and nothing changed but an idle ring, without memory. */
static enum err reader_attach(struct feed *feed, struct feed_reader *reader,
                              const struct feed_subscription *subscription)
{
    static const struct uuid nil;
    if (!uuid_is_nil(&subscription->event_id)) {
        reader->event = map_get(&feed->events, &subscription->event_id);
        if (reader->event == NULL)
            reader->event = ring_add(feed, &subscription->event_id, &nil, false);
        if (reader->event == NULL)
            return ERR_INTERNAL;
    }
    if (!uuid_is_nil(&subscription->user_id)) {
        reader->user = user_ring_find(feed, &subscription->org_id, &subscription->user_id);
        if (reader->user == NULL)
            reader->user = ring_add(feed, &subscription->user_id, &subscription->org_id, true);
        if (reader->user == NULL)
            return ERR_INTERNAL;
    }
    if (reader->event != NULL)
        ring_join(feed, reader->event);
    if (reader->user != NULL)
        ring_join(feed, reader->user);
    feed->reader_count++;
    return ERR_OK;
}

static struct feed_source *source_create(const struct feed_subscription *subscription)
{
    struct feed_source *source = malloc(sizeof *source);
    if (source == NULL)
        return NULL;
    atomic_init(&source->reference_count, 2); /* the reader's, the ring's */
    source->write = subscription->write_occupancy;
    source->read_stats = subscription->read_stats;
    source->release = subscription->release;
    source->context = subscription->event_context;
    return source;
}

enum err feed_subscribe(struct feed *feed, const struct feed_subscription *subscription,
                        struct feed_reader **out)
{
    struct feed_source *source = NULL;
    struct feed_source *source_before = NULL;
    bool is_event = !uuid_is_nil(&subscription->event_id);
    if (!is_event && uuid_is_nil(&subscription->user_id))
        return ERR_INVALID_REQUEST;

    struct feed_reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL)
        goto no_reader;
    source = source_create(subscription);
    if (source == NULL)
        goto no_source;
    reader->feed = feed;
    buf_init(&reader->own);
    buf_printf(&reader->own, "retry: %d\n", STREAM_RETRY_MS);
    reader->last_bytes_us = clock_monotonic_us();

    pthread_mutex_lock(&feed->lock);
    enum err err = reader_attach(feed, reader, subscription);
    if (err == ERR_OK) {
        reader_place(feed, reader, subscription->last_event_id);
        reader->source = source;
        if (is_event) { /* the newest subscription knows the newest layout */
            source_before = reader->event->source;
            reader->event->source = source;
            reader->stats_count = atomic_load(&reader->event->stats_count);
            reader->stats_all_due = true;
            if (source->read_stats != NULL)
                feed_stats_want(feed, reader->event);
        }
    }
    pthread_mutex_unlock(&feed->lock);
    if (err != ERR_OK)
        goto no_ring;

    if (is_event)
        feed_source_release(source_before);
    else
        atomic_fetch_sub_explicit(&source->reference_count, 1, memory_order_relaxed);
    if (!reader->snapshot_due)
        buf_put_char(&reader->own, '\n'); /* ends the block; a snapshot would go on with it */
    *out = reader;
    return ERR_OK;

no_ring:
    buf_deinit(&reader->own);
    free(source);
no_source:
    free(reader);
no_reader:
    return ERR_INTERNAL;
}

void feed_close(void *context)
{
    struct feed_reader *reader = context;
    struct feed *feed = reader->feed;

    pthread_mutex_lock(&feed->lock);
    if (reader->event != NULL)
        ring_leave(feed, reader->event);
    if (reader->user != NULL)
        ring_leave(feed, reader->user);
    feed->reader_count--;
    pthread_mutex_unlock(&feed->lock);

    feed_frame_release(reader->frame);
    feed_source_release(reader->source);
    buf_deinit(&reader->own);
    free(reader);
}
