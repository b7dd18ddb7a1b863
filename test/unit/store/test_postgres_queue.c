/* SPDX-License-Identifier: Apache-2.0
 * Which batches may be written side by side, and in what order they come back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/postgres/postgres_int.h"

enum { BATCH_COUNT_MAX = 4 };

struct line { /* a queue with batches of one seat each */
    struct pg_queue queue;
    struct done done;
    struct store_batch batches[BATCH_COUNT_MAX];
    struct store_unit units[BATCH_COUNT_MAX];
    struct seat_write seats[BATCH_COUNT_MAX];
    struct event_write event;
    int handed_back[BATCH_COUNT_MAX];
    int count;
};

static void on_done(struct store_batch *batch)
{
    struct line *line = batch->context;
    line->handed_back[line->count++] = (int)(batch - line->batches);
}

static int setup(void **state)
{
    static struct line line;
    memset(&line, 0, sizeof(line));
    pg_queue_init(&line.queue);
    assert_int_equal(done_init(&line.done), ERR_OK);
    for (int i = 0; i < BATCH_COUNT_MAX; i++) {
        struct store_batch *batch = &line.batches[i];
        list_init(&batch->units);
        list_append(&batch->units, &line.units[i].node);
        line.units[i].seats = &line.seats[i];
        line.seats[i].row.id.bytes[0] = (uint8_t)(i + 1);
        batch->outcome = STORE_FAILED;
        batch->on_done = on_done;
        batch->context = &line;
    }
    *state = &line;
    return 0;
}

static int teardown(void **state)
{
    struct line *line = *state;
    done_deinit(&line->done);
    pg_queue_deinit(&line->queue);
    return 0;
}

static void post(struct line *line, int count)
{
    for (int i = 0; i < count; i++)
        assert_int_equal(pg_queue_post(&line->queue, &line->batches[i]), ERR_OK);
}

/* The number of the batch that may run now, or −1. */
static int take(struct line *line, struct pg_job **job)
{
    assert_true(pg_queue_take(&line->queue, job, 1));
    return *job != NULL ? (int)((*job)->batch - line->batches) : -1;
}

static void finish(struct line *line, struct pg_job *job)
{
    pg_queue_finish(&line->queue, job, &line->done);
    done_poll(&line->done);
}

static void test_batches_without_a_seat_in_common_run_side_by_side(void **state)
{
    struct line *line = *state;
    struct pg_job *first, *second;
    post(line, 2);
    assert_int_equal(take(line, &first), 0);
    assert_int_equal(take(line, &second), 1);
    finish(line, first);
    finish(line, second);
    assert_int_equal(line->count, 2);
}

static void test_batch_with_a_running_seat_waits_and_keeps_those_behind_it(void **state)
{
    struct line *line = *state;
    struct pg_job *first, *next;
    line->seats[1].row.id = line->seats[0].row.id;
    post(line, 3);
    assert_int_equal(take(line, &first), 0);
    assert_int_equal(take(line, &next), -1);
    finish(line, first);
    assert_int_equal(take(line, &next), 1);
    assert_int_equal(take(line, &first), 2);
    finish(line, next);
    finish(line, first);
}

static void test_batch_with_a_running_checkout_or_delivery_waits(void **state)
{
    struct line *line = *state;
    struct pg_job *first, *next;
    struct checkout_write checkouts[2] = {{.row.id = {{9}}}, {.row.id = {{9}}}};
    struct delivery_write deliveries[2] = {{.row.name = "webhook"}, {.row.name = "webhook"}};
    line->units[0].checkouts = &checkouts[0];
    line->units[1].checkouts = &checkouts[1];
    line->units[1].deliveries = &deliveries[0];
    line->units[2].deliveries = &deliveries[1];
    post(line, 3);
    assert_int_equal(take(line, &first), 0);
    assert_int_equal(take(line, &next), -1);
    finish(line, first);
    assert_int_equal(take(line, &next), 1);
    assert_int_equal(take(line, &first), -1);
    finish(line, next);
    assert_int_equal(take(line, &first), 2);
    finish(line, first);
}

/* Seeing a user for the first time changes nothing about them. */
static void test_only_batches_that_change_the_same_user_wait(void **state)
{
    struct line *line = *state;
    struct pg_job *first, *second, *third;
    struct user_write users[3] = {{.row.id = {{9}}}, {.seen = true, .row.id = {{9}}}, {.row.id = {{9}}}};
    for (int i = 0; i < 3; i++)
        line->units[i].users = &users[i];
    post(line, 3);
    assert_int_equal(take(line, &first), 0);
    assert_int_equal(take(line, &second), 1);
    assert_int_equal(take(line, &third), -1);
    finish(line, first);
    assert_int_equal(take(line, &third), 2);
    finish(line, second);
    finish(line, third);
}

static void test_batch_that_changes_the_catalogue_runs_alone(void **state)
{
    struct line *line = *state;
    struct pg_job *first, *second;
    line->units[1].events = &line->event;
    post(line, 3);
    assert_int_equal(take(line, &first), 0);
    assert_int_equal(take(line, &second), -1);
    finish(line, first);
    assert_int_equal(take(line, &first), 1);
    assert_int_equal(take(line, &second), -1);
    finish(line, first);
    assert_int_equal(take(line, &second), 2);
    finish(line, second);
}

static void test_batches_are_handed_back_in_the_order_they_were_submitted(void **state)
{
    struct line *line = *state;
    struct pg_job *jobs[3];
    post(line, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(take(line, &jobs[i]), i);
    finish(line, jobs[2]);
    finish(line, jobs[1]);
    assert_int_equal(line->count, 0); /* the first is not done */
    finish(line, jobs[0]);
    assert_int_equal(line->count, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(line->handed_back[i], i);
}

static void test_lost_batch_can_be_asked_about_while_its_seats_are_in_use(void **state)
{
    struct line *line = *state;
    struct pg_job *first, *second;
    line->seats[1].row.id = line->seats[0].row.id;
    line->batches[1].outcome = STORE_UNKNOWN;
    post(line, 2);
    assert_int_equal(take(line, &first), 0);
    assert_int_equal(take(line, &second), 1);
    finish(line, first);
    finish(line, second);
}

static void test_stopped_queue_gives_out_what_waits_and_takes_no_more(void **state)
{
    struct line *line = *state;
    struct pg_job *job;
    post(line, 1);
    pg_queue_stop(&line->queue);
    assert_int_equal(pg_queue_post(&line->queue, &line->batches[1]), ERR_STORE_UNAVAILABLE);
    assert_int_equal(take(line, &job), 0);
    finish(line, job);
    assert_false(pg_queue_take(&line->queue, &job, -1));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_batches_without_a_seat_in_common_run_side_by_side),
        TEST(test_batch_with_a_running_seat_waits_and_keeps_those_behind_it),
        TEST(test_batch_with_a_running_checkout_or_delivery_waits),
        TEST(test_only_batches_that_change_the_same_user_wait),
        TEST(test_batch_that_changes_the_catalogue_runs_alone),
        TEST(test_batches_are_handed_back_in_the_order_they_were_submitted),
        TEST(test_lost_batch_can_be_asked_about_while_its_seats_are_in_use),
        TEST(test_stopped_queue_gives_out_what_waits_and_takes_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
