/* SPDX-License-Identifier: Apache-2.0
 * The deliverer over a store and a channel of this file's own, which answer at once: what it saves and when, and that
 * it stops when the row is not its own any more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "publish/delivery.h"
#include "store/changes.h"
#include "store/store_int.h"

enum { CHANGE_COUNT = 150, WAIT_MS_MAX = 20000 };

struct world {
    struct store store;
    struct delivery_channel channel;
    pthread_mutex_t lock; /* guards all below */
    struct arena arena;
    struct delivery_row row; /* version 0: there is none */
    struct store_change changes[CHANGE_COUNT];
    int32_t change_count;
    bool steal;  /* another node takes the row before the next write of it */
    int32_t bad; /* the subject's number that is refused, or −1 */
    int32_t begun_count;
    int32_t pending; /* events in the request under way; −1: none */
    bool pending_bad;
    uint8_t taken[10000];
    int32_t taken_count;
    char dead_type[64];
    char dead_reason[DELIVERY_REASON_SIZE];
    int32_t dead_count;
    struct feed_position dead_position; /* that was written with it */
    struct delivery *delivery;
};

static const struct uuid us = {{1}}, them = {{2}};

/* ---- The store ---- */

static enum err fake_lookup(struct store *store, struct store_lookup *lookup)
{
    struct world *w = CONTAINER_OF(store, struct world, store);

    pthread_mutex_lock(&w->lock);
    lookup->err = ERR_OK;
    lookup->found = w->row.version > 0;
    lookup->delivery = w->row;
    pthread_mutex_unlock(&w->lock);
    lookup->on_done(lookup);
    return ERR_OK;
}

static enum err fake_follow(struct store *store, struct store_follow *follow)
{
    struct world *w = CONTAINER_OF(store, struct world, store);

    pthread_mutex_lock(&w->lock);
    follow->err = ERR_OK;
    follow->changes = &w->changes[follow->after.id];
    follow->count = w->change_count - (int32_t)follow->after.id;
    follow->more = follow->count > follow->limit;
    if (follow->more)
        follow->count = follow->limit;
    follow->position = follow->after;
    follow->position.id += follow->count;
    follow->horizon = w->change_count;
    pthread_mutex_unlock(&w->lock);
    follow->on_done(follow);
    return ERR_OK;
}

static enum err fake_submit(struct store *store, struct store_batch *batch)
{
    struct world *w = CONTAINER_OF(store, struct world, store);
    struct store_unit *unit = CONTAINER_OF(batch->units.next, struct store_unit, node);
    struct delivery_write *write = unit->deliveries;

    pthread_mutex_lock(&w->lock);
    if (w->steal) {
        w->steal = false;
        w->row.node = them;
        w->row.lease_until_ms = clock_now_ms() + 3600000;
        w->row.version++;
    }
    batch->outcome = STORE_COMMITTED;
    batch->err = ERR_OK;
    write->missed = write->row.version != w->row.version + 1;
    unit->result = write->missed ? UNIT_MISSED : UNIT_OK;
    if (!write->missed)
        w->row = write->row;
    for (struct dead_letter_write *letter = unit->dead_letters; letter != NULL && !write->missed;
         letter = letter->next) {
        snprintf(w->dead_type, sizeof w->dead_type, "%s", letter->row.type);
        snprintf(w->dead_reason, sizeof w->dead_reason, "%s", letter->row.reason);
        w->dead_position = write->row.position;
        w->dead_count++;
    }
    pthread_mutex_unlock(&w->lock);
    batch->on_done(batch);
    return ERR_OK;
}

static const struct store_functions fake_functions = {
    .lookup = fake_lookup, .follow = fake_follow, .submit = fake_submit};

static void post(void *context, struct delivery_task *task)
{
    struct world *w = context;
    task->run(task, &w->store);
}

/* ---- The channel ---- */

