/* SPDX-License-Identifier: Apache-2.0
 * Statistics on a stream: who is told which blocks, how often, and what they
 * leave alone. The last test is meant for ThreadSanitizer too. */
#include "watch.h"

#include <pthread.h>
#include <stdio.h>

enum { HALL_BLOCK_COUNT_MAX = EVENT_BLOCK_COUNT_MAX };

/* The hot tier of these tests: seat counts of blocks, held and not. */
struct hall {
    struct feed *feed;
    int32_t seats_per_block;
    _Atomic int32_t block_count;
    _Atomic int32_t layout; /* part of the blocks' ids */
    _Atomic int32_t held[HALL_BLOCK_COUNT_MAX];
    _Atomic int read_count;
    _Atomic bool finished;
    _Atomic int failure_count;
};

static int32_t hall_read(void *context, struct feed_block *out)
{
    struct hall *hall = context;
    int32_t count = atomic_load(&hall->block_count);
    atomic_fetch_add(&hall->read_count, 1);
    for (int32_t i = 0; i < count; i++) {
        int32_t held = atomic_load(&hall->held[i]);
        out[i] = (struct feed_block){.section = "A", .subsection = i + 1};
        out[i].id.bytes[0] = (uint8_t)(1 + atomic_load(&hall->layout));
        out[i].id.bytes[1] = (uint8_t)(i >> 8);
        out[i].id.bytes[2] = (uint8_t)i;
        out[i].counts[SEAT_AVAILABLE] = hall->seats_per_block - held;
        out[i].counts[SEAT_HELD] = held;
    }
    return count;
}

static void hall_write(void *context, struct jsonw *json)
{
    (void)context;
    jsonw_null(json);
}

static struct hall *hall_create(int32_t block_count, int64_t stats_ms)
{
    struct hall *hall = calloc(1, sizeof *hall);
    struct feed_times times = {
        .coalesce_ms = 2, .heartbeat_ms = 60000, .idle_ms = 60000, .stats_ms = stats_ms};
    assert_non_null(hall);
    hall->seats_per_block = 10;
    hall->block_count = block_count;
    assert_int_equal(feed_create_with(&times, NULL, NULL, &hall->feed), ERR_OK);
    return hall;
}

static void hall_destroy(struct hall *hall)
{
    feed_destroy(hall->feed);
    free(hall);
}

static void hall_open(struct hall *hall, struct watch *watch, const char *last_event_id)
{
    struct feed_subscription subscription = {
        .org_id = org,
        .event_id = event,
        .last_event_id = last_event_id,
        .write_occupancy = hall_write,
        .read_stats = hall_read,
        .event_context = hall,
    };
    buf_init(&watch->text);
    watch->ended = false;
    assert_int_equal(feed_subscribe(hall->feed, &subscription, &watch->reader), ERR_OK);
}

/* As the lane does: first the hot tier, then the feed. */
static void hall_set(struct hall *hall, int32_t block, int32_t held)
{
    atomic_store(&hall->held[block], held);
    feed_seat(hall->feed, &event, block * hall->seats_per_block, held > 0 ? SEAT_HELD : SEAT_AVAILABLE,
              END_NONE);
}

/* The last complete statistics that were read; "" if there were none. Valid until the next call. */
static const char *last_stats(struct watch *watch)
{
    static char text[512 * 1024];
    const char *last = "";
    for (const char *at = buf_text(&watch->text); (at = strstr(at, "event: stats\n")) != NULL; at++) {
        if (strstr(at, "\n\n") != NULL)
            last = at;
    }
    const char *end = strstr(last, "\n\n");
    snprintf(text, sizeof text, "%.*s", end != NULL ? (int)(end - last) : 0, last);
    return text;
}

static void test_new_reader_is_told_all_blocks_and_their_sums(void **state)
{
    (void)state;
    struct hall *hall = hall_create(2, 0);
    struct watch watch;
    atomic_store(&hall->held[1], 3);
    hall_open(hall, &watch, NULL);
    watch_until(&watch, "event: stats");
    const char *stats = last_stats(&watch);
    assert_non_null(strstr(stats,
                           "\"all\":true,\"totals\":{\"available\":17,\"held\":3,\"sold\":0,\"blocked\":0,"
                           "\"total\":20},\"blocks\":[{\"section\":\"A\",\"subsection\":1,\"block_id\":"));
    assert_non_null(strstr(stats, "\"subsection\":2,\"block_id\":\"01000100-0000-0000-0000-000000000000\","
                                  "\"available\":7,\"held\":3,\"sold\":0,\"blocked\":0}]}"));
    assert_true(strstr(buf_text(&watch.text), "event: snapshot") <
                strstr(buf_text(&watch.text), "event: stats"));
    watch_close(&watch);
    hall_destroy(hall);
}

