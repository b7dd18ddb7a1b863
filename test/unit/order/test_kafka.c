/* SPDX-License-Identifier: Apache-2.0
 * The broker over Kafka: what is sent arrives once, in order, at the one node
 * that has its partition; and what is said when it does not. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs the four above */
#include <cmocka.h>

#include "base/clock.h"
#include "order/kafka/broker_kafka_int.h"
#include "unit/order/kafka_fixture.h"

enum { MANY = 3000, PART = 7 };

/* To join a group takes the mock three seconds: most tests share a node that has all partitions. Their commands go on
 * counting where the last test ended. */
static struct node *shared;
static uint64_t last_value;

static bool is_idle(void *context)
{
    return broker_is_idle(((struct node *)context)->broker);
}

struct told {
    struct node *node;
    int32_t count;
};

static bool are_told(void *context)
{
    const struct told *told = context;
    return told->node->sent_count >= told->count;
}

/* One command to every partition, all of them stored: the first connection to a broker may take longer than a command has,
 * and then there is another round. Their numbers go on from `last`. */
static uint64_t send_to_all(struct node **nodes, int node_count, struct node *sender, uint64_t last)
{
    int32_t stored;
    do {
        struct told told = {sender, sender->sent_count + ORDER_PARTITION_COUNT};
        stored = sender->outcome_count[BROKER_STORED];
        for (int i = 0; i < ORDER_PARTITION_COUNT; i++)
            node_send(sender, i, ++last);
        wait_until(nodes, node_count, "what becomes of them", are_told, &told);
    } while (sender->outcome_count[BROKER_STORED] < stored + ORDER_PARTITION_COUNT);
    return last;
}

/* One, until it is stored. */
static void send_stored(struct node *node, int32_t partition, uint64_t value)
{
    int32_t stored = node->outcome_count[BROKER_STORED];
    while (node->outcome_count[BROKER_STORED] == stored) {
        struct told told = {node, node->sent_count + 1};
        node_send(node, partition, value);
        wait_until(&node, 1, "what becomes of it", are_told, &told);
        assert_int_equal(node->outcome_count[BROKER_UNKNOWN], 0);
    }
}

static struct node *shared_node(void)
{
    if (shared == NULL) {
        prefix_renew(NULL);
        shared = node_start("shared");
        wait_until_owned(&shared, 1);
        last_value = send_to_all(&shared, 1, shared, last_value);
    }
    /* What was sent before is told of by now, and does not count when it comes. */
    wait_until(&shared, 1, "the last messages to be stored", is_idle, shared);
    node_forget(shared);
    shared->ignored_up_to = last_value;
    return shared;
}

static int end_shared(void **state)
{
    if (shared != NULL)
        node_stop(shared);
    return cluster_stop(state);
}

static void send_next(struct node *node, int32_t partition)
{
    node_send(node, partition, ++last_value);
}

struct want {
    struct node *node;
    int32_t commands, replies, sent, owned;
};

static bool is_there(void *context)
{
    const struct want *want = context;
    return want->node->command_count >= want->commands && want->node->reply_count >= want->replies &&
           want->node->sent_count >= want->sent && want->node->owned_count >= want->owned;
}

static void wait_for(struct node *node, struct want want)
{
    want.node = node;
    wait_until(&node, 1, "what was sent", is_there, &want);
}

static bool has_none(void *context)
{
    return ((struct node *)context)->owned_count == 0;
}

/* Where the last one of a kind is, or −1. */
static int32_t find_note(const struct node *node, enum note_kind kind)
{
    int32_t at = node->note_count;
    while (--at >= 0 && node->notes[at].kind != kind)
        ;
    return at;
}

/* Every command of the node came once and in the order of its sending, partition by partition. */
static void check_order(const struct node *node, int32_t command_count)
{
    int64_t offsets[ORDER_PARTITION_COUNT];
    uint64_t values[ORDER_PARTITION_COUNT] = {0};
    int32_t count = 0;
    for (int i = 0; i < ORDER_PARTITION_COUNT; i++)
        offsets[i] = -1;
    for (int32_t i = 0; i < node->note_count; i++) {
        const struct note *note = &node->notes[i];
        if (note->kind != NOTE_COMMAND)
            continue;
        assert_true(note->offset > offsets[note->partition]);
        assert_true(note->value > values[note->partition]);
        offsets[note->partition] = note->offset;
        values[note->partition] = note->value;
        count++;
    }
    assert_int_equal(count, command_count);
    assert_int_equal(node->strange_count, 0);
}

