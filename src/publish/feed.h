/* SPDX-License-Identifier: Apache-2.0
 * Live news for streams: what was committed, coalesced into frames, kept in a
 * ring so that a reader who was away can resume.
 *
 * A watched event has a ring of frames, a watching user one of their own news;
 * ids are `{epoch}-{n}`, n rising over all rings, so that a stream of both is
 * in order and one id resumes it. Rings are made by the first subscription and
 * kept for ten minutes after the last reader left.
 * Besides, at most once a second, an event's readers are told its statistics:
 * how many seats of each block are in which state. These have no id and are in
 * no ring: whoever missed some is told all blocks with the next ones.
 * The lane appends; a thread of the feed's own flushes every FRAME_COALESCE_MS;
 * loops read. All functions may be called from any thread, but a reader's are
 * its loop's alone. */
#ifndef HOLDFAST_PUBLISH_FEED_H
#define HOLDFAST_PUBLISH_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/jsonw.h"
#include "base/model.h"

struct feed;
struct feed_reader;

/* on_frames runs after each flush that published something, on the feed's thread. */
enum err feed_create(int64_t coalesce_ms, void (*on_frames)(void *context), void *context,
                     struct feed **out) MUST_CHECK;
void feed_destroy(struct feed *feed); /* all readers are closed; NULL is fine */

/* Writes the value of "occupancy" (an object) for an event. Called on the feed's or a loop's
 * thread; `event_context` must live until its release(). It should look the event's map up when
 * called: after feed_event_reset() it is asked for the new layout's. */
typedef void (*feed_occupancy_writer)(void *event_context, struct jsonw *json);

struct feed_block {
    struct uuid id;
    char section[4];
    int32_t subsection;
    int32_t counts[SEAT_STATE_COUNT];
};
/* Gives the blocks of an event as they are now, in layout order, at most EVENT_BLOCK_COUNT_MAX; how
 * many. Called on the feed's thread, and otherwise as the writer above. */
typedef int32_t (*feed_stats_reader)(void *event_context, struct feed_block *out);

/* Committed changes, already to be seen in the hot tier. `reason` END_NONE unless the seat was released. */
void feed_seat(struct feed *feed, const struct uuid *event_id, int32_t index, enum seat_state state,
               enum end_reason reason);
/* News for one user: `name` is the SSE event, `data` a JSON object. event_id may be nil. */
void feed_news(struct feed *feed, const struct uuid *org_id, const struct uuid *user_id,
               const struct uuid *event_id, const char *name, const char *data, size_t size);
/* The event's layout was replaced: every reader gets a new snapshot. */
void feed_event_reset(struct feed *feed, const struct uuid *event_id);

/* `{epoch}-{n}`: up to here every frame of the event is published. What is read of the event after
 * this call is at least as new. */
void feed_stream_id(struct feed *feed, const struct uuid *event_id, char out[64]);

struct feed_subscription {
    struct uuid org_id;
    struct uuid event_id;                  /* nil: the user's news alone */
    struct uuid user_id;                   /* nil: no news of one's own */
    const char *last_event_id;             /* as the client sent it, or NULL */
    feed_occupancy_writer write_occupancy; /* event streams */
    feed_stats_reader read_stats;          /* the same, or NULL: no statistics */
    void (*release)(void *event_context);  /* exactly once, some time after the reader closed; or NULL */
    void *event_context;                   /* shares: frames may be written with it when its reader is gone */
};
/* Copies what it needs. An error means that nothing was taken and release() never runs. */
enum err feed_subscribe(struct feed *feed, const struct feed_subscription *subscription,
                        struct feed_reader **out) MUST_CHECK;
/* For http_stream: */
int64_t feed_read(void *reader, char *out, size_t size); /* −1: fell behind, dropped */
bool feed_ready(void *reader);
void feed_close(void *reader);

#endif
