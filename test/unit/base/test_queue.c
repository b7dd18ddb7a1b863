/* SPDX-License-Identifier: Apache-2.0
 * Messages between threads: order, limit, and no lost wake-up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "base/queue.h"

struct message {
    struct list node;
    int sender;
    int number;
};

static bool readable(struct queue *queue, int wait_ms)
{
    struct pollfd poll_fd = {.fd = queue->fd, .events = POLLIN};
    return poll(&poll_fd, 1, wait_ms) == 1;
}

static void test_messages_leave_in_order_and_all_at_once(void **state)
{
    (void)state;
    struct queue queue;
    struct message messages[3];
    struct list out;
    list_init(&out);
    assert_int_equal(queue_init(&queue, 10), ERR_OK);
    assert_false(readable(&queue, 0));
    for (int i = 0; i < 3; i++) {
        assert_true(queue_push(&queue, &messages[i].node));
        assert_true(readable(&queue, 0));
    }
    assert_int_equal(queue_depth(&queue), 3);
    queue_take(&queue, &out);
    assert_false(readable(&queue, 0));
    assert_int_equal(queue_depth(&queue), 0);
    for (int i = 0; i < 3; i++)
        assert_ptr_equal(list_pop(&out), &messages[i].node);
    assert_true(list_empty(&out));
    queue_deinit(&queue);
}

static void test_many_messages_cost_one_wake_up(void **state)
{
    (void)state;
    struct queue queue;
    struct message messages[10];
    uint64_t wakes = 0;
    assert_int_equal(queue_init(&queue, 10), ERR_OK);
    for (int i = 0; i < 10; i++)
        assert_true(queue_push(&queue, &messages[i].node));
    assert_int_equal(read(queue.fd, &wakes, sizeof(wakes)), sizeof(wakes));
    assert_int_equal(wakes, 1);
    queue_deinit(&queue);
}

static void test_a_full_queue_refuses_but_never_what_must_not_be_dropped(void **state)
{
    (void)state;
    struct queue queue;
    struct message messages[5];
    struct list out;
    list_init(&out);
    assert_int_equal(queue_init(&queue, 2), ERR_OK);
    queue_push_always(&queue, &messages[0].node);
    assert_true(queue_push(&queue, &messages[1].node));
    assert_true(queue_push(&queue, &messages[2].node));
    assert_false(queue_push(&queue, &messages[3].node));
    queue_push_always(&queue, &messages[4].node);
    queue_take(&queue, &out);
    static const int expected[] = {0, 1, 2, 4};
    for (int i = 0; i < 4; i++)
        assert_ptr_equal(list_pop(&out), &messages[expected[i]].node);
    assert_null(list_pop(&out));
    assert_true(queue_push(&queue, &messages[3].node));
    queue_take(&queue, &out);
    queue_deinit(&queue);
}

static void test_taking_from_an_empty_queue_gives_nothing(void **state)
{
    (void)state;
    struct queue queue;
    struct list out;
    list_init(&out);
    assert_int_equal(queue_init(&queue, 2), ERR_OK);
    queue_take(&queue, &out);
    assert_true(list_empty(&out));
    queue_deinit(&queue);
}

enum { SENDER_COUNT = 3, MESSAGE_COUNT = 20000 };

struct sender {
    struct queue *queue;
    int number;
    struct message messages[MESSAGE_COUNT];
};

static void *send_all(void *argument)
{
    struct sender *sender = argument;
    for (int i = 0; i < MESSAGE_COUNT; i++) {
        sender->messages[i] = (struct message){.sender = sender->number, .number = i};
        if (i % 2 == 0)
            queue_push_always(sender->queue, &sender->messages[i].node);
        else
            while (!queue_push(sender->queue, &sender->messages[i].node))
                ;
    }
    return NULL;
}

/* The reader sleeps on the eventfd alone: one lost wake-up and it would wait for ever. */
static void test_a_sleeping_reader_gets_everything_from_several_threads(void **state)
{
    (void)state;
    static struct sender senders[SENDER_COUNT];
    pthread_t threads[SENDER_COUNT];
    int next[SENDER_COUNT] = {0}, total = 0;
    struct queue queue;
    assert_int_equal(queue_init(&queue, 64), ERR_OK);
    for (int i = 0; i < SENDER_COUNT; i++) {
        senders[i].queue = &queue;
        senders[i].number = i;
        assert_int_equal(pthread_create(&threads[i], NULL, send_all, &senders[i]), 0);
    }
    while (total < SENDER_COUNT * MESSAGE_COUNT) {
        struct list out;
        list_init(&out);
        assert_true(readable(&queue, 20000));
        queue_take(&queue, &out);
        for (struct list *node; (node = list_pop(&out)) != NULL; total++) {
            struct message *message = CONTAINER_OF(node, struct message, node);
            assert_int_equal(message->number, next[message->sender]++);
        }
    }
    for (int i = 0; i < SENDER_COUNT; i++)
        pthread_join(threads[i], NULL);
    queue_deinit(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_leave_in_order_and_all_at_once),
        cmocka_unit_test(test_many_messages_cost_one_wake_up),
        cmocka_unit_test(test_a_full_queue_refuses_but_never_what_must_not_be_dropped),
        cmocka_unit_test(test_taking_from_an_empty_queue_gives_nothing),
        cmocka_unit_test(test_a_sleeping_reader_gets_everything_from_several_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
