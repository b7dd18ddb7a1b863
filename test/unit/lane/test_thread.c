/* SPDX-License-Identifier: Apache-2.0
 * The lane on its own thread, over the embedded store, asked by many at once
 * through the local order: every command is answered once, every seat has one
 * owner, and a stop in the middle leaves nobody waiting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"
#include "lane/lane.h"
#include "order/order.h"

enum { SEAT_COUNT = 50, THREAD_COUNT = 4, ASK_COUNT = 300, WAIT_SECONDS = 30 };

struct house {
    char path[64];
    char url[96];
    struct store *store;
    struct directory *directory;
    struct lane *lane;
    struct order *order;
    struct uuid org_id, event_id;
    struct uuid seats[SEAT_COUNT];
};

struct ask {
    struct command command;
    struct arena arena;
    _Atomic int *done_count;
    bool taken; /* by the queue */
};

static void on_done(struct command *command)
{
    struct ask *ask = command->owner;
    atomic_fetch_add(ask->done_count, 1);
}

static void ask_init(struct ask *ask, const struct house *house, enum command_kind kind, struct uuid user_id,
                     _Atomic int *done_count)
{
    arena_init(&ask->arena);
    command_init(&ask->command, kind, &ask->arena);
    ask->command.actor = (struct actor){
        .org_id = house->org_id, .user_id = user_id, .for_user_id = user_id, .role = ROLE_ADMIN};
    ask->command.on_done = on_done;
    ask->command.owner = ask;
    ask->done_count = done_count;
}

static void ask_deinit(struct ask *ask)
{
    command_deinit(&ask->command);
    arena_deinit(&ask->arena);
}

static void wait_for(_Atomic int *count, int expected)
{
    int64_t until_us = clock_monotonic_us() + WAIT_SECONDS * 1000000ll;
    while (atomic_load(count) < expected && clock_monotonic_us() < until_us)
        usleep(500);
    assert_int_equal(atomic_load(count), expected);
}

static void ask_now(struct house *house, struct ask *ask)
{
    int before = atomic_load(ask->done_count);
    assert_int_equal(order_submit(house->order, &ask->command), ERR_OK);
    wait_for(ask->done_count, before + 1);
    assert_int_equal(ask->command.result.err, ERR_OK);
}

static void no_charge(void *context, const struct lane_charge *charge)
{
    (void)context;
    (void)charge;
}

static void open_house(struct house *house)
{
    char why[256] = "";
    assert_int_equal(store_open(house->url, NULL, &house->store, why, sizeof(why)), ERR_OK);
    assert_int_equal(directory_create(&house->directory), ERR_OK);
    struct lane_config config = {
        .store = house->store, .directory = house->directory, .charge = no_charge, .refund = no_charge};
    assert_int_equal(lane_create(&config, clock_now_ms(), &house->lane, why, sizeof(why)), ERR_OK);
    assert_int_equal(order_local_create(house->lane, &house->order), ERR_OK);
    assert_int_equal(lane_start(house->lane), ERR_OK);
}

static void close_house(struct house *house)
{
    lane_stop(house->lane, 5000);
    order_destroy(house->order);
    lane_destroy(house->lane);
    store_close(house->store);
    directory_destroy(house->directory);
}

static void fill_house(struct house *house)
{
    _Atomic int done = 0;
    struct uuid admin = {{9}};
    struct ask org, event, layout;
    ask_init(&org, house, COMMAND_ORG_CREATE, admin, &done);
    org.command.id = house->org_id;
    org.command.admin.name = "Theatre";
    ask_now(house, &org);
    ask_init(&event, house, COMMAND_EVENT_CREATE, admin, &done);
    event.command.event.row = (struct event_row){.id = house->event_id,
                                                 .name = "Show",
                                                 .state = EVENT_LIVE,
                                                 .sale_start_ms = INT64_MIN,
                                                 .sale_end_ms = INT64_MAX,
                                                 .currency = "EUR",
                                                 .policy = policy_default()};
    event.command.event.row.policy.max_seats_per_user = 0;
    event.command.event.row.policy.rate_limit_holds = 0;
    ask_now(house, &event);
    ask_init(&layout, house, COMMAND_LAYOUT_PUT, admin, &done);
    layout.command.id = house->event_id;
    layout.command.layout.document =
        "{\"blocks\":[{\"section\":\"A\",\"subsection\":1,\"name\":\"A\",\"price_cents\":1,"
        "\"rows\":[{\"label\":\"1\",\"seats\":50}]}]}";
    layout.command.layout.size = strlen(layout.command.layout.document);
    ask_now(house, &layout);
    ask_deinit(&org);
    ask_deinit(&event);
    ask_deinit(&layout);
    struct arena arena;
    arena_init(&arena);
    struct event_view view;
    assert_true(directory_event(house->directory, &house->org_id, &house->event_id, &arena, &view));
    memcpy(house->seats, view.map->seat_ids, sizeof(house->seats));
    seatmap_release(view.map);
    arena_deinit(&arena);
}

