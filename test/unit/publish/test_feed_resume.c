/* SPDX-License-Identifier: Apache-2.0
 * Coming back with Last-Event-ID: without loss where the ring still has all that
 * was missed, with a new snapshot everywhere else. */
#include "watch.h"

#include <stdio.h>

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

static void test_reader_resumes_after_its_last_frame(void **state)
{
    struct feed *feed = *state;
    struct watch watch;
    char id[STREAM_ID_SIZE];
    watch_open(&watch, feed, &event, &alice, NULL);
    feed_seat(feed, &event, 1, SEAT_HELD, END_NONE);
    watch_until(&watch, "[1,");
    watch_last_id(&watch, id);
    watch_close(&watch);

    feed_seat(feed, &event, 2, SEAT_HELD, END_NONE); /* while it is away */
    tell(feed, &alice, &event, "hold_released", "{}");
    feed_settle(feed);
    feed_seat(feed, &event, 3, SEAT_HELD, END_NONE);
    feed_settle(feed);

    watch_open(&watch, feed, &event, &alice, id);
    watch_take(&watch);
    assert_false(watch_has(&watch, "event: snapshot"));
    assert_int_equal(strncmp(buf_text(&watch.text), "retry: 2000\n\nid: ", 17), 0);
    assert_false(watch_has(&watch, "[1,"));
    assert_int_equal(watch_count(&watch, "[2,"), 1);
    assert_int_equal(watch_count(&watch, "[3,"), 1);
    assert_int_equal(watch_count(&watch, "hold_released"), 1);
    watch_close(&watch);
}

static void test_snapshot_id_resumes_too(void **state)
{
    struct feed *feed = *state;
    struct watch watch;
    char id[STREAM_ID_SIZE];
    watch_open(&watch, feed, &event, &nobody, NULL);
    watch_take(&watch);
    watch_last_id(&watch, id);
    watch_close(&watch);
    feed_seat(feed, &event, 2, SEAT_HELD, END_NONE);
    watch_open(&watch, feed, &event, &nobody, id);
    watch_until(&watch, "[2,");
    assert_false(watch_has(&watch, "event: snapshot"));
    watch_close(&watch);
}

static void test_user_stream_resumes(void **state)
{
    struct feed *feed = *state;
    struct watch watch;
    char id[STREAM_ID_SIZE];
    watch_open(&watch, feed, &nobody, &alice, NULL);
    tell(feed, &alice, &event, "hold_expiring", "{\"n\":1}");
    watch_until(&watch, "{\"n\":1}");
    watch_last_id(&watch, id);
    watch_close(&watch);
    tell(feed, &alice, &other_event, "hold_expiring", "{\"n\":2}");
    watch_open(&watch, feed, &nobody, &alice, id);
    watch_until(&watch, "{\"n\":2}");
    assert_false(watch_has(&watch, "{\"n\":1}"));
    assert_false(watch_has(&watch, "event: snapshot"));
    watch_close(&watch);
}

static void test_ids_that_are_not_ours_get_a_snapshot(void **state)
{
    struct feed *feed = *state;
    struct watch watch;
    char good[STREAM_ID_SIZE], bad[12][128];
    watch_open(&watch, feed, &event, &nobody, NULL);
    watch_take(&watch);
    watch_last_id(&watch, good);
    watch_close(&watch);

    const char *number = strchr(good, '-') + 1;
    snprintf(bad[0], sizeof bad[0], "%s", "");
    snprintf(bad[1], sizeof bad[1], "%s", number);
    snprintf(bad[2], sizeof bad[2], "0%s", good);
    snprintf(bad[3], sizeof bad[3], "%s-", feed->epoch);
    snprintf(bad[4], sizeof bad[4], "%s", feed->epoch);
    snprintf(bad[5], sizeof bad[5], "%sx", good);
    snprintf(bad[6], sizeof bad[6], "%s--1", feed->epoch);
    snprintf(bad[7], sizeof bad[7], "%s-999999", feed->epoch); /* never given out */
    snprintf(bad[8], sizeof bad[8], "%s-99999999999999999999999", feed->epoch);
    snprintf(bad[9], sizeof bad[9], "%s-0", feed->epoch); /* before the ring began */
    snprintf(bad[10], sizeof bad[10], "18f0aa00bb00cc-%s", number);
    snprintf(bad[11], sizeof bad[11], "%s- %s", feed->epoch, number);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        watch_open(&watch, feed, &event, &nobody, bad[i]);
        watch_take(&watch);
        if (!watch_has(&watch, "event: snapshot"))
            fail_msg("%s resumed", bad[i]);
        watch_close(&watch);
    }
    watch_open(&watch, feed, &event, &nobody, good);
    watch_take(&watch);
    assert_false(watch_has(&watch, "event: snapshot"));
    watch_close(&watch);
}

