/* SPDX-License-Identifier: Apache-2.0
 * --order and what belongs to it, as it is typed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/setup.h"

static char why[1024];
static char node_name[NODE_NAME_SIZE_MAX + 1];

static struct options default_options(void)
{
    struct options options = {.argument_count = 0};
    for (int option = 0; option < OPTION_COUNT; option++)
        options.values[option] = option_rows[option].initial;
    return options;
}

static struct options kafka_options(void)
{
    struct options options = default_options();
    options.values[OPTION_ORDER] = "kafka://127.0.0.1:9092";
    return options;
}

static bool read_order(const struct options *options, struct node_config *config)
{
    *config = (struct node_config){.store_url = "postgres://db/x", .listen = {.port = 8080}};
    why[0] = '\0';
    return setup_order(options, config, node_name, why, sizeof why);
}

static void test_without_any_option_this_process_is_alone(void **state)
{
    struct options options = default_options();
    struct node_config config;

    (void)state;
    assert_true(read_order(&options, &config));
    assert_null(config.order_url);
    config = (struct node_config){.store_url = "sqlite:x"};
    assert_true(setup_order(&options, &config, node_name, why, sizeof why));
}

static void test_kafka_has_defaults_and_takes_other_words(void **state)
{
    struct options options = kafka_options();
    struct node_config config;

    (void)state;
    assert_true(read_order(&options, &config));
    assert_string_equal(config.order_url, "kafka://127.0.0.1:9092");
    assert_null(config.order_config_path);
    assert_false(config.order_topic_per_event);
    assert_true(config.order_make_topics);
    assert_true(config.order_events);
    options.values[OPTION_ORDER_TOPICS] = "event";
    options.values[OPTION_ORDER_MAKE_TOPICS] = "off";
    options.values[OPTION_ORDER_EVENTS] = "off";
    assert_true(read_order(&options, &config));
    assert_true(config.order_topic_per_event);
    assert_false(config.order_make_topics);
    assert_false(config.order_events);
}

static void test_wrong_words_are_named(void **state)
{
    static const struct {
        enum option option;
        const char *value;
    } bad[] = {
        {OPTION_ORDER, "kafka"},        {OPTION_ORDER, "kafka://"},      {OPTION_ORDER, "Local"},
        {OPTION_ORDER, "amqp://x"},     {OPTION_ORDER_TOPICS, "events"}, {OPTION_ORDER_MAKE_TOPICS, "yes"},
        {OPTION_ORDER_EVENTS, "true"},  {OPTION_NODE_NAME, "a b"},       {OPTION_NODE_NAME, "a/b"},
        {OPTION_NODE_NAME, "\xc3\xa4"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct options options = kafka_options();
        struct node_config config;
        char flag[64];
        options.values[bad[i].option] = bad[i].value;
        if (read_order(&options, &config))
            fail_msg("'%s' was taken", bad[i].value);
        snprintf(flag, sizeof flag, "--%s", option_rows[bad[i].option].name);
        assert_non_null(strstr(why, flag));
        assert_non_null(strstr(why, bad[i].value));
    }
}

static void test_a_password_in_a_wrong_order_is_not_repeated(void **state)
{
    struct options options = default_options();
    struct node_config config;

    (void)state;
    options.values[OPTION_ORDER] = "kafkas://broker?sasl.password=hunter2";
    assert_false(read_order(&options, &config));
    assert_null(strstr(why, "hunter2"));
    assert_non_null(strstr(why, "kafkas://broker"));
}

static void test_an_embedded_store_is_refused(void **state)
{
    struct options options = kafka_options();
    struct node_config config = {.store_url = "sqlite:./holdfast.db", .listen = {.port = 8080}};

    (void)state;
    assert_false(setup_order(&options, &config, node_name, why, sizeof why));
    assert_non_null(strstr(why, "postgres://"));
}

static void test_properties_without_a_broker_are_refused(void **state)
{
    struct options options = default_options();
    struct node_config config;

    (void)state;
    options.values[OPTION_ORDER_CONFIG] = "/etc/kafka.properties";
    assert_false(read_order(&options, &config));
    assert_non_null(strstr(why, "--order-config"));
}

static void test_properties_are_read_before_anything_is_begun(void **state)
{
    struct options options = kafka_options();
    struct node_config config;
    char path[] = "/tmp/holdfast-order-XXXXXX";

    (void)state;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    options.values[OPTION_ORDER_CONFIG] = path;
    assert_true(dprintf(fd, "sasl.password=hunter2\n") > 0);
    assert_true(read_order(&options, &config));
    assert_string_equal(config.order_config_path, path);
    assert_true(dprintf(fd, "sasl.pasword=hunter2\n") > 0);
    assert_false(read_order(&options, &config));
    assert_non_null(strstr(why, "sasl.pasword"));
    assert_null(strstr(why, "hunter2"));
    close(fd);
    unlink(path);
    assert_false(read_order(&options, &config));
    assert_non_null(strstr(why, path));
    options = kafka_options();
    options.values[OPTION_ORDER] = "kafka://b?acks=0"; /* a promise rests on it */
    assert_false(read_order(&options, &config));
    assert_non_null(strstr(why, "acks"));
}

static void test_the_name_is_given_or_of_host_and_port(void **state)
{
    struct options options = kafka_options();
    struct node_config config;
    char longest[NODE_NAME_SIZE_MAX + 2];

    (void)state;
    assert_true(read_order(&options, &config));
    size_t size = strlen(config.node_name);
    assert_true(size > 5);
    assert_string_equal(config.node_name + size - 5, "-8080");
    options.values[OPTION_NODE_NAME] = "hall.1_A-b";
    assert_true(read_order(&options, &config));
    assert_string_equal(config.node_name, "hall.1_A-b");
    memset(longest, 'n', sizeof longest);
    longest[NODE_NAME_SIZE_MAX] = '\0';
    options.values[OPTION_NODE_NAME] = longest;
    assert_true(read_order(&options, &config));
    assert_string_equal(config.node_name, longest);
    longest[NODE_NAME_SIZE_MAX] = 'n';
    longest[NODE_NAME_SIZE_MAX + 1] = '\0';
    assert_false(read_order(&options, &config));
}

static void test_any_free_port_makes_no_name(void **state)
{
    struct options options = kafka_options();
    struct node_config config = {.store_url = "postgres://db/x", .listen = {.port = 0}};

    (void)state;
    assert_false(setup_order(&options, &config, node_name, why, sizeof why));
    assert_non_null(strstr(why, "--node-name"));
    options.values[OPTION_NODE_NAME] = "one";
    assert_true(setup_order(&options, &config, node_name, why, sizeof why));
    assert_string_equal(config.node_name, "one");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_any_option_this_process_is_alone),
        cmocka_unit_test(test_kafka_has_defaults_and_takes_other_words),
        cmocka_unit_test(test_wrong_words_are_named),
        cmocka_unit_test(test_a_password_in_a_wrong_order_is_not_repeated),
        cmocka_unit_test(test_an_embedded_store_is_refused),
        cmocka_unit_test(test_properties_without_a_broker_are_refused),
        cmocka_unit_test(test_properties_are_read_before_anything_is_begun),
        cmocka_unit_test(test_the_name_is_given_or_of_host_and_port),
        cmocka_unit_test(test_any_free_port_makes_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
