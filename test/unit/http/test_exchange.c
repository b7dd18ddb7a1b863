/* SPDX-License-Identifier: Apache-2.0
 * Requests over a real socket, as raw bytes: what is answered, what is refused
 * and in which order, and whether the connection lives on. */
#include "http_fixture.h"

enum { LARGE_LIMIT = 1024 * 1024 };

static struct http_server *server;

static void handle_thing(struct http_request *request)
{
    struct buf body;
    buf_init(&body);
    const char *query = http_query(request, "q");
    buf_printf(&body, "thing=%s q=%s method=%s path=%s ip=%s loopback=%d", http_param(request, "thing"),
               query == NULL ? "(none)" : query, http_method_name(request), http_path(request),
               http_remote_ip(request), http_is_loopback(request));
    http_reply(request, 200, "text/plain", &body);
}

static void handle_echo(struct http_request *request)
{
    struct buf body;
    size_t size;
    const char *data = http_body(request, &size);
    buf_init(&body);
    unsigned sum = 0;
    for (size_t i = 0; i < size; i++)
        sum = sum * 31 + (unsigned char)data[i];
    buf_printf(&body, "size=%zu sum=%u", size, sum);
    http_reply_json(request, 201, &body);
}

static int release_count;

static void count_release(void *context)
{
    assert_string_equal(context, "shared");
    __atomic_fetch_add(&release_count, 1, __ATOMIC_SEQ_CST);
}

static void handle_shared(struct http_request *request)
{
    static char shared[] = "shared";
    http_reply_header(request, "Cache-Control", "public, max-age=60");
    http_reply_header(request, "X-Bad", "a\r\nX-Injected: yes");
    http_reply_shared(request, 200, "text/plain", shared, 6, count_release, shared);
}

static void handle_no_content(struct http_request *request)
{
    http_reply(request, 204, NULL, NULL);
}

static void handle_failed_buffer(struct http_request *request)
{
    struct buf body;
    buf_init(&body);
    buf_put_text(&body, "half");
    body.failed = true;
    http_reply_json(request, 200, &body);
}

static const struct http_route routes[] = {
    {HTTP_GET, "/things/{thing}", handle_thing, NULL, 0},
    {HTTP_DELETE, "/things/{thing}", handle_thing, NULL, 0},
    {HTTP_POST, "/echo", handle_echo, NULL, 0},
    {HTTP_PUT, "/echo", handle_echo, NULL, LARGE_LIMIT},
    {HTTP_GET, "/shared", handle_shared, NULL, 0},
    {HTTP_DELETE, "/nothing", handle_no_content, NULL, 0},
    {HTTP_GET, "/failed", handle_failed_buffer, NULL, 0},
};

static void refuse_without_token(struct http_request *request)
{
    if (http_header(request, "X-Refuse") != NULL)
        http_reply_error(request, ERR_UNAUTHORIZED);
}

static int setup(void **state)
{
    (void)state;
    server = server_start((struct http_config){.on_headers = refuse_without_token, .loop_count = 2}, routes,
                          COUNT_OF(routes));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    http_server_stop(server, 1000);
    return 0;
}

static struct client *client;
static struct reply reply;

static int open_client(void **state)
{
    (void)state;
    client = client_open(server);
    return 0;
}

static int close_client(void **state)
{
    (void)state;
    client_close(client);
    return 0;
}

static void expect_refusal(const char *request, int status, const char *code)
{
    client_send(client, request);
    assert_true(client_read(client, &reply));
    assert_int_equal(reply.status, status);
    assert_non_null(strstr(reply.body, code));
    assert_string_equal(reply_header(&reply, "Content-Type"), "application/json");
    assert_string_equal(reply_header(&reply, "Cache-Control"), "no-store");
    assert_non_null(reply_header(&reply, "X-Request-Id"));
}

static void expect_refusal_and_close(const char *request, int status, const char *code)
{
    expect_refusal(request, status, code);
    assert_true(client_sees_close(client, CLIENT_WAIT_MS));
}

#define HOST "Host: h\r\n"
#define JSON "Content-Type: application/json\r\n"

static void test_handler_sees_what_was_asked(void **state)
{
    (void)state;
    assert_int_equal(
        client_ask(client, &reply, "GET /things/a%20b?x=1&q=%C3%A9+%26&q=2 HTTP/1.1\r\n" HOST "\r\n"), 200);
    assert_string_equal(reply.body,
                        "thing=a b q=\xC3\xA9 & method=GET path=/things/a%20b ip=127.0.0.1 loopback=1");
    assert_int_equal(client_ask(client, &reply, "DELETE /things/7?q=%00 HTTP/1.1\r\n" HOST "\r\n"), 200);
    assert_string_equal(reply.body, "thing=7 q=%00 method=DELETE path=/things/7 ip=127.0.0.1 loopback=1");
}

