/* SPDX-License-Identifier: Apache-2.0
 * What a stream says: snapshots, coalesced seats, one's own news, heartbeats. */
#include "watch.h"

#include <stdio.h>

#include "base/metrics.h"

static _Atomic int flush_count;

static void on_frames(void *context)
{
    (void)context;
    atomic_fetch_add(&flush_count, 1);
}

static int setup(void **state)
{
    struct feed *feed = NULL;
    atomic_store(&flush_count, 0);
    assert_int_equal(feed_create(20, on_frames, NULL, &feed), ERR_OK);
    *state = feed;
    return 0;
}

static int teardown(void **state)
{
    feed_destroy(*state);
    return 0;
}

static void test_stream_begins_with_retry_and_a_snapshot(void **state)
{
    struct feed *feed = *state;
    static struct counted counted = {.held = 7};
    struct watch watch;
    char id[STREAM_ID_SIZE], expected[512];
    watch_open_with(&watch, feed, &event, &org, &nobody, NULL, &counted);
    watch_take(&watch);
    watch_last_id(&watch, id);
    snprintf(
        expected, sizeof expected,
        "retry: 2000\nid: %s\nevent: snapshot\ndata: {\"stream_id\":\"%s\",\"occupancy\":{\"held\":7}}\n\n",
        id, id);
    assert_string_equal(buf_text(&watch.text), expected);
    feed_stream_id(feed, &event, expected);
    assert_string_equal(expected, id);
    watch_close(&watch);
}

static void test_user_stream_begins_with_a_snapshot_of_its_id(void **state)
{
    struct watch watch;
    watch_open(&watch, *state, &nobody, &alice, NULL);
    watch_take(&watch);
    assert_true(watch_has(&watch, "event: snapshot\ndata: {\"stream_id\":\""));
    assert_false(watch_has(&watch, "occupancy"));
    watch_close(&watch);
}

static void test_seats_frame_has_id_seats_and_occupancy(void **state)
{
    struct feed *feed = *state;
    static struct counted counted = {.held = 1};
    struct watch watch;
    char id[STREAM_ID_SIZE], expected[512];
    watch_open_with(&watch, feed, &event, &org, &nobody, NULL, &counted);
    watch_take(&watch);
    buf_clear(&watch.text);
    atomic_store(&counted.held, 2);
    feed_seat(feed, &event, 4, SEAT_HELD, END_NONE);
    feed_seat(feed, &event, 99999, SEAT_AVAILABLE, END_TTL_EXPIRED);
    watch_until(&watch, "event: seats");
    watch_last_id(&watch, id);
    snprintf(expected, sizeof expected,
             "id: %s\nevent: seats\ndata: "
             "{\"id\":\"%s\",\"seats\":[[4,\"held\"],[99999,\"available\",\"ttl_expired\"]],"
             "\"occupancy\":{\"held\":2}}\n\n",
             id, id);
    assert_string_equal(buf_text(&watch.text), expected);
    watch_close(&watch);
}

static void test_seat_that_changed_often_appears_once_with_its_last_state(void **state)
{
    struct feed *feed = *state;
    struct watch watch;
    watch_open(&watch, feed, &event, &nobody, NULL);
    watch_take(&watch);
    for (int i = 0; i < 100; i++) {
        feed_seat(feed, &event, 5, SEAT_HELD, END_NONE);
        feed_seat(feed, &event, 6, SEAT_HELD, END_NONE);
        feed_seat(feed, &event, 5, SEAT_AVAILABLE, END_USER_CANCELLED);
    }
    feed_seat(feed, &event, 5, SEAT_SOLD, END_NONE);
    watch_until(&watch, "sold");
    feed_settle(feed);
    watch_take(&watch);
    int frame_count = watch_count(&watch, "event: seats");
    assert_true(frame_count <= 2); /* one window, or two if this machine was busy */
    assert_true(watch_count(&watch, "[5,") <= frame_count);
    assert_true(watch_count(&watch, "[6,") <= frame_count);
    assert_true(watch_has(&watch, "[5,\"sold\"]"));
    watch_close(&watch);
}

