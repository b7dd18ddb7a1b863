/* SPDX-License-Identifier: Apache-2.0
 * Event streams over real sockets: frames arrive, slow and vanished readers
 * go, requests are served beside them, and every source is closed once. */
#include "http_fixture.h"

#include <pthread.h>

enum { READER_COUNT = 600, FRAME_SIZE = 4096 };

static struct {
    int published; /* frames so far */
    int open_count;
    int closed_count;
    int is_ended; /* sources say so */
    int large_frames;
} feed;

struct source {
    int next;
    int is_closed;
};

static int value_of(const int *value)
{
    return __atomic_load_n(value, __ATOMIC_SEQ_CST);
}

static void set_value(int *value, int to)
{
    __atomic_store_n(value, to, __ATOMIC_SEQ_CST);
}

static bool source_ready(void *context)
{
    struct source *source = context;
    return source->next < value_of(&feed.published) || value_of(&feed.is_ended);
}

static int64_t source_read(void *context, char *out, size_t size)
{
    struct source *source = context;
    if (value_of(&feed.is_ended))
        return -1;
    if (source->next >= value_of(&feed.published))
        return 0;
    assert_true(size >= FRAME_SIZE);
    int written = snprintf(out, size, "id: %d\n\n", source->next++);
    if (!value_of(&feed.large_frames))
        return written;
    memset(out + written, '.', FRAME_SIZE - (size_t)written);
    return FRAME_SIZE;
}

static void source_close(void *context)
{
    struct source *source = context;
    assert_false(source->is_closed);
    source->is_closed = 1;
    free(source);
    __atomic_fetch_add(&feed.closed_count, 1, __ATOMIC_SEQ_CST);
}

static void handle_stream(struct http_request *request)
{
    struct source *source = calloc(1, sizeof *source);
    __atomic_fetch_add(&feed.open_count, 1, __ATOMIC_SEQ_CST);
    http_reply_stream(request, &(struct http_stream){source_read, source_ready, source_close, source});
}

static void *resume_soon(void *context)
{
    usleep(20000);
    http_resume(context);
    return NULL;
}

static void handle_deferred_stream(struct http_request *request)
{
    pthread_t thread;
    http_defer(request, handle_stream);
    assert_int_equal(pthread_create(&thread, NULL, resume_soon, request), 0);
    pthread_detach(thread);
}

static void handle_small(struct http_request *request)
{
    http_reply_static(request, 200, "text/plain", "ok", 2);
}

static const struct http_route routes[] = {
    {HTTP_GET, "/stream", handle_stream, NULL, 0},
    {HTTP_GET, "/deferred", handle_deferred_stream, NULL, 0},
    {HTTP_GET, "/small", handle_small, NULL, 0},
};

static struct http_server *server;

static int setup(void **state)
{
    (void)state;
    memset(&feed, 0, sizeof feed);
    server = server_start((struct http_config){.loop_count = 2, .idle_seconds = 2}, routes, COUNT_OF(routes));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    http_server_stop(server, 1000);
    return feed.open_count == feed.closed_count ? 0 : -1;
}

static void publish(int count)
{
    __atomic_fetch_add(&feed.published, count, __ATOMIC_SEQ_CST);
    http_streams_wake(server);
}

static struct client *open_reader(const char *path)
{
    static struct reply reply;
    char request[128];
    struct client *client = client_open(server);
    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", path);
    client_send(client, request);
    assert_true(client_read_head(client, &reply));
    assert_int_equal(reply.status, 200);
    assert_string_equal(reply_header(&reply, "Content-Type"), "text/event-stream");
    assert_string_equal(reply_header(&reply, "X-Accel-Buffering"), "no");
    assert_string_equal(reply_header(&reply, "Cache-Control"), "no-store");
    assert_non_null(reply_header(&reply, "X-Request-Id"));
    return client;
}

static void expect_frames(struct client *client, int first, int count)
{
    for (int i = first; i < first + count; i++) {
        char expected[32];
        snprintf(expected, sizeof expected, "id: %d\n\n", i);
        while (client->size < strlen(expected))
            assert_true(client_fill(client, CLIENT_WAIT_MS) > 0);
        assert_memory_equal(client->data, expected, strlen(expected));
        client->size -= strlen(expected);
        memmove(client->data, client->data + strlen(expected), client->size);
    }
}

static void test_frames_arrive_in_order_when_published(void **state)
{
    (void)state;
    publish(2);
    struct client *client = open_reader("/stream");
    expect_frames(client, 0, 2);
    int late_count = 0;
    for (int i = 2; i < 50; i++) {
        int64_t begun_us = clock_monotonic_us();
        publish(1);
        expect_frames(client, i, 1);
        late_count += clock_monotonic_us() - begun_us > 900000;
    }
    assert_true(late_count < 12); /* woken, not found by the sweep; on a busy machine now and then */
    client_close(client);
}

