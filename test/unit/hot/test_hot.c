/* SPDX-License-Identifier: Apache-2.0
 * The hot tier: what is put in stands in every list it belongs to, and leaves
 * all of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "base/limits.h"
#include "hot/hot.h"
#include "map_fixture.h"

enum { NOW_MS = 1000000 };

struct tier {
    struct directory *directory;
    struct hot *hot;
    struct uuid org_id, event_id;
    struct hot_event *event;
};

static int setup(void **state)
{
    static struct tier tier;
    tier = (struct tier){.org_id = fixture_id('o', 1), .event_id = fixture_id('e', 1)};
    assert_int_equal(directory_create(&tier.directory), ERR_OK);
    assert_int_equal(hot_create(tier.directory, NOW_MS, &tier.hot), ERR_OK);
    struct event_row row = {.org_id = tier.org_id,
                            .id = tier.event_id,
                            .name = "Show",
                            .state = EVENT_LIVE,
                            .policy = policy_default()};
    hot_put_event(tier.hot, &row);
    tier.event = hot_event(tier.hot, &tier.org_id, &tier.event_id);
    assert_non_null(tier.event);
    assert_int_equal(hot_put_layout(tier.hot, tier.event, fixture_map()), ERR_OK);
    *state = &tier;
    return 0;
}

static int teardown(void **state)
{
    struct tier *tier = *state;
    hot_destroy(tier->hot);
    directory_destroy(tier->directory);
    return 0;
}

static struct hold_row hold_row(const struct tier *tier, uint32_t number, int32_t seat, uint32_t user)
{
    return (struct hold_row){
        .org_id = tier->org_id,
        .event_id = tier->event_id,
        .id = fixture_id('h', number),
        .seat_id = fixture_id('s', (uint32_t)seat),
        .user_id = fixture_id('u', user),
        .cart_token = "basket",
        .state = HOLD_ACTIVE,
        .source = SOURCE_SCANNER,
        .price_cents = 500,
        .created_ms = NOW_MS,
        .held_until_ms = NOW_MS + 300000,
    };
}

static void put_seat(struct tier *tier, int32_t seat, enum seat_state state, int32_t version)
{
    struct seat_row row;
    hot_seat_row(tier->event, seat, &row);
    row.state = state;
    row.version = version;
    hot_put_seat(tier->hot, tier->event, &row);
}

static struct hot_hold *put_hold(struct tier *tier, uint32_t number, int32_t seat, uint32_t user)
{
    struct hold_row row = hold_row(tier, number, seat, user);
    hot_put_hold(tier->hot, &row, false, NOW_MS);
    put_seat(tier, seat, SEAT_HELD, tier->event->seats[seat].version + 1);
    struct hot_hold *hold = hot_hold(tier->hot, &tier->org_id, &row.id);
    assert_non_null(hold);
    return hold;
}

static struct checkout_row checkout_row(const struct tier *tier, uint32_t number, enum checkout_state at)
{
    return (struct checkout_row){
        .org_id = tier->org_id,
        .event_id = tier->event_id,
        .id = fixture_id('c', number),
        .user_id = fixture_id('u', 1),
        .state = at,
        .payment_deadline_ms = NOW_MS + 900000,
        .payment_token = at == CHECKOUT_PROCESSING ? "tok" : NULL,
    };
}

static int timers_due(struct tier *tier, int64_t now_ms)
{
    struct list due;
    list_init(&due);
    wheel_advance(&tier->hot->wheel, now_ms, &due);
    int count = 0;
    while (list_pop(&due) != NULL)
        count++;
    return count;
}

/* ---- Finding ---- */

static void test_another_organizations_things_are_not_found(void **state)
{
    struct tier *tier = *state;
    struct uuid other = fixture_id('o', 2);
    struct hot_hold *hold = put_hold(tier, 1, 0, 1);
    struct checkout_row checkout = checkout_row(tier, 1, CHECKOUT_PENDING_PAYMENT);
    hot_put_checkout(tier->hot, &checkout);
    assert_null(hot_event(tier->hot, &other, &tier->event_id));
    assert_null(hot_hold(tier->hot, &other, &hold->id));
    assert_null(hot_checkout(tier->hot, &other, &checkout.id));
    assert_non_null(hot_checkout(tier->hot, &tier->org_id, &checkout.id));
}

/* ---- Holds ---- */

