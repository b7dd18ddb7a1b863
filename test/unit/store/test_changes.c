/* SPDX-License-Identifier: Apache-2.0
 * Packed change rows: what goes in comes out, secrets stay out, and no bytes
 * make the reader misbehave. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "store/changes.h"

struct world {
    struct rng rng;
    struct uuid node_id;
    struct arena arena;
    struct buf buf;
};

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    rng_init_seed(&w->rng, 7);
    w->node_id = uuid_make(&w->rng, 1);
    arena_init(&w->arena);
    buf_init(&w->buf);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    buf_deinit(&w->buf);
    arena_deinit(&w->arena);
    free(w);
    return 0;
}

static struct uuid id(struct world *w)
{
    return uuid_make(&w->rng, 1000);
}

/* One of everything, in the world's arena. */
static struct store_unit *unit_make(struct world *w)
{
    struct store_unit *unit = ARENA_NEW(&w->arena, struct store_unit);
    struct uuid org = id(w), event = id(w);
    struct seat_write *seat = ARENA_NEW(&w->arena, struct seat_write);
    seat->row = (struct seat_row){.org_id = org,
                                  .event_id = event,
                                  .id = id(w),
                                  .index = 99999,
                                  .version = 7,
                                  .state = SEAT_HELD,
                                  .hold_id = id(w),
                                  .held_until_ms = 123456789000,
                                  .locked_ms = 123456780000};
    unit->seats = seat;
    struct hold_write *hold = ARENA_NEW(&w->arena, struct hold_write);
    hold->insert = true;
    hold->row = (struct hold_row){.org_id = org,
                                  .event_id = event,
                                  .id = seat->row.hold_id,
                                  .seat_id = seat->row.id,
                                  .user_id = id(w),
                                  .cart_token = "tökën",
                                  .state = HOLD_ACTIVE,
                                  .source = SOURCE_OFFLINE_SYNC,
                                  .price_cents = 4500,
                                  .created_ms = 5,
                                  .held_until_ms = 6};
    unit->holds = hold;
    struct checkout_write *checkout = ARENA_NEW(&w->arena, struct checkout_write);
    checkout->row = (struct checkout_row){.org_id = org,
                                          .event_id = event,
                                          .id = id(w),
                                          .user_id = id(w),
                                          .state = CHECKOUT_REFUNDED,
                                          .refund = REFUND_OWED,
                                          .reason = END_PAYMENT_FAILED,
                                          .currency = "ZAR",
                                          .total_cents = -1,
                                          .payment_token = "tok_secret",
                                          .notes = "",
                                          .version = 12,
                                          .payer = id(w),
                                          .payer_until_ms = 77};
    unit->checkouts = checkout;
    struct ticket_write *ticket = ARENA_NEW(&w->arena, struct ticket_write);
    ticket->insert = true;
    ticket->row = (struct ticket_row){.org_id = org,
                                      .event_id = event,
                                      .id = id(w),
                                      .seat_id = seat->row.id,
                                      .hold_id = seat->row.hold_id,
                                      .checkout_id = checkout->row.id,
                                      .user_id = hold->row.user_id,
                                      .price_cents = 4500,
                                      .code = "code_secret",
                                      .created_ms = 9};
    unit->tickets = ticket;
    struct event_write *changed = ARENA_NEW(&w->arena, struct event_write);
    changed->row.org_id = org;
    changed->row.id = event;
    unit->events = changed;
    return unit;
}

static void pack(struct world *w, const struct store_unit *unit)
{
    struct changes_packer packer;
    buf_clear(&w->buf);
    changes_pack_begin(&packer, &w->buf, &w->node_id);
    changes_pack_unit(&packer, unit);
    assert_true(buf_ok(&w->buf));
}

