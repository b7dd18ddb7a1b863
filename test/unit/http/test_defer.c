/* SPDX-License-Identifier: Apache-2.0
 * Requests that another thread finishes: batches, vanished clients, late
 * answers, and stopping in the middle. */
#include "http_fixture.h"

#include <pthread.h>

#include "base/list.h"

enum { CONNECTION_COUNT = 256 };

/* Deferred requests, in the order of their coming. */
struct parked {
    struct list node;
    struct http_request *request;
};

static struct {
    pthread_mutex_t lock;
    struct list list;
    size_t count;
    int resumed_count; /* on_resume ran */
} parking = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void reply_number(struct http_request *request)
{
    struct buf body;
    buf_init(&body);
    buf_put_text(&body, http_param(request, "number"));
    __atomic_fetch_add(&parking.resumed_count, 1, __ATOMIC_SEQ_CST);
    http_reply_json(request, 200, &body);
}

static void park(struct http_request *request, void (*on_resume)(struct http_request *request))
{
    struct parked *parked = ARENA_NEW(http_arena(request), struct parked);
    parked->request = request;
    http_defer(request, on_resume);
    pthread_mutex_lock(&parking.lock);
    list_append(&parking.list, &parked->node);
    parking.count++;
    pthread_mutex_unlock(&parking.lock);
}

static void handle_defer(struct http_request *request)
{
    park(request, reply_number);
}

static void defer_again(struct http_request *request)
{
    park(request, reply_number);
}

static void handle_defer_twice(struct http_request *request)
{
    park(request, defer_again);
}

static void handle_defer_and_resume(struct http_request *request)
{
    http_defer(request, reply_number);
    http_resume(request);
}

static const struct http_route routes[] = {
    {HTTP_GET, "/defer/{number}", handle_defer, NULL, 0},
    {HTTP_GET, "/twice/{number}", handle_defer_twice, NULL, 0},
    {HTTP_GET, "/at-once/{number}", handle_defer_and_resume, NULL, 0},
};

static size_t parked_count(void)
{
    pthread_mutex_lock(&parking.lock);
    size_t count = parking.count;
    pthread_mutex_unlock(&parking.lock);
    return count;
}

/* Resumes up to `count`, one right after another. */
static size_t resume_some(size_t count)
{
    struct list taken;
    size_t done = 0;
    list_init(&taken);
    pthread_mutex_lock(&parking.lock);
    for (; done < count && !list_empty(&parking.list); done++) {
        list_append(&taken, list_pop(&parking.list));
        parking.count--;
    }
    pthread_mutex_unlock(&parking.lock);
    for (struct list *node; (node = list_pop(&taken)) != NULL;)
        http_resume(CONTAINER_OF(node, struct parked, node)->request);
    return done;
}

static int reset(void **state)
{
    (void)state;
    list_init(&parking.list);
    parking.count = 0;
    parking.resumed_count = 0;
    return 0;
}

static void ask_number(struct client *client, const char *path, int number)
{
    char request[128];
    snprintf(request, sizeof request, "GET /%s/%d HTTP/1.1\r\nHost: h\r\n\r\n", path, number);
    client_send(client, request);
}

static void expect_number(struct client *client, int number)
{
    static struct reply reply;
    char expected[16];
    snprintf(expected, sizeof expected, "%d", number);
    assert_true(client_read(client, &reply));
    assert_int_equal(reply.status, 200);
    assert_string_equal(reply.body, expected);
}

struct batch_size {
    size_t size;
};

static void *resume_in_batches(void *context)
{
    struct batch_size *batch = context;
    size_t left = CONNECTION_COUNT;
    while (left > 0) {
        size_t wanted = batch->size < left ? batch->size : left;
        if (parked_count() >= wanted)
            left -= resume_some(wanted);
        else
            usleep(200);
    }
    return NULL;
}

static void batches_hang_nobody(int loop_count)
{
    static const size_t sizes[] = {128, 256, 1, 127, 129, 64, 128, 128};
    struct http_server *server =
        server_start((struct http_config){.loop_count = loop_count}, routes, COUNT_OF(routes));
    struct client *clients[CONNECTION_COUNT];
    for (int i = 0; i < CONNECTION_COUNT; i++)
        clients[i] = client_open(server);
    for (size_t round = 0; round < COUNT_OF(sizes); round++) {
        struct batch_size batch = {.size = sizes[round]};
        pthread_t resumer;
        for (int i = 0; i < CONNECTION_COUNT; i++)
            ask_number(clients[i], "defer", i);
        assert_int_equal(pthread_create(&resumer, NULL, resume_in_batches, &batch), 0);
        for (int i = 0; i < CONNECTION_COUNT; i++)
            expect_number(clients[i], i);
        pthread_join(resumer, NULL);
    }
    for (int i = 0; i < CONNECTION_COUNT; i++)
        client_close(clients[i]);
    http_server_stop(server, 1000);
}

