/* SPDX-License-Identifier: Apache-2.0
 * The intrusive list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/list.h"

struct item {
    struct list node;
    int number;
};

static void assert_numbers(struct list *list, const int *numbers, int count)
{
    int i = 0;
    LIST_FOR_EACH(node, list) {
        assert_true(i < count);
        assert_int_equal(CONTAINER_OF(node, struct item, node)->number, numbers[i]);
        assert_ptr_equal(node->next->prev, node);
        i++;
    }
    assert_int_equal(i, count);
}

static void make_items(struct item *items, int count, struct list *list, int first)
{
    list_init(list);
    for (int i = 0; i < count; i++) {
        items[i].number = first + i;
        list_append(list, &items[i].node);
    }
}

static void test_nodes_come_out_in_the_order_they_went_in(void **state)
{
    (void)state;
    struct item items[3];
    struct list list;
    make_items(items, 3, &list, 1);
    assert_numbers(&list, (int[]){1, 2, 3}, 3);
    for (int i = 0; i < 3; i++)
        assert_ptr_equal(list_pop(&list), &items[i].node);
    assert_null(list_pop(&list));
    assert_true(list_empty(&list));
}

static void test_removing_twice_is_safe(void **state)
{
    (void)state;
    struct item items[3];
    struct list list;
    make_items(items, 3, &list, 1);
    list_remove(&items[1].node);
    list_remove(&items[1].node);
    assert_numbers(&list, (int[]){1, 3}, 2);
}

static void test_splice_moves_all_to_the_end_and_empties_the_source(void **state)
{
    (void)state;
    struct item a[2], b[2];
    struct list to, from, empty;
    make_items(a, 2, &to, 1);
    make_items(b, 2, &from, 3);
    list_init(&empty);
    list_splice(&to, &from);
    list_splice(&to, &empty);
    assert_numbers(&to, (int[]){1, 2, 3, 4}, 4);
    assert_true(list_empty(&from));
    list_splice(&from, &to);
    assert_numbers(&from, (int[]){1, 2, 3, 4}, 4);
}

static void test_nodes_may_be_removed_while_walking(void **state)
{
    (void)state;
    struct item items[4];
    struct list list;
    make_items(items, 4, &list, 1);
    LIST_FOR_EACH_SAFE(node, &list) {
        if (CONTAINER_OF(node, struct item, node)->number % 2 == 0)
            list_remove(node);
    }
    assert_numbers(&list, (int[]){1, 3}, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes_come_out_in_the_order_they_went_in),
        cmocka_unit_test(test_removing_twice_is_safe),
        cmocka_unit_test(test_splice_moves_all_to_the_end_and_empties_the_source),
        cmocka_unit_test(test_nodes_may_be_removed_while_walking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
