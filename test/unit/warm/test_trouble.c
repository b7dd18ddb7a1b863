/* SPDX-License-Identifier: Apache-2.0
 * Redis in trouble: frozen, killed, emptied, read-only, behind TLS or a
 * password; and what the breaker makes of it. The tier's clock is the test's. */
#include "base/metrics.h"
#include "warm_fixture.h"

enum { RETRY_MS = 30000 };

static struct fixture fixture;

static int setup(void **state)
{
    (void)state;
    fixture_start(&fixture);
    return 0;
}

static int setup_closed(void **state)
{
    setup(state);
    redis_server_start(&fixture.server, NULL);
    fixture_connect_plain(&fixture);
    fixture_create(&fixture, fixture.server.url);
    fixture_close(&fixture);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_stop(&fixture);
    return 0;
}

static void pass(int64_t ms)
{
    fixture.now_us += ms * 1000;
}

/* The same, with time going by slower than it really does. */
#define PASS_UNTIL(condition) TURN_UNTIL(&fixture, (pass(1), (condition)))

/* Asks for a lock and lets the time of a round pass. */
static enum warm_outcome lock_late(void)
{
    struct warm_write hold = fixture_hold(&fixture, 0);
    struct warm_lock lock = fixture_lock_of(&hold);
    bool done = false;
    struct warm_round round = {
        .arena = &fixture.arena, .locks = &lock, .count = 1, .on_done = fixture_on_round, .context = &done};
    assert_int_equal(warm_lock(fixture.warm, &round), ERR_OK);
    int64_t due_us = warm_turn(fixture.warm, fixture.now_us);
    if (!done) {
        assert_true(due_us <= fixture.now_us + WARM_ROUND_MS_MAX * 1000);
        pass(WARM_ROUND_MS_MAX - 1);
        warm_turn(fixture.warm, fixture.now_us);
        assert_false(done);
        pass(1);
        warm_turn(fixture.warm, fixture.now_us);
    }
    assert_true(done);
    return round.outcome;
}

static void test_a_frozen_server_costs_a_round_fifty_ms_and_opens_at_the_fifth(void **state)
{
    (void)state;
    kill(fixture.server.pid, SIGSTOP);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(warm_state(fixture.warm), WARM_CLOSED);
        assert_int_equal(lock_late(), WARM_TIMED_OUT);
    }
    assert_int_equal(warm_state(fixture.warm), WARM_OPEN);
    struct warm_round round = {.count = 1};
    struct warm_lock lock = {0};
    round.locks = &lock;
    assert_int_not_equal(warm_lock(fixture.warm, &round), ERR_OK); /* nothing is asked any more */

    kill(fixture.server.pid, SIGCONT);
    for (int i = 0; i < 200; i++)
        fixture_turn(&fixture);
    /* A connection that was being made when it opened may end well; otherwise it is tried after the wait. */
    pass(RETRY_MS);
    TURN_UNTIL(&fixture, warm_state(fixture.warm) == WARM_REBUILDING);
    warm_rebuilt(fixture.warm);
    struct warm_write hold = fixture_hold(&fixture, 0);
    fixture_reserve(&fixture, &hold);
}

static void test_an_answer_that_came_in_time_counts_however_late_it_is_read(void **state)
{
    (void)state;
    struct warm_write hold = fixture_hold(&fixture, 0);
    struct warm_lock lock = fixture_lock_of(&hold);
    bool done = false;
    struct warm_round round = {
        .arena = &fixture.arena, .locks = &lock, .count = 1, .on_done = fixture_on_round, .context = &done};
    assert_int_equal(warm_lock(fixture.warm, &round), ERR_OK);
    warm_turn(fixture.warm, fixture.now_us);
    struct pollfd fd = {.fd = warm_fd(fixture.warm), .events = POLLIN};
    /* Everything that can come has come once the lock is there and something is readable. */
    for (int i = 0; i < 2000 && !fixture_exists(&fixture, &hold, KEY_LOCK); i++)
        usleep(1000);
    assert_int_equal(poll(&fd, 1, WAIT_MS_MAX), 1);
    pass(500);
    warm_turn(fixture.warm, fixture.now_us);
    assert_true(done);
    assert_int_equal(round.outcome, WARM_ANSWERED);
    assert_int_equal(lock.result, WARM_LOCK_TAKEN);
}

