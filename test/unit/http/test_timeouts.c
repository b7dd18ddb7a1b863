/* SPDX-License-Identifier: Apache-2.0
 * Clients that are idle, slow or stuck are ended, however busily they dribble;
 * those that merely take long are not. Limits are set to one second. */
#include "http_fixture.h"

enum { BIG_SIZE = 16 * 1024 * 1024 };

static struct http_server *server;
static char *big;

static void handle_small(struct http_request *request)
{
    http_reply_static(request, 200, "text/plain", "ok", 2);
}

static void handle_big(struct http_request *request)
{
    http_reply_static(request, 200, "application/octet-stream", big, BIG_SIZE);
}

static const struct http_route routes[] = {
    {HTTP_GET, "/small", handle_small, NULL, 0},
    {HTTP_POST, "/small", handle_small, NULL, 0},
    {HTTP_GET, "/big", handle_big, NULL, 0},
};

static int setup(void **state)
{
    (void)state;
    big = calloc(1, BIG_SIZE);
    server =
        server_start((struct http_config){.idle_seconds = 1, .receive_seconds = 1}, routes, COUNT_OF(routes));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    http_server_stop(server, 1000);
    free(big);
    return 0;
}

/* Sends a byte every 50 ms; how long until the server had enough. */
static int64_t dribble_ms(struct client *client, const char *text)
{
    int64_t begun_us = clock_monotonic_us();
    for (;; text += text[1] != '\0') {
        client_send_n(client, text, 1);
        client->size = 0;
        ssize_t got = client_fill(client, 50);
        int64_t taken_ms = (clock_monotonic_us() - begun_us) / 1000;
        if (got == 0 || got == -2 || taken_ms > CLIENT_WAIT_MS)
            return taken_ms;
    }
}

static void expect_about_a_second(int64_t taken_ms)
{
    assert_in_range(taken_ms, 900, CLIENT_WAIT_MS); /* a busy machine may be late, never early */
}

static void test_connection_that_asks_nothing_is_closed(void **state)
{
    (void)state;
    uint64_t before = counter_get(COUNTER_HTTP_TIMEOUTS);
    struct client *client = client_open(server);
    int64_t begun_us = clock_monotonic_us();
    assert_true(client_sees_close(client, CLIENT_WAIT_MS));
    expect_about_a_second((clock_monotonic_us() - begun_us) / 1000);
    assert_int_equal(counter_get(COUNTER_HTTP_TIMEOUTS), before + 1);
    client_close(client);
}

static void test_kept_connection_is_closed_a_while_after_its_last_answer(void **state)
{
    (void)state;
    static struct reply reply;
    struct client *client = client_open(server);
    for (int i = 0; i < 4; i++) { /* longer together than the limit */
        assert_int_equal(client_ask(client, &reply, "GET /small HTTP/1.1\r\nHost: h\r\n\r\n"), 200);
        usleep(400000);
    }
    int64_t begun_us = clock_monotonic_us();
    assert_true(client_sees_close(client, CLIENT_WAIT_MS));
    assert_in_range((clock_monotonic_us() - begun_us) / 1000, 300, CLIENT_WAIT_MS);
    client_close(client);
}

static void test_dribbled_headers_are_ended(void **state)
{
    (void)state;
    struct client *client = client_open(server);
    expect_about_a_second(dribble_ms(client, "GET /small HTTP/1.1\r\nHost: h\r\nX-Slow: aaaaaaaaaaaaaaaaa"));
    client_close(client);
}

static void test_dribbled_body_is_ended(void **state)
{
    (void)state;
    struct client *client = client_open(server);
    client_send(client, "POST /small HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
                        "Content-Length: 10000\r\n\r\n");
    expect_about_a_second(dribble_ms(client, "{           "));
    client_close(client);
}

static void test_dribbled_chunks_and_trailers_are_ended(void **state)
{
    (void)state;
    static const char head[] = "POST /small HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
                               "Transfer-Encoding: chunked\r\n\r\n";
    struct client *client = client_open(server);
    client_send(client, head);
    expect_about_a_second(
        dribble_ms(client, "1\r\nx\r\n1\r\nx\r\n1\r\nx\r\n1\r\nx\r\n1\r\nx\r\n1\r\nx\r\n10000\r\nx"));
    client_close(client);
    client = client_open(server);
    client_send(client, head);
    client_send(client, "0\r\n");
    expect_about_a_second(dribble_ms(client, "X-Trailer: aaaaaaaaaaaaaaaaaaaaaaaaaa"));
    client_close(client);
}

static void test_reader_that_does_not_take_its_answer_is_ended(void **state)
{
    (void)state;
    uint64_t before = counter_get(COUNTER_HTTP_TIMEOUTS);
    struct client *client = client_open(server);
    client_send(client, "GET /big HTTP/1.1\r\nHost: h\r\n\r\n");
    int64_t begun_us = clock_monotonic_us();
    WAIT_UNTIL(counter_get(COUNTER_HTTP_TIMEOUTS) == before + 1);
    expect_about_a_second((clock_monotonic_us() - begun_us) / 1000);
    client_close(client);
}

static void test_reader_that_is_slow_but_moves_gets_its_answer(void **state)
{
    (void)state;
    struct client *client = client_open(server);
    int size = 64 * 1024;
    setsockopt(client->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    client_send(client, "GET /big HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    size_t total = 0;
    int64_t begun_us = clock_monotonic_us();
    for (int64_t slow_us = 0;;) {
        client->size = 0;
        ssize_t got = client_fill(client, CLIENT_WAIT_MS);
        if (got <= 0)
            break;
        total += (size_t)got;
        slow_us = clock_monotonic_us() - begun_us;
        if (slow_us < 3000000) /* three times the limit, slowly; then fast, to have it over */
            usleep(50000);
    }
    assert_true(clock_monotonic_us() - begun_us > 2500000);
    assert_true(total > BIG_SIZE);
    client_close(client);
}

static void test_others_are_served_meanwhile(void **state)
{
    (void)state;
    static struct reply reply;
    struct client *slow[50];
    for (int i = 0; i < 50; i++) {
        slow[i] = client_open(server);
        client_send(slow[i], i % 2 == 0 ? "GET /sm" : "GET /big HTTP/1.1\r\nHost: h\r\n\r\n");
    }
    struct client *client = client_open(server);
    int answer_count = 0;
    int64_t until_us = clock_monotonic_us() + 1500000;
    while (clock_monotonic_us() < until_us) {
        assert_int_equal(client_ask(client, &reply, "GET /small HTTP/1.1\r\nHost: h\r\n\r\n"), 200);
        answer_count++;
        usleep(10000);
    }
    assert_true(answer_count >= 3); /* a server that waits for the slow ones, a second each, gives two */
    client_close(client);
    for (int i = 0; i < 50; i += 2)
        assert_true(client_sees_close(slow[i], CLIENT_WAIT_MS));
    for (int i = 0; i < 50; i++)
        client_close(slow[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_connection_that_asks_nothing_is_closed),
        cmocka_unit_test(test_kept_connection_is_closed_a_while_after_its_last_answer),
        cmocka_unit_test(test_dribbled_headers_are_ended),
        cmocka_unit_test(test_dribbled_body_is_ended),
        cmocka_unit_test(test_dribbled_chunks_and_trailers_are_ended),
        cmocka_unit_test(test_reader_that_does_not_take_its_answer_is_ended),
        cmocka_unit_test(test_reader_that_is_slow_but_moves_gets_its_answer),
        cmocka_unit_test(test_others_are_served_meanwhile),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
