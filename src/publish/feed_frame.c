/* SPDX-License-Identifier: Apache-2.0
 * The text of server-sent events: frames that many readers share, snapshots
 * for one, and the ids both carry.
 *
 * Invariants:
 *  1. A frame is complete and never changes: id (but for statistics), event, one
 *     data line, a blank line. No line break of ours or of others can stand inside its data.
 *  2. An epoch is made once per start, of the time and of chance, so that an id
 *     of another start is never taken for one of ours.
 *
 * Any thread. Which frames are made when is feed_flush.c's affair. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "publish/feed_int.h"

void feed_epoch_make(int64_t now_ms, char out[EPOCH_SIZE])
{
    uint32_t chance;
    random_secret(&chance, sizeof chance);
    snprintf(out, EPOCH_SIZE, "%" PRIx64 "%08" PRIx32, (uint64_t)now_ms, chance);
}

void feed_id_format(const struct feed *feed, uint64_t number, char out[STREAM_ID_SIZE])
{
    snprintf(out, STREAM_ID_SIZE, "%s-%" PRIu64, feed->epoch, number);
}

bool feed_id_parse(const struct feed *feed, const char *text, uint64_t *number)
{
    size_t epoch_length = strlen(feed->epoch);
    if (strncmp(text, feed->epoch, epoch_length) != 0 || text[epoch_length] != '-')
        return false;

    const char *digits = text + epoch_length + 1;
    size_t digit_count = strspn(digits, "0123456789");
    if (digit_count == 0 || digit_count > 18 || digits[digit_count] != '\0')
        return false;
    *number = strtoull(digits, NULL, 10);
    return true;
}

void feed_frame_acquire(struct feed_frame *frame)
{
    atomic_fetch_add_explicit(&frame->reference_count, 1, memory_order_relaxed);
}

void feed_frame_release(struct feed_frame *frame)
{
    if (frame != NULL && atomic_fetch_sub_explicit(&frame->reference_count, 1, memory_order_acq_rel) == 1)
        free(frame);
}

static struct feed_frame *frame_create(uint64_t number, const struct uuid *event_id, const struct buf *text)
{
    if (!buf_ok(text))
        return NULL;
    struct feed_frame *frame = malloc(sizeof *frame + text->size);
    if (frame == NULL)
        return NULL;
    atomic_init(&frame->reference_count, 1);
    frame->number = number;
    frame->event_id = *event_id;
    frame->size = text->size;
    memcpy(frame->text, text->data, text->size);
    return frame;
}

static void head_write(struct buf *out, const char *id, const char *name)
{
    buf_printf(out, "id: %s\nevent: %s\ndata: ", id, name);
}

struct feed_frame *feed_frame_seats(const struct feed *feed, uint64_t number,
                                    const struct seat_change *changes, size_t count,
                                    const struct buf *occupancy)
{
    static const struct uuid nil;
    char id[STREAM_ID_SIZE];
    struct buf text;
    struct jsonw json;

    feed_id_format(feed, number, id);
    buf_init(&text);
    buf_reserve(&text, 256 + count * 40 + occupancy->size);
    head_write(&text, id, "seats");
    jsonw_begin(&json, &text);
    jsonw_object_open(&json);
    jsonw_key_text(&json, "id", id);
    jsonw_key(&json, "seats");
    jsonw_array_open(&json);
    for (size_t i = 0; i < count; i++) {
        jsonw_array_open(&json);
        jsonw_int(&json, changes[i].index);
        jsonw_text(&json, seat_state_name((enum seat_state)changes[i].state));
        if (changes[i].reason != END_NONE)
            jsonw_text(&json, end_reason_name((enum end_reason)changes[i].reason));
        jsonw_array_close(&json);
    }
    jsonw_array_close(&json);
    jsonw_key(&json, "occupancy");
    jsonw_raw(&json, occupancy->data, occupancy->size);
    jsonw_object_close(&json);
    buf_put_text(&text, "\n\n");

    struct feed_frame *frame = frame_create(number, &nil, &text);
    buf_deinit(&text);
    return frame;
}

struct feed_frame *feed_frame_news(const struct feed *feed, uint64_t number, const struct news *news)
{
    char id[STREAM_ID_SIZE];
    struct buf text;

    feed_id_format(feed, number, id);
    buf_init(&text);
    head_write(&text, id, news->name);
    buf_put(&text, news->data, news->size);
    buf_put_text(&text, "\n\n");

    struct feed_frame *frame = frame_create(number, &news->event_id, &text);
    buf_deinit(&text);
    return frame;
}

static void counts_write(struct jsonw *json, const int32_t counts[SEAT_STATE_COUNT])
{
    for (int32_t state = 0; state < SEAT_STATE_COUNT; state++)
        jsonw_key_int(json, seat_state_name((enum seat_state)state), counts[state]);
}

static void block_write(struct jsonw *json, const struct feed_block *block)
{
    jsonw_object_open(json);
    jsonw_key_text(json, "section", block->section);
    jsonw_key_int(json, "subsection", block->subsection);
    jsonw_key_uuid(json, "block_id", &block->id);
    counts_write(json, block->counts);
    jsonw_object_close(json);
}

struct feed_frame *feed_frame_stats(const struct feed_block *blocks, const bool *listed, int32_t count,
                                    int64_t now_ms)
{
    static const struct uuid nil;
    int32_t sums[SEAT_STATE_COUNT] = {0}, total = 0;
    struct buf text;
    struct jsonw json;

    for (int32_t i = 0; i < count; i++) {
        for (int32_t state = 0; state < SEAT_STATE_COUNT; state++) {
            sums[state] += blocks[i].counts[state];
            total += blocks[i].counts[state];
        }
    }
    buf_init(&text);
    buf_put_text(&text, "event: stats\ndata: "); /* no id: the reader's stays what it is */
    jsonw_begin(&json, &text);
    jsonw_object_open(&json);
    jsonw_key_time(&json, "timestamp", now_ms);
    jsonw_key_bool(&json, "all", listed == NULL);
    jsonw_key(&json, "totals");
    jsonw_object_open(&json);
    counts_write(&json, sums);
    jsonw_key_int(&json, "total", total);
    jsonw_object_close(&json);
    jsonw_key(&json, "blocks");
    jsonw_array_open(&json);
    for (int32_t i = 0; i < count; i++) {
        if (listed == NULL || listed[i])
            block_write(&json, &blocks[i]);
    }
    jsonw_array_close(&json);
    jsonw_object_close(&json);
    buf_put_text(&text, "\n\n");

    struct feed_frame *frame = frame_create(0, &nil, &text);
    buf_deinit(&text);
    return frame;
}

/* "null" where an event brought no writer, so that frames are JSON all the same. */
void feed_occupancy_write(const struct feed_source *source, struct buf *out)
{
    struct jsonw json;
    jsonw_begin(&json, out);
    if (source != NULL && source->write != NULL)
        source->write(source->context, &json);
    else
        jsonw_null(&json);
}

void feed_snapshot_write(const struct feed *feed, uint64_t number, const struct feed_source *source,
                         struct buf *out)
{
    char id[STREAM_ID_SIZE];
    struct jsonw json;

    feed_id_format(feed, number, id);
    head_write(out, id, "snapshot");
    jsonw_begin(&json, out);
    jsonw_object_open(&json);
    jsonw_key_text(&json, "stream_id", id);
    if (source != NULL) {
        jsonw_key(&json, "occupancy");
        feed_occupancy_write(source, out);
    }
    jsonw_object_close(&json);
    buf_put_text(out, "\n\n");
}
