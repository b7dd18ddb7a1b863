/* SPDX-License-Identifier: Apache-2.0
 * Clients that are idle, slow or stuck are ended, however busily they dribble;
 * those that merely take long are not. Limits are set to one second; time is
 * taken from before the server's own begins, so a busy machine makes nothing
 * early. Where a test must itself be in time, it tries again when it was not. */
#include "http_fixture.h"

enum { BIG_SIZE = 16 * 1024 * 1024, TRIES = 10 };

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

/* Since then the limit has passed, or almost: what the server ended meanwhile was too slow indeed. */
static bool was_late(int64_t since_us)
{
    return clock_monotonic_us() - since_us > 900000;
}

/* Sends a byte every 50 ms; how long until the server had enough. */
static int64_t dribble_ms(struct client *client, int64_t begun_us, const char *text)
{
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
    int64_t begun_us = clock_monotonic_us();
    struct client *client = client_open(server);
    assert_true(client_sees_close(client, CLIENT_WAIT_MS));
    expect_about_a_second((clock_monotonic_us() - begun_us) / 1000);
    assert_int_equal(counter_get(COUNTER_HTTP_TIMEOUTS), before + 1);
    client_close(client);
}

/* One try; false if it was itself too late for a question. */
static bool kept_connection_is_closed_a_while_after_its_last_answer(void)
{
    static struct reply reply;
    struct client *client = client_open(server);
    int64_t asked_us = clock_monotonic_us();
    for (int i = 0; i < 4; i++) { /* longer together than the limit */
        if (i > 0)
            usleep(400000);
        int64_t before_us = asked_us;
        asked_us = clock_monotonic_us();
        client_send(client, "GET /small HTTP/1.1\r\nHost: h\r\n\r\n");
        if (!client_read(client, &reply)) {
            assert_true(was_late(before_us));
            client_close(client);
            return false;
        }
        assert_int_equal(reply.status, 200);
    }
    assert_true(client_sees_close(client, CLIENT_WAIT_MS));
    expect_about_a_second((clock_monotonic_us() - asked_us) / 1000);
    client_close(client);
    return true;
}

static void test_kept_connection_is_closed_a_while_after_its_last_answer(void **state)
{
    (void)state;
    int tries = 0;
    while (!kept_connection_is_closed_a_while_after_its_last_answer())
        assert_true(++tries < TRIES);
}

static void test_dribbled_headers_are_ended(void **state)
{
    (void)state;
    int64_t begun_us = clock_monotonic_us();
    struct client *client = client_open(server);
    expect_about_a_second(
        dribble_ms(client, begun_us, "GET /small HTTP/1.1\r\nHost: h\r\nX-Slow: aaaaaaaaaaaaaaaaa"));
    client_close(client);
}

static void test_dribbled_body_is_ended(void **state)
{
    (void)state;
    int64_t begun_us = clock_monotonic_us();
    struct client *client = client_open(server);
    client_send(client, "POST /small HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
                        "Content-Length: 10000\r\n\r\n");
    expect_about_a_second(dribble_ms(client, begun_us, "{           "));
    client_close(client);
}

static void test_dribbled_chunks_and_trailers_are_ended(void **state)
{
    (void)state;
    static const char head[] = "POST /small HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
                               "Transfer-Encoding: chunked\r\n\r\n";
    int64_t begun_us = clock_monotonic_us();
    struct client *client = client_open(server);
    client_send(client, head);
    expect_about_a_second(dribble_ms(
        client, begun_us, "1\r\nx\r\n1\r\nx\r\n1\r\nx\r\n1\r\nx\r\n1\r\nx\r\n1\r\nx\r\n10000\r\nx"));
    client_close(client);
    begun_us = clock_monotonic_us();
    client = client_open(server);
    client_send(client, head);
    client_send(client, "0\r\n");
    expect_about_a_second(dribble_ms(client, begun_us, "X-Trailer: aaaaaaaaaaaaaaaaaaaaaaaaaa"));
    client_close(client);
}

static void test_reader_that_does_not_take_its_answer_is_ended(void **state)
{
    (void)state;
    uint64_t before = counter_get(COUNTER_HTTP_TIMEOUTS);
    struct client *client = client_open(server);
    int64_t begun_us = clock_monotonic_us();
    client_send(client, "GET /big HTTP/1.1\r\nHost: h\r\n\r\n");
    WAIT_UNTIL(counter_get(COUNTER_HTTP_TIMEOUTS) == before + 1);
    expect_about_a_second((clock_monotonic_us() - begun_us) / 1000);
    client_close(client);
}

/* One try; false if it was itself too late for a byte. */
static bool slow_reader_gets_its_answer(void)
{
    struct client *client = client_open(server);
    int size = 64 * 1024;
    setsockopt(client->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    client_send(client, "GET /big HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    size_t total = 0;
    int64_t begun_us = clock_monotonic_us();
    bool late = false;
    for (int64_t moved_us = begun_us;;) {
        client->size = 0;
        ssize_t got = client_fill(client, CLIENT_WAIT_MS);
        late |= was_late(moved_us);
        if (got <= 0)
            break;
        moved_us = clock_monotonic_us();
        total += (size_t)got;
        if (moved_us - begun_us < 3000000) /* three times the limit, slowly; then fast, to have it over */
            usleep(50000);
    }
    client_close(client);
    if (total < BIG_SIZE) {
        assert_true(late);
        return false;
    }
    assert_true(clock_monotonic_us() - begun_us > 2500000);
    return true;
}

static void test_reader_that_is_slow_but_moves_gets_its_answer(void **state)
{
    (void)state;
    int tries = 0;
    while (!slow_reader_gets_its_answer())
        assert_true(++tries < TRIES);
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
    int answer_count = 0;
    int64_t until_us = clock_monotonic_us() + 1500000;
    while (clock_monotonic_us() < until_us) {
        struct client *client = client_open(server);
        assert_int_equal(client_ask(client, &reply, "GET /small HTTP/1.1\r\nHost: h\r\n\r\n"), 200);
        client_close(client);
        answer_count++;
        usleep(10000);
    }
    assert_true(answer_count >= 3); /* a server that waits for the slow ones, a second each, gives two */
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