static void test_stream_may_begin_after_deferral(void **state)
{
    (void)state;
    struct client *client = open_reader("/deferred");
    publish(3);
    expect_frames(client, 0, 3);
    client_close(client);
}

static void test_ready_is_asked_about_once_a_second_without_a_wake(void **state)
{
    (void)state;
    struct client *client = open_reader("/stream");
    __atomic_fetch_add(&feed.published, 1, __ATOMIC_SEQ_CST);
    expect_frames(client, 0, 1);
    client_close(client);
}

static void test_more_readers_than_a_turn_takes_all_get_their_frames(void **state)
{
    (void)state;
    static struct reply reply;
    struct client *readers[READER_COUNT];
    for (int i = 0; i < READER_COUNT; i++)
        readers[i] = open_reader("/stream");
    struct client *other = client_open(server);
    for (int round = 0; round < 10; round++) {
        publish(1);
        assert_int_equal(client_ask(other, &reply, "GET /small HTTP/1.1\r\nHost: h\r\n\r\n"), 200);
    }
    for (int i = 0; i < READER_COUNT; i++)
        expect_frames(readers[i], 0, 10);
    for (int i = 0; i < READER_COUNT; i++)
        client_close(readers[i]);
    client_close(other);
    WAIT_UNTIL(value_of(&feed.closed_count) == READER_COUNT); /* noticed without a frame being sent */
}

static void test_reader_that_stops_reading_is_dropped(void **state)
{
    (void)state;
    uint64_t dropped = counter_get(COUNTER_STREAM_DROPPED);
    set_value(&feed.large_frames, 1);
    struct client *stuck = open_reader("/stream");
    struct client *other = open_reader("/stream");
    publish(4000); /* 16 MB: more than any socket holds */
    size_t total = 0;
    while (total < 4000u * FRAME_SIZE) { /* the other is not held up */
        other->size = 0;
        ssize_t got = client_fill(other, CLIENT_WAIT_MS);
        assert_true(got > 0);
        total += (size_t)got;
    }
    WAIT_UNTIL(value_of(&feed.closed_count) == 1);
    assert_int_equal(counter_get(COUNTER_STREAM_DROPPED), dropped + 1);
    client_close(stuck);
    client_close(other);
}

static void test_reader_that_pauses_gets_every_byte(void **state)
{
    (void)state;
    set_value(&feed.large_frames, 1);
    struct client *client = open_reader("/stream");
    publish(2000);
    usleep(500000);
    for (int i = 0; i < 2000; i++) {
        char expected[32];
        snprintf(expected, sizeof expected, "id: %d\n\n.", i);
        while (client->size < FRAME_SIZE)
            assert_true(client_fill(client, CLIENT_WAIT_MS) > 0);
        assert_memory_equal(client->data, expected, strlen(expected));
        client->size -= FRAME_SIZE;
        memmove(client->data, client->data + FRAME_SIZE, client->size);
    }
    client_close(client);
}

static void test_stream_that_ends_closes_its_socket(void **state)
{
    (void)state;
    struct client *client = open_reader("/stream");
    publish(1);
    expect_frames(client, 0, 1);
    set_value(&feed.is_ended, 1);
    http_streams_wake(server);
    assert_true(client_sees_close(client, CLIENT_WAIT_MS));
    client_close(client);
}

static void test_head_of_a_stream_is_an_empty_answer(void **state)
{
    (void)state;
    static struct reply reply;
    struct client *client = client_open(server);
    client_send(client, "HEAD /stream HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_true(client_read_head(client, &reply));
    assert_string_equal(reply_header(&reply, "Content-Type"), "text/event-stream");
    assert_int_equal(client_ask(client, &reply, "GET /small HTTP/1.1\r\nHost: h\r\n\r\n"), 200);
    assert_int_equal(value_of(&feed.closed_count), 1);
    client_close(client);
}

static void test_stop_ends_streams(void **state)
{
    (void)state;
    struct client *client = open_reader("/stream");
    http_server_stop(server, CLIENT_WAIT_MS);
    assert_int_equal(feed.closed_count, 1);
    assert_true(client_sees_close(client, CLIENT_WAIT_MS));
    client_close(client);
    server = server_start((struct http_config){0}, routes, COUNT_OF(routes)); /* for teardown */
}

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SERVER(test_frames_arrive_in_order_when_published),
        WITH_SERVER(test_stream_may_begin_after_deferral),
        WITH_SERVER(test_ready_is_asked_about_once_a_second_without_a_wake),
        WITH_SERVER(test_more_readers_than_a_turn_takes_all_get_their_frames),
        WITH_SERVER(test_reader_that_stops_reading_is_dropped),
        WITH_SERVER(test_reader_that_pauses_gets_every_byte),
        WITH_SERVER(test_stream_that_ends_closes_its_socket),
        WITH_SERVER(test_head_of_a_stream_is_an_empty_answer),
        WITH_SERVER(test_stop_ends_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