static void test_epoch_differs_between_starts(void **state)
{
    struct feed *first = *state;
    struct feed *second = NULL;
    struct watch watch;
    char id[STREAM_ID_SIZE];
    assert_int_equal(feed_create(2, NULL, NULL, &second), ERR_OK);
    watch_open(&watch, first, &event, &nobody, NULL);
    watch_take(&watch);
    watch_last_id(&watch, id);
    watch_close(&watch);
    watch_open(&watch, second, &event, &nobody, id);
    watch_take(&watch);
    assert_true(watch_has(&watch, "event: snapshot"));
    watch_close(&watch);
    feed_destroy(second);
}

/* An id taken while nobody watched says nothing about what happened until somebody did. */
static void test_id_from_before_the_ring_gets_a_snapshot(void **state)
{
    struct feed *feed = *state;
    struct watch watch;
    char id[64];
    feed_stream_id(feed, &event, id);
    feed_seat(feed, &event, 2, SEAT_HELD, END_NONE); /* no ring: kept nowhere */
    watch_open(&watch, feed, &event, &nobody, id);
    watch_take(&watch);
    assert_true(watch_has(&watch, "event: snapshot"));
    watch_close(&watch);
}

static void test_id_older_than_the_ring_gets_a_snapshot(void **state)
{
    struct feed *feed = *state;
    struct watch watch;
    char id[STREAM_ID_SIZE];
    watch_open(&watch, feed, &event, &nobody, NULL);
    feed_seat(feed, &event, 0, SEAT_HELD, END_NONE);
    watch_until(&watch, "[0,");
    watch_last_id(&watch, id);
    watch_close(&watch);
    for (int i = 0; i <= FRAME_RING_COUNT;
         i++) { /* straight into the ring: as many flushes would take long */
        struct seat_change change = {.index = 1, .state = SEAT_HELD};
        struct buf occupancy;
        buf_init(&occupancy);
        buf_put_text(&occupancy, "{}");
        struct feed_ring *ring = map_get(&feed->events, &event);
        feed_ring_append(feed, ring, feed_frame_seats(feed, feed_next_number(feed), &change, 1, &occupancy));
        buf_deinit(&occupancy);
    }
    feed_settle(feed);
    watch_open(&watch, feed, &event, &nobody, id);
    watch_take(&watch);
    assert_true(watch_has(&watch, "event: snapshot"));
    watch_close(&watch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_reader_resumes_after_its_last_frame, setup, teardown),
        cmocka_unit_test_setup_teardown(test_snapshot_id_resumes_too, setup, teardown),
        cmocka_unit_test_setup_teardown(test_user_stream_resumes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ids_that_are_not_ours_get_a_snapshot, setup, teardown),
        cmocka_unit_test_setup_teardown(test_epoch_differs_between_starts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_id_from_before_the_ring_gets_a_snapshot, setup, teardown),
        cmocka_unit_test_setup_teardown(test_id_older_than_the_ring_gets_a_snapshot, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
