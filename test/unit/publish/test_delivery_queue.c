/* SPDX-License-Identifier: Apache-2.0
 * What is sent next, driven by a made-up receiver and a clock of its own: halving
 * finds the one bad event, pauses grow, and an outage gives up nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "publish/delivery_queue.h"

enum { EVENT_COUNT_MAX = 2000, DELIVERY_COUNT_MAX = 100000 };

struct receiver { /* takes all but the bad ones, unless it is away */
    bool away;
    enum delivery_answer away_answer; /* what it says then, to an empty request too */
    enum delivery_answer bad_answer;
    bool bad[EVENT_COUNT_MAX];
};

struct world {
    struct delivery_queue queue;
    struct domain_event events[EVENT_COUNT_MAX];
    struct receiver receiver;
    int32_t taken[DELIVERY_COUNT_MAX]; /* the events it took, in order */
    int32_t taken_count;
    int32_t dead[EVENT_COUNT_MAX];
    int32_t dead_tries[EVENT_COUNT_MAX];
    int32_t dead_count;
    int32_t request_count;
    int64_t now_ms;
};

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    w->now_ms = 1000000;
    w->receiver.bad_answer = ANSWER_REFUSED;
    w->receiver.away_answer = ANSWER_FAILED;
    delivery_queue_init(&w->queue, 3, 7);
    for (int i = 0; i < EVENT_COUNT_MAX; i++)
        w->events[i] = (struct domain_event){.body = "{}", .size = 2};
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

static enum delivery_answer receive(struct world *w, int32_t from, int32_t count)
{
    if (w->receiver.away)
        return w->receiver.away_answer;
    for (int32_t i = from; i < from + count; i++)
        if (w->receiver.bad[i])
            return w->receiver.bad_answer;
    for (int32_t i = from; i < from + count; i++)
        w->taken[w->taken_count++] = i;
    return ANSWER_DELIVERED;
}

/* One request, at the time it is due. How long it had to wait. */
static int64_t step(struct world *w)
{
    struct dead_event dead;
    int64_t waited_ms = w->queue.next_ms > w->now_ms ? w->queue.next_ms - w->now_ms : 0;

    w->now_ms += waited_ms;
    int32_t from = w->queue.at, count = delivery_queue_next(&w->queue);
    struct delivery_outcome outcome = {.answer = receive(w, from, count)};
    w->request_count++;
    if (delivery_queue_answer(&w->queue, &outcome, w->now_ms, &dead)) {
        w->dead_tries[w->dead_count] = dead.tries;
        w->dead[w->dead_count++] = (int32_t)(dead.event - w->events);
    }
    return waited_ms;
}

static void drain(struct world *w, int32_t request_count_max)
{
    for (int32_t i = 0; i < request_count_max && !delivery_queue_is_done(&w->queue); i++)
        step(w);
    assert_true(delivery_queue_is_done(&w->queue));
}

/* Every event but the dead ones was taken once, in order. */
static void expect_rest_taken(const struct world *w, int32_t count)
{
    int32_t at = 0, dead = 0;

    for (int32_t i = 0; i < count; i++) {
        if (dead < w->dead_count && w->dead[dead] == i)
            dead++;
        else
            assert_int_equal(w->taken[at++], i);
    }
    assert_int_equal(dead, w->dead_count);
    assert_int_equal(at, w->taken_count);
}

/* ---- Requests ---- */

static void test_events_go_in_order_in_requests_of_bounded_count(void **state)
{
    struct world *w = *state;

    delivery_queue_fill(&w->queue, w->events, 1000);
    drain(w, 4);
    expect_rest_taken(w, 1000);
    assert_int_equal(w->request_count, 4);
}

static void test_requests_are_bounded_in_bytes_but_one_large_event_goes_alone(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 4; i++)
        w->events[i].size = DELIVERY_REQUEST_SIZE_MAX / 2;
    w->events[4].size = DELIVERY_REQUEST_SIZE_MAX + 1;
    delivery_queue_fill(&w->queue, w->events, 6);
    assert_int_equal(delivery_queue_next(&w->queue), 2);
    drain(w, 4);
    expect_rest_taken(w, 6);
    assert_int_equal(w->request_count, 4); /* 2, 2, the large one, the last one */
}

/* ---- Poison ---- */

static void test_one_refused_event_is_found_and_dies_alone(void **state)
{
    struct world *w = *state;

    for (int32_t bad = 0; bad < 256; bad += 17) {
        memset(w->receiver.bad, 0, sizeof w->receiver.bad);
        w->receiver.bad[bad] = true;
        w->taken_count = w->dead_count = w->request_count = 0;
        delivery_queue_fill(&w->queue, w->events, 256);
        drain(w, 24);
        assert_int_equal(w->dead_count, 1);
        assert_int_equal(w->dead[0], bad);
        assert_true(w->dead_tries[0] >= 2);
        expect_rest_taken(w, 256);
    }
}

static void test_neighbouring_refused_events_die_and_their_neighbours_live(void **state)
{
    struct world *w = *state;

    w->receiver.bad[0] = w->receiver.bad[100] = w->receiver.bad[101] = w->receiver.bad[299] = true;
    delivery_queue_fill(&w->queue, w->events, 300);
    drain(w, 100);
    assert_int_equal(w->dead_count, 4);
    expect_rest_taken(w, 300);
}

