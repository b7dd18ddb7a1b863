/* SPDX-License-Identifier: Apache-2.0
 * Nothing in the feed grows without end: rings, what is pending, slow readers,
 * rings nobody reads. */
#include "watch.h"

#include "base/metrics.h"

static int setup(void **state)
{
    struct feed *feed = NULL;
    assert_int_equal(feed_create(2, NULL, NULL, &feed), ERR_OK);
    *state = feed;
    return 0;
}

static int teardown(void **state)
{
    feed_destroy(*state);
    return 0;
}

/* All seats of a large event at once: 100,000 changes in one window. */
static void change_everything(struct feed *feed, enum seat_state seat_state, enum end_reason reason)
{
    for (int i = 0; i < EVENT_SEAT_COUNT_MAX; i++)
        feed_seat(feed, &event, i, seat_state, reason);
}

static void test_hundred_thousand_seats_at_once_reach_a_reader_that_keeps_up(void **state)
{
    struct feed *feed = *state;
    struct watch watch;
    watch_open(&watch, feed, &event, &nobody, NULL);
    change_everything(feed, SEAT_AVAILABLE, END_TTL_EXPIRED);
    watch_until(&watch, "[99999,");
    assert_false(watch.ended);
    assert_int_equal(watch_count(&watch, "\"ttl_expired\""), EVENT_SEAT_COUNT_MAX);
    assert_true(watch_count(&watch, "event: seats") >= EVENT_SEAT_COUNT_MAX / FRAME_SEAT_COUNT_MAX);
    watch_close(&watch);
}

static void test_slow_reader_is_dropped_and_counted_once(void **state)
{
    struct feed *feed = *state;
    struct watch slow, late;
    char bytes[64];
    uint64_t dropped_before = counter_get(COUNTER_STREAM_DROPPED);
    watch_open(&slow, feed, &event, &nobody, NULL);
    watch_take(&slow);
    for (int i = 0; i < 3; i++) { /* three times what a ring has room for, nearly */
        change_everything(feed, i % 2 ? SEAT_HELD : SEAT_AVAILABLE, i % 2 ? END_NONE : END_TTL_EXPIRED);
        feed_settle(feed);
    }
    assert_true(feed_ready(slow.reader));
    assert_int_equal(feed_read(slow.reader, bytes, sizeof bytes), -1);
    assert_int_equal(feed_read(slow.reader, bytes, sizeof bytes), -1);
    assert_int_equal(counter_get(COUNTER_STREAM_DROPPED) - dropped_before, 1);

    struct feed_ring *ring = map_get(&feed->events, &event);
    assert_true(ring->size <= FRAME_RING_SIZE_MAX);
    watch_open(&late, feed, &event, &nobody, NULL); /* others are not disturbed */
    watch_take(&late);
    assert_false(late.ended);
    watch_close(&slow);
    watch_close(&late);
}

static void test_frame_being_sent_survives_its_ring(void **state)
{
    struct feed *feed = *state;
    struct watch slow;
    char bytes[100];
    watch_open(&slow, feed, &event, &nobody, NULL);
    watch_take(&slow);
    buf_clear(&slow.text);
    feed_seat(feed, &event, 11, SEAT_SOLD, END_NONE);
    feed_settle(feed);
    int64_t size = feed_read(slow.reader, bytes, 10); /* the frame has begun */
    assert_int_equal(size, 10);
    buf_put(&slow.text, bytes, 10);
    for (int i = 0; i < 3; i++) {
        change_everything(feed, SEAT_HELD, END_NONE);
        feed_settle(feed);
    }
    watch_take(&slow);
    assert_true(watch_has(&slow, "[11,\"sold\"]],\"occupancy\":{\"held\":0}}\n\n"));
    assert_true(slow.ended); /* and only then it is dropped */
    watch_close(&slow);
}

static void test_one_users_flood_of_news_stays_within_its_ring(void **state)
{
    struct feed *feed = *state;
    struct watch quiet, flooded;
    char data[1024];
    memset(data, 'x', sizeof data);
    watch_open(&flooded, feed, &event, &alice, NULL);
    watch_open(&quiet, feed, &event, &bob, NULL);
    watch_take(&flooded);
    for (int i = 0; i < 5000; i++)
        feed_news(feed, &org, &alice, &event, "hold_released", data, sizeof data);
    feed_seat(feed, &event, 1, SEAT_HELD, END_NONE);
    feed_settle(feed);
    struct feed_ring *ring = map_get(&feed->users, &alice);
    assert_true(ring->size <= USER_RING_SIZE_MAX);
    watch_take(&flooded);
    assert_true(flooded.ended);
    watch_until(&quiet, "[1,");
    assert_false(quiet.ended);
    watch_close(&flooded);
    watch_close(&quiet);
}

