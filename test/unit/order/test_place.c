/* SPDX-License-Identifier: Apache-2.0
 * Where a block's commands go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/limits.h"
#include "order/place.h"

static struct uuid event_of(uint8_t number)
{
    return (struct uuid){{0x01, 0x8f, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, number}};
}

static void test_sections_are_counted_as_in_a_spreadsheet(void **state)
{
    (void)state;
    assert_int_equal(place_section_index("A"), 0);
    assert_int_equal(place_section_index("Z"), 25);
    assert_int_equal(place_section_index("AA"), 26);
    assert_int_equal(place_section_index("AZ"), 51);
    assert_int_equal(place_section_index("BA"), 52);
    assert_int_equal(place_section_index("ZZZ"), 26 * 26 * 26 + 26 * 26 + 26 - 1);
}

static void test_a_topic_of_its_own_has_the_plain_formula(void **state)
{
    (void)state;
    assert_int_equal(place_partition(NULL, "A", 1, 100), 0);
    assert_int_equal(place_partition(NULL, "A", 10, 100), 9);
    assert_int_equal(place_partition(NULL, "B", 3, 100), 12);
    assert_int_equal(place_partition(NULL, "K", 1, 100), 0); /* section 10: round again */
    assert_int_equal(place_partition(NULL, "Z", 7, 100), (25 * 10 + 6) % 100);
    assert_int_equal(place_partition(NULL, "C", 2, 7), 21 % 7);
}

static void test_in_the_shared_topic_events_are_shifted_but_stay_together(void **state)
{
    (void)state;
    bool has_moved = false;
    for (uint8_t i = 0; i < 50; i++) {
        struct uuid event = event_of(i);
        int32_t first = place_partition(&event, "A", 1, 100);
        int32_t third = place_partition(&event, "A", 3, 100);
        assert_in_range(first, 0, 99);
        assert_int_equal((first + 2) % 100, third);
        has_moved = has_moved || first != 0;
    }
    assert_true(has_moved);
}

static void test_an_event_has_a_topic_that_names_it(void **state)
{
    (void)state;
    struct uuid event = event_of(7);
    char topic[ORDER_TOPIC_SIZE];
    place_topic("own", topic);
    assert_string_equal(topic, "own.commands");
    place_topic_of_event(ORDER_PREFIX, &event, topic);
    assert_string_equal(
        topic, "event-id-018f0000-0000-7000-8000-000000000007______ticket-command-request______holdfast");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sections_are_counted_as_in_a_spreadsheet),
        cmocka_unit_test(test_a_topic_of_its_own_has_the_plain_formula),
        cmocka_unit_test(test_in_the_shared_topic_events_are_shifted_but_stay_together),
        cmocka_unit_test(test_an_event_has_a_topic_that_names_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