static void test_command_and_reply_make_a_round(void **state)
{
    (void)state;
    struct node *node = shared_node();
    send_stored(node, PART, ++last_value);
    wait_for(node, (struct want){.commands = 1});
    assert_int_equal(node->outcome_count[BROKER_STORED], 1);
    node_reply(node, "shared", 43);
    wait_for(node, (struct want){.replies = 1});
    assert_int_equal(node->notes[find_note(node, NOTE_REPLY)].value, 43);
    check_order(node, 1);
    wait_until(&node, 1, "nothing to be on its way", is_idle, node);
}

static void test_many_come_once_and_in_order(void **state)
{
    (void)state;
    struct node *node = shared_node();
    for (int i = 1; i <= MANY; i++)
        send_next(node, i % 3 == 0 ? PART : i % ORDER_PARTITION_COUNT);
    wait_for(node, (struct want){.sent = MANY});
    /* A real one that is busy may not take all in time; what it said to have taken comes. */
    if (cluster_is_mock())
        assert_int_equal(node->outcome_count[BROKER_STORED], MANY);
    assert_true(node->outcome_count[BROKER_STORED] > 0);
    wait_for(node, (struct want){.commands = node->outcome_count[BROKER_STORED]});
    assert_in_range(node->command_count, node->outcome_count[BROKER_STORED],
                    node->outcome_count[BROKER_STORED] + node->outcome_count[BROKER_UNKNOWN]);
    check_order(node, node->command_count);
}

static bool has_ended_after_a_command(void *context)
{
    const struct node *node = context;
    int32_t end_at = find_note(node, NOTE_END), command_at = find_note(node, NOTE_COMMAND);
    return command_at >= 0 && end_at > command_at && node->notes[end_at].partition == PART;
}

static void test_end_of_a_partition_is_told_again_after_more_came(void **state)
{
    (void)state;
    struct node *node = shared_node();
    for (int round = 0; round < 2; round++) {
        node_forget(node);
        send_next(node, PART);
        wait_until(&node, 1, "the end to be told", has_ended_after_a_command, node);
    }
}

static void test_something_to_do_wakes_the_lane(void **state)
{
    (void)state;
    struct node *node = shared_node();
    struct pollfd wait = {.fd = broker_fd(node->broker), .events = POLLIN};
    node_reply(node, "shared", 1);
    /* Nothing but the descriptor is waited for. */
    while (node->reply_count == 0) {
        assert_int_equal(poll(&wait, 1, WAIT_MS_MAX), 1);
        broker_poll(node->broker, clock_now_ms());
    }
    send_next(node, PART);
    while (node->command_count == 0 || node->sent_count == 0) {
        assert_int_equal(poll(&wait, 1, WAIT_MS_MAX), 1);
        broker_poll(node->broker, clock_now_ms());
    }
}

static void test_replies_from_before_are_not_read_and_none_after_is_missed(void **state)
{
    (void)state;
    struct node *first = node_start("one");
    struct broker_kafka_config config;
    cluster_config(&config, "two");
    struct node *second = node_start_with(&config);
    node_reply(first, "two", 1);
    wait_until(&first, 1, "the reply to be stored", is_idle, first);
    node_stop(second);

    second = node_start_with(&config);
    node_reply(first, "two", 2); /* before the new one's first turn */
    wait_until(&first, 1, "the reply to be stored", is_idle, first);
    wait_for(second, (struct want){.replies = 1});
    assert_int_equal(second->reply_count, 1);
    for (int32_t i = 0; i < second->note_count; i++)
        if (second->notes[i].kind == NOTE_REPLY)
            assert_int_equal(second->notes[i].value, 2);
    node_stop(first);
    node_stop(second);
}

/* Commands from `above` on that both together have taken, each counted once: what was not committed when a partition
 * moved comes again. */
struct pair {
    struct node *nodes[2];
    uint64_t above;
};

static int32_t taken_by(const struct node *node, uint64_t above, bool seen[ORDER_PARTITION_COUNT])
{
    int32_t count = 0;
    for (int32_t i = 0; i < node->note_count; i++) {
        const struct note *note = &node->notes[i];
        if (note->kind != NOTE_COMMAND || note->value <= above || seen[note->partition])
            continue;
        seen[note->partition] = true;
        count++;
    }
    return count;
}