static void test_every_row_comes_out_as_it_went_in(void **state)
{
    struct world *w = *state;
    struct store_unit *unit = unit_make(w);
    pack(w, unit);
    struct changes_reader reader;
    struct change change;
    changes_read_begin(&reader, w->buf.data, w->buf.size, &w->arena);

    assert_true(changes_read_next(&reader, &change));
    assert_int_equal(change.kind, CHANGE_EVENT);
    assert_true(uuid_equal(&change.mark.id, &unit->events->row.id));
    assert_true(uuid_equal(&change.mark.org_id, &unit->events->row.org_id));

    assert_true(changes_read_next(&reader, &change));
    assert_int_equal(change.kind, CHANGE_SEAT);
    const struct seat_row *seat = &unit->seats->row;
    assert_true(uuid_equal(&change.seat.org_id, &seat->org_id));
    assert_true(uuid_equal(&change.seat.event_id, &seat->event_id));
    assert_true(uuid_equal(&change.seat.id, &seat->id));
    assert_true(uuid_equal(&change.seat.hold_id, &seat->hold_id));
    assert_true(uuid_is_nil(&change.seat.ticket_id));
    assert_int_equal(change.seat.index, seat->index);
    assert_int_equal(change.seat.version, seat->version);
    assert_int_equal(change.seat.state, seat->state);
    assert_int_equal(change.seat.held_until_ms, seat->held_until_ms);
    assert_int_equal(change.seat.locked_ms, seat->locked_ms);

    assert_true(changes_read_next(&reader, &change));
    assert_int_equal(change.kind, CHANGE_HOLD);
    assert_true(change.inserted);
    assert_false(change.extended);
    assert_string_equal(change.hold.cart_token, "tökën");
    assert_null(change.hold.notes);
    assert_int_equal(change.hold.source, SOURCE_OFFLINE_SYNC);
    assert_int_equal(change.hold.held_until_ms, 6);
    assert_true(uuid_equal(&change.hold.user_id, &unit->holds->row.user_id));

    assert_true(changes_read_next(&reader, &change));
    assert_int_equal(change.kind, CHANGE_CHECKOUT);
    assert_false(change.inserted);
    assert_int_equal(change.checkout.state, CHECKOUT_REFUNDED);
    assert_int_equal(change.checkout.refund, REFUND_OWED);
    assert_int_equal(change.checkout.reason, END_PAYMENT_FAILED);
    assert_string_equal(change.checkout.currency, "ZAR");
    assert_int_equal(change.checkout.total_cents, -1);
    assert_string_equal(change.checkout.notes, "");
    assert_null(change.checkout.payment_token);
    assert_int_equal(change.checkout.version, 12);
    assert_true(uuid_equal(&change.checkout.payer, &unit->checkouts->row.payer));
    assert_int_equal(change.checkout.payer_until_ms, 77);
    assert_false(change.moved);

    assert_true(changes_read_next(&reader, &change));
    assert_int_equal(change.kind, CHANGE_TICKET);
    assert_true(uuid_equal(&change.ticket.hold_id, &unit->tickets->row.hold_id));
    assert_string_equal(change.ticket.code, "");

    assert_false(changes_read_next(&reader, &change));
    assert_false(reader.failed);
}

static void test_writer_is_known_before_the_first_record(void **state)
{
    struct world *w = *state;
    struct changes_reader reader;
    pack(w, unit_make(w));
    changes_read_begin(&reader, w->buf.data, w->buf.size, &w->arena);
    assert_true(uuid_equal(&reader.node_id, &w->node_id));
    changes_read_begin(&reader, w->buf.data, 12, &w->arena); /* cut inside the writer's id */
    assert_true(uuid_is_nil(&reader.node_id));
}

static void test_flags_say_what_kind_of_change_it_is(void **state)
{
    struct world *w = *state;
    struct store_unit *unit = unit_make(w);
    for (unsigned flags = 0; flags < 4; flags++) {
        struct changes_reader reader;
        struct change change;
        unit->holds->insert = unit->checkouts->insert = flags & 1;
        unit->holds->extended = unit->checkouts->moved = flags & 2;
        pack(w, unit);
        changes_read_begin(&reader, w->buf.data, w->buf.size, &w->arena);
        while (changes_read_next(&reader, &change)) {
            if (change.kind == CHANGE_HOLD || change.kind == CHANGE_CHECKOUT) {
                assert_int_equal(change.inserted, (flags & 1) != 0);
                assert_int_equal(change.extended, change.kind == CHANGE_HOLD && (flags & 2) != 0);
                assert_int_equal(change.moved, change.kind == CHANGE_CHECKOUT && (flags & 2) != 0);
            }
        }
    }
}

static void test_user_comes_out_as_they_went_in(void **state)
{
    struct world *w = *state;
    for (unsigned flags = 0; flags < 4; flags++) {
        struct user_write user = {
            .seen = flags & 1, .row = {.org_id = id(w), .id = id(w), .disabled = flags & 2, .created_ms = 9}};
        struct store_unit unit = {.users = &user};
        struct changes_reader reader;
        struct change change;
        pack(w, &unit);
        changes_read_begin(&reader, w->buf.data, w->buf.size, &w->arena);
        assert_true(changes_read_next(&reader, &change));
        assert_int_equal(change.kind, CHANGE_USER);
        assert_int_equal(change.seen, user.seen);
        assert_int_equal(change.user.disabled, user.row.disabled);
        assert_true(uuid_equal(&change.user.id, &user.row.id));
        assert_true(uuid_equal(&change.user.org_id, &user.row.org_id));
        assert_int_equal(change.user.created_ms, 9);
        assert_false(changes_read_next(&reader, &change));
        assert_false(reader.failed);
    }
}