static void test_large_windows_are_split_into_frames(void **state)
{
    struct feed *feed = *state;
    struct watch watch;
    enum { COUNT = 5000 };
    watch_open(&watch, feed, &event, &nobody, NULL);
    watch_take(&watch);
    for (int i = 0; i < COUNT; i++)
        feed_seat(feed, &event, i, SEAT_AVAILABLE, END_TTL_EXPIRED);
    watch_until(&watch, "[4999,");
    assert_true(watch_count(&watch, "event: seats") >= 3);
    assert_int_equal(watch_count(&watch, "\"ttl_expired\""), COUNT);
    watch_close(&watch);
}

static void test_one_event_does_not_hear_of_another(void **state)
{
    struct feed *feed = *state;
    struct watch watch, other;
    watch_open(&watch, feed, &event, &nobody, NULL);
    watch_open(&other, feed, &other_event, &nobody, NULL);
    feed_seat(feed, &event, 1, SEAT_HELD, END_NONE);
    watch_until(&watch, "event: seats");
    feed_settle(feed);
    watch_take(&other);
    assert_false(watch_has(&other, "event: seats"));
    watch_close(&watch);
    watch_close(&other);
}

static void test_news_reach_their_user_alone(void **state)
{
    struct feed *feed = *state;
    struct watch on_event, on_user, bobs, nameless, foreign, elsewhere;
    watch_open(&on_event, feed, &event, &alice, NULL);
    watch_open(&on_user, feed, &nobody, &alice, NULL);
    watch_open(&bobs, feed, &event, &bob, NULL);
    watch_open(&nameless, feed, &event, &nobody, NULL);
    watch_open_with(&foreign, feed, &event, &other_org, &alice, NULL,
                    NULL); /* the same id, another tenant's user */
    watch_open(&elsewhere, feed, &other_event, &alice, NULL);
    tell(feed, &alice, &event, "hold_released", "{\"reason\":\n\"ttl_expired\"}");
    tell(feed, &alice, &nobody, "checkout_updated", "{}");
    feed_settle(feed);
    watch_until(&on_event, "event: hold_released\ndata: {\"reason\": \"ttl_expired\"}\n\n");
    watch_until(&on_user, "event: checkout_updated\ndata: {}\n\n");
    assert_true(watch_has(&on_user, "event: hold_released"));
    assert_false(watch_has(&on_event, "checkout_updated")); /* about no event */

    struct watch *others[] = {&bobs, &nameless, &foreign, &elsewhere};
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        watch_take(others[i]);
        assert_false(watch_has(others[i], "hold_released"));
        assert_false(watch_has(others[i], "checkout_updated"));
        watch_close(others[i]);
    }
    watch_close(&on_event);
    watch_close(&on_user);
}

static void test_ids_rise_over_seats_and_news(void **state)
{
    struct feed *feed = *state;
    struct watch watch;
    watch_open(&watch, feed, &event, &alice, NULL);
    for (int i = 0; i < 50; i++) {
        feed_seat(feed, &event, i, SEAT_HELD, END_NONE);
        tell(feed, &alice, &event, "hold_expiring", "{}");
        if (i % 10 == 0)
            feed_settle(feed);
    }
    feed_seat(feed, &event, 77, SEAT_SOLD, END_NONE);
    watch_until(&watch, "[77,");
    watch_until(&watch, "hold_expiring");
    feed_settle(feed);
    watch_take(&watch);
    assert_int_equal(watch_count(&watch, "event: hold_expiring"), 50);

    uint64_t before = 0;
    for (const char *at = buf_text(&watch.text); (at = strstr(at, "\nid: ")) != NULL; at++) {
        uint64_t number = strtoull(strchr(at, '-') + 1, NULL, 10);
        assert_true(number > before);
        before = number;
    }
    watch_close(&watch);
}

static void test_on_frames_runs_once_per_flush_and_never_without_readers(void **state)
{
    struct feed *feed = *state;
    struct watch watch;
    for (int i = 0; i < 1000; i++)
        feed_seat(feed, &event, i, SEAT_HELD, END_NONE);
    tell(feed, &alice, &event, "hold_expiring", "{}");
    pause_ms(60);
    assert_int_equal(atomic_load(&flush_count), 0);
    assert_int_equal(feed->events.count, 0);

    uint64_t frames_before = counter_get(COUNTER_STREAM_FRAMES);
    watch_open(&watch, feed, &event, &nobody, NULL);
    feed_seat(feed, &event, 3, SEAT_HELD, END_NONE);
    watch_until(&watch, "event: seats");
    int64_t end_us = clock_monotonic_us() + WATCH_MS_MAX * 1000;
    while (atomic_load(&flush_count) == 0 && clock_monotonic_us() < end_us)
        pause_ms(1);
    assert_int_equal(atomic_load(&flush_count), 1);
    assert_int_equal(counter_get(COUNTER_STREAM_FRAMES) - frames_before, 1);
    watch_close(&watch);
}