static bool all_taken(void *context)
{
    const struct pair *pair = context;
    bool seen[ORDER_PARTITION_COUNT] = {false};
    return taken_by(pair->nodes[0], pair->above, seen) + taken_by(pair->nodes[1], pair->above, seen) ==
           ORDER_PARTITION_COUNT;
}

static void test_second_node_takes_half_and_gives_it_back(void **state)
{
    (void)state;
    struct pair pair = {.above = 10000};
    struct node **nodes = pair.nodes;
    nodes[0] = node_start("one");
    nodes[0]->commits = true;
    wait_until_owned(nodes, 1);
    send_to_all(nodes, 1, nodes[0], 0);
    wait_for(nodes[0], (struct want){.commands = ORDER_PARTITION_COUNT});

    nodes[1] = node_start("two");
    nodes[1]->commits = true;
    wait_until_owned(nodes, 2);
    assert_int_equal(nodes[0]->owned_count + nodes[1]->owned_count, ORDER_PARTITION_COUNT);
    assert_in_range(nodes[1]->owned_count, ORDER_PARTITION_COUNT / 2 - 5, ORDER_PARTITION_COUNT / 2 + 5);
    send_to_all(nodes, 2, nodes[1], 10000);
    wait_until(nodes, 2, "the commands", all_taken, &pair);
    /* Each at its owner, and only there. */
    for (int n = 0; n < 2; n++) {
        bool seen[ORDER_PARTITION_COUNT] = {false};
        assert_int_equal(taken_by(nodes[n], 10000, seen), nodes[n]->owned_count);
        for (int i = 0; i < ORDER_PARTITION_COUNT; i++)
            assert_int_equal(seen[i], nodes[n]->owned[i]);
        assert_int_equal(nodes[n]->strange_count, 0);
    }

    /* The second one leaves: its partitions go back, replies still reach it. */
    broker_leave(nodes[1]->broker);
    wait_until(nodes, 2, "the one that leaves to have nothing", has_none, nodes[1]);
    int32_t before = nodes[1]->command_count;
    wait_until_owned(nodes, 1);
    node_reply(nodes[0], "two", 5);
    struct want reply = {.node = nodes[1], .replies = 1};
    wait_until(nodes, 2, "a reply", is_there, &reply);
    send_to_all(nodes, 2, nodes[1], 20000);
    pair.above = 20000;
    wait_until(nodes, 2, "the commands", all_taken, &pair);
    assert_int_equal(nodes[1]->command_count, before);
    node_stop(nodes[1]);
    node_stop(nodes[0]);
}

static void test_next_owner_begins_where_the_last_committed(void **state)
{
    (void)state;
    struct node *node = node_start("one");
    node->commits = true;
    /* Before it has anything: what was never committed begins at the first. */
    for (int i = 1; i <= 10; i++)
        send_stored(node, PART, (uint64_t)i);
    wait_for(node, (struct want){.commands = 10});
    check_order(node, 10);
    node->commits = false;
    for (int i = 11; i <= 15; i++)
        send_stored(node, PART, (uint64_t)i);
    wait_for(node, (struct want){.commands = 15});
    broker_leave(node->broker);
    wait_until(&node, 1, "it to have left", has_none, node);
    /* No commit is taken any more. */
    broker_commit(node->broker, node->commands, PART, 15);
    node_stop(node);

    node = node_start("two");
    wait_for(node, (struct want){.commands = 5});
    wait_until_owned(&node, 1);
    assert_int_equal(node->command_count, 5);
    for (int32_t i = 0, next = 10; i < node->note_count; i++)
        if (node->notes[i].kind == NOTE_COMMAND) {
            assert_int_equal(node->notes[i].offset, next);
            assert_int_equal(node->notes[i].value, next + 1);
            next++;
        }
    node_stop(node);
}

static bool is_confirmed(void *context)
{
    return find_note(context, NOTE_CONFIRMED) >= 0;
}