static void test_secrets_are_not_in_the_bytes(void **state)
{
    struct world *w = *state;
    pack(w, unit_make(w));
    assert_null(memmem(w->buf.data, w->buf.size, "secret", 6));
}

static void test_nothing_packs_to_nothing(void **state)
{
    struct world *w = *state;
    struct store_unit unit = {.seats = NULL};
    struct changes_reader reader;
    struct change change;
    pack(w, &unit);
    assert_int_equal(w->buf.size, 0);
    changes_read_begin(&reader, w->buf.data, 0, &w->arena);
    assert_false(changes_read_next(&reader, &change));
    assert_false(reader.failed);
}

static void test_scope_is_written_once_for_neighbours(void **state)
{
    struct world *w = *state;
    struct store_unit unit = {.seats = unit_make(w)->seats};
    pack(w, &unit);
    size_t one = w->buf.size;
    struct seat_write second = *unit.seats;
    unit.seats->next = &second;
    pack(w, &unit);
    assert_true(w->buf.size - one < one - 1 - 32); /* no version, no organization and event again */
}

static void test_kinds_of_a_newer_writer_are_skipped(void **state)
{
    struct world *w = *state;
    struct store_unit unit = {.seats = unit_make(w)->seats};
    static const char unknown[] = {(char)200, 3, 0, 0, 0, 'x', 'y', 'z'};
    struct changes_reader reader;
    struct change change;
    pack(w, &unit);
    buf_put(&w->buf, unknown, sizeof(unknown));
    changes_read_begin(&reader, w->buf.data, w->buf.size, &w->arena);
    assert_true(changes_read_next(&reader, &change));
    assert_false(changes_read_next(&reader, &change));
    assert_false(reader.failed);
}

static void test_another_version_is_refused(void **state)
{
    struct world *w = *state;
    struct changes_reader reader;
    struct change change;
    pack(w, unit_make(w));
    w->buf.data[0] = CHANGES_VERSION + 1;
    changes_read_begin(&reader, w->buf.data, w->buf.size, &w->arena);
    assert_false(changes_read_next(&reader, &change));
    assert_true(reader.failed);
}

static int read_all(struct world *w, const void *data, size_t size, bool *failed)
{
    struct arena arena;
    struct changes_reader reader;
    struct change change;
    int count = 0;
    (void)w;
    arena_init(&arena);
    changes_read_begin(&reader, data, size, &arena);
    while (changes_read_next(&reader, &change)) {
        if (change.kind == CHANGE_SEAT)
            assert_in_range(change.seat.state, 0, SEAT_STATE_COUNT - 1);
        if (change.kind == CHANGE_HOLD)
            assert_in_range(change.hold.state, 0, HOLD_STATE_COUNT - 1);
        count++;
    }
    arena_deinit(&arena);
    *failed = reader.failed;
    return count;
}

static void test_every_truncation_fails_or_ends_early(void **state)
{
    struct world *w = *state;
    bool failed;
    pack(w, unit_make(w));
    int whole = read_all(w, w->buf.data, w->buf.size, &failed);
    assert_int_equal(whole, 5);
    for (size_t size = 1; size < w->buf.size; size++) {
        char *copy = malloc(size); /* exactly so long, for the sanitizer to watch its end */
        memcpy(copy, w->buf.data, size);
        assert_true(read_all(w, copy, size, &failed) < whole);
        free(copy);
    }
}

static void test_no_damaged_bytes_make_the_reader_misbehave(void **state)
{
    struct world *w = *state;
    bool failed;
    pack(w, unit_make(w));
    for (int round = 0; round < 20000; round++) {
        size_t size = 1 + rng_below(&w->rng, w->buf.size);
        char *copy = malloc(size);
        memcpy(copy, w->buf.data, size);
        for (uint64_t i = rng_below(&w->rng, 6); i > 0; i--)
            copy[rng_below(&w->rng, size)] = (char)rng_next(&w->rng);
        (void)read_all(w, copy, size, &failed);
        free(copy);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_every_row_comes_out_as_it_went_in),
        TEST(test_writer_is_known_before_the_first_record),
        TEST(test_flags_say_what_kind_of_change_it_is),
        TEST(test_user_comes_out_as_they_went_in),
        TEST(test_secrets_are_not_in_the_bytes),
        TEST(test_nothing_packs_to_nothing),
        TEST(test_scope_is_written_once_for_neighbours),
        TEST(test_kinds_of_a_newer_writer_are_skipped),
        TEST(test_another_version_is_refused),
        TEST(test_every_truncation_fails_or_ends_early),
        TEST(test_no_damaged_bytes_make_the_reader_misbehave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
