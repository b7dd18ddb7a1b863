/* SPDX-License-Identifier: Apache-2.0
 * Domain events to Kafka: what a consumer reads, in which order, and that nothing
 * is lost or overtaken while brokers are away or refuse. The cluster is
 * librdkafka's own mock, in this process; or, where HOLDFAST_TEST_KAFKA is
 * kafka://…, a real one, and tests that take brokers away are left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "publish/kafka_events.h"

enum {
    BROKER_COUNT = 3,
    PARTITION_COUNT = 4,
    MESSAGE_COUNT_MAX = 8192,
    WAIT_MS_MAX = 60000,
    PRODUCE = 0, /* the number of that request */
};

struct read_message {
    char key[UUID_TEXT_SIZE];
    char value[160];
    char type[64]; /* the header */
    int32_t partition;
    int64_t timestamp_ms;
};

struct world {
    rd_kafka_t *host;              /* whose threads the mock runs on */
    rd_kafka_mock_cluster_t *mock; /* NULL: a real cluster */
    char url[512];
    struct kafka_config *config;
    char topic[64];
    struct delivery_channel *channel;
    rd_kafka_t *consumer;
    struct read_message messages[MESSAGE_COUNT_MAX];
    int32_t message_count;
};

/* ---- The cluster ---- */

