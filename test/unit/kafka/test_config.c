/* SPDX-License-Identifier: Apache-2.0
 * Where Kafka is: what is read of a URL and a file, and that nonsense is
 * refused in a sentence that names it and no secret. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* cmocka needs the four above */
#include <cmocka.h>

#include "kafka/kafka.h"

static struct kafka_config *config;
static char why[512];
static char path[] = "/tmp/holdfast-kafka-XXXXXX";

static int clean(void **state)
{
    (void)state;
    kafka_config_free(config);
    config = NULL;
    unlink(path);
    strcpy(path + strlen(path) - 6, "XXXXXX");
    return 0;
}

static const char *file_of(const char *text)
{
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    return path;
}

static void parse(const char *url, const char *file)
{
    bool good = kafka_config_parse(url, file, &config, why, sizeof(why));
    if (!good)
        print_message("%s: %s\n", url, why);
    assert_true(good);
}

static void refuse(const char *url, const char *file, const char *named)
{
    why[0] = '\0';
    assert_false(kafka_config_parse(url, file, &config, why, sizeof(why)));
    assert_null(config);
    if (strstr(why, named) == NULL)
        fail_msg("%s: %s", url, why);
    assert_int_equal(why[strlen(why) - 1], '.');
    assert_null(strstr(why, "s3cret"));
}

static void check_property(const char *name, const char *value)
{
    char found[512];
    size_t size = sizeof(found);
    rd_kafka_conf_t *conf = kafka_conf(config, "test", NULL);
    assert_int_equal(rd_kafka_conf_get(conf, name, found, &size), RD_KAFKA_CONF_OK);
    assert_string_equal(found, value);
    rd_kafka_conf_destroy(conf);
}

static void test_brokers_are_read(void **state)
{
    (void)state;
    parse("kafka://one:9093,two,[::1]:9094", NULL);
    assert_string_equal(kafka_config_brokers(config), "one:9093,two,[::1]:9094");
    check_property("bootstrap.servers", "one:9093,two,[::1]:9094");
    check_property("client.id", "holdfast-test");
    check_property("allow.auto.create.topics", "false");
}

static void test_properties_are_decoded(void **state)
{
    (void)state;
    parse("kafka://one?security.protocol=sasl_ssl&sasl.username=a%26b%3dc&ssl.ca.location=%2Ftmp%2fca%20file&"
          "client.id=box",
          NULL);
    check_property("security.protocol", "sasl_ssl");
    check_property("sasl.username", "a&b=c");
    check_property("ssl.ca.location", "/tmp/ca file");
    check_property("client.id", "box-test");
}

static void test_file_wins_over_the_url(void **state)
{
    (void)state;
    parse("kafka://one?sasl.username=from-url&linger.ms=3",
          file_of("# how to get in\n\n  sasl.username = from file\r\nsasl.password=s3cret=with=signs\n"));
    check_property("sasl.username", "from file");
    check_property("sasl.password", "s3cret=with=signs");
    check_property("queue.buffering.max.ms", "3");
}

static void test_preferred_gives_way_under_any_name(void **state)
{
    (void)state;
    char found[64];
    size_t size = sizeof(found);
    const struct kafka_property preferred[] = {
        {"linger.ms", "1"}, {"fetch.wait.max.ms", "100"}, {NULL, NULL}};
    parse("kafka://one?queue.buffering.max.ms=9", NULL);
    rd_kafka_conf_t *conf = kafka_conf(config, "test", preferred);
    assert_int_equal(rd_kafka_conf_get(conf, "linger.ms", found, &size), RD_KAFKA_CONF_OK);
    assert_string_equal(found, "9");
    size = sizeof(found);
    assert_int_equal(rd_kafka_conf_get(conf, "fetch.wait.max.ms", found, &size), RD_KAFKA_CONF_OK);
    assert_string_equal(found, "100");
    rd_kafka_conf_destroy(conf);
}