static void test_who_has_a_partition_is_told_so_and_nobody_else_is(void **state)
{
    (void)state;
    struct node *node = node_start("one");
    wait_until_owned(&node, 1);
    broker_commit(node->broker, node->commands, PART, 0); /* nobody asked: no answer */
    broker_confirm(node->broker, node->commands, PART + 1, 0);
    wait_until(&node, 1, "a confirmation", is_confirmed, node);
    assert_int_equal(node->notes[find_note(node, NOTE_CONFIRMED)].partition, PART + 1);
    broker_leave(node->broker);
    wait_until(&node, 1, "it to have left", has_none, node);
    int32_t before = node->note_count;
    broker_confirm(node->broker, node->commands, PART, 0);
    for (int i = 0; i < 20; i++)
        broker_poll(node->broker, clock_now_ms() + 1000 * i);
    assert_int_equal(node->note_count, before);
    node_stop(node);
}

static void test_paused_partition_gives_nothing_and_loses_nothing(void **state)
{
    (void)state;
    struct node *node = shared_node();
    for (int round = 0; round < 5; round++) {
        int32_t before = node->command_count;
        broker_pause(node->broker, node->commands, PART, true);
        for (int i = 1; i <= 20; i++) {
            send_stored(node, PART, ++last_value);
            send_stored(node, PART + 1, ++last_value);
        }
        wait_for(node, (struct want){.commands = before + 20});
        for (int32_t i = 0, seen = 0; i < node->note_count; i++)
            if (node->notes[i].kind == NOTE_COMMAND && ++seen > before)
                assert_int_equal(node->notes[i].partition, PART + 1);
        broker_pause(node->broker, node->commands, PART, false);
        wait_for(node, (struct want){.commands = before + 40});
    }
    check_order(node, 200);
}

static bool is_paused_or_done(void *context)
{
    const struct node *node = context;
    return node->paused || node->command_count >= 500;
}

static void test_pause_within_a_turn_neither_loses_nor_repeats(void **state)
{
    (void)state;
    struct node *node = shared_node();
    /* All of it is there before it is read. */
    broker_pause(node->broker, node->commands, PART, true);
    for (int i = 1; i <= 500; i++)
        send_stored(node, PART, ++last_value);
    broker_pause(node->broker, node->commands, PART, false);
    /* In the middle of what has come already, as an owner with full hands does. */
    node->pause_every = 70;
    while (node->command_count < 500) {
        wait_until(&node, 1, "the commands", is_paused_or_done, node);
        node->paused = false;
        broker_pause(node->broker, node->commands, PART, false);
    }
    node->pause_every = 0;
    send_stored(node, PART, ++last_value); /* and what comes after them */
    wait_for(node, (struct want){.commands = 501});
    check_order(node, 501);
}

/* ---- Trouble ---- */

static void test_fate_is_told_while_no_broker_answers_and_all_is_well_after(void **state)
{
    (void)state;
    if (!cluster_is_mock())
        skip();
    struct node *node = shared_node();
    send_next(node, PART);
    wait_for(node, (struct want){.commands = 1, .sent = 1});
    cluster_down(true);
    for (int i = 2; i <= 101; i++)
        send_next(node, i % ORDER_PARTITION_COUNT);
    wait_for(node, (struct want){.sent = 101});
    assert_int_equal(node->outcome_count[BROKER_STORED], 1);
    assert_int_equal(node->outcome_count[BROKER_NOT_STORED] + node->outcome_count[BROKER_UNKNOWN], 100);
    cluster_down(false);
    /* The first ones may come too early for the connection. */
    while (node->outcome_count[BROKER_STORED] == 1) {
        int32_t sent = node->sent_count;
        send_next(node, PART);
        wait_for(node, (struct want){.sent = sent + 1});
    }
    /* Its partitions may have been away, and what was said to be UNKNOWN may be there. */
    wait_until_owned(&node, 1);
    wait_for(node, (struct want){.commands = 2});
    assert_int_equal(node->strange_count, 0);
}

static bool is_replaced(void *context)
{
    const struct broker_kafka *broker =
        CONTAINER_OF(((struct node *)context)->broker, struct broker_kafka, base);
    const struct kafka_producer *producer = &broker->producer;
    return !producer->failed && producer->client != NULL && producer->retired == NULL &&
           producer->ending == NULL;
}

static void check_refused(const struct broker_kafka_config *config, const char *named)
{
    struct broker *broker;
    char why[512] = "";
    assert_int_equal(broker_kafka_create(config, &broker, why, sizeof(why)), ERR_CONFIG);
    if (strstr(why, named) == NULL)
        fail_msg("%s", why);
}