static void test_every_answer_carries_the_common_headers(void **state)
{
    (void)state;
    client_ask(client, &reply, "GET /things/1 HTTP/1.1\r\n" HOST "\r\n");
    assert_string_equal(reply_header(&reply, "Cache-Control"), "no-store");
    assert_string_equal(reply_header(&reply, "X-Content-Type-Options"), "nosniff");
    assert_int_equal(strlen(reply_header(&reply, "X-Request-Id")), 36);
    assert_int_equal(reply_header(&reply, "X-Request-Id")[14], '7');
    assert_non_null(reply_header(&reply, "Date"));
}

static void test_request_id_of_the_client_is_kept_if_it_is_decent(void **state)
{
    (void)state;
    static const struct {
        const char *given;
        bool is_kept;
    } cases[] = {
        {"abc.DEF_1-2", true},
        {"0123456789012345678901234567890123456789012345678901234567890123", true},
        {"01234567890123456789012345678901234567890123456789012345678901234", false},
        {"a b", false},
        {"a\"b", false},
        {"\xC3\xA9", false},
        {"", false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char request[256];
        snprintf(request, sizeof request, "GET /things/1 HTTP/1.1\r\n" HOST "X-Request-Id: %s\r\n\r\n",
                 cases[i].given);
        assert_int_equal(client_ask(client, &reply, request), 200);
        assert_int_equal(strcmp(reply_header(&reply, "X-Request-Id"), cases[i].given) == 0, cases[i].is_kept);
    }
}

static void test_handler_may_set_cache_control_but_not_inject(void **state)
{
    (void)state;
    int before = __atomic_load_n(&release_count, __ATOMIC_SEQ_CST);
    assert_int_equal(client_ask(client, &reply, "GET /shared HTTP/1.1\r\n" HOST "\r\n"), 200);
    assert_string_equal(reply_header(&reply, "Cache-Control"), "public, max-age=60");
    assert_null(reply_header(&reply, "X-Injected"));
    assert_null(reply_header(&reply, "X-Bad"));
    assert_memory_equal(reply.body, "shared", 6);
    WAIT_UNTIL(__atomic_load_n(&release_count, __ATOMIC_SEQ_CST) == before + 1);
}

static void test_unknown_path_is_404_and_keeps_the_connection(void **state)
{
    (void)state;
    expect_refusal("GET /nope HTTP/1.1\r\n" HOST "\r\n", 404, "not_found");
    expect_refusal("GET /things/a%2Fb HTTP/1.1\r\n" HOST "\r\n", 404, "not_found");
    expect_refusal("GET /things/a%00b HTTP/1.1\r\n" HOST "\r\n", 404, "not_found");
    assert_int_equal(client_ask(client, &reply, "GET /things/1 HTTP/1.1\r\n" HOST "\r\n"), 200);
}

static void test_wrong_method_is_405_with_allow(void **state)
{
    (void)state;
    expect_refusal("PATCH /things/1 HTTP/1.1\r\n" HOST "\r\n", 405, "method_not_allowed");
    assert_string_equal(reply_header(&reply, "Allow"), "DELETE, GET, HEAD");
    expect_refusal("OPTIONS /echo HTTP/1.1\r\n" HOST "\r\n", 405, "method_not_allowed");
    assert_string_equal(reply_header(&reply, "Allow"), "POST, PUT");
}

static void test_head_is_served_by_get_without_a_body(void **state)
{
    (void)state;
    client_send(client, "HEAD /shared HTTP/1.1\r\n" HOST "\r\n");
    assert_true(client_read_head(client, &reply));
    assert_int_equal(reply.status, 200);
    assert_string_equal(reply_header(&reply, "Content-Length"), "6");
    assert_int_equal(client_ask(client, &reply, "GET /things/1 HTTP/1.1\r\n" HOST "\r\n"), 200);
}

static void test_no_content_has_no_body(void **state)
{
    (void)state;
    assert_int_equal(client_ask(client, &reply, "DELETE /nothing HTTP/1.1\r\n" HOST "\r\n"), 204);
    assert_int_equal(client_ask(client, &reply, "GET /things/1 HTTP/1.1\r\n" HOST "\r\n"), 200);
}

static void test_answer_that_ran_out_of_memory_is_a_500(void **state)
{
    (void)state;
    expect_refusal("GET /failed HTTP/1.1\r\n" HOST "\r\n", 500, "internal_error");
}

static void test_pipelined_requests_are_answered_in_order(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        char request[128];
        snprintf(request, sizeof request, "GET /things/%d HTTP/1.1\r\n" HOST "\r\n", i);
        client_send(client, request);
    }
    for (int i = 0; i < 20; i++) {
        char expected[32];
        snprintf(expected, sizeof expected, "thing=%d ", i);
        assert_true(client_read(client, &reply));
        assert_memory_equal(reply.body, expected, strlen(expected));
    }
}