static void test_nonsense_is_named(void **state)
{
    (void)state;
    refuse("redis://one", NULL, "kafka://");
    refuse("kafka://", NULL, "no broker");
    refuse("kafka://one,,two", NULL, "no broker");
    refuse("kafka://one,", NULL, "no broker");
    refuse("kafka://:9092", NULL, "no broker");
    refuse("kafka://one/path", NULL, "separated by commas");
    refuse("kafka://user:s3cret@one", NULL, "sasl.username");
    refuse("kafka://one?no.such.thing=1", NULL, "no.such.thing");
    refuse("kafka://one?linger.ms", NULL, "linger.ms");
    refuse("kafka://one?linger.ms=soon", NULL, "linger.ms");
    refuse("kafka://one?sasl.username=%4", NULL, "hexadecimal");
    refuse("kafka://one?sasl.username=%00", NULL, "hexadecimal");
    refuse("kafka://one?=x", NULL, "no name");
    refuse("kafka://one?dr_msg_cb=x", NULL, "dr_msg_cb");
    refuse("kafka://one?security.protocol=s3cret", NULL, "security.protocol");
}

static void test_what_promises_rest_on_cannot_be_set(void **state)
{
    static const char *const names[] = {
        "acks=1",
        "request.required.acks=1",
        "enable.idempotence=false",
        "max.in.flight=100",
        "message.timeout.ms=1",
        "delivery.timeout.ms=1",
        "enable.auto.commit=true",
        "enable.auto.offset.store=true",
        "auto.offset.reset=latest",
        "group.id=x",
        "group.instance.id=x",
        "partition.assignment.strategy=range",
        "enable.partition.eof=false",
        "transactional.id=x",
        "bootstrap.servers=x",
        "metadata.broker.list=x",
        "allow.auto.create.topics=true",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char url[128], name[64];
        snprintf(url, sizeof(url), "kafka://one?%s", names[i]);
        snprintf(name, sizeof(name), "%.*s cannot be set", (int)strcspn(names[i], "="), names[i]);
        refuse(url, NULL, name);
        refuse("kafka://one", file_of(names[i]), name);
        clean(NULL);
    }
}

static void test_file_that_is_wrong_is_named(void **state)
{
    (void)state;
    refuse("kafka://one", "/nonexistent/file", "/nonexistent/file");
    refuse("kafka://one", file_of("linger.ms=1\nsasl.password s3cret\n"), "Line 2");
    clean(NULL);
    refuse("kafka://one", file_of("security.protocol=s3cret\n"), "security.protocol");
}

static void test_what_librdkafka_sees_late_is_a_sentence_too(void **state)
{
    (void)state;
    parse("kafka://one?security.protocol=ssl&ssl.ca.location=%2Fnonexistent%2Fca.pem", NULL);
    assert_null(kafka_client(RD_KAFKA_PRODUCER, kafka_conf(config, "test", NULL), why, sizeof(why)));
    assert_non_null(strstr(why, "ssl.ca.location"));
}

static void test_names_of_topics(void **state)
{
    char text[300];
    (void)state;
    assert_true(kafka_topic_is_legal("holdfast.replies.node-1_a"));
    assert_false(kafka_topic_is_legal(""));
    assert_false(kafka_topic_is_legal("."));
    assert_false(kafka_topic_is_legal("with space"));
    assert_false(kafka_topic_is_legal("with/slash"));
    memset(text, 'a', sizeof(text));
    text[249] = '\0';
    assert_true(kafka_topic_is_legal(text));
    text[249] = 'a';
    text[250] = '\0';
    assert_false(kafka_topic_is_legal(text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_brokers_are_read, clean),
        cmocka_unit_test_teardown(test_properties_are_decoded, clean),
        cmocka_unit_test_teardown(test_file_wins_over_the_url, clean),
        cmocka_unit_test_teardown(test_preferred_gives_way_under_any_name, clean),
        cmocka_unit_test_teardown(test_nonsense_is_named, clean),
        cmocka_unit_test_teardown(test_what_promises_rest_on_cannot_be_set, clean),
        cmocka_unit_test_teardown(test_file_that_is_wrong_is_named, clean),
        cmocka_unit_test_teardown(test_what_librdkafka_sees_late_is_a_sentence_too, clean),
        cmocka_unit_test_teardown(test_names_of_topics, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