static void test_only_blocks_that_changed_are_told(void **state)
{
    (void)state;
    struct hall *hall = hall_create(3, 0);
    struct watch watch;
    hall_open(hall, &watch, NULL);
    watch_until(&watch, "event: stats");
    hall_set(hall, 1, 4);
    watch_until(&watch, "\"all\":false");
    const char *stats = last_stats(&watch);
    assert_non_null(strstr(stats, "\"totals\":{\"available\":26,\"held\":4,"));
    assert_non_null(strstr(stats, "\"subsection\":2,"));
    assert_null(strstr(stats, "\"subsection\":1,"));
    assert_null(strstr(stats, "\"subsection\":3,"));
    watch_close(&watch);
    hall_destroy(hall);
}

static void test_nothing_is_told_when_nothing_is_different(void **state)
{
    (void)state;
    struct hall *hall = hall_create(2, 0);
    struct watch watch;
    hall_open(hall, &watch, NULL);
    watch_until(&watch, "event: stats");
    int reads = atomic_load(&hall->read_count);
    feed_seat(hall->feed, &event, 0, SEAT_HELD, END_NONE); /* taken and given back between two looks */
    feed_seat(hall->feed, &event, 0, SEAT_AVAILABLE, END_USER_CANCELLED);
    watch_until(&watch, "user_cancelled");
    feed_settle(hall->feed);
    watch_take(&watch);
    assert_true(atomic_load(&hall->read_count) > reads); /* it looked */
    assert_int_equal(watch_count(&watch, "event: stats"), 1);
    watch_close(&watch);
    hall_destroy(hall);
}

static void test_statistics_are_paced_although_changes_go_on(void **state)
{
    (void)state;
    enum { PACE_MS = 100, PACE_COUNT = 5 };
    struct hall *hall = hall_create(2, PACE_MS);
    struct watch watch;
    int32_t held = 0;
    int64_t start_us = clock_monotonic_us();
    hall_open(hall, &watch, NULL);
    while (watch_count(&watch, "event: stats") < PACE_COUNT) {
        held = held % 9 + 1;
        hall_set(hall, 0, held);
        pause_ms(1);
        watch_take(&watch);
        assert_true(clock_monotonic_us() - start_us < WATCH_MS_MAX * INT64_C(1000));
    }
    /* Between the first and the last of n lie n − 1 paces, whatever the machine is busy with. */
    assert_true(clock_monotonic_us() - start_us >= (PACE_COUNT - 1) * PACE_MS * INT64_C(1000));
    assert_true(watch_count(&watch, "event: seats") > watch_count(&watch, "event: stats"));

    hall_set(hall, 0, 10); /* the last word is told without another change to push it */
    watch_until(&watch, "\"available\":10,\"held\":10,\"sold\":0,\"blocked\":0,\"total\":20");
    watch_close(&watch);
    hall_destroy(hall);
}

static void test_reader_that_missed_some_is_told_all_blocks_once(void **state)
{
    (void)state;
    struct hall *hall = hall_create(3, 0);
    struct watch slow, fast;
    hall_open(hall, &slow, NULL);
    hall_open(hall, &fast, NULL);
    watch_until(&slow, "event: stats");
    watch_until(&fast, "event: stats");
    for (int32_t block = 0; block < 3; block++) {
        char expected[64];
        hall_set(hall, block, 5);
        snprintf(expected, sizeof expected, "\"totals\":{\"available\":%d,", 30 - 5 * (block + 1));
        watch_until(&fast, expected);
    }
    watch_until(&slow, "\"totals\":{\"available\":15,");
    assert_int_equal(watch_count(&slow, "event: stats"), 2);
    assert_int_equal(watch_count(&slow, "\"all\":true"), 2);
    assert_int_equal(watch_count(&slow, "\"held\":5,\"sold\":0,\"blocked\":0}"), 3);
    watch_close(&slow);
    watch_close(&fast);
    hall_destroy(hall);
}

