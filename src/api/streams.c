/* SPDX-License-Identifier: Apache-2.0
 * Server-sent events: an event's seats with the caller's own news, or those
 * news alone.
 *
 * Invariants: (0) a stream ends with its token, and with its user's standing.
 * (1) a stream looks its event's seat map up each time it writes
 * occupancy or statistics, so that it survives a new layout. (2) News goes to the user whose
 * token opened the stream and to nobody else.
 *
 * Opened on a loop's thread; read there too; occupancy may be written on the
 * feed's, where statistics are read. Frames, rings and resuming are publish/feed.c's. */
#include "api/api_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

struct api_stream { /* a reader, for as long as its token is good */
    struct feed_reader *reader;
    struct directory *directory;
    struct uuid org_id; /* the token's own; nil: an operator without one */
    struct uuid user_id;
    int64_t expires_ms;
};

static bool stream_is_over(const struct api_stream *stream)
{
    if (clock_now_ms() >= stream->expires_ms)
        return true;
    return directory_user(stream->directory, &stream->org_id, &stream->user_id) == USER_DISABLED;
}

static int64_t stream_read(void *context, char *out, size_t size)
{
    struct api_stream *stream = context;
    return stream_is_over(stream) ? -1 : feed_read(stream->reader, out, size);
}

static bool stream_ready(void *context)
{
    struct api_stream *stream = context;
    return feed_ready(stream->reader) || stream_is_over(stream);
}

static void stream_close(void *context)
{
    struct api_stream *stream = context;
    feed_close(stream->reader);
    free(stream);
}

struct stream_event { /* owned by the reader: freed when it closes */
    struct directory *directory;
    struct uuid org_id;
    struct uuid event_id;
};

static void write_stream_occupancy(void *context, struct jsonw *json)
{
    struct stream_event *stream = context;
    struct arena arena;
    struct event_view event = {0};
    arena_init(&arena);
    if (directory_event(stream->directory, &stream->org_id, &stream->event_id, &arena, &event) &&
        event.map != NULL) {
        seatmap_write_occupancy(event.map, clock_now_ms(), false, json);
    } else {
        jsonw_object_open(json);
        jsonw_object_close(json);
    }
    seatmap_release(event.map);
    arena_deinit(&arena);
}

static int32_t read_stream_stats(void *context, struct feed_block *out)
{
    struct stream_event *stream = context;
    struct arena arena;
    struct event_view event = {0};
    int32_t count = 0;
    arena_init(&arena);
    if (directory_event(stream->directory, &stream->org_id, &stream->event_id, &arena, &event) &&
        event.map != NULL) {
        const struct layout *layout = event.map->layout;
        for (; count < layout->block_count; count++) {
            out[count].id = event.map->blocks[count].id;
            memcpy(out[count].section, layout->blocks[count].section, sizeof out[count].section);
            out[count].subsection = layout->blocks[count].subsection;
            seatmap_block_counts(event.map, count, out[count].counts);
        }
    }
    seatmap_release(event.map);
    arena_deinit(&arena);
    return count;
}

static void stream_event_release(void *context)
{
    free(context);
}

/* A browser's EventSource cannot set the header on its first connection: the query may. */
static const char *last_event_id(struct http_request *request)
{
    const char *id = http_header(request, "Last-Event-ID");
    return id != NULL ? id : http_query(request, "last_event_id");
}

static void open_stream(struct api_call *call, const struct feed_subscription *subscription)
{
    struct api_stream *own = calloc(1, sizeof *own);
    enum err err =
        own != NULL ? feed_subscribe(call->api->config.feed, subscription, &own->reader) : ERR_OVERLOADED;
    if (err != ERR_OK) {
        if (subscription->release != NULL)
            subscription->release(subscription->event_context);
        free(own);
        api_fail(call, err);
        return;
    }
    own->directory = call->api->config.directory;
    own->org_id = call->token_org_id;
    own->user_id = call->actor.user_id;
    own->expires_ms = call->token_expires_ms;
    struct http_stream stream = {
        .read = stream_read, .ready = stream_ready, .close = stream_close, .context = own};
    http_reply_stream(call->http, &stream);
}

void api_event_stream(struct http_request *request)
{
    struct api_call *call = api_call(request);
    struct event_view event;
    if (!api_path_event(call, &event))
        return;
    seatmap_release(event.map);
    struct stream_event *stream = calloc(1, sizeof *stream);
    if (stream == NULL) {
        api_fail(call, ERR_OVERLOADED);
        return;
    }
    *stream = (struct stream_event){call->api->config.directory, call->actor.org_id, event.row.id};
    open_stream(call, &(struct feed_subscription){
                          .org_id = call->actor.org_id,
                          .event_id = event.row.id,
                          .user_id = call->actor.user_id,
                          .last_event_id = last_event_id(request),
                          .write_occupancy = write_stream_occupancy,
                          .read_stats = read_stream_stats,
                          .release = stream_event_release,
                          .event_context = stream,
                      });
}

void api_user_stream(struct http_request *request)
{
    struct api_call *call = api_call(request);
    open_stream(call, &(struct feed_subscription){
                          .org_id = call->actor.org_id,
                          .user_id = call->actor.user_id,
                          .last_event_id = last_event_id(request),
                      });
}
