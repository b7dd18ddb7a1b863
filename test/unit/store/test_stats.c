/* SPDX-License-Identifier: Apache-2.0
 * The statistics of a batch: sums per block and hour, blocks in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "store/stats.h"

static int setup(void **state)
{
    static struct stats stats;
    stats_init(&stats);
    *state = &stats;
    return 0;
}

static int teardown(void **state)
{
    stats_deinit(*state);
    return 0;
}

static struct seat_write seat(uint8_t org, uint8_t block, enum seat_state before, enum seat_state after)
{
    struct seat_write write = {.before = before, .row = {.state = after}};
    write.row.org_id.bytes[0] = org;
    write.row.event_id.bytes[0] = 1;
    write.block_id.bytes[0] = block;
    return write;
}

static struct hold_write hold(uint8_t block, bool insert, enum hold_state state, int64_t created_ms,
                              int64_t ended_ms)
{
    struct hold_write write = {.insert = insert,
                               .row = {.state = state, .created_ms = created_ms, .ended_ms = ended_ms}};
    write.row.org_id.bytes[0] = 1;
    write.row.event_id.bytes[0] = 1;
    write.block_id.bytes[0] = block;
    return write;
}

static void test_seat_leaves_one_state_and_enters_another(void **state)
{
    struct stats *stats = *state;
    struct seat_write a = seat(1, 1, SEAT_AVAILABLE, SEAT_HELD), b = seat(1, 1, SEAT_HELD, SEAT_SOLD);
    struct seat_write c = seat(1, 1, SEAT_HELD, SEAT_HELD);
    a.next = &b;
    b.next = &c;
    struct store_unit unit = {.seats = &a};
    stats_add_unit(stats, &unit);
    assert_int_equal(stats->block_count, 1);
    const struct stats_block *block = stats_sorted(stats)[0];
    assert_int_equal(block->seats[SEAT_AVAILABLE], -1);
    assert_int_equal(block->seats[SEAT_HELD], 0);
    assert_int_equal(block->seats[SEAT_SOLD], 1);
}

static void test_blocks_come_in_order_of_organization_event_and_block(void **state)
{
    struct stats *stats = *state;
    for (int i = 200; i > 0; i--) {
        struct seat_write write = seat((uint8_t)(i % 3), (uint8_t)(i % 17), SEAT_AVAILABLE, SEAT_HELD);
        struct store_unit unit = {.seats = &write};
        stats_add_unit(stats, &unit);
    }
    assert_int_equal(stats->block_count, 3 * 17);
    struct stats_block **blocks = stats_sorted(stats);
    for (size_t i = 1; i < stats->block_count; i++) {
        int order = uuid_compare(&blocks[i - 1]->org_id, &blocks[i]->org_id);
        assert_true(order < 0 ||
                    (order == 0 && uuid_compare(&blocks[i - 1]->block_id, &blocks[i]->block_id) < 0));
    }
}

static void test_holds_count_in_the_hour_they_were_made(void **state)
{
    struct stats *stats = *state;
    struct hold_write made = hold(1, true, HOLD_ACTIVE, STATS_HOUR_MS * 5 + 17, 0);
    struct hold_write extended = hold(1, false, HOLD_ACTIVE, STATS_HOUR_MS * 5 + 17, 0);
    struct hold_write expired = hold(1, false, HOLD_EXPIRED, STATS_HOUR_MS * 4, STATS_HOUR_MS * 5);
    struct hold_write at_once = hold(1, true, HOLD_CONVERTED, STATS_HOUR_MS * 5, STATS_HOUR_MS * 5);
    made.next = &extended;
    extended.next = &expired;
    expired.next = &at_once;
    struct store_unit unit = {.holds = &made};
    stats_add_unit(stats, &unit);
    const struct stats_block *block = stats_sorted(stats)[0];
    assert_int_equal(block->holds.created, 2);
    assert_int_equal(block->holds.ended[HOLD_EXPIRED], 1);
    assert_int_equal(block->holds.ended[HOLD_CONVERTED], 1);
    assert_int_equal(block->holds.ended[HOLD_ACTIVE], 0);
    assert_int_equal(block->holds.held_ms, STATS_HOUR_MS);
    int hours = 0;
    for (const struct stats_hour *hour = block->hours; hour != NULL; hour = hour->next, hours++) {
        bool fifth = hour->hour_ms == STATS_HOUR_MS * 5;
        assert_true(fifth || hour->hour_ms == STATS_HOUR_MS * 4);
        assert_int_equal(hour->holds.created, fifth ? 2 : 0);
        assert_int_equal(hour->holds.ended[HOLD_EXPIRED], fifth ? 0 : 1);
    }
    assert_int_equal(hours, 2);
}

static void test_extension_alone_touches_no_block(void **state)
{
    struct stats *stats = *state;
    struct hold_write extended = hold(1, false, HOLD_ACTIVE, 0, 0);
    struct store_unit unit = {.holds = &extended};
    stats_add_unit(stats, &unit);
    assert_int_equal(stats->block_count, 0);
}

static void test_reset_forgets(void **state)
{
    struct stats *stats = *state;
    struct seat_write write = seat(1, 1, SEAT_AVAILABLE, SEAT_BLOCKED);
    struct store_unit unit = {.seats = &write};
    stats_add_unit(stats, &unit);
    stats_reset(stats);
    assert_int_equal(stats->block_count, 0);
    stats_add_unit(stats, &unit);
    assert_int_equal(stats_sorted(stats)[0]->seats[SEAT_BLOCKED], 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_seat_leaves_one_state_and_enters_another),
        TEST(test_blocks_come_in_order_of_organization_event_and_block),
        TEST(test_holds_count_in_the_hour_they_were_made),
        TEST(test_extension_alone_touches_no_block),
        TEST(test_reset_forgets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