static void test_statistics_leave_ids_and_resuming_alone(void **state)
{
    (void)state;
    struct hall *hall = hall_create(2, 0);
    struct watch watch;
    char id[STREAM_ID_SIZE];
    hall_open(hall, &watch, NULL);
    watch_until(&watch, "event: stats");
    hall_set(hall, 0, 1);
    watch_until(&watch, "\"all\":false");
    assert_int_equal(watch_count(&watch, "id: "), 2); /* the snapshot's and the seats' */
    assert_true(watch_has(&watch, "\n\nevent: stats\n"));
    watch_last_id(&watch, id);
    watch_close(&watch);

    struct feed_ring *ring = map_get(&hall->feed->events, &event);
    assert_int_equal(ring->count, 1); /* seats; no statistics are in the ring */
    hall_set(hall, 1, 1);
    feed_settle(hall->feed);
    hall_open(hall, &watch, id);
    watch_until(&watch, "event: stats");
    assert_int_equal(watch_count(&watch, "event: snapshot"), 0);
    assert_int_equal(watch_count(&watch, "event: seats"), 1);
    assert_non_null(strstr(last_stats(&watch), "\"all\":true,\"totals\":{\"available\":18,\"held\":2,"));
    watch_close(&watch);
    hall_destroy(hall);
}

static void test_nothing_is_counted_for_events_that_nobody_reads(void **state)
{
    (void)state;
    struct hall *hall = hall_create(2, 0);
    struct watch watch;
    hall_open(hall, &watch, NULL);
    watch_until(&watch, "event: stats");
    watch_close(&watch);
    feed_settle(hall->feed);
    int reads = atomic_load(&hall->read_count);
    for (int32_t i = 1; i < 10; i++) {
        hall_set(hall, 0, i);
        feed_settle(hall->feed);
    }
    assert_int_equal(atomic_load(&hall->read_count), reads);
    struct feed_ring *ring = map_get(&hall->feed->events, &event);
    assert_null(ring->told);
    assert_null(ring->stats_all);
    assert_null(ring->stats_changed);
    hall_destroy(hall);
}

static void test_another_layout_is_told_whole_to_everybody(void **state)
{
    (void)state;
    struct hall *hall = hall_create(2, 0);
    struct watch watch;
    hall_open(hall, &watch, NULL);
    watch_until(&watch, "event: stats");
    atomic_store(&hall->layout, 8);
    feed_event_reset(hall->feed, &event);
    watch_until(&watch, "\"block_id\":\"09000100-");
    assert_non_null(strstr(last_stats(&watch), "\"all\":true"));

    atomic_store(&hall->block_count, 1);
    feed_event_reset(hall->feed, &event);
    watch_until(&watch, "\"total\":10}");
    assert_non_null(strstr(last_stats(&watch), "\"all\":true"));

    atomic_store(&hall->block_count, 0); /* no layout any more, then one again */
    feed_event_reset(hall->feed, &event);
    feed_settle(hall->feed);
    atomic_store(&hall->block_count, 3);
    feed_event_reset(hall->feed, &event);
    watch_until(&watch, "\"total\":30}");
    watch_close(&watch);
    hall_destroy(hall);
}

static void test_two_thousand_blocks_are_told_once_and_one_change_is_small(void **state)
{
    (void)state;
    struct hall *hall = hall_create(EVENT_BLOCK_COUNT_MAX, 0);
    struct watch watch;
    hall_open(hall, &watch, NULL);
    watch_until(&watch, "\"subsection\":2000,");
    watch_until(&watch, "]}\n\n");
    assert_int_equal(watch_count(&watch, "\"block_id\""), EVENT_BLOCK_COUNT_MAX);
    assert_true(watch.text.size < EVENT_BLOCK_COUNT_MAX * 200);
    hall_set(hall, 1234, 2);
    watch_until(&watch, "\"all\":false");
    assert_true(strlen(last_stats(&watch)) < 500);
    assert_non_null(strstr(last_stats(&watch), "\"subsection\":1235,"));
    watch_close(&watch);
    hall_destroy(hall);
}

/* ---- Many threads ---- */

enum { CROWD_BLOCK_COUNT = 5, CROWD_ROUND_COUNT = 400, CROWD_LOOP_COUNT = 3 };

static void *crowd_lane(void *context)
{
    struct hall *hall = context;
    uint32_t chance = 4711;
    for (int round = 0; round < CROWD_ROUND_COUNT; round++) {
        chance = chance * 1664525 + 1013904223;
        hall_set(hall, (int32_t)(chance >> 8) % CROWD_BLOCK_COUNT, (int32_t)(chance >> 4) % 11);
        pause_ms(1);
    }
    atomic_store(&hall->finished, true);
    return NULL;
}