static void test_ambiguous_framing_is_400_and_closes(void **state)
{
    (void)state;
    static const char *const requests[] = {
        "POST /echo HTTP/1.1\r\n" HOST JSON
        "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "POST /echo HTTP/1.1\r\n" HOST JSON
        "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n",
        "POST /echo HTTP/1.1\r\n" HOST JSON "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        "POST /echo HTTP/1.1\r\n" HOST JSON "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "POST /echo HTTP/1.1\r\n" HOST JSON
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST /echo HTTP/1.1\r\n" HOST JSON "Content-Length: 2\r\nTransfer-Encoding : chunked\r\n\r\n{}",
        "POST /nope HTTP/1.1\r\n" HOST
        "X-Refuse: 1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
    };
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        expect_refusal_and_close(requests[i], 400, "invalid_request");
        client_close(client);
        client = client_open(server);
    }
}

static void test_malformed_requests_get_400_or_are_closed(void **state)
{
    (void)state;
    static const char *const requests[] = {
        "POST /echo HTTP/1.1\r\n" HOST JSON "Content-Length: x\r\n\r\n",
        "POST /echo HTTP/1.1\r\n" HOST JSON "Content-Length: -1\r\n\r\n",
        "POST /echo HTTP/1.1\r\n" HOST JSON "Content-Length: 99999999999999999999999\r\n\r\n",
        "POST /echo HTTP/1.1\r\n" HOST JSON "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        "GET /things/1 HTTP/1.1\r\n\r\n", /* no Host */
        "GET /things/1 HTTP/1.1\r\nno colon\r\n\r\n",
        "garbage\r\n\r\n",
        "\x16\x03\x01\x02\x01\x01\xfc\x03\x03\r\n\r\n",
    };
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        client_send(client, requests[i]);
        if (client_read(client, &reply))
            assert_in_range(reply.status, 400, 499);
        assert_true(client_sees_close(client, CLIENT_WAIT_MS));
        client_close(client);
        client = client_open(server);
    }
}

static void test_length_over_the_limit_is_413_before_the_body(void **state)
{
    (void)state;
    expect_refusal_and_close("POST /echo HTTP/1.1\r\n" HOST JSON "Content-Length: 65537\r\n\r\n", 413,
                             "body_too_large");
}

static void test_client_that_expects_100_is_refused_instead(void **state)
{
    (void)state;
    expect_refusal_and_close("PUT /echo HTTP/1.1\r\n" HOST JSON
                             "Expect: 100-continue\r\nContent-Length: 1048577\r\n\r\n",
                             413, "body_too_large");
}

