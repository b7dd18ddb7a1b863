/* SPDX-License-Identifier: Apache-2.0
 * One open stream: what its reader gets next, byte by byte.
 *
 *   snapshot due ─▶ frames, in order of number ─┬─▶ fell behind: dropped
 *        ▲                │      ▲              │
 *        └── ring reset ──┘      └── heartbeat after 15 s of silence
 *
 * Invariants:
 *  1. `position` only rises. Everything of both rings up to it was given, or is
 *     in the snapshot, or is not for this reader.
 *  2. A snapshot's id is taken before its occupancy is written, so that what it
 *     shows is never older than its id. News are in no snapshot: those after its
 *     id, and those before a reset, are still told.
 *  3. A frame is sent whole before the next begins; a reference keeps it when
 *     its ring has moved on.
 *  4. A reader before a ring's floor is dropped, never waited for.
 *  5. Statistics come when no frame waits, and nothing is kept of them for a
 *     reader who is late: they bring nobody nearer to being dropped.
 *
 * A reader belongs to the loop that serves its connection. Subscribing and
 * closing are in feed.c. */
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "publish/feed_int.h"

static uint64_t number_of(const _Atomic uint64_t *number)
{
    return atomic_load_explicit(number, memory_order_acquire);
}

/* Cheap: two or three loads, no lock. */
static bool reader_lags(const struct feed_reader *reader)
{
    if (reader->event != NULL && number_of(&reader->event->newest) > reader->position)
        return true;
    return reader->user != NULL && number_of(&reader->user->newest) > reader->position;
}

static void position_raise(struct feed_reader *reader, uint64_t number)
{
    if (number > reader->position)
        reader->position = number;
}

static void snapshot_write(struct feed_reader *reader)
{
    feed_snapshot_write(reader->feed, reader->position, reader->event != NULL ? reader->source : NULL,
                        &reader->own);
    reader->snapshot_due = false;
}

/* After a ring began anew: whatever it forgot was in the hot tier before it had a number. */
static void snapshot_again(struct feed_reader *reader)
{
    if (reader->event != NULL)
        position_raise(reader, number_of(&reader->event->floor));
    if (reader->user != NULL)
        position_raise(reader, number_of(&reader->user->floor));
    snapshot_write(reader);
}

static void reader_drop(struct feed_reader *reader)
{
    if (reader->dropped)
        return;
    reader->dropped = true;
    counter_add(COUNTER_STREAM_DROPPED, 1);
}

/* Looks into both rings for the lowest number that is for us. */
static void reader_advance(struct feed_reader *reader)
{
    uint64_t limit = number_of(&reader->feed->published);
    struct feed_frame *seats = NULL;
    struct feed_frame *news = NULL;
    enum ring_peek event_peek = PEEK_NOTHING;
    enum ring_peek user_peek = PEEK_NOTHING;

    if (reader->event != NULL)
        event_peek = feed_ring_peek(reader->event, reader->position, limit, NULL, &seats);
    if (reader->user != NULL) /* a stream of an event has only the news about it */
        user_peek = feed_ring_peek(reader->user, reader->position, limit,
                                   reader->event != NULL ? &reader->event->id : NULL, &news);

    if (event_peek == PEEK_BEHIND || user_peek == PEEK_BEHIND) {
        reader_drop(reader);
    } else if (event_peek == PEEK_RESET && user_peek == PEEK_FRAME &&
               news->number < number_of(&reader->event->floor)) {
        reader->frame = news; /* no snapshot tells it again */
        news = NULL;
    } else if (event_peek == PEEK_RESET || user_peek == PEEK_RESET) {
        snapshot_again(reader);
    } else if (event_peek == PEEK_FRAME && (user_peek != PEEK_FRAME || seats->number < news->number)) {
        reader->frame = seats;
        seats = NULL;
    } else if (user_peek == PEEK_FRAME) {
        reader->frame = news;
        news = NULL;
    } else {
        position_raise(reader, limit);
    }
    if (reader->frame != NULL)
        position_raise(reader, reader->frame->number);
    feed_frame_release(seats);
    feed_frame_release(news);
}

static bool reader_has_bytes(const struct feed_reader *reader)
{
    return reader->own_sent < reader->own.size || reader->frame != NULL;
}

/* Sees to it that there are bytes to send, if there is anything to say; false if not. */
static bool reader_prepare(struct feed_reader *reader)
{
    if (reader->snapshot_due)
        snapshot_write(reader);
    if (!reader_has_bytes(reader) && !reader->dropped && reader_lags(reader))
        reader_advance(reader);
    if (!reader_has_bytes(reader) && !reader->dropped && feed_stats_are_new(reader))
        reader->frame = feed_stats_next(reader);
    if (!reader_has_bytes(reader) && !reader->dropped &&
        clock_monotonic_us() - reader->last_bytes_us >= reader->feed->times.heartbeat_ms * 1000)
        buf_put_text(&reader->own, ": heartbeat\n\n");
    if (!buf_ok(&reader->own))
        reader_drop(reader); /* no memory for its snapshot: let it come again */
    return reader->dropped || reader_has_bytes(reader);
}

bool feed_ready(void *context)
{
    return reader_prepare(context);
}

/* Copies what fits of the text being sent, and lets go of it when it is through. */
static size_t bytes_take(struct feed_reader *reader, char *out, size_t size)
{
    if (reader->own_sent < reader->own.size) {
        size_t left = reader->own.size - reader->own_sent;
        size_t part = left < size ? left : size;
        memcpy(out, reader->own.data + reader->own_sent, part);
        reader->own_sent += part;
        if (part == left) {
            buf_deinit(&reader->own); /* thousands of readers: no buffer between snapshots */
            buf_init(&reader->own);
            reader->own_sent = 0;
        }
        return part;
    }
    struct feed_frame *frame = reader->frame;
    size_t left = frame->size - reader->frame_sent;
    size_t part = left < size ? left : size;
    memcpy(out, frame->text + reader->frame_sent, part);
    reader->frame_sent += part;
    if (part == left) {
        feed_frame_release(frame);
        reader->frame = NULL;
        reader->frame_sent = 0;
    }
    return part;
}

int64_t feed_read(void *context, char *out, size_t size)
{
    struct feed_reader *reader = context;
    size_t written = 0;

    while (written < size && reader_prepare(reader)) {
        if (reader->dropped)
            break;
        written += bytes_take(reader, out + written, size - written);
        reader->last_bytes_us = clock_monotonic_us();
    }
    if (written == 0 && reader->dropped)
        return -1;
    return (int64_t)written;
}