static void test_a_hold_stands_with_its_seat_and_user(void **state)
{
    struct tier *tier = *state;
    struct hot_hold *hold = put_hold(tier, 1, 4, 1);
    struct uuid user_id = fixture_id('u', 1);
    struct hot_user *user = hot_user(tier->hot, tier->event, &user_id);
    assert_ptr_equal(tier->event->seats[4].hold, hold);
    assert_ptr_equal(hold->user, user);
    assert_int_equal(user->hold_count, 1);
    assert_int_equal(user->rate.count, 1);
    struct hold_row wanted = hold_row(tier, 1, 4, 1), row;
    hot_hold_row(hold, &row);
    assert_string_equal(row.cart_token, "basket");
    wanted.cart_token = row.cart_token;
    assert_memory_equal(&row, &wanted, sizeof(row)); /* as the store has it */
    struct seat_row seat;
    hot_seat_row(tier->event, 4, &seat);
    assert_memory_equal(&seat.hold_id, &hold->id, sizeof(hold->id));
    assert_int_equal(seat.held_until_ms, hold->held_until_ms);
    assert_int_equal(seat.state, SEAT_HELD);
    assert_int_equal(seat.version, 2);
}

static void test_an_ended_hold_leaves_every_list(void **state)
{
    struct tier *tier = *state;
    put_hold(tier, 1, 4, 1);
    put_hold(tier, 2, 5, 1);
    struct hold_row row = hold_row(tier, 1, 4, 1);
    row.state = HOLD_EXPIRED;
    hot_put_hold(tier->hot, &row, false, NOW_MS);
    hot_put_hold(tier->hot, &row, false, NOW_MS); /* told twice */
    assert_null(hot_hold(tier->hot, &tier->org_id, &row.id));
    assert_null(tier->event->seats[4].hold);
    struct hot_user *user = hot_user(tier->hot, tier->event, &row.user_id);
    assert_int_equal(user->hold_count, 1);
    assert_int_equal(user->rate.count, 2); /* it was granted all the same */
    assert_int_equal(timers_due(tier, NOW_MS + 900000), 1);
}

static void test_the_end_of_an_old_hold_leaves_the_new_one_its_seat(void **state)
{
    struct tier *tier = *state;
    put_hold(tier, 1, 4, 1);
    struct hot_hold *renewed = put_hold(tier, 2, 4, 1);
    struct hold_row row = hold_row(tier, 1, 4, 1);
    row.state = HOLD_EXPIRED;
    hot_put_hold(tier->hot, &row, false, NOW_MS);
    assert_ptr_equal(tier->event->seats[4].hold, renewed);
}

static void test_a_hold_of_no_known_seat_is_left_out(void **state)
{
    struct tier *tier = *state;
    struct hold_row row = hold_row(tier, 1, 9999, 1);
    hot_put_hold(tier->hot, &row, false, NOW_MS);
    assert_null(hot_hold(tier->hot, &tier->org_id, &row.id));
}

static void test_a_hold_is_noticed_first_and_released_after_the_grace(void **state)
{
    struct tier *tier = *state;
    struct hot_hold *hold = put_hold(tier, 1, 4, 1);
    assert_int_equal(hold->timer.due_ms, NOW_MS + 300000 - HOLD_EXPIRING_NOTICE_MS);
    assert_false(hold->noticed);
    struct hold_row row = hold_row(tier, 1, 4, 1);
    hot_put_hold(tier->hot, &row, false, NOW_MS + 280000); /* changed when the notice was given already */
    assert_true(hold->noticed);
    assert_int_equal(hold->timer.due_ms, NOW_MS + 310000);
    row.held_until_ms += 300000;
    hot_put_hold(tier->hot, &row, false, NOW_MS + 280000); /* extended: all over again */
    assert_false(hold->noticed);
    assert_int_equal(hold->timer.due_ms, NOW_MS + 600000 - HOLD_EXPIRING_NOTICE_MS);
    assert_int_equal(hold->user->hold_count, 1);
    assert_int_equal(hold->user->rate.count, 1);
}

/* ---- Checkouts ---- */

