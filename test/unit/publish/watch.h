/* SPDX-License-Identifier: Apache-2.0
 * A stream read by hand, for the tests of the feed: it keeps every byte it got. */
#ifndef HOLDFAST_TEST_PUBLISH_WATCH_H
#define HOLDFAST_TEST_PUBLISH_WATCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "publish/feed_int.h"

enum { WATCH_MS_MAX = 10000 };

static const struct uuid org = {{0x0A}};
static const struct uuid other_org = {{0x0B}};
static const struct uuid event = {{0xE1}};
static const struct uuid other_event = {{0xE2}};
static const struct uuid alice = {{0xA1}};
static const struct uuid bob = {{0xB0}};
static const struct uuid nobody;

struct watch {
    struct feed_reader *reader;
    struct buf text;
    bool ended; /* feed_read said −1 */
};

/* The occupancy of these tests: a number that the test sets. */
struct counted {
    _Atomic int held;
    _Atomic int released;
};

static inline void counted_write(void *context, struct jsonw *json)
{
    struct counted *counted = context;
    jsonw_object_open(json);
    jsonw_key_int(json, "held", counted != NULL ? atomic_load(&counted->held) : 0);
    jsonw_object_close(json);
}

static inline void counted_release(void *context)
{
    struct counted *counted = context;
    if (counted != NULL)
        atomic_fetch_add(&counted->released, 1);
}

static inline void watch_open_with(struct watch *watch, struct feed *feed, const struct uuid *event_id,
                                   const struct uuid *org_id, const struct uuid *user_id,
                                   const char *last_event_id, struct counted *counted)
{
    struct feed_subscription subscription = {
        .org_id = *org_id,
        .event_id = *event_id,
        .user_id = *user_id,
        .last_event_id = last_event_id,
        .write_occupancy = counted_write,
        .release = counted_release,
        .event_context = counted,
    };
    buf_init(&watch->text);
    watch->ended = false;
    assert_int_equal(feed_subscribe(feed, &subscription, &watch->reader), ERR_OK);
}

static inline void watch_open(struct watch *watch, struct feed *feed, const struct uuid *event_id,
                              const struct uuid *user_id, const char *last_event_id)
{
    watch_open_with(watch, feed, event_id, &org, user_id, last_event_id, NULL);
}

static inline void watch_close(struct watch *watch)
{
    feed_close(watch->reader);
    buf_deinit(&watch->text);
}

/* Takes what is there now. Ready and read must agree. */
static inline void watch_take(struct watch *watch)
{
    char bytes[700]; /* small, so that frames are cut */
    while (!watch->ended && feed_ready(watch->reader)) {
        int64_t size = feed_read(watch->reader, bytes, sizeof bytes);
        assert_int_not_equal(size, 0);
        if (size < 0)
            watch->ended = true;
        else
            buf_put(&watch->text, bytes, (size_t)size);
    }
}

static inline void pause_ms(int64_t ms)
{
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

/* Reads until `word` was seen or the stream ended; fails after WATCH_MS_MAX. */
static inline void watch_until(struct watch *watch, const char *word)
{
    int64_t end_us = clock_monotonic_us() + WATCH_MS_MAX * 1000;
    for (;;) {
        watch_take(watch);
        if (strstr(buf_text(&watch->text), word) != NULL || watch->ended)
            return;
        if (clock_monotonic_us() > end_us)
            fail_msg("no %s in: %s", word, buf_text(&watch->text));
        pause_ms(1);
    }
}

static inline bool watch_has(struct watch *watch, const char *word)
{
    return strstr(buf_text(&watch->text), word) != NULL;
}

/* By hand: a sanitizer's strstr() and memmem() look at the whole rest for every hit. */
static inline int watch_count(struct watch *watch, const char *word)
{
    int count = 0;
    size_t length = strlen(word);
    for (size_t i = 0; i + length <= watch->text.size; i++)
        count += watch->text.data[i] == word[0] && memcmp(watch->text.data + i, word, length) == 0;
    return count;
}

/* The id of the last frame that was read. */
static inline void watch_last_id(struct watch *watch, char out[STREAM_ID_SIZE])
{
    const char *last = NULL;
    for (const char *at = buf_text(&watch->text); (at = strstr(at, "id: ")) != NULL; at++) {
        if (at == buf_text(&watch->text) || at[-1] == '\n')
            last = at + 4;
    }
    assert_non_null(last);
    size_t length = strcspn(last, "\n");
    assert_true(length < STREAM_ID_SIZE);
    memcpy(out, last, length);
    out[length] = '\0';
}

static inline void tell(struct feed *feed, const struct uuid *user_id, const struct uuid *event_id,
                        const char *name, const char *data)
{
    feed_news(feed, &org, user_id, event_id, name, data, strlen(data));
}

/* Waits until everything told so far is published: a frame of an event of its own comes last. */
static inline void feed_settle(struct feed *feed)
{
    static const struct uuid marker = {{0xFF}};
    struct watch watch;
    watch_open(&watch, feed, &marker, &nobody, NULL);
    feed_seat(feed, &marker, 1, SEAT_SOLD, END_NONE);
    watch_until(&watch, "event: seats");
    watch_close(&watch);
}

#endif