static void test_batches_of_128_and_others_hang_nobody_on_one_loop(void **state)
{
    (void)state;
    batches_hang_nobody(1);
}

static void test_batches_of_128_and_others_hang_nobody_on_two_loops(void **state)
{
    (void)state;
    batches_hang_nobody(2);
}

static void test_handler_may_resume_before_it_returns(void **state)
{
    (void)state;
    struct http_server *server = server_start((struct http_config){0}, routes, COUNT_OF(routes));
    struct client *client = client_open(server);
    for (int i = 0; i < 100; i++)
        ask_number(client, "at-once", i);
    for (int i = 0; i < 100; i++)
        expect_number(client, i);
    client_close(client);
    http_server_stop(server, 1000);
}

static void test_request_may_be_deferred_again(void **state)
{
    (void)state;
    struct http_server *server = server_start((struct http_config){0}, routes, COUNT_OF(routes));
    struct client *client = client_open(server);
    ask_number(client, "twice", 7);
    WAIT_UNTIL(parked_count() == 1);
    resume_some(1);
    WAIT_UNTIL(parked_count() == 1);
    assert_int_equal(parking.resumed_count, 0);
    resume_some(1);
    expect_number(client, 7);
    client_close(client);
    http_server_stop(server, 1000);
}

static void test_client_that_vanishes_while_deferred_leaks_nothing(void **state)
{
    (void)state;
    struct http_server *server = server_start((struct http_config){0}, routes, COUNT_OF(routes));
    for (int i = 0; i < 50; i++) {
        struct client *client = client_open(server);
        ask_number(client, "defer", i);
        WAIT_UNTIL(parked_count() == (size_t)i + 1);
        struct linger reset_at_close = {.l_onoff = i % 2, .l_linger = 0};
        setsockopt(client->fd, SOL_SOCKET, SO_LINGER, &reset_at_close, sizeof reset_at_close);
        client_close(client);
    }
    resume_some(50);
    WAIT_UNTIL(__atomic_load_n(&parking.resumed_count, __ATOMIC_SEQ_CST) == 50);
    struct client *client = client_open(server);
    ask_number(client, "at-once", 1);
    expect_number(client, 1);
    client_close(client);
    http_server_stop(server, 1000);
}

static void test_client_that_only_stops_sending_gets_its_answer(void **state)
{
    (void)state;
    struct http_server *server = server_start((struct http_config){0}, routes, COUNT_OF(routes));
    struct client *client = client_open(server);
    ask_number(client, "defer", 5);
    shutdown(client->fd, SHUT_WR);
    WAIT_UNTIL(parked_count() == 1);
    resume_some(1);
    expect_number(client, 5);
    assert_true(client_sees_close(client, CLIENT_WAIT_MS));
    client_close(client);
    http_server_stop(server, 1000);
}

static void test_request_not_resumed_in_time_tells_its_client_so(void **state)
{
    (void)state;
    static struct reply reply;
    struct http_server *server =
        server_start((struct http_config){.defer_seconds = 1}, routes, COUNT_OF(routes));
    struct client *client = client_open(server);
    ask_number(client, "defer", 1);
    assert_true(client_read(client, &reply));
    assert_int_equal(reply.status, 504);
    assert_non_null(strstr(reply.body, "outcome_unknown"));
    ask_number(client, "at-once", 2); /* the connection is as good as before */
    expect_number(client, 2);
    assert_int_equal(parking.resumed_count, 1);
    resume_some(1); /* late, and dropped */
    WAIT_UNTIL(__atomic_load_n(&parking.resumed_count, __ATOMIC_SEQ_CST) == 2);
    client_close(client);
    http_server_stop(server, 1000);
}

struct stopping {
    struct http_server *server;
    int64_t drain_ms;
    int is_stopped;
};