static void test_client_that_expects_100_gets_it(void **state)
{
    (void)state;
    client_send(client,
                "POST /echo HTTP/1.1\r\n" HOST JSON "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    assert_true(client_read_head(client, &reply));
    assert_int_equal(reply.status, 100);
    client_send(client, "{}");
    assert_true(client_read(client, &reply));
    assert_int_equal(reply.status, 201);
}

static void test_token_is_judged_before_size_and_type(void **state)
{
    (void)state;
    expect_refusal_and_close("POST /echo HTTP/1.1\r\n" HOST "X-Refuse: 1\r\nContent-Type: text/plain\r\n"
                             "Content-Length: 99999999\r\n\r\n",
                             401, "unauthorized");
}

static void test_refusal_without_a_body_keeps_the_connection(void **state)
{
    (void)state;
    expect_refusal("POST /echo HTTP/1.1\r\n" HOST "X-Refuse: 1\r\nContent-Length: 0\r\n\r\n", 401,
                   "unauthorized");
    assert_int_equal(client_ask(client, &reply, "GET /things/1 HTTP/1.1\r\n" HOST "\r\n"), 200);
}

static void test_chunked_body_over_the_limit_is_413_while_it_is_sent(void **state)
{
    (void)state;
    static char chunk[4096 + 8];
    client_send(client, "POST /echo HTTP/1.1\r\n" HOST JSON "Transfer-Encoding: chunked\r\n\r\n");
    memcpy(chunk, "1000\r\n", 6);
    memset(chunk + 6, 'x', 4096);
    memcpy(chunk + 6 + 4096, "\r\n", 2);
    for (int i = 0; i < 17; i++) /* the body never ends */
        client_send_n(client, chunk, sizeof chunk);
    assert_true(client_read(client, &reply));
    assert_int_equal(reply.status, 413);
    assert_non_null(strstr(reply.body, "body_too_large"));
    assert_non_null(reply_header(&reply, "X-Request-Id"));
    assert_true(client_sees_close(client, CLIENT_WAIT_MS));
}

static void test_refused_client_sees_its_answer_though_it_goes_on_sending(void **state)
{
    (void)state;
    static char part[16384];
    client_send(client, "PUT /echo HTTP/1.1\r\n" HOST JSON "Content-Length: 2000000\r\n\r\n");
    for (int i = 0; i < 100; i++) { /* slowly enough to be caught by a reset, were there one */
        assert_true(client_send_n(client, part, sizeof part));
        usleep(1000);
    }
    assert_true(client_read(client, &reply));
    assert_int_equal(reply.status, 413);
    assert_int_equal(client_fill(client, CLIENT_WAIT_MS), 0);
}

static void test_bodies_up_to_the_limit_arrive_whole(void **state)
{
    (void)state;
    char *body = malloc(LARGE_LIMIT);
    unsigned sum = 0;
    for (size_t i = 0; i < LARGE_LIMIT; i++) {
        body[i] = (char)(i * 7 + i / 251);
        sum = sum * 31 + (unsigned char)body[i];
    }
    char expected[64];
    client_send(client, "PUT /echo HTTP/1.1\r\n" HOST JSON "Content-Length: 1048576\r\n\r\n");
    client_send_n(client, body, LARGE_LIMIT);
    assert_true(client_read(client, &reply));
    assert_int_equal(reply.status, 201);
    snprintf(expected, sizeof expected, "size=%d sum=%u", LARGE_LIMIT, sum);
    assert_string_equal(reply.body, expected);

    sum = 0;
    for (size_t i = 0; i < BODY_SIZE_MAX; i++)
        sum = sum * 31 + (unsigned char)body[i];
    client_send(client, "POST /echo HTTP/1.1\r\n" HOST JSON "Transfer-Encoding: chunked\r\n\r\n");
    for (size_t at = 0, step = 1; at < BODY_SIZE_MAX; at += step, step = step * 3 + 1) {
        char size[16];
        if (step > BODY_SIZE_MAX - at)
            step = BODY_SIZE_MAX - at;
        snprintf(size, sizeof size, "%zx\r\n", step);
        client_send(client, size);
        client_send_n(client, body + at, step);
        client_send(client, "\r\n");
    }
    client_send(client, "0\r\n\r\n");
    assert_true(client_read(client, &reply));
    assert_int_equal(reply.status, 201);
    snprintf(expected, sizeof expected, "size=%d sum=%u", BODY_SIZE_MAX, sum);
    assert_string_equal(reply.body, expected);
    free(body);
}

static void test_body_must_be_json(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        int status;
    } cases[] = {
        {"Content-Type: text/plain\r\nContent-Length: 2\r\n", 415},
        {"Content-Type: application/jsonp\r\nContent-Length: 2\r\n", 415},
        {"Content-Length: 2\r\n", 415},
        {"Content-Type: application/json; charset=utf-8\r\nContent-Length: 2\r\n", 201},
        {"Content-Type: APPLICATION/JSON\r\nContent-Length: 2\r\n", 201},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char request[256];
        snprintf(request, sizeof request, "POST /echo HTTP/1.1\r\n" HOST "%s\r\n{}", cases[i].header);
        assert_int_equal(client_ask(client, &reply, request), cases[i].status);
        client_close(client);
        client = client_open(server);
    }
    assert_int_equal(client_ask(client, &reply, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n"),
                     201);
    assert_int_equal(client_ask(client, &reply, "POST /echo HTTP/1.1\r\n" HOST "\r\n"), 201);
    const char *empty = "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    assert_int_equal(client_ask(client, &reply, empty), 201);
    expect_refusal_and_close("POST /echo HTTP/1.1\r\n" HOST
                             "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
                             415, "unsupported_media_type");
}

static void send_long_headers(size_t size)
{
    client_send(client, "GET /things/1 HTTP/1.1\r\n" HOST);
    char line[1024];
    memset(line, 'x', sizeof line);
    memcpy(line, "X-Long: ", 8);
    memcpy(line + sizeof line - 2, "\r\n", 2);
    for (size_t sent = 0; sent < size; sent += sizeof line)
        client_send_n(client, line, sizeof line);
    client_send(client, "\r\n");
}

static void test_headers_over_the_limit_are_431(void **state)
{
    (void)state;
    send_long_headers(HEADER_SIZE_MAX - 2048);
    assert_true(client_read(client, &reply));
    assert_int_equal(reply.status, 200);
    send_long_headers(HEADER_SIZE_MAX + 1024);
    assert_true(client_read(client, &reply));
    assert_int_equal(reply.status, 431);
    assert_non_null(strstr(reply.body, "headers_too_large"));
    client_close(client);
    client = client_open(server);
    send_long_headers(200 * 1024);
    assert_true(client_read(client, &reply));
    assert_int_equal(reply.status, 431);
    assert_true(client_sees_close(client, CLIENT_WAIT_MS));
}

static void test_thousands_of_headers_are_refused(void **state)
{
    (void)state;
    client_send(client, "GET /things/1 HTTP/1.1\r\n" HOST);
    for (int i = 0; i < 5000; i++)
        client_send(client, "a:\r\n");
    client_send(client, "\r\n");
    assert_true(client_read(client, &reply));
    assert_int_equal(reply.status, 431);
}

static void test_forwarding_header_is_not_believed_from_a_stranger(void **state)
{
    (void)state;
    client_ask(client, &reply, "GET /things/1 HTTP/1.1\r\n" HOST "X-Forwarded-For: 9.9.9.9\r\n\r\n");
    assert_non_null(strstr(reply.body, "ip=127.0.0.1 loopback=0"));
}

static void test_forwarding_header_of_the_trusted_proxy_gives_the_last_hop(void **state)
{
    (void)state;
    struct http_server *behind =
        server_start((struct http_config){.trusted_proxy = "::ffff:127.0.0.1"}, routes, COUNT_OF(routes));
    struct client *proxy = client_open(behind);
    client_ask(proxy, &reply, "GET /things/1 HTTP/1.1\r\n" HOST "X-Forwarded-For: 6.6.6.6, 9.9.9.9\r\n\r\n");
    assert_non_null(strstr(reply.body, "ip=9.9.9.9 loopback=0"));
    client_ask(proxy, &reply,
               "GET /things/1 HTTP/1.1\r\n" HOST
               "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 2001:DB8::5\r\n\r\n");
    assert_non_null(strstr(reply.body, "ip=2001:db8::5 loopback=0"));
    client_ask(proxy, &reply, "GET /things/1 HTTP/1.1\r\n" HOST "X-Forwarded-For: nonsense\r\n\r\n");
    assert_non_null(strstr(reply.body, "ip=127.0.0.1 loopback=0"));
    client_ask(proxy, &reply, "GET /things/1 HTTP/1.1\r\n" HOST "\r\n");
    assert_non_null(strstr(reply.body, "ip=127.0.0.1 loopback=1"));
    client_close(proxy);
    http_server_stop(behind, 0);
}

static enum err try_start(const char *address, uint16_t port, const char *proxy, char *why, size_t why_size)
{
    struct http_server *second = NULL;
    struct http_config config = {.address = address,
                                 .port = port,
                                 .loop_count = 2,
                                 .routes = routes,
                                 .route_count = COUNT_OF(routes),
                                 .trusted_proxy = proxy,
                                 .write_error = write_error};
    enum err err = http_server_start(&config, &second, why, why_size);
    if (err != ERR_OK)
        assert_null(second);
    else
        http_server_stop(second, 0);
    return err;
}

static void test_server_says_why_it_cannot_start(void **state)
{
    (void)state;
    char why[256];
    assert_int_equal(try_start("127.0.0.1", http_server_port(server), NULL, why, sizeof why), ERR_LISTEN);
    assert_non_null(strstr(why, "in use"));
    assert_int_equal(try_start("not an address", 0, NULL, why, sizeof why), ERR_LISTEN);
    assert_non_null(strstr(why, "not an IP address"));
    assert_int_equal(try_start("192.0.2.1", 0, NULL, why, sizeof why), ERR_LISTEN);
    assert_non_null(strstr(why, "not an address of this machine"));
    assert_int_equal(try_start("127.0.0.1", 0, "proxy.example", why, sizeof why), ERR_LISTEN);
    assert_non_null(strstr(why, "trusted proxy"));
    assert_int_equal(try_start("127.0.0.1", 0, NULL, why, sizeof why), ERR_OK);
}

/* Asked of the kernel, not of the server: a server that fails to start must fail the test. */
static bool machine_has_ipv6(void)
{
    struct sockaddr_in6 any_port = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool has = fd >= 0 && bind(fd, (struct sockaddr *)&any_port, sizeof any_port) == 0;
    if (fd >= 0)
        close(fd);
    return has;
}

static void test_server_listens_on_ipv6(void **state)
{
    (void)state;
    if (!machine_has_ipv6())
        skip();
    struct http_server *sixth = NULL;
    struct http_config config = {.address = "::1",
                                 .loop_count = 1,
                                 .routes = routes,
                                 .route_count = COUNT_OF(routes),
                                 .write_error = write_error};
    char why[256];
    assert_int_equal(http_server_start(&config, &sixth, why, sizeof why), ERR_OK);
    struct client *peer = calloc(1, sizeof *peer);
    peer->fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in6 to = {.sin6_family = AF_INET6,
                              .sin6_port = htons(http_server_port(sixth)),
                              .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    assert_int_equal(connect(peer->fd, (struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(client_ask(peer, &reply, "GET /things/1 HTTP/1.1\r\n" HOST "\r\n"), 200);
    assert_non_null(strstr(reply.body, "ip=::1 loopback=1"));
    client_close(peer);
    http_server_stop(sixth, 0);
}

static void test_answers_are_counted_by_class(void **state)
{
    (void)state;
    uint64_t good = counter_get(COUNTER_HTTP_2XX);
    uint64_t bad = counter_get(COUNTER_HTTP_4XX);
    client_ask(client, &reply, "GET /things/1 HTTP/1.1\r\n" HOST "\r\n");
    client_ask(client, &reply, "GET /nope HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(counter_get(COUNTER_HTTP_2XX), good + 1);
    assert_int_equal(counter_get(COUNTER_HTTP_4XX), bad + 1);
}

#define WITH_CLIENT(test) cmocka_unit_test_setup_teardown(test, open_client, close_client)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_CLIENT(test_handler_sees_what_was_asked),
        WITH_CLIENT(test_every_answer_carries_the_common_headers),
        WITH_CLIENT(test_request_id_of_the_client_is_kept_if_it_is_decent),
        WITH_CLIENT(test_handler_may_set_cache_control_but_not_inject),
        WITH_CLIENT(test_unknown_path_is_404_and_keeps_the_connection),
        WITH_CLIENT(test_wrong_method_is_405_with_allow),
        WITH_CLIENT(test_head_is_served_by_get_without_a_body),
        WITH_CLIENT(test_no_content_has_no_body),
        WITH_CLIENT(test_answer_that_ran_out_of_memory_is_a_500),
        WITH_CLIENT(test_pipelined_requests_are_answered_in_order),
        WITH_CLIENT(test_ambiguous_framing_is_400_and_closes),
        WITH_CLIENT(test_malformed_requests_get_400_or_are_closed),
        WITH_CLIENT(test_length_over_the_limit_is_413_before_the_body),
        WITH_CLIENT(test_client_that_expects_100_is_refused_instead),
        WITH_CLIENT(test_client_that_expects_100_gets_it),
        WITH_CLIENT(test_token_is_judged_before_size_and_type),
        WITH_CLIENT(test_refusal_without_a_body_keeps_the_connection),
        WITH_CLIENT(test_chunked_body_over_the_limit_is_413_while_it_is_sent),
        WITH_CLIENT(test_refused_client_sees_its_answer_though_it_goes_on_sending),
        WITH_CLIENT(test_bodies_up_to_the_limit_arrive_whole),
        WITH_CLIENT(test_body_must_be_json),
        WITH_CLIENT(test_headers_over_the_limit_are_431),
        WITH_CLIENT(test_thousands_of_headers_are_refused),
        WITH_CLIENT(test_forwarding_header_is_not_believed_from_a_stranger),
        cmocka_unit_test(test_forwarding_header_of_the_trusted_proxy_gives_the_last_hop),
        cmocka_unit_test(test_server_says_why_it_cannot_start),
        cmocka_unit_test(test_server_listens_on_ipv6),
        WITH_CLIENT(test_answers_are_counted_by_class),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