static void test_a_killed_server_fails_rounds_and_opens(void **state)
{
    (void)state;
    redis_server_kill(&fixture.server);
    for (int i = 0; i < 100 && warm_state(fixture.warm) == WARM_CLOSED; i++) {
        struct warm_write hold = fixture_hold(&fixture, 0);
        struct warm_lock lock = fixture_lock_of(&hold);
        assert_int_equal(fixture_lock(&fixture, &lock, 1), WARM_FAILED);
    }
    assert_int_equal(warm_state(fixture.warm), WARM_OPEN);
    /* Open, nothing is tried before its time … */
    redis_server_run(&fixture.server);
    pass(RETRY_MS - 1000);
    for (int i = 0; i < 20; i++)
        fixture_turn(&fixture);
    assert_int_equal(warm_state(fixture.warm), WARM_OPEN);
    /* … and then by itself. */
    pass(1000);
    TURN_UNTIL(&fixture, warm_state(fixture.warm) == WARM_REBUILDING);
}

static void test_without_anybody_asking_it_notices_too(void **state)
{
    (void)state;
    redis_server_kill(&fixture.server);
    for (int i = 0; i < 100 && warm_state(fixture.warm) == WARM_CLOSED; i++) {
        fixture_turn(&fixture);
        pass(100);
    }
    assert_int_equal(warm_state(fixture.warm), WARM_OPEN);
}

static void test_a_server_restarted_empty_is_rebuilt(void **state)
{
    (void)state;
    redis_server_kill(&fixture.server);
    redis_server_run(&fixture.server);
    PASS_UNTIL(warm_state(fixture.warm) != WARM_CLOSED);
    PASS_UNTIL(warm_state(fixture.warm) == WARM_REBUILDING);
    fixture_close(&fixture);
}

static void test_an_emptied_server_is_noticed_and_rebuilt(void **state)
{
    (void)state;
    fixture_command(&fixture, "FLUSHALL");
    fixture_settle(&fixture);
    assert_int_equal(warm_state(fixture.warm), WARM_CLOSED);
    pass(5000);
    TURN_UNTIL(&fixture, warm_state(fixture.warm) == WARM_REBUILDING);
    fixture_close(&fixture);
    pass(5000);
    fixture_settle(&fixture);
    fixture_settle(&fixture);
    assert_int_equal(warm_state(fixture.warm), WARM_CLOSED); /* once */
}

static void test_emptied_while_it_is_rebuilt_it_begins_anew(void **state)
{
    (void)state;
    fixture_command(&fixture, "FLUSHALL");
    pass(5000);
    TURN_UNTIL(&fixture, warm_state(fixture.warm) == WARM_REBUILDING);
    fixture_settle(&fixture);
    fixture_command(&fixture, "FLUSHALL");
    pass(5000);
    TURN_UNTIL(&fixture, warm_state(fixture.warm) == WARM_OPEN);
    pass(1000);
    TURN_UNTIL(&fixture, warm_state(fixture.warm) == WARM_REBUILDING);
}

static void test_a_connection_cut_by_the_server_costs_no_more_than_its_rounds(void **state)
{
    (void)state;
    fixture_command(&fixture, "CLIENT KILL TYPE normal SKIPME yes");
    struct warm_write hold = fixture_hold(&fixture, 0);
    struct warm_lock lock = fixture_lock_of(&hold);
    if (fixture_lock(&fixture, &lock, 1) != WARM_ANSWERED)
        assert_int_equal(fixture_lock(&fixture, &lock, 1), WARM_ANSWERED);
    assert_int_equal(warm_state(fixture.warm), WARM_CLOSED);
}

static void test_away_at_the_start_it_is_open(void **state)
{
    (void)state;
    fixture_create(&fixture, "unix:///nowhere/redis.sock");
    assert_int_equal(warm_state(fixture.warm), WARM_REBUILDING);
    TURN_UNTIL(&fixture, warm_state(fixture.warm) == WARM_OPEN);
}

static void test_a_second_address_takes_over(void **state)
{
    (void)state;
    struct redis_server other;
    char url[300];
    redis_server_start(&fixture.server, NULL);
    redis_server_start(&other, NULL);
    snprintf(url, sizeof(url), "%s,%s", fixture.server.url, other.url);
    fixture_create(&fixture, url);
    fixture_close(&fixture);
    redis_server_kill(&fixture.server);
    PASS_UNTIL(warm_state(fixture.warm) == WARM_REBUILDING); /* another one: it is empty */
    fixture_close(&fixture);
    struct warm_write hold = fixture_hold(&fixture, 0);
    fixture_reserve(&fixture, &hold);
    redis_server_stop(&other);
}