static void test_broker_that_is_not_there_is_named(void **state)
{
    (void)state;
    struct broker_kafka_config config;
    struct kafka_config *nowhere;
    char why[512];
    cluster_config(&config, "one");
    assert_true(kafka_config_parse("kafka://127.0.0.1:1", NULL, &nowhere, why, sizeof(why)));
    config.kafka = nowhere;
    config.connect_timeout_ms = 1000;
    check_refused(&config, "127.0.0.1:1");
    check_refused(&config, "Connection refused");
    kafka_config_free(nowhere);
}

static void test_names_that_no_topic_can_have_are_refused(void **state)
{
    (void)state;
    struct broker_kafka_config config;
    char long_name[400];
    cluster_config(&config, "one");
    config.node_name = "with space";
    check_refused(&config, "with space");
    config.node_name = "";
    check_refused(&config, "empty");
    memset(long_name, 'a', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    config.node_name = long_name;
    check_refused(&config, "too long");
    config.node_name = "one";
    config.topic_prefix = "a/b";
    check_refused(&config, "a/b");
    config.topic_prefix = long_name;
    check_refused(&config, "too long");
}

static void test_topic_of_another_size_is_refused(void **state)
{
    (void)state;
    struct broker_kafka_config config;
    if (!cluster_is_mock())
        skip();
    char name[KAFKA_TOPIC_SIZE];
    place_topic(cluster_prefix(), name);
    cluster_topic(name, 7);
    cluster_config(&config, "one");
    check_refused(&config, "7 partitions");
}

/* ---- Dead letters, topics of events ---- */

struct letters {
    int count;
    unsigned offsets; /* a bit for each from 1000 on */
    bool wrong;
};

static void bury(struct node *node, int number)
{
    char text[32];
    snprintf(text, sizeof(text), "poison %d", number);
    struct broker_message message = {
        .topic = "some.topic",
        .partition = PART,
        .offset = 1000 + number,
        .sent_ms = 123456789,
        .value = text,
        .size = strlen(text),
    };
    assert_int_equal(broker_send_dead_letter(node->broker, &message, "no \"sense\""), ERR_OK);
}

static bool on_letter(void *context, const struct broker_kafka_dead_letter *letter)
{
    struct letters *letters = context;
    char expected[32];
    snprintf(expected, sizeof(expected), "poison %d", (int)letter->offset - 1000);
    letters->wrong = letters->wrong || letter->number < letters->count || letter->partition != PART ||
                     letter->sent_ms != 123456789 || strcmp(letter->topic, "some.topic") != 0 ||
                     strcmp(letter->reason, "no \"sense\"") != 0 || letter->size != strlen(expected) ||
                     memcmp(letter->value, expected, letter->size) != 0 || letter->dead_ms <= 0;
    letters->count++;
    letters->offsets |= 1u << (letter->offset - 1000);
    return true;
}

static void test_dead_letters_are_kept_with_their_reason(void **state)
{
    (void)state;
    struct broker_kafka_config config;
    struct letters letters = {0};
    int64_t count = -1;
    char why[512];
    cluster_config(&config, "one");
    struct node *node = node_start_with(&config);
    assert_int_equal(broker_kafka_dead_letters(config.kafka, cluster_prefix(), 1000, 30000, on_letter,
                                               &letters, &count, why, sizeof(why)),
                     ERR_OK);
    assert_int_equal(count, 0);
    for (int i = 0; i < 20; i++)
        bury(node, i);
    wait_until(&node, 1, "the letters to be stored", is_idle, node);
    assert_int_equal(broker_kafka_dead_letters(config.kafka, cluster_prefix(), 1000, 30000, on_letter,
                                               &letters, &count, why, sizeof(why)),
                     ERR_OK);
    /* Each once, but for what was not sure to be stored and is sent again. */
    assert_true(count >= 20);
    assert_int_equal(letters.count, count);
    assert_int_equal(letters.offsets, (1u << 20) - 1);
    assert_false(letters.wrong);
    letters.count = 0;
    assert_int_equal(broker_kafka_dead_letters(config.kafka, cluster_prefix(), 7, 30000, on_letter, &letters,
                                               &count, why, sizeof(why)),
                     ERR_OK);
    assert_int_equal(count, 7);
    node_stop(node);
}

static void test_producer_that_fails_for_good_is_replaced(void **state)
{
    (void)state;
    struct node *node = shared_node();
    struct broker_kafka *broker = CONTAINER_OF(node->broker, struct broker_kafka, base);
    int32_t sent = 0;
    for (int32_t round = 0; round < 3; round++) {
        for (int i = 0; i < 10; i++)
            send_next(node, PART);
        bury(node, round);
        rd_kafka_test_fatal_error(broker->producer.client, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER,
                                  "for the test");
        /* Each has its fate, whichever it is. */
        wait_for(node, (struct want){.sent = sent += 10});
        wait_until(&node, 1, "another producer", is_replaced, node);
        int32_t stored = node->outcome_count[BROKER_STORED];
        /* The first may come too early for its connections. */
        while (node->outcome_count[BROKER_STORED] == stored) {
            send_next(node, PART);
            wait_for(node, (struct want){.sent = ++sent});
        }
    }
    assert_int_equal(node->sent_count, sent);
    wait_for(node, (struct want){.commands = node->outcome_count[BROKER_STORED]});
    check_order(node, node->command_count);
    /* A dead letter is sent again by whoever comes after; once at least. */
    wait_until(&node, 1, "the letters to be stored", is_idle, node);
    struct letters letters = {0};
    int64_t count;
    char why[512];
    assert_int_equal(broker_kafka_dead_letters(broker->kafka, broker->prefix, 1000, 30000, on_letter,
                                               &letters, &count, why, sizeof(why)),
                     ERR_OK);
    assert_true(count >= 3);
    assert_int_equal(letters.offsets, 7); /* 1000, 1001 and 1002 were there */
}

static void test_topic_of_an_event_is_found_when_it_is_there(void **state)
{
    (void)state;
    struct broker_kafka_config config;
    const struct uuid event = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};
    cluster_config(&config, "one");
    config.topic_per_event = true;
    struct node *node = node_start_with(&config);
    place_topic_of_event(cluster_prefix(), &event, node->commands);
    broker_poll(node->broker, clock_now_ms());
    cluster_topic(node->commands, ORDER_PARTITION_COUNT);
    broker_make_topic(node->broker, node->commands);
    wait_until_owned(&node, 1);
    node_send(node, PART, 1);
    wait_for(node, (struct want){.commands = 1, .sent = 1});
    node_stop(node);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_command_and_reply_make_a_round, prefix_renew),
        cmocka_unit_test_setup(test_many_come_once_and_in_order, prefix_renew),
        cmocka_unit_test_setup(test_end_of_a_partition_is_told_again_after_more_came, prefix_renew),
        cmocka_unit_test_setup(test_something_to_do_wakes_the_lane, prefix_renew),
        cmocka_unit_test_setup(test_replies_from_before_are_not_read_and_none_after_is_missed, prefix_renew),
        cmocka_unit_test_setup(test_second_node_takes_half_and_gives_it_back, prefix_renew),
        cmocka_unit_test_setup(test_next_owner_begins_where_the_last_committed, prefix_renew),
        cmocka_unit_test_setup(test_who_has_a_partition_is_told_so_and_nobody_else_is, prefix_renew),
        cmocka_unit_test_setup(test_paused_partition_gives_nothing_and_loses_nothing, prefix_renew),
        cmocka_unit_test_setup(test_pause_within_a_turn_neither_loses_nor_repeats, prefix_renew),
        cmocka_unit_test_setup(test_broker_that_is_not_there_is_named, prefix_renew),
        cmocka_unit_test_setup(test_names_that_no_topic_can_have_are_refused, prefix_renew),
        cmocka_unit_test_setup(test_topic_of_another_size_is_refused, prefix_renew),
        cmocka_unit_test_setup(test_dead_letters_are_kept_with_their_reason, prefix_renew),
        cmocka_unit_test_setup(test_topic_of_an_event_is_found_when_it_is_there, prefix_renew),
        cmocka_unit_test_setup(test_producer_that_fails_for_good_is_replaced, prefix_renew),
        cmocka_unit_test_setup(test_fate_is_told_while_no_broker_answers_and_all_is_well_after, prefix_renew),
    };
    return cmocka_run_group_tests(tests, cluster_start, end_shared);
}
