/* SPDX-License-Identifier: Apache-2.0
 * One lane that tells, several loops that read, come and go: every reader ends
 * with the state the lane left, whether it read all along, resumed or began
 * again from a snapshot. Meant to be run under ThreadSanitizer too. */
#include "watch.h"

#include <pthread.h>
#include <stdio.h>

enum { SEAT_COUNT = 300, ROUND_COUNT = 400, LOOP_COUNT = 3, STATE_UNKNOWN = 255 };

/* The hot tier of this test: written before the feed is told, as the lane does. */
struct hall {
    struct feed *feed;
    _Atomic uint8_t states[SEAT_COUNT];
    _Atomic bool finished;
    _Atomic int failure_count;
};

static void hall_write(void *context, struct jsonw *json)
{
    (void)context;
    jsonw_object_open(json);
    jsonw_object_close(json);
}

static void *lane_run(void *context)
{
    struct hall *hall = context;
    uint32_t chance = 12345;
    for (int round = 0; round < ROUND_COUNT; round++) {
        for (int i = 0; i < 50; i++) {
            chance = chance * 1664525 + 1013904223;
            int32_t index = (int32_t)(chance >> 8) % SEAT_COUNT;
            enum seat_state seat_state = (chance >> 4) % SEAT_STATE_COUNT;
            atomic_store(&hall->states[index], (uint8_t)seat_state);
            feed_seat(hall->feed, &event, index, seat_state,
                      seat_state == SEAT_AVAILABLE ? END_TTL_EXPIRED : END_NONE);
        }
        feed_news(hall->feed, &org, &alice, &event, "hold_expiring", "{}", 2);
        if (round % 100 == 50)
            feed_event_reset(hall->feed, &event);
        pause_ms(1);
    }
    atomic_store(&hall->states[0], SEAT_SOLD); /* the last word */
    feed_seat(hall->feed, &event, 0, SEAT_SOLD, END_NONE);
    feed_settle(hall->feed);
    atomic_store(&hall->finished, true);
    return NULL;
}

/* A client's picture of the hall. */
struct picture {
    uint8_t states[SEAT_COUNT];
    char last_id[STREAM_ID_SIZE];
    uint64_t number;
};

/* What a client does at a snapshot: read the states, which are at least as new as the id. */
static void picture_begin(struct picture *picture, struct hall *hall)
{
    for (int i = 0; i < SEAT_COUNT; i++)
        picture->states[i] = atomic_load(&hall->states[i]);
}

static void picture_apply(struct picture *picture, struct hall *hall, const char *frame)
{
    const char *id = strstr(frame, "id: ");
    if (id == NULL)
        return; /* retry or heartbeat */
    snprintf(picture->last_id, sizeof picture->last_id, "%.*s", (int)strcspn(id + 4, "\n"), id + 4);
    uint64_t number = strtoull(strchr(picture->last_id, '-') + 1, NULL, 10);
    if (number < picture->number)
        atomic_fetch_add(&hall->failure_count, 1);
    picture->number = number;
    if (strstr(frame, "event: snapshot") != NULL)
        picture_begin(picture, hall);
    const char *seats = strstr(frame, "\"seats\":[");
    if (seats == NULL)
        return;
    for (const char *at = seats + 9; *at == '[' || *at == ','; at = strchr(at, ']') + 1) {
        at += *at == ',';
        long index = strtol(at + 1, NULL, 10);
        const char *name = strchr(at, '"') + 1;
        for (int value = 0; value < SEAT_STATE_COUNT; value++) {
            if (strncmp(name, seat_state_name(value), strlen(seat_state_name(value))) == 0)
                picture->states[index] = (uint8_t)value;
        }
    }
}

/* Applies the complete frames of `text` and keeps the rest. */
static void picture_feed(struct picture *picture, struct hall *hall, struct buf *text)
{
    const char *start = buf_text(text);
    const char *end;
    while ((end = strstr(start, "\n\n")) != NULL) {
        char *frame = strndup(start, (size_t)(end - start));
        picture_apply(picture, hall, frame);
        free(frame);
        start = end + 2;
    }
    size_t left = text->size - (size_t)(start - text->data);
    memmove(text->data, start, left);
    text->size = left;
}

static struct feed_reader *open_reader(struct hall *hall, const char *last_event_id)
{
    struct feed_subscription subscription = {.org_id = org,
                                             .event_id = event,
                                             .user_id = alice,
                                             .last_event_id = last_event_id,
                                             .write_occupancy = hall_write};
    struct feed_reader *reader = NULL;
    if (feed_subscribe(hall->feed, &subscription, &reader) != ERR_OK)
        atomic_fetch_add(&hall->failure_count, 1);
    return reader;
}

static void *loop_run(void *context)
{
    struct hall *hall = context;
    struct picture picture = {0};
    struct buf text;
    char bytes[997];
    buf_init(&text);
    memset(picture.states, STATE_UNKNOWN, sizeof picture.states);
    struct feed_reader *reader = open_reader(hall, NULL);
    for (int turn = 1;; turn++) {
        bool finished = atomic_load(&hall->finished); /* before the last reading */
        int64_t size = 0;
        while (feed_ready(reader) && (size = feed_read(reader, bytes, sizeof bytes)) > 0) {
            buf_put(&text, bytes, (size_t)size);
            picture_feed(&picture, hall, &text);
        }
        if (finished)
            break;
        if (size < 0 || turn % 40 == 0) { /* away for a moment, in the middle of anything */
            feed_close(reader);
            buf_clear(&text);
            reader = open_reader(hall, picture.last_id);
        }
        pause_ms(1);
    }
    feed_close(reader);
    buf_deinit(&text);
    for (int i = 0; i < SEAT_COUNT; i++) {
        if (picture.states[i] != atomic_load(&hall->states[i]))
            atomic_fetch_add(&hall->failure_count, 1);
    }
    return NULL;
}

static _Atomic int wake_count;

static void on_frames(void *context)
{
    (void)context;
    atomic_fetch_add(&wake_count, 1);
}

static void test_every_reader_ends_with_the_lanes_state(void **state)
{
    (void)state;
    struct hall hall = {0};
    pthread_t lane, loops[LOOP_COUNT];
    struct feed_times times = {.coalesce_ms = 2, .heartbeat_ms = 20, .idle_ms = 5};
    assert_int_equal(feed_create_with(&times, on_frames, NULL, &hall.feed), ERR_OK);
    assert_int_equal(pthread_create(&lane, NULL, lane_run, &hall), 0);
    for (int i = 0; i < LOOP_COUNT; i++)
        assert_int_equal(pthread_create(&loops[i], NULL, loop_run, &hall), 0);
    pthread_join(lane, NULL);
    for (int i = 0; i < LOOP_COUNT; i++)
        pthread_join(loops[i], NULL);
    feed_destroy(hall.feed);
    assert_int_equal(atomic_load(&hall.failure_count), 0);
    assert_true(atomic_load(&wake_count) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_reader_ends_with_the_lanes_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