struct crowd_picture {
    long held[CROWD_BLOCK_COUNT];
};

static void crowd_apply(struct crowd_picture *picture, struct hall *hall, const char *frame)
{
    const char *blocks = strstr(frame, "\"blocks\":[");
    if (strncmp(frame, "event: stats\n", 13) != 0 || blocks == NULL)
        return;
    int listed = 0;
    for (const char *at = blocks; (at = strstr(at, "\"subsection\":")) != NULL; at++, listed++) {
        long subsection = strtol(at + 13, NULL, 10);
        picture->held[subsection - 1] = strtol(strstr(at, "\"held\":") + 7, NULL, 10);
    }
    long sum = 0;
    for (int i = 0; i < CROWD_BLOCK_COUNT; i++)
        sum += picture->held[i];
    /* The sums are of the same moment as the blocks: together with what was told before, they fit. */
    if (strtol(strstr(frame, "\"held\":") + 7, NULL, 10) != sum || listed == 0)
        atomic_fetch_add(&hall->failure_count, 1);
}

static bool crowd_agrees(const struct crowd_picture *picture, struct hall *hall)
{
    for (int i = 0; i < CROWD_BLOCK_COUNT; i++) {
        if (picture->held[i] != atomic_load(&hall->held[i]))
            return false;
    }
    return true;
}

static void *crowd_loop(void *context)
{
    struct hall *hall = context;
    struct crowd_picture picture = {{0}};
    struct watch watch;
    int64_t end_us = clock_monotonic_us() + 3 * WATCH_MS_MAX * INT64_C(1000);
    hall_open(hall, &watch, NULL);
    for (int turn = 1; !atomic_load(&hall->finished) || !crowd_agrees(&picture, hall); turn++) {
        watch_take(&watch);
        const char *start = buf_text(&watch.text);
        for (const char *end; (end = strstr(start, "\n\n")) != NULL; start = end + 2) {
            char *frame = strndup(start, (size_t)(end - start));
            crowd_apply(&picture, hall, frame);
            free(frame);
        }
        size_t left = watch.text.size - (size_t)(start - watch.text.data);
        memmove(watch.text.data, start, left);
        watch.text.size = left;
        if (turn % 60 == 0 && !atomic_load(&hall->finished)) {
            watch_close(&watch);
            memset(&picture, 0, sizeof picture);
            hall_open(hall, &watch, NULL);
        }
        if (clock_monotonic_us() > end_us) {
            atomic_fetch_add(&hall->failure_count, 1);
            break;
        }
        pause_ms(turn % 20 == 0 ? 12 : 1); /* now and then too late for one */
    }
    watch_close(&watch);
    return NULL;
}

static void test_readers_on_many_threads_end_with_the_lanes_counts(void **state)
{
    (void)state;
    struct hall *hall = hall_create(CROWD_BLOCK_COUNT, 4);
    pthread_t lane, loops[CROWD_LOOP_COUNT];
    assert_int_equal(pthread_create(&lane, NULL, crowd_lane, hall), 0);
    for (int i = 0; i < CROWD_LOOP_COUNT; i++)
        assert_int_equal(pthread_create(&loops[i], NULL, crowd_loop, hall), 0);
    pthread_join(lane, NULL);
    for (int i = 0; i < CROWD_LOOP_COUNT; i++)
        pthread_join(loops[i], NULL);
    assert_int_equal(atomic_load(&hall->failure_count), 0);
    hall_destroy(hall);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new_reader_is_told_all_blocks_and_their_sums),
        cmocka_unit_test(test_only_blocks_that_changed_are_told),
        cmocka_unit_test(test_nothing_is_told_when_nothing_is_different),
        cmocka_unit_test(test_statistics_are_paced_although_changes_go_on),
        cmocka_unit_test(test_reader_that_missed_some_is_told_all_blocks_once),
        cmocka_unit_test(test_statistics_leave_ids_and_resuming_alone),
        cmocka_unit_test(test_nothing_is_counted_for_events_that_nobody_reads),
        cmocka_unit_test(test_another_layout_is_told_whole_to_everybody),
        cmocka_unit_test(test_two_thousand_blocks_are_told_once_and_one_change_is_small),
        cmocka_unit_test(test_readers_on_many_threads_end_with_the_lanes_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