static void test_a_replica_is_left_for_the_next_address(void **state)
{
    (void)state;
    struct redis_server replica;
    char url[300], port[8];
    snprintf(port, sizeof(port), "%d", redis_free_port());
    redis_server_start(&replica, (const char *const[]){"--replicaof", "127.0.0.1", port, NULL});
    redis_server_start(&fixture.server, NULL);
    fixture_connect_plain(&fixture);
    snprintf(url, sizeof(url), "%s,%s", replica.url, fixture.server.url);
    fixture_create(&fixture, url);
    fixture_close(&fixture);
    struct warm_write hold = fixture_hold(&fixture, 0);
    fixture_reserve(&fixture, &hold);
    assert_stands(&fixture, &hold);
    redis_server_stop(&replica);
}

static void test_a_master_that_becomes_a_replica_is_left(void **state)
{
    (void)state;
    struct redis_server other;
    char url[300];
    redis_server_start(&fixture.server, NULL);
    redis_server_start(&other, NULL);
    fixture_connect_plain(&fixture);
    snprintf(url, sizeof(url), "%s,%s", fixture.server.url, other.url);
    fixture_create(&fixture, url);
    fixture_close(&fixture);
    fixture_command(&fixture, "REPLICAOF 127.0.0.1 %d", redis_free_port());
    struct warm_write hold = fixture_hold(&fixture, 0);
    struct warm_lock lock = fixture_lock_of(&hold);
    fixture_lock(&fixture, &lock, 1);
    PASS_UNTIL(warm_state(fixture.warm) == WARM_REBUILDING);
    fixture_close(&fixture);
    fixture_reserve(&fixture, &hold);
    redis_server_stop(&other);
}

static void test_user_password_and_database(void **state)
{
    (void)state;
    char url[300], port[8];
    int number = redis_free_port();
    snprintf(port, sizeof(port), "%d", number);
    redis_server_start(&fixture.server, (const char *const[]){"--port", port, "--bind", "127.0.0.1", NULL});
    fixture_connect_plain(&fixture);
    fixture_command(&fixture, "ACL SETUSER hold_fast on >p@ss:word ~* &* +@all -@dangerous");
    snprintf(url, sizeof(url), "redis://hold_fast:p%%40ss:word@127.0.0.1:%d/5", number);
    fixture_create(&fixture, url);
    fixture_close(&fixture);
    struct warm_write hold = fixture_hold(&fixture, 0);
    fixture_reserve(&fixture, &hold);
    assert_false(fixture_exists(&fixture, &hold, KEY_HOLD));
    fixture_command(&fixture, "SELECT 5");
    assert_stands(&fixture, &hold);
}

static void test_a_wrong_password_opens_and_a_right_one_comes_back(void **state)
{
    (void)state;
    char url[300], port[8];
    int number = redis_free_port();
    snprintf(port, sizeof(port), "%d", number);
    redis_server_start(&fixture.server, (const char *const[]){"--port", port, "--bind", "127.0.0.1", NULL});
    fixture_connect_plain(&fixture);
    fixture_command(&fixture, "CONFIG SET requirepass right");
    fixture_command(&fixture, "AUTH right");
    snprintf(url, sizeof(url), "redis://:wrong@localhost:%d?retry_ms=200", number);
    fixture_create(&fixture, url);
    TURN_UNTIL(&fixture, warm_state(fixture.warm) == WARM_OPEN);
    for (int i = 0; i < 20; i++) {
        fixture_turn(&fixture);
        pass(200);
    }
    assert_int_equal(warm_state(fixture.warm), WARM_OPEN);
    fixture_command(&fixture, "CONFIG SET requirepass wrong");
    PASS_UNTIL(warm_state(fixture.warm) == WARM_REBUILDING);
}

static void run(const char *format, const char *folder)
{
    char command[600];
    snprintf(command, sizeof(command), format, folder, folder);
    assert_int_equal(system(command), 0);
}