static int setup(void **state)
{
    struct house *house = calloc(1, sizeof(*house));
    assert_non_null(house);
    log_set_level(LOG_ERROR);
    strcpy(house->path, "/tmp/holdfast-lane-XXXXXX");
    assert_non_null(mkdtemp(house->path));
    snprintf(house->url, sizeof(house->url), "sqlite:%s/holdfast.db", house->path);
    house->org_id = (struct uuid){{1}};
    house->event_id = (struct uuid){{2}};
    open_house(house);
    fill_house(house);
    *state = house;
    return 0;
}

static int teardown(void **state)
{
    struct house *house = *state;
    close_house(house);
    static const char *const names[] = {"", "-wal", "-shm", ".lock", "-lock"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char file[128];
        snprintf(file, sizeof(file), "%s/holdfast.db%s", house->path, names[i]);
        unlink(file);
    }
    rmdir(house->path);
    free(house);
    return 0;
}

/* ---- Many at once ---- */

struct asker {
    struct house *house;
    struct ask *asks;
    _Atomic int done;
    int number;
    int count; /* of those that were taken */
};

static void *ask_for_seats(void *argument)
{
    struct asker *asker = argument;
    struct rng rng;
    rng_init_seed(&rng, (uint64_t)asker->number);
    for (int i = 0; i < ASK_COUNT; i++) {
        struct ask *ask = &asker->asks[i];
        struct uuid user = {{7, (uint8_t)asker->number, (uint8_t)rng_below(&rng, 8)}};
        ask_init(ask, asker->house, COMMAND_HOLD_SEATS, user, &asker->done);
        ask->command.hold_seats.event_id = asker->house->event_id;
        ask->command.hold_seats.seat_ids = &asker->house->seats[rng_below(&rng, SEAT_COUNT)];
        ask->command.hold_seats.count = 1;
        ask->command.has_key = i % 5 == 0;
        memcpy(ask->command.key, &i, sizeof(i));
        ask->command.key[8] = (uint8_t)asker->number;
        ask->taken = order_submit(asker->house->order, &ask->command) == ERR_OK;
        asker->count += ask->taken;
    }
    return NULL;
}

static void start_askers(struct house *house, struct asker *askers, pthread_t *threads)
{
    for (int i = 0; i < THREAD_COUNT; i++) {
        askers[i] = (struct asker){.house = house, .number = i};
        askers[i].asks = calloc(ASK_COUNT, sizeof(struct ask));
        assert_non_null(askers[i].asks);
        assert_int_equal(pthread_create(&threads[i], NULL, ask_for_seats, &askers[i]), 0);
    }
}

static void free_askers(struct asker *askers)
{
    for (int i = 0; i < THREAD_COUNT; i++) {
        for (int j = 0; j < ASK_COUNT; j++)
            ask_deinit(&askers[i].asks[j]);
        free(askers[i].asks);
    }
}

static void test_every_seat_has_one_owner_however_many_ask(void **state)
{
    struct house *house = *state;
    struct asker askers[THREAD_COUNT];
    pthread_t threads[THREAD_COUNT];
    start_askers(house, askers, threads);
    for (int i = 0; i < THREAD_COUNT; i++) {
        pthread_join(threads[i], NULL);
        wait_for(&askers[i].done, askers[i].count);
    }
    int granted[SEAT_COUNT] = {0};
    for (int i = 0; i < THREAD_COUNT; i++) {
        for (int j = 0; j < ASK_COUNT; j++) {
            const struct result *result = &askers[i].asks[j].command.result;
            assert_true(result->err == ERR_OK || result->err == ERR_SEAT_HELD);
            if (result->err == ERR_OK && result->status == 201)
                granted[result->holds[0].seat_index]++;
        }
    }
    for (int i = 0; i < SEAT_COUNT; i++)
        assert_int_equal(granted[i], 1); /* 1,200 questions about 50 seats: each was asked for */
    free_askers(askers);
}

/* ---- Stopping ---- */

static void no_broken_promise(void *context, const char *claim, int64_t broken, const char *example)
{
    (void)context;
    if (broken != 0)
        fail_msg("%s: %lld, for example %s", claim, (long long)broken, example);
}

static void test_a_stop_in_the_middle_leaves_nobody_waiting(void **state)
{
    struct house *house = *state;
    for (int round = 0; round < 5; round++) {
        struct asker askers[THREAD_COUNT];
        pthread_t threads[THREAD_COUNT];
        start_askers(house, askers, threads);
        for (int i = 0; i < THREAD_COUNT; i++)
            pthread_join(threads[i], NULL); /* senders are gone before the lane is */
        close_house(house);
        for (int i = 0; i < THREAD_COUNT; i++)
            assert_int_equal(atomic_load(&askers[i].done), askers[i].count);
        free_askers(askers);
        open_house(house);
        assert_int_equal(store_verify(house->store, no_broken_promise, NULL), ERR_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_seat_has_one_owner_however_many_ask, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_stop_in_the_middle_leaves_nobody_waiting, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