static rd_kafka_t *consumer_make(struct world *w)
{
    char why[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_topic_partition_list_t *all = rd_kafka_topic_partition_list_new(PARTITION_COUNT);

    kafka_conf_set(conf, "bootstrap.servers", kafka_config_brokers(w->config));
    rd_kafka_conf_set_log_cb(conf, NULL); /* it is told when brokers go away */
    kafka_conf_set(conf, "group.id", "reader");
    kafka_conf_set(conf, "fetch.wait.max.ms", "20");
    kafka_conf_set(conf, "reconnect.backoff.max.ms", "200");
    rd_kafka_t *consumer = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    assert_non_null(consumer);
    for (int32_t i = 0; i < PARTITION_COUNT; i++)
        rd_kafka_topic_partition_list_add(all, w->topic, i)->offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_poll_set_consumer(consumer);
    assert_int_equal(rd_kafka_assign(consumer, all), RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_topic_partition_list_destroy(all);
    return consumer;
}

static void mock_start(struct world *w)
{
    char why[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();

    rd_kafka_conf_set_log_cb(conf, NULL);
    w->host = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    assert_non_null(w->host);
    w->mock = rd_kafka_mock_cluster_new(w->host, BROKER_COUNT);
    assert_non_null(w->mock);
    snprintf(w->url, sizeof w->url, "kafka://%s", rd_kafka_mock_cluster_bootstraps(w->mock));
}

/* With one property of the operator's more. */
static void channel_make(struct world *w, const char *property)
{
    char why[512], url[800];

    snprintf(url, sizeof url, "%s%c%s", w->url, strchr(w->url, '?') != NULL ? '&' : '?', property);
    assert_true(kafka_config_parse(url, NULL, &w->config, why, sizeof why));
    struct kafka_events_config config = {.kafka = w->config, .topic = w->topic};
    assert_int_equal(kafka_events_create(&config, &w->channel), ERR_OK);
}

/* Beforehand: the mock cannot make topics when it is asked to, and the consumer wants to know the partitions. */
static void topic_make(struct world *w)
{
    struct kafka_topic topic = {.name = w->topic, .partition_count = PARTITION_COUNT};
    char why[512];

    if (w->mock != NULL) {
        assert_int_equal(rd_kafka_mock_topic_create(w->mock, w->topic, PARTITION_COUNT, BROKER_COUNT),
                         RD_KAFKA_RESP_ERR_NO_ERROR);
        return;
    }
    rd_kafka_t *client =
        kafka_client(RD_KAFKA_PRODUCER, kafka_conf(w->config, "test", NULL), why, sizeof why);
    assert_non_null(client);
    if (!kafka_topic_make(client, &topic, true, WAIT_MS_MAX, why, sizeof why))
        fail_msg("%s", why);
    rd_kafka_destroy(client);
}

static int setup(void **state)
{
    static int number;
    const char *real = getenv("HOLDFAST_TEST_KAFKA");
    struct world *w = calloc(1, sizeof *w);

    log_set_level(LOG_ERROR);
    snprintf(w->topic, sizeof w->topic, "test.events.%d.%lld.%d", (int)getpid(), (long long)clock_now_ms(),
             ++number);
    if (real != NULL && real[0] != '\0')
        snprintf(w->url, sizeof w->url, "%s", real);
    else
        mock_start(w);
    channel_make(w, "message.max.bytes=100000");
    topic_make(w);
    w->consumer = consumer_make(w);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    w->channel->destroy(w->channel);
    rd_kafka_consumer_close(w->consumer);
    rd_kafka_destroy(w->consumer);
    kafka_config_free(w->config);
    if (w->mock != NULL) {
        rd_kafka_mock_cluster_destroy(w->mock);
        rd_kafka_destroy(w->host);
    }
    free(w);
    return 0;
}

static void brokers_set_down(struct world *w, bool down)
{
    for (int32_t id = 1; id <= BROKER_COUNT; id++)
        assert_int_equal(down ? rd_kafka_mock_broker_set_down(w->mock, id)
                              : rd_kafka_mock_broker_set_up(w->mock, id),
                         RD_KAFKA_RESP_ERR_NO_ERROR);
}

/* ---- Events ---- */

static struct uuid id(uint8_t kind, int32_t number)
{
    struct uuid id = {{kind}};
    id.bytes[14] = (uint8_t)(number >> 8);
    id.bytes[15] = (uint8_t)number;
    return id;
}

enum { SEAT = 1, CHECKOUT = 2 };

/* The body says which one it is: "N of KEY". */
static void event_make(struct domain_event *event, uint8_t kind, int32_t key, int32_t number)
{
    char body[64];

    *event = (struct domain_event){.key = id(kind, key), .time_ms = 1767225600000 + number};
    snprintf(body, sizeof body, "{\"n\":%d,\"of\":%d}", number, key);
    event->body = strdup(body);
    event->size = strlen(body);
}

static struct domain_event *events_make(int32_t count, int32_t seat_count)
{
    struct domain_event *events = calloc((size_t)count, sizeof *events);

    for (int32_t i = 0; i < count; i++)
        event_make(&events[i], SEAT, i % seat_count, i);
    return events;
}

static void events_free(struct domain_event *events, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        free((void *)events[i].body);
    free(events);
}

/* ---- Sending and reading ---- */

static struct delivery_outcome outcome_wait(struct world *w)
{
    struct delivery_outcome outcome;
    int64_t end_us = clock_monotonic_us() + WAIT_MS_MAX * INT64_C(1000);

    while (!w->channel->wait(w->channel, 50, &outcome))
        assert_true(clock_monotonic_us() < end_us);
    return outcome;
}

static struct delivery_outcome deliver(struct world *w, const struct domain_event *events, int32_t count)
{
    w->channel->begin(w->channel, events, count, 0);
    return outcome_wait(w);
}

static void note(struct world *w, const rd_kafka_message_t *message)
{
    const void *type = NULL;
    size_t type_size = 0;
    rd_kafka_headers_t *headers = NULL;

    assert_true(w->message_count < MESSAGE_COUNT_MAX);
    struct read_message *out = &w->messages[w->message_count++];
    snprintf(out->key, sizeof out->key, "%.*s", (int)message->key_len, (const char *)message->key);
    snprintf(out->value, sizeof out->value, "%.*s", (int)message->len, (const char *)message->payload);
    out->partition = message->partition;
    out->timestamp_ms = rd_kafka_message_timestamp(message, NULL);
    if (rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR &&
        rd_kafka_header_get_last(headers, "content-type", &type, &type_size) == RD_KAFKA_RESP_ERR_NO_ERROR)
        snprintf(out->type, sizeof out->type, "%.*s", (int)type_size, (const char *)type);
}

static void read_next(struct world *w, int64_t end_us)
{
    rd_kafka_message_t *message = rd_kafka_consumer_poll(w->consumer, 100);

    if (clock_monotonic_us() > end_us)
        fail_msg("only %d messages came", w->message_count);
    if (message == NULL)
        return;
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR)
        note(w, message);
    rd_kafka_message_destroy(message);
}

static void read_until(struct world *w, int32_t count)
{
    int64_t end_us = clock_monotonic_us() + WAIT_MS_MAX * INT64_C(1000);

    while (w->message_count < count)
        read_next(w, end_us);
}

/* Reads until every event was seen; of each seat none may come after a later one for the first time. */
static void expect_in_order(struct world *w, int32_t count, int32_t seat_count)
{
    int32_t *next = calloc((size_t)seat_count, sizeof *next);
    int32_t seen = 0;
    int64_t end_us = clock_monotonic_us() + WAIT_MS_MAX * INT64_C(1000);

    for (int32_t i = 0; seen < count; i++) {
        int number, seat;
        while (i >= w->message_count)
            read_next(w, end_us);
        assert_int_equal(sscanf(w->messages[i].value, "{\"n\":%d,\"of\":%d}", &number, &seat), 2);
        int32_t round = number / seat_count;
        if (round > next[seat])
            fail_msg("event %d of seat %d came before its %d", round, seat, next[seat]);
        if (round == next[seat]) { /* a lower one is a repetition */
            next[seat]++;
            seen++;
        }
    }
    free(next);
}

/* ---- Tests ---- */

static void test_an_event_is_a_message_with_its_seat_as_key(void **state)
{
    struct world *w = *state;
    struct domain_event event;
    char key[UUID_TEXT_SIZE];

    event_make(&event, SEAT, 7, 1);
    assert_int_equal(deliver(w, &event, 1).answer, ANSWER_DELIVERED);
    read_until(w, 1);
    uuid_format(&event.key, key);
    assert_string_equal(w->messages[0].key, key);
    assert_string_equal(w->messages[0].value, event.body);
    assert_string_equal(w->messages[0].type, "application/cloudevents+json");
    assert_int_equal(w->messages[0].timestamp_ms, event.time_ms);
    free((void *)event.body);
}

static void test_a_checkout_comes_under_its_own_key_and_under_each_seat_it_names(void **state)
{
    struct world *w = *state;
    struct domain_event events[3];
    struct uuid seats[] = {id(SEAT, 1), id(SEAT, 2)};
    int32_t place[2] = {-1, -1}, partition[2] = {-1, -1};

    event_make(&events[0], SEAT, 1, 0);
    event_make(&events[1], SEAT, 2, 1);
    event_make(&events[2], CHECKOUT, 9, 2);
    events[2].seats = seats;
    events[2].seat_count = 2;
    assert_int_equal(deliver(w, events, 3).answer, ANSWER_DELIVERED);
    read_until(w, 5);
    int32_t copies = 0;
    for (int32_t i = 0; i < 5; i++) {
        char key[UUID_TEXT_SIZE];
        bool is_sale = strcmp(w->messages[i].value, events[2].body) == 0;
        copies += is_sale;
        for (int seat = 0; seat < 2; seat++) {
            uuid_format(&seats[seat], key);
            if (strcmp(w->messages[i].key, key) != 0)
                continue;
            assert_true(is_sale ? place[seat] >= 0 : place[seat] < 0); /* after the seat's own event … */
            assert_true(!is_sale || w->messages[i].partition == partition[seat]); /* … beside it */
            place[seat] = i;
            partition[seat] = w->messages[i].partition;
        }
    }
    assert_int_equal(copies, 3);
    for (int i = 0; i < 3; i++)
        free((void *)events[i].body);
}

static void test_events_of_a_seat_keep_their_order(void **state)
{
    enum { COUNT = 2000, SEATS = 50, PART = 250 };
    struct world *w = *state;
    struct domain_event *events = events_make(COUNT, SEATS);

    for (int32_t at = 0; at < COUNT; at += PART)
        assert_int_equal(deliver(w, events + at, PART).answer, ANSWER_DELIVERED);
    expect_in_order(w, COUNT, SEATS);
    events_free(events, COUNT);
}

static void test_brokers_that_go_away_and_come_back_lose_nothing(void **state)
{
    enum { COUNT = 600, SEATS = 20, PART = 200 };
    struct world *w = *state;

    if (w->mock == NULL)
        skip();
    struct domain_event *events = events_make(COUNT, SEATS);
    struct delivery_outcome outcome;

    assert_int_equal(deliver(w, events, PART).answer, ANSWER_DELIVERED);
    brokers_set_down(w, true);
    w->channel->begin(w->channel, events + PART, PART, 0);
    for (int i = 0; i < 20; i++) /* under way, and not given up */
        assert_false(w->channel->wait(w->channel, 50, &outcome));
    brokers_set_down(w, false);
    assert_int_equal(outcome_wait(w).answer, ANSWER_DELIVERED);
    assert_int_equal(deliver(w, events + 2 * PART, PART).answer, ANSWER_DELIVERED);
    expect_in_order(w, COUNT, SEATS);
    events_free(events, COUNT);
}

static void test_errors_that_pass_are_sat_out_in_order(void **state)
{
    enum { COUNT = 400, SEATS = 10, PART = 100 };
    struct world *w = *state;

    if (w->mock == NULL)
        skip();
    struct domain_event *events = events_make(COUNT, SEATS);

    for (int32_t at = 0; at < COUNT; at += PART) {
        rd_kafka_mock_push_request_errors(w->mock, PRODUCE, 3, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
                                          RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
                                          RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS);
        assert_int_equal(deliver(w, events + at, PART).answer, ANSWER_DELIVERED);
    }
    expect_in_order(w, COUNT, SEATS);
    events_free(events, COUNT);
}

static void test_a_request_that_failed_begins_again_from_its_head(void **state)
{
    enum { COUNT = 300, SEATS = 10 };
    struct world *w = *state;

    if (w->mock == NULL)
        skip();
    struct domain_event *events = events_make(COUNT, SEATS);

    rd_kafka_mock_push_request_errors(w->mock, PRODUCE, 1, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    struct delivery_outcome outcome = deliver(w, events, COUNT);
    assert_int_equal(outcome.answer, ANSWER_FAILED);
    assert_non_null(strstr(outcome.reason, "Kafka: "));
    assert_int_equal(deliver(w, events, 0).answer,
                     ANSWER_FAILED); /* not the events' fault: none is given up */
    assert_int_equal(deliver(w, events, COUNT).answer, ANSWER_DELIVERED);
    assert_int_equal(deliver(w, events, 0).answer, ANSWER_DELIVERED);
    expect_in_order(w, COUNT, SEATS);
    events_free(events, COUNT);
}

static void test_an_event_that_is_too_large_is_refused_and_blamed(void **state)
{
    struct world *w = *state;
    struct domain_event events[3];

    for (int32_t i = 0; i < 3; i++)
        event_make(&events[i], SEAT, 1, i);
    free((void *)events[1].body);
    events[1].size = 150000;
    events[1].body = calloc(1, events[1].size + 1);
    memset((char *)events[1].body, ' ', events[1].size);
    struct delivery_outcome outcome = deliver(w, events, 3);
    assert_int_equal(outcome.answer, ANSWER_REFUSED);
    assert_non_null(strstr(outcome.reason, "size"));
    assert_int_equal(deliver(w, events, 0).answer,
                     ANSWER_DELIVERED); /* it is the event: it may be given up */
    assert_int_equal(deliver(w, events, 1).answer, ANSWER_DELIVERED);
    assert_int_equal(deliver(w, events + 1, 1).answer, ANSWER_REFUSED);
    assert_int_equal(deliver(w, events + 2, 1).answer, ANSWER_DELIVERED);
    do
        read_until(w, w->message_count + 1);
    while (strcmp(w->messages[w->message_count - 1].value, events[2].body) != 0);
    for (int32_t i = 0; i < w->message_count - 1; i++)
        assert_string_equal(w->messages[i].value, events[0].body);
    for (int32_t i = 0; i < 3; i++)
        free((void *)events[i].body);
}

static void test_more_than_the_producer_has_room_for_goes_in_parts(void **state)
{
    enum { SEATS = 500 };
    struct world *w = *state;
    struct domain_event event;
    struct uuid *seats = calloc(SEATS, sizeof *seats);

    w->channel->destroy(w->channel);
    kafka_config_free(w->config);
    channel_make(w, "queue.buffering.max.messages=50"); /* hardly any room */
    event_make(&event, CHECKOUT, 1, 0);
    for (int32_t i = 0; i < SEATS; i++)
        seats[i] = id(SEAT, i);
    event.seats = seats;
    event.seat_count = SEATS;
    assert_int_equal(deliver(w, &event, 1).answer, ANSWER_DELIVERED);
    read_until(w, SEATS + 1);
    free((void *)event.body);
    free(seats);
}

static void test_brokers_that_were_never_reached_delay_and_blame_nobody(void **state)
{
    struct world *w = *state;

    if (w->mock == NULL)
        skip();
    struct domain_event event;
    struct delivery_channel *channel;
    struct delivery_outcome outcome;
    struct kafka_events_config config = {.kafka = w->config, .topic = w->topic};

    brokers_set_down(w, true);
    assert_int_equal(kafka_events_create(&config, &channel), ERR_OK);
    event_make(&event, SEAT, 1, 1);
    channel->begin(channel, &event, 1, 0);
    while (!channel->wait(channel, 50, &outcome))
        continue;
    assert_int_equal(outcome.answer, ANSWER_FAILED);
    channel->begin(channel, &event, 0, 0);
    assert_true(channel->wait(channel, 50, &outcome));
    assert_int_equal(outcome.answer, ANSWER_FAILED);
    brokers_set_down(w, false);
    channel->begin(channel, &event, 1, 0);
    while (!channel->wait(channel, 50, &outcome))
        continue;
    assert_int_equal(outcome.answer, ANSWER_DELIVERED);
    channel->destroy(channel);
    free((void *)event.body);
}

static void test_what_is_cancelled_is_not_sent_later(void **state)
{
    enum { COUNT = 100, SEATS = 5 };
    struct world *w = *state;

    if (w->mock == NULL)
        skip();
    struct domain_event *events = events_make(COUNT, SEATS);
    struct delivery_outcome outcome;

    assert_int_equal(deliver(w, events, 1).answer, ANSWER_DELIVERED);
    brokers_set_down(w, true);
    w->channel->begin(w->channel, events + 1, COUNT - 1, 0);
    assert_false(w->channel->wait(w->channel, 20, &outcome));
    w->channel->cancel(w->channel);
    w->channel->cancel(w->channel); /* nothing is fine */
    brokers_set_down(w, false);
    assert_int_equal(deliver(w, events, COUNT).answer, ANSWER_DELIVERED);
    expect_in_order(w, COUNT, SEATS);
    assert_null(rd_kafka_consumer_poll(w->consumer, 500)); /* the cancelled ones are nowhere */
    events_free(events, COUNT);
}

static void *wake_soon(void *context)
{
    struct delivery_channel *channel = context;
    usleep(50000);
    channel->wake(channel);
    return NULL;
}

static void test_a_wait_is_woken(void **state)
{
    struct world *w = *state;
    struct delivery_outcome outcome;
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, wake_soon, w->channel), 0);
    int64_t began_us = clock_monotonic_us();
    assert_false(w->channel->wait(w->channel, WAIT_MS_MAX, &outcome));
    assert_true(clock_monotonic_us() - began_us < WAIT_MS_MAX * INT64_C(1000) / 2);
    pthread_join(thread, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_an_event_is_a_message_with_its_seat_as_key),
        TEST(test_a_checkout_comes_under_its_own_key_and_under_each_seat_it_names),
        TEST(test_events_of_a_seat_keep_their_order),
        TEST(test_brokers_that_go_away_and_come_back_lose_nothing),
        TEST(test_errors_that_pass_are_sat_out_in_order),
        TEST(test_a_request_that_failed_begins_again_from_its_head),
        TEST(test_an_event_that_is_too_large_is_refused_and_blamed),
        TEST(test_more_than_the_producer_has_room_for_goes_in_parts),
        TEST(test_brokers_that_were_never_reached_delay_and_blame_nobody),
        TEST(test_what_is_cancelled_is_not_sent_later),
        TEST(test_a_wait_is_woken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