static void test_reset_gives_every_reader_a_new_snapshot(void **state)
{
    struct feed *feed = *state;
    static struct counted counted = {.held = 1};
    struct watch watch, other;
    char id[STREAM_ID_SIZE];
    watch_open_with(&watch, feed, &event, &org, &nobody, NULL, &counted);
    watch_open_with(&other, feed, &event, &org, &alice, NULL, &counted);
    watch_take(&watch);
    watch_take(&other);
    watch_last_id(&watch, id);
    feed_seat(feed, &event, 3, SEAT_BLOCKED, END_NONE); /* of the old layout */
    tell(feed, &alice, &event, "hold_released", "{}");
    atomic_store(&counted.held, 2);
    feed_event_reset(feed, &event);
    feed_seat(feed, &event, 8, SEAT_BLOCKED, END_NONE);
    watch_until(&watch, "[8,");
    watch_until(&other, "[8,");
    assert_int_equal(watch_count(&watch, "event: snapshot"), 2);
    assert_int_equal(watch_count(&other, "event: snapshot"), 2);
    assert_true(watch_has(&watch, "{\"held\":2}"));
    const char *again = strstr(strstr(buf_text(&watch.text), "event: snapshot") + 1, "event: snapshot");
    assert_null(strstr(again, "[3,"));    /* an index that means nothing any more */
    watch_until(&other, "hold_released"); /* no snapshot would tell it again */
    assert_int_equal(watch_count(&other, "hold_released"), 1);
    watch_close(&watch);
    watch_close(&other);

    watch_open_with(&watch, feed, &event, &org, &nobody, id, &counted); /* an id from before the reset */
    watch_take(&watch);
    assert_int_equal(watch_count(&watch, "event: snapshot"), 1);
    watch_close(&watch);
}

static void test_silence_is_broken_by_heartbeats(void **state)
{
    (void)state;
    struct feed *feed = NULL;
    struct watch watch;
    struct feed_times times = {.coalesce_ms = 5, .heartbeat_ms = 400, .idle_ms = 60000};
    assert_int_equal(feed_create_with(&times, NULL, NULL, &feed), ERR_OK);
    watch_open(&watch, feed, &event, &nobody, NULL);
    watch_take(&watch);
    assert_false(feed_ready(watch.reader));
    assert_false(watch_has(&watch, ": heartbeat"));
    int64_t start_us = clock_monotonic_us();
    watch_until(&watch, ": heartbeat\n\n");
    assert_true(clock_monotonic_us() - start_us > 200000);
    assert_false(feed_ready(watch.reader)); /* it counts from the last bytes */
    watch_close(&watch);
    feed_destroy(feed);
}

static void test_subscription_to_nothing_is_refused(void **state)
{
    struct feed_subscription subscription = {0};
    struct feed_reader *reader = NULL;
    assert_int_equal(feed_subscribe(*state, &subscription, &reader), ERR_INVALID_REQUEST);
    assert_null(reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_stream_begins_with_retry_and_a_snapshot, setup, teardown),
        cmocka_unit_test_setup_teardown(test_user_stream_begins_with_a_snapshot_of_its_id, setup, teardown),
        cmocka_unit_test_setup_teardown(test_seats_frame_has_id_seats_and_occupancy, setup, teardown),
        cmocka_unit_test_setup_teardown(test_seat_that_changed_often_appears_once_with_its_last_state, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_large_windows_are_split_into_frames, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_event_does_not_hear_of_another, setup, teardown),
        cmocka_unit_test_setup_teardown(test_news_reach_their_user_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ids_rise_over_seats_and_news, setup, teardown),
        cmocka_unit_test_setup_teardown(test_on_frames_runs_once_per_flush_and_never_without_readers, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_reset_gives_every_reader_a_new_snapshot, setup, teardown),
        cmocka_unit_test(test_silence_is_broken_by_heartbeats),
        cmocka_unit_test_setup_teardown(test_subscription_to_nothing_is_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