static void fake_begin(struct delivery_channel *channel, const struct domain_event *events, int32_t count,
                       int64_t now_ms)
{
    struct world *w = CONTAINER_OF(channel, struct world, channel);

    (void)now_ms;
    pthread_mutex_lock(&w->lock);
    w->begun_count++;
    w->pending = count;
    w->pending_bad = false;
    for (int32_t i = 0; i < count; i++) {
        uint8_t number = events[i].key.bytes[15];
        w->pending_bad |= number == w->bad;
        w->taken[w->taken_count + i] = number;
    }
    pthread_mutex_unlock(&w->lock);
}

static bool fake_wait(struct delivery_channel *channel, int64_t timeout_ms, struct delivery_outcome *out)
{
    struct world *w = CONTAINER_OF(channel, struct world, channel);

    pthread_mutex_lock(&w->lock);
    bool ended = w->pending >= 0;
    if (ended) {
        *out = (struct delivery_outcome){.answer = w->pending_bad ? ANSWER_REFUSED : ANSWER_DELIVERED,
                                         .reason = "HTTP 422"};
        if (!w->pending_bad)
            w->taken_count += w->pending;
        w->pending = -1;
    }
    pthread_mutex_unlock(&w->lock);
    if (!ended)
        usleep((useconds_t)(timeout_ms < 5 ? timeout_ms : 5) * 1000);
    return ended;
}

static void fake_cancel(struct delivery_channel *channel)
{
    struct world *w = CONTAINER_OF(channel, struct world, channel);

    pthread_mutex_lock(&w->lock);
    w->pending = -1;
    pthread_mutex_unlock(&w->lock);
}

static void fake_nothing(struct delivery_channel *channel)
{
    (void)channel;
}

static const struct delivery_metrics fake_metrics = {
    .delivered = COUNTER_DELIVERIES_DELIVERED,
    .retried = COUNTER_DELIVERIES_RETRIED,
    .dead = COUNTER_DELIVERIES_DEAD,
    .leader = GAUGE_DELIVERY_LEADER,
    .backlog = GAUGE_DELIVERY_BACKLOG,
};

/* ---- The world ---- */

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    w->store.functions = &fake_functions;
    w->channel = (struct delivery_channel){
        .name = "webhook",
        .metrics = &fake_metrics,
        .begin = fake_begin,
        .wait = fake_wait,
        .cancel = fake_cancel,
        .wake = fake_nothing,
        .destroy = fake_nothing,
    };
    pthread_mutex_init(&w->lock, NULL);
    arena_init(&w->arena);
    w->bad = -1;
    w->pending = -1;
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    arena_deinit(&w->arena);
    pthread_mutex_destroy(&w->lock);
    free(w);
    return 0;
}

/* A batch with one new hold, on the seat of that number. */
static void add_change(struct world *w, uint8_t number)
{
    struct changes_packer packer;
    struct buf data;
    struct hold_write write = {
        .insert = true,
        .row = {.org_id = {{7}}, .event_id = {{8}}, .id = {{9}}, .user_id = {{5}}, .cart_token = ""},
    };
    struct store_unit unit = {.holds = &write};

    write.row.id.bytes[15] = write.row.seat_id.bytes[15] = number;
    buf_init(&data);
    changes_pack_begin(&packer, &data, &us);
    changes_pack_unit(&packer, &unit);
    assert_true(buf_ok(&data));
    pthread_mutex_lock(&w->lock);
    w->changes[w->change_count] = (struct store_change){
        .id = w->change_count + 1,
        .created_ms = clock_now_ms(),
        .data = arena_copy(&w->arena, data.data, data.size),
        .size = data.size,
    };
    w->change_count++;
    pthread_mutex_unlock(&w->lock);
    buf_deinit(&data);
}

static void start(struct world *w, int64_t beginning)
{
    struct delivery_config config = {
        .channel = &w->channel,
        .beginning = {.id = beginning},
        .node = us,
        .tries_max = 2,
        .post = post,
        .context = w,
    };
    assert_int_equal(delivery_start(&config, &w->delivery), ERR_OK);
}

static void stop(struct world *w)
{
    delivery_stop(w->delivery);
    delivery_destroy(w->delivery);
}

static bool position_is(struct world *w, int64_t id)
{
    return w->row.position.id == id;
}

static bool is_theirs(struct world *w, int64_t unused)
{
    (void)unused;
    return uuid_equal(&w->row.node, &them);
}