static void test_too_much_pending_becomes_a_snapshot(void **state)
{
    (void)state;
    struct feed *feed = NULL;
    struct watch watch;
    struct feed_times times = {.coalesce_ms = 300, .heartbeat_ms = 60000, .idle_ms = 60000};
    assert_int_equal(feed_create_with(&times, NULL, NULL, &feed), ERR_OK);
    watch_open(&watch, feed, &event, &nobody, NULL);
    watch_take(&watch);
    pthread_mutex_lock(&feed->lock); /* a flush that does not come */
    feed->times.coalesce_ms = 60000;
    pthread_mutex_unlock(&feed->lock);
    for (int i = 0; i < PENDING_SEAT_COUNT_MAX + 10; i++)
        feed_seat(feed, &event, i % 1000, SEAT_HELD, END_NONE);
    pthread_mutex_lock(&feed->lock);
    struct feed_ring *ring = map_get(&feed->events, &event);
    assert_true(ring->pending.reset);
    assert_true(ring->pending.change_count < 100);
    feed->times.coalesce_ms = 0;
    pthread_cond_signal(&feed->wake);
    pthread_mutex_unlock(&feed->lock);
    watch_until(&watch, "event: seats");
    assert_int_equal(watch_count(&watch, "event: snapshot"), 2);
    watch_close(&watch);
    feed_destroy(feed);
}

static size_t ring_count(struct feed *feed)
{
    pthread_mutex_lock(&feed->lock);
    size_t count = feed->events.count + feed->users.count;
    pthread_mutex_unlock(&feed->lock);
    return count;
}

static void test_rings_without_readers_end_and_release_their_source(void **state)
{
    (void)state;
    struct feed *feed = NULL;
    static struct counted counted;
    struct watch watch, foreign;
    char id[STREAM_ID_SIZE];
    struct feed_times times = {.coalesce_ms = 2, .heartbeat_ms = 60000, .idle_ms = 30};
    assert_int_equal(feed_create_with(&times, NULL, NULL, &feed), ERR_OK);
    watch_open_with(&watch, feed, &event, &org, &alice, NULL, &counted);
    watch_open_with(&foreign, feed, &event, &other_org, &alice, NULL, &counted);
    feed_seat(feed, &event, 1, SEAT_HELD, END_NONE);
    watch_until(&watch, "[1,");
    watch_last_id(&watch, id);
    pause_ms(60);
    assert_int_equal(ring_count(feed), 2); /* read, so kept: an event, and one id of two users */
    watch_close(&watch);
    watch_close(&foreign);

    int64_t end_us = clock_monotonic_us() + WATCH_MS_MAX * 1000;
    while (ring_count(feed) > 0 && clock_monotonic_us() < end_us) {
        feed_seat(feed, &event, 2, SEAT_HELD, END_NONE); /* a busy event is idle all the same */
        pause_ms(1);
    }
    assert_int_equal(ring_count(feed), 0);
    while (atomic_load(&counted.released) < 2 && clock_monotonic_us() < end_us)
        pause_ms(1);
    assert_int_equal(atomic_load(&counted.released), 2);
    assert_int_equal(atomic_load(&feed->frames_size), 0);

    watch_open(&watch, feed, &event, &alice, id);
    watch_take(&watch);
    assert_true(watch_has(&watch, "event: snapshot"));
    watch_close(&watch);
    feed_destroy(feed);
}

static void test_every_source_is_released_exactly_once(void **state)
{
    (void)state;
    struct feed *feed = NULL;
    static struct counted counted;
    struct watch watches[20];
    assert_int_equal(feed_create(2, NULL, NULL, &feed), ERR_OK);
    for (size_t i = 0; i < COUNT_OF(watches); i++)
        watch_open_with(&watches[i], feed, i % 2 ? &event : &nobody, &org, &alice, NULL, &counted);
    for (size_t i = 0; i < COUNT_OF(watches); i++)
        watch_close(&watches[i]);
    feed_destroy(feed);
    assert_int_equal(atomic_load(&counted.released), COUNT_OF(watches));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_hundred_thousand_seats_at_once_reach_a_reader_that_keeps_up,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_slow_reader_is_dropped_and_counted_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_frame_being_sent_survives_its_ring, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_users_flood_of_news_stays_within_its_ring, setup, teardown),
        cmocka_unit_test(test_too_much_pending_becomes_a_snapshot),
        cmocka_unit_test(test_rings_without_readers_end_and_release_their_source),
        cmocka_unit_test(test_every_source_is_released_exactly_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