static void test_an_event_that_makes_the_receiver_fail_is_tried_so_often_and_then_dies(void **state)
{
    struct world *w = *state;
    int64_t begun_ms = w->now_ms;

    w->receiver.bad_answer = ANSWER_FAILED;
    w->receiver.bad[5] = true;
    delivery_queue_fill(&w->queue, w->events, 20);
    drain(w, 40);
    assert_int_equal(w->dead_count, 1);
    assert_int_equal(w->dead[0], 5);
    assert_true(w->dead_tries[0] >= 3);
    expect_rest_taken(w, 20);
    assert_true(w->now_ms - begun_ms >= 1500); /* two pauses: half of 1 s and of 2 s at least */
}

static void test_an_event_that_is_taken_at_the_last_try_lives(void **state)
{
    struct world *w = *state;

    w->receiver.bad[0] = true;
    delivery_queue_fill(&w->queue, w->events, 1);
    step(w); /* refused */
    step(w); /* the receiver is there */
    assert_int_equal(w->queue.stage, QUEUE_LAST);
    w->receiver.bad[0] = false;
    step(w);
    assert_int_equal(w->dead_count, 0);
    expect_rest_taken(w, 1);
}

/* ---- Outages ---- */

static void outage(struct world *w, enum delivery_answer answer)
{
    w->receiver.away = true;
    w->receiver.away_answer = answer;
    delivery_queue_fill(&w->queue, w->events, 100);
    for (int i = 0; i < 500; i++)
        step(w);
    assert_int_equal(w->dead_count, 0);
    assert_int_equal(w->queue.at, 0);
    w->receiver.away = false;
    drain(w, 4);
    assert_int_equal(w->dead_count, 0);
    expect_rest_taken(w, 100);
}

static void test_a_receiver_that_is_away_for_long_loses_nothing(void **state)
{
    outage(*state, ANSWER_FAILED);
}

static void test_a_receiver_that_refuses_everything_loses_nothing(void **state)
{
    outage(*state, ANSWER_REFUSED);
}

static void test_a_receiver_that_goes_away_while_halving_loses_nothing_but_the_bad_event(void **state)
{
    struct world *w = *state;

    for (int32_t when = 1; when < 16; when++) {
        memset(w->receiver.bad, 0, sizeof w->receiver.bad);
        w->receiver.bad[42] = true;
        w->taken_count = w->dead_count = 0;
        delivery_queue_fill(&w->queue, w->events, 100);
        for (int i = 0; i < when; i++)
            step(w);
        bool was_last = w->queue.stage == QUEUE_LAST; /* then it may die of the outage as well */
        w->receiver.away = true;
        for (int i = 0; i < 20; i++)
            step(w);
        w->receiver.away = false;
        drain(w, 40);
        assert_int_equal(w->dead_count, 1);
        assert_int_equal(w->dead[0], 42);
        expect_rest_taken(w, 100);
        if (was_last)
            break;
    }
}

static void test_pauses_grow_to_a_minute_and_begin_anew_after_a_delivery(void **state)
{
    struct world *w = *state;
    int64_t full_ms = DELIVERY_BACKOFF_MS_FIRST;

    delivery_queue_init(&w->queue, 100, 7);
    w->receiver.away = true;
    delivery_queue_fill(&w->queue, w->events, 1);
    assert_int_equal(step(w), 0);
    for (int i = 0; i < 12; i++) {
        int64_t waited_ms = step(w);
        assert_true(waited_ms >= full_ms / 2);
        assert_true(waited_ms <= full_ms);
        full_ms = full_ms * 2 < DELIVERY_BACKOFF_MS_MAX ? full_ms * 2 : DELIVERY_BACKOFF_MS_MAX;
    }
    w->receiver.away = false;
    step(w);
    assert_true(delivery_queue_is_done(&w->queue));
    w->receiver.away = true;
    delivery_queue_fill(&w->queue, w->events, 1);
    assert_int_equal(step(w), 0);
    assert_true(step(w) <= DELIVERY_BACKOFF_MS_FIRST);
}

static void test_a_receiver_may_ask_for_a_longer_pause_of_a_minute_at_most(void **state)
{
    struct world *w = *state;
    struct delivery_outcome busy = {.answer = ANSWER_FAILED, .retry_after_ms = 7000};
    struct dead_event dead;

    delivery_queue_init(&w->queue, 100, 7);
    delivery_queue_fill(&w->queue, w->events, 1);
    assert_int_equal(delivery_queue_next(&w->queue), 1);
    assert_false(delivery_queue_answer(&w->queue, &busy, 1000, &dead));
    assert_true(w->queue.next_ms == 8000);
    busy.retry_after_ms = 3000000;
    assert_int_equal(delivery_queue_next(&w->queue), 1);
    assert_false(delivery_queue_answer(&w->queue, &busy, 10000, &dead));
    assert_true(w->queue.next_ms == 70000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_events_go_in_order_in_requests_of_bounded_count),
        TEST(test_requests_are_bounded_in_bytes_but_one_large_event_goes_alone),
        TEST(test_one_refused_event_is_found_and_dies_alone),
        TEST(test_neighbouring_refused_events_die_and_their_neighbours_live),
        TEST(test_an_event_that_makes_the_receiver_fail_is_tried_so_often_and_then_dies),
        TEST(test_an_event_that_is_taken_at_the_last_try_lives),
        TEST(test_a_receiver_that_is_away_for_long_loses_nothing),
        TEST(test_a_receiver_that_refuses_everything_loses_nothing),
        TEST(test_a_receiver_that_goes_away_while_halving_loses_nothing_but_the_bad_event),
        TEST(test_pauses_grow_to_a_minute_and_begin_anew_after_a_delivery),
        TEST(test_a_receiver_may_ask_for_a_longer_pause_of_a_minute_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