static void wait_for(struct world *w, bool (*probe)(struct world *w, int64_t value), int64_t value)
{
    for (int waited_ms = 0; waited_ms < WAIT_MS_MAX; waited_ms += 2) {
        pthread_mutex_lock(&w->lock);
        bool there = probe(w, value);
        pthread_mutex_unlock(&w->lock);
        if (there)
            return;
        usleep(2000);
    }
    fail_msg("waited in vain");
}

/* ---- Tests ---- */

static void test_all_changes_are_delivered_in_order_and_the_position_is_saved(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < CHANGE_COUNT; i++)
        add_change(w, (uint8_t)i);
    start(w, 0);
    wait_for(w, position_is, CHANGE_COUNT);
    stop(w);
    assert_int_equal(w->taken_count, CHANGE_COUNT);
    for (int i = 0; i < CHANGE_COUNT; i++)
        assert_int_equal(w->taken[i], i);
    assert_true(uuid_is_nil(&w->row.node)); /* given back */
    assert_true(position_is(w, CHANGE_COUNT));
}

static void test_the_first_start_begins_where_it_is_told_and_a_later_one_where_it_was(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 6; i++)
        add_change(w, (uint8_t)i);
    start(w, 4);
    wait_for(w, position_is, 6);
    stop(w);
    add_change(w, 6);
    start(w, 7);
    wait_for(w, position_is, 7);
    stop(w);
    assert_int_equal(w->taken_count, 3);
    assert_int_equal(w->taken[0], 4);
    assert_int_equal(w->taken[2], 6);
}

static void test_a_refused_event_is_written_as_dead_and_the_others_go_on(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 20; i++)
        add_change(w, (uint8_t)i);
    w->bad = 11;
    start(w, 0);
    wait_for(w, position_is, 20);
    stop(w);
    assert_int_equal(w->taken_count, 19);
    assert_int_equal(w->dead_count, 1);
    assert_string_equal(w->dead_type, "SeatReserved");
    assert_string_equal(w->dead_reason, "HTTP 422");
    assert_true(w->dead_position.id == 20); /* in one unit with the position that leaves it behind */
}

static void test_a_lease_of_another_node_is_waited_for_and_taken_when_it_runs_out(void **state)
{
    struct world *w = *state;

    w->row = (struct delivery_row){
        .name = "webhook", .node = them, .lease_until_ms = clock_now_ms() + 400, .version = 5};
    int64_t until_ms = w->row.lease_until_ms;
    add_change(w, 1);
    start(w, 0);
    wait_for(w, position_is, 1);
    assert_true(clock_now_ms() >= until_ms);
    stop(w);
    assert_int_equal(w->taken_count, 1);
}

static void test_a_node_that_lost_the_row_sends_nothing_more_and_moves_nothing(void **state)
{
    struct world *w = *state;

    start(w, 0);
    add_change(w, 0);
    wait_for(w, position_is, 1);
    pthread_mutex_lock(&w->lock);
    w->steal = true;
    pthread_mutex_unlock(&w->lock);
    add_change(w, 1); /* is sent; its position cannot be saved */
    wait_for(w, is_theirs, 0);
    pthread_mutex_lock(&w->lock);
    int32_t begun_count = w->begun_count, version = w->row.version;
    pthread_mutex_unlock(&w->lock);
    for (int i = 2; i < 40; i++)
        add_change(w, (uint8_t)i);
    usleep(300000); /* it would follow every 100 ms */
    stop(w);
    assert_int_equal(w->begun_count, begun_count);
    assert_int_equal(w->row.version, version);
    assert_true(position_is(w, 1));
    assert_true(is_theirs(w, 0));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_all_changes_are_delivered_in_order_and_the_position_is_saved),
        TEST(test_the_first_start_begins_where_it_is_told_and_a_later_one_where_it_was),
        TEST(test_a_refused_event_is_written_as_dead_and_the_others_go_on),
        TEST(test_a_lease_of_another_node_is_waited_for_and_taken_when_it_runs_out),
        TEST(test_a_node_that_lost_the_row_sends_nothing_more_and_moves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