static void *stop_server(void *context)
{
    struct stopping *stopping = context;
    http_server_stop(stopping->server, stopping->drain_ms);
    __atomic_store_n(&stopping->is_stopped, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void test_stop_waits_for_deferred_requests(void **state)
{
    (void)state;
    struct stopping stopping = {.drain_ms = CLIENT_WAIT_MS};
    stopping.server = server_start((struct http_config){.loop_count = 2}, routes, COUNT_OF(routes));
    struct client *clients[20];
    pthread_t thread;
    for (int i = 0; i < 20; i++) {
        clients[i] = client_open(stopping.server);
        ask_number(clients[i], "defer", i);
    }
    struct client *idle = client_open(stopping.server);
    WAIT_UNTIL(parked_count() == 20);
    assert_int_equal(pthread_create(&thread, NULL, stop_server, &stopping), 0);
    usleep(100000);
    assert_int_equal(__atomic_load_n(&stopping.is_stopped, __ATOMIC_SEQ_CST), 0);
    resume_some(20);
    for (int i = 0; i < 20; i++) {
        expect_number(clients[i], i);
        assert_true(client_sees_close(clients[i], CLIENT_WAIT_MS));
        client_close(clients[i]);
    }
    pthread_join(thread, NULL);
    assert_true(client_sees_close(idle, CLIENT_WAIT_MS));
    client_close(idle);
}

static void test_stop_does_not_wait_for_ever_and_late_resumes_are_harmless(void **state)
{
    (void)state;
    static struct reply reply;
    struct http_server *server = server_start((struct http_config){0}, routes, COUNT_OF(routes));
    struct client *clients[10];
    for (int i = 0; i < 10; i++) {
        clients[i] = client_open(server);
        ask_number(clients[i], i % 2 == 0 ? "defer" : "twice", i);
    }
    WAIT_UNTIL(parked_count() == 10);
    int64_t begun_us = clock_monotonic_us();
    http_server_stop(server, 100);
    assert_true(clock_monotonic_us() - begun_us < CLIENT_WAIT_MS * 1000ll);
    for (int i = 0; i < 10; i++) {
        assert_true(client_read(clients[i], &reply));
        assert_int_equal(reply.status, 504);
        client_close(clients[i]);
    }
    assert_int_equal(resume_some(10), 10); /* the server is gone */
    assert_int_equal(parking.resumed_count, 5);
    assert_int_equal(resume_some(10), 5); /* those that deferred again */
    assert_int_equal(parking.resumed_count, 10);
}

static void *resume_for_a_while(void *context)
{
    int *left = context;
    while (__atomic_load_n(left, __ATOMIC_SEQ_CST) > 0 || parked_count() > 0)
        resume_some(3);
    return NULL;
}

static void test_stop_races_with_resumes(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        int is_running = 1;
        pthread_t resumer;
        struct http_server *server =
            server_start((struct http_config){.loop_count = 2}, routes, COUNT_OF(routes));
        struct client *clients[16];
        for (int i = 0; i < 16; i++)
            clients[i] = client_open(server);
        assert_int_equal(pthread_create(&resumer, NULL, resume_for_a_while, &is_running), 0);
        for (int i = 0; i < 16; i++)
            for (int k = 0; k < 20; k++)
                ask_number(clients[i], "twice", k);
        usleep((useconds_t)round * 300);
        http_server_stop(server, round % 3);
        __atomic_store_n(&is_running, 0, __ATOMIC_SEQ_CST);
        pthread_join(resumer, NULL);
        for (int i = 0; i < 16; i++)
            client_close(clients[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_batches_of_128_and_others_hang_nobody_on_one_loop, reset),
        cmocka_unit_test_setup(test_batches_of_128_and_others_hang_nobody_on_two_loops, reset),
        cmocka_unit_test_setup(test_handler_may_resume_before_it_returns, reset),
        cmocka_unit_test_setup(test_request_may_be_deferred_again, reset),
        cmocka_unit_test_setup(test_client_that_vanishes_while_deferred_leaks_nothing, reset),
        cmocka_unit_test_setup(test_client_that_only_stops_sending_gets_its_answer, reset),
        cmocka_unit_test_setup(test_request_not_resumed_in_time_tells_its_client_so, reset),
        cmocka_unit_test_setup(test_stop_waits_for_deferred_requests, reset),
        cmocka_unit_test_setup(test_stop_does_not_wait_for_ever_and_late_resumes_are_harmless, reset),
        cmocka_unit_test_setup(test_stop_races_with_resumes, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