static void test_a_hold_joins_moves_between_and_leaves_checkouts(void **state)
{
    struct tier *tier = *state;
    struct hot_hold *hold = put_hold(tier, 1, 4, 1);
    struct checkout_row first = checkout_row(tier, 1, CHECKOUT_PENDING_PAYMENT);
    struct checkout_row second = checkout_row(tier, 2, CHECKOUT_PENDING_PAYMENT);
    hot_put_checkout(tier->hot, &first);
    hot_put_checkout(tier->hot, &second);
    struct hot_checkout *one = hot_checkout(tier->hot, &tier->org_id, &first.id);
    struct hot_checkout *two = hot_checkout(tier->hot, &tier->org_id, &second.id);
    struct hold_row row = hold_row(tier, 1, 4, 1);
    row.checkout_id = first.id;
    hot_put_hold(tier->hot, &row, false, NOW_MS);
    assert_ptr_equal(hold->checkout, one);
    assert_ptr_equal(one->holds.next, &hold->checkout_node);
    row.checkout_id = second.id;
    hot_put_hold(tier->hot, &row, false, NOW_MS);
    assert_ptr_equal(hold->checkout, two);
    assert_true(list_empty(&one->holds));
    row.checkout_id = (struct uuid){{0}};
    hot_put_hold(tier->hot, &row, false, NOW_MS);
    assert_null(hold->checkout);
    assert_true(list_empty(&two->holds));
}

static void test_the_end_of_a_checkout_lets_its_holds_go(void **state)
{
    struct tier *tier = *state;
    struct hot_hold *hold = put_hold(tier, 1, 4, 1);
    struct checkout_row checkout = checkout_row(tier, 1, CHECKOUT_PENDING_PAYMENT);
    hot_put_checkout(tier->hot, &checkout);
    struct hold_row row = hold_row(tier, 1, 4, 1);
    row.checkout_id = checkout.id;
    hot_put_hold(tier->hot, &row, false, NOW_MS);
    checkout.state = CHECKOUT_EXPIRED;
    hot_put_checkout(tier->hot, &checkout);
    assert_null(hot_checkout(tier->hot, &tier->org_id, &checkout.id));
    assert_null(hold->checkout);
    assert_ptr_equal(tier->event->seats[4].hold, hold);
}

static void test_a_payment_takes_its_holds_off_the_wheel(void **state)
{
    struct tier *tier = *state;
    struct hot_hold *hold = put_hold(tier, 1, 4, 1);
    struct checkout_row checkout = checkout_row(tier, 1, CHECKOUT_PENDING_PAYMENT);
    hot_put_checkout(tier->hot, &checkout);
    struct hold_row row = hold_row(tier, 1, 4, 1);
    row.checkout_id = checkout.id;
    hot_put_hold(tier->hot, &row, false, NOW_MS);
    assert_false(hot_hold_paying(hold));
    checkout = checkout_row(tier, 1, CHECKOUT_PROCESSING);
    hot_put_checkout(tier->hot, &checkout);
    assert_true(hot_hold_paying(hold));
    assert_true(list_empty(&hold->timer.node));
    hot_put_hold(tier->hot, &row, false, NOW_MS); /* nor does a later word of it bring it back */
    assert_int_equal(timers_due(tier, NOW_MS + 9000000), 0);
    struct list due;
    list_init(&due);
    wheel_advance(&tier->hot->checkout_wheel, NOW_MS + 899999, &due);
    assert_true(list_empty(&due));
    wheel_advance(&tier->hot->checkout_wheel, NOW_MS + 900000, &due);
    assert_false(list_empty(&due));
}

static void test_a_checkout_that_owes_a_refund_is_kept(void **state)
{
    struct tier *tier = *state;
    struct checkout_row checkout = checkout_row(tier, 1, CHECKOUT_FAILED);
    checkout.refund = REFUND_OWED;
    hot_put_checkout(tier->hot, &checkout);
    assert_non_null(hot_checkout(tier->hot, &tier->org_id, &checkout.id));
    checkout.refund = REFUND_DONE;
    hot_put_checkout(tier->hot, &checkout);
    assert_null(hot_checkout(tier->hot, &tier->org_id, &checkout.id));
}

/* ---- Seats ---- */

static void test_free_and_vacant_follow_state_and_busy(void **state)
{
    struct tier *tier = *state;
    struct hot_event *event = tier->event;
    assert_true(bit_get(event->free, 3));
    hot_seat_set_busy(event, 3, true);
    assert_false(bit_get(event->free, 3));
    assert_true(bit_get(event->vacant, 3));
    put_seat(tier, 3, SEAT_HELD, 2);
    assert_false(bit_get(event->vacant, 3));
    hot_seat_set_busy(event, 3, false);
    assert_false(bit_get(event->free, 3));
    hot_seat_set_busy(event, 3, true);
    put_seat(tier, 3, SEAT_AVAILABLE, 3);
    assert_true(bit_get(event->vacant, 3));
    assert_false(bit_get(event->free, 3)); /* not while it is busy */
    hot_seat_set_busy(event, 3, false);
    assert_true(bit_get(event->free, 3));
}