static void test_tls_is_checked(void **state)
{
    (void)state;
    char url[300], port[8], certificate[128], key[128], folder[] = "/tmp/holdfast-tls-XXXXXX";
    int number = redis_free_port();
    assert_non_null(mkdtemp(folder));
    run("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext "
        "subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout %s/key.pem -out %s/cert.pem 2>/dev/null",
        folder);
    run("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=other -keyout %s/key2.pem -out "
        "%s/other.pem 2>/dev/null",
        folder);
    snprintf(port, sizeof(port), "%d", number);
    snprintf(certificate, sizeof(certificate), "%s/cert.pem", folder);
    snprintf(key, sizeof(key), "%s/key.pem", folder);
    redis_server_start(&fixture.server,
                       (const char *const[]){"--tls-port", port, "--tls-cert-file", certificate,
                                             "--tls-key-file", key, "--tls-auth-clients", "no", "--bind",
                                             "127.0.0.1", NULL});
    static const char *const hosts[] = {"127.0.0.1", "localhost"};
    for (int i = 0; i < 2; i++) {
        snprintf(url, sizeof(url), "rediss://%s:%d?cafile=%s", hosts[i], number, certificate);
        fixture_create(&fixture, url);
        fixture_close(&fixture);
        struct warm_write holds[200];
        for (int j = 0; j < 200; j++) {
            holds[j] = fixture_hold(&fixture, j);
            holds[j].locked = true;
        }
        warm_write(fixture.warm, holds, 200); /* more than one record of TLS */
        assert_int_equal(fixture_settle(&fixture), 200 * (i + 1));
        warm_destroy(fixture.warm);
        fixture.warm = NULL;
    }
    snprintf(url, sizeof(url), "rediss://127.0.0.1:%d?cafile=%s/other.pem", number, folder);
    fixture_create(&fixture, url); /* not signed by whom we trust */
    TURN_UNTIL(&fixture, warm_state(fixture.warm) == WARM_OPEN);
    warm_destroy(fixture.warm);
    fixture.warm = NULL;
    struct warm_config config = {.prefix = "p", .url = "rediss://127.0.0.1?cafile=/nowhere.pem"};
    char why[256] = "";
    assert_int_equal(warm_create(&config, &fixture.warm, why, sizeof(why)), ERR_CONFIG);
    assert_non_null(strstr(why, "/nowhere.pem"));
    run("rm -r %s", folder);
}

/* A bare listener that says `answer` to whoever connects. */
static void test_what_does_not_speak_redis_is_not_used(void **state)
{
    (void)state;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), client = -1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    char url[100];
    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", ntohs(address.sin_port));
    fixture_create(&fixture, url);
    fixture_turn(&fixture);
    client = accept(fd, NULL, NULL);
    static const char answer[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
    assert_int_equal(write(client, answer, sizeof(answer) - 1), sizeof(answer) - 1);
    TURN_UNTIL(&fixture, warm_state(fixture.warm) == WARM_OPEN);
    close(client);
    close(fd);
}

static void test_what_is_under_way_when_it_is_destroyed_fails(void **state)
{
    (void)state;
    kill(fixture.server.pid, SIGSTOP);
    struct warm_write hold = fixture_hold(&fixture, 0);
    struct warm_lock lock = fixture_lock_of(&hold);
    bool locked = false, counted = false;
    struct warm_round round = {
        .arena = &fixture.arena, .locks = &lock, .count = 1, .on_done = fixture_on_round, .context = &locked};
    struct warm_read read = {
        .kind = WARM_COUNT, .arena = &fixture.arena, .on_done = fixture_on_read, .context = &counted};
    assert_int_equal(warm_lock(fixture.warm, &round), ERR_OK);
    assert_int_equal(warm_read(fixture.warm, &read), ERR_OK);
    fixture_turn(&fixture);
    warm_destroy(fixture.warm);
    fixture.warm = NULL;
    assert_true(locked);
    assert_true(counted);
    assert_int_equal(round.outcome, WARM_FAILED);
    assert_int_equal(read.outcome, WARM_FAILED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_frozen_server_costs_a_round_fifty_ms_and_opens_at_the_fifth,
                                        setup_closed, teardown),
        cmocka_unit_test_setup_teardown(test_an_answer_that_came_in_time_counts_however_late_it_is_read,
                                        setup_closed, teardown),
        cmocka_unit_test_setup_teardown(test_a_killed_server_fails_rounds_and_opens, setup_closed, teardown),
        cmocka_unit_test_setup_teardown(test_without_anybody_asking_it_notices_too, setup_closed, teardown),
        cmocka_unit_test_setup_teardown(test_a_server_restarted_empty_is_rebuilt, setup_closed, teardown),
        cmocka_unit_test_setup_teardown(test_an_emptied_server_is_noticed_and_rebuilt, setup_closed,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_emptied_while_it_is_rebuilt_it_begins_anew, setup_closed,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_connection_cut_by_the_server_costs_no_more_than_its_rounds,
                                        setup_closed, teardown),
        cmocka_unit_test_setup_teardown(test_away_at_the_start_it_is_open, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_second_address_takes_over, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_replica_is_left_for_the_next_address, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_master_that_becomes_a_replica_is_left, setup, teardown),
        cmocka_unit_test_setup_teardown(test_user_password_and_database, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_wrong_password_opens_and_a_right_one_comes_back, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_tls_is_checked, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_does_not_speak_redis_is_not_used, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_under_way_when_it_is_destroyed_fails, setup_closed,
                                        teardown),
    };
    signal(SIGPIPE, SIG_IGN); /* as main.c does: OpenSSL writes without asking it not to */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