static void test_old_news_of_a_seat_is_ignored(void **state)
{
    struct tier *tier = *state;
    put_seat(tier, 3, SEAT_BLOCKED, 5);
    put_seat(tier, 3, SEAT_AVAILABLE, 4);
    assert_int_equal(seatmap_state(tier->event->map, 3), SEAT_BLOCKED);
    assert_int_equal(tier->event->seats[3].version, 5);
}

/* ---- Users and events ---- */

static void test_users_are_forgotten_when_no_limit_remembers_them(void **state)
{
    struct tier *tier = *state;
    put_hold(tier, 1, 4, 1);
    put_hold(tier, 2, 5, 2);
    struct hold_row row = hold_row(tier, 2, 5, 2);
    row.state = HOLD_CANCELLED;
    hot_put_hold(tier->hot, &row, false, NOW_MS);
    struct uuid first = fixture_id('u', 1), second = fixture_id('u', 2), third = fixture_id('u', 3);
    struct hot_user *pending = hot_user_make(tier->hot, tier->event, &third);
    pending->pending_count = 1;
    hot_users_sweep(tier->hot, NOW_MS + 1000);
    assert_non_null(hot_user(tier->hot, tier->event, &second)); /* its grant still counts */
    hot_users_sweep(tier->hot, NOW_MS + 300000);
    assert_non_null(hot_user(tier->hot, tier->event, &first));
    assert_null(hot_user(tier->hot, tier->event, &second));
    assert_ptr_equal(hot_user(tier->hot, tier->event, &third), pending);
}

static void test_an_event_changes_in_place_for_everybody(void **state)
{
    struct tier *tier = *state;
    struct event_row row = tier->event->row;
    row.name = "Another name";
    row.state = EVENT_CANCELLED;
    hot_put_event(tier->hot, &row);
    assert_ptr_equal(hot_event(tier->hot, &tier->org_id, &tier->event_id), tier->event);
    assert_string_equal(tier->event->row.name, "Another name");
    struct arena arena;
    arena_init(&arena);
    struct event_view view;
    assert_true(directory_event(tier->directory, &tier->org_id, &tier->event_id, &arena, &view));
    assert_int_equal(view.row.state, EVENT_CANCELLED);
    assert_ptr_equal(view.map, tier->event->map);
    seatmap_release(view.map);
    arena_deinit(&arena);
}

static void test_a_new_layout_starts_from_its_own_states(void **state)
{
    struct tier *tier = *state;
    struct seatmap *map = fixture_map();
    /* As loaded: some seats are not available. */
    seatmap_move(map, 2, SEAT_BLOCKED);
    hot_seat_set_busy(tier->event, 1, true);
    assert_int_equal(hot_put_layout(tier->hot, tier->event, map), ERR_OK);
    assert_ptr_equal(tier->event->map, map);
    assert_false(tier->event->seats[1].busy);
    assert_int_equal(tier->event->seats[1].version, 1);
    assert_true(bit_get(tier->event->free, 1));
    assert_false(bit_get(tier->event->free, 2));
    assert_false(bit_get(tier->event->vacant, 2));
}

int main(void)
{
#define WITH_TIER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_TIER(test_another_organizations_things_are_not_found),
        WITH_TIER(test_a_hold_stands_with_its_seat_and_user),
        WITH_TIER(test_an_ended_hold_leaves_every_list),
        WITH_TIER(test_the_end_of_an_old_hold_leaves_the_new_one_its_seat),
        WITH_TIER(test_a_hold_of_no_known_seat_is_left_out),
        WITH_TIER(test_a_hold_is_noticed_first_and_released_after_the_grace),
        WITH_TIER(test_a_hold_joins_moves_between_and_leaves_checkouts),
        WITH_TIER(test_the_end_of_a_checkout_lets_its_holds_go),
        WITH_TIER(test_a_payment_takes_its_holds_off_the_wheel),
        WITH_TIER(test_a_checkout_that_owes_a_refund_is_kept),
        WITH_TIER(test_free_and_vacant_follow_state_and_busy),
        WITH_TIER(test_old_news_of_a_seat_is_ignored),
        WITH_TIER(test_users_are_forgotten_when_no_limit_remembers_them),
        WITH_TIER(test_an_event_changes_in_place_for_everybody),
        WITH_TIER(test_a_new_layout_starts_from_its_own_states),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
