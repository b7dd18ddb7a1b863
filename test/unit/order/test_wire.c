/* SPDX-License-Identifier: Apache-2.0
 * Commands as they travel: what was packed comes out again, and whatever else
 * comes is refused without harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "order/wire.h"

struct fixture {
    struct arena arena;
    struct rng rng;
    struct buf out;
    struct command command;
    struct uuid ids[3];
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    arena_init(&fixture->arena);
    rng_init_seed(&fixture->rng, 1);
    buf_init(&fixture->out);
    for (size_t i = 0; i < 3; i++)
        fixture->ids[i] = uuid_make(&fixture->rng, 1000);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    buf_deinit(&fixture->out);
    arena_deinit(&fixture->arena);
    free(fixture);
    return 0;
}

static struct command *make(struct fixture *fixture, enum command_kind kind)
{
    struct command *command = &fixture->command;
    command_init(command, kind, &fixture->arena);
    command->actor = (struct actor){
        .org_id = uuid_make(&fixture->rng, 1),
        .user_id = uuid_make(&fixture->rng, 2),
        .for_user_id = uuid_make(&fixture->rng, 3),
        .role = ROLE_AGENT,
        .ip = "127.0.0.1",
        .user_agent = NULL,
        .request_id = "r-1",
    };
    command->id = uuid_make(&fixture->rng, 4);
    command->sent.id = uuid_make(&fixture->rng, 5);
    command->sent.deadline_ms = 12345;
    command->has_key = true;
    memset(command->key, 7, sizeof(command->key));
    memset(command->body, 9, sizeof(command->body));
    return command;
}

static bool unpack(struct fixture *fixture, struct command *out, struct wire_sender *sender)
{
    const char *why;
    return wire_unpack(fixture->out.data, fixture->out.size, &fixture->arena, out, sender, &why);
}

static void assert_same_head(const struct command *a, const struct command *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->actor.role, b->actor.role);
    assert_true(uuid_equal(&a->actor.org_id, &b->actor.org_id));
    assert_true(uuid_equal(&a->actor.user_id, &b->actor.user_id));
    assert_true(uuid_equal(&a->actor.for_user_id, &b->actor.for_user_id));
    assert_string_equal(a->actor.ip, b->actor.ip);
    assert_null(b->actor.user_agent);
    assert_string_equal(a->actor.request_id, b->actor.request_id);
    assert_true(uuid_equal(&a->id, &b->id));
    assert_true(uuid_equal(&a->sent.id, &b->sent.id));
    assert_int_equal(a->sent.deadline_ms, b->sent.deadline_ms);
    assert_true(b->has_key);
    assert_true(b->sent.is_taken);
    assert_memory_equal(a->key, b->key, sizeof(a->key));
    assert_memory_equal(a->body, b->body, sizeof(a->body));
}

static void fill_seats(struct fixture *fixture, struct command *command)
{
    command->hold_seats.event_id = fixture->ids[0];
    command->hold_seats.seat_ids = fixture->ids;
    command->hold_seats.count = 3;
    command->hold_seats.several = true;
    command->hold_seats.cart_token = "kart ü";
    command->hold_seats.source = HOLD_SOURCE_COUNT - 1;
}

static void test_named_seats_come_out_as_they_went_in(void **state)
{
    struct fixture *fixture = *state;
    struct command *sent = make(fixture, COMMAND_HOLD_SEATS), came;
    struct wire_sender sender;
    fill_seats(fixture, sent);
    wire_pack(sent, "node-1", &fixture->out);
    assert_true(unpack(fixture, &came, &sender));
    assert_same_head(sent, &came);
    assert_string_equal(sender.node_name, "node-1");
    assert_true(uuid_equal(&sender.id, &sent->sent.id));
    assert_true(uuid_equal(&came.hold_seats.event_id, &fixture->ids[0]));
    assert_int_equal(came.hold_seats.count, 3);
    assert_memory_equal(came.hold_seats.seat_ids, fixture->ids, sizeof(fixture->ids));
    assert_true(came.hold_seats.several);
    assert_string_equal(came.hold_seats.cart_token, "kart ü");
    assert_int_equal(came.hold_seats.source, HOLD_SOURCE_COUNT - 1);
}

static void test_best_available_comes_out_as_it_went_in(void **state)
{
    struct fixture *fixture = *state;
    struct command *sent = make(fixture, COMMAND_HOLD_BEST), came;
    struct wire_sender sender;
    sent->hold_best.event_id = fixture->ids[1];
    sent->hold_best.quantity = 4;
    strcpy(sent->hold_best.section, "ABC");
    sent->hold_best.subsection = 12;
    sent->hold_best.adjacent = true;
    wire_pack(sent, "", &fixture->out);
    assert_true(unpack(fixture, &came, &sender));
    assert_same_head(sent, &came);
    assert_int_equal(came.hold_best.quantity, 4);
    assert_string_equal(came.hold_best.section, "ABC");
    assert_int_equal(came.hold_best.subsection, 12);
    assert_true(came.hold_best.adjacent);
    assert_null(came.hold_best.cart_token);
}

static void test_checkouts_come_out_as_they_went_in(void **state)
{
    struct fixture *fixture = *state;
    struct command *sent = make(fixture, COMMAND_CHECKOUT_START), came;
    struct wire_sender sender;
    sent->checkout_start.event_id = fixture->ids[0];
    wire_pack(sent, "n", &fixture->out);
    assert_true(unpack(fixture, &came, &sender));
    assert_null(came.checkout_start.hold_ids); /* all of mine, not none */

    sent->checkout_start.hold_ids = fixture->ids;
    sent->checkout_start.hold_count = 2;
    buf_clear(&fixture->out);
    wire_pack(sent, "n", &fixture->out);
    assert_true(unpack(fixture, &came, &sender));
    assert_int_equal(came.checkout_start.hold_count, 2);
    assert_memory_equal(came.checkout_start.hold_ids, fixture->ids, 2 * sizeof(struct uuid));

    sent = make(fixture, COMMAND_CHECKOUT_COMPLETE);
    sent->checkout.payment_token = "tok_ok";
    buf_clear(&fixture->out);
    wire_pack(sent, "n", &fixture->out);
    assert_true(unpack(fixture, &came, &sender));
    assert_same_head(sent, &came);
    assert_string_equal(came.checkout.payment_token, "tok_ok");

    sent = make(fixture, COMMAND_CHECKOUT_CANCEL);
    sent->checkout.notes = "changed my mind";
    buf_clear(&fixture->out);
    wire_pack(sent, "n", &fixture->out);
    assert_true(unpack(fixture, &came, &sender));
    assert_string_equal(came.checkout.notes, "changed my mind");
}

static void test_what_is_cut_short_is_refused_at_every_length(void **state)
{
    struct fixture *fixture = *state;
    struct command *sent = make(fixture, COMMAND_HOLD_SEATS), came;
    struct wire_sender sender;
    fill_seats(fixture, sent);
    wire_pack(sent, "node-1", &fixture->out);
    for (size_t size = 0; size < fixture->out.size; size++) {
        /* A copy of exactly that size, so that reading past it is seen. */
        void *copy = malloc(size + 1);
        memcpy(copy, fixture->out.data, size);
        void *exact = realloc(copy, size > 0 ? size : 1);
        const char *why = NULL;
        assert_false(wire_unpack(exact, size, &fixture->arena, &came, &sender, &why));
        assert_non_null(why);
        free(exact);
    }
}

static void test_who_sent_it_is_known_even_if_it_makes_no_sense(void **state)
{
    struct fixture *fixture = *state;
    struct command *sent = make(fixture, COMMAND_HOLD_BEST), came;
    struct wire_sender sender;
    sent->hold_best.quantity = 1000;
    wire_pack(sent, "node-1", &fixture->out);
    assert_false(unpack(fixture, &came, &sender));
    assert_string_equal(sender.node_name, "node-1");
    assert_true(uuid_equal(&sender.id, &sent->sent.id));
}

static void test_what_may_not_travel_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct command came;
    struct wire_sender sender;
    struct command *sent = make(fixture, COMMAND_ADMIN_RELEASE);
    wire_pack(sent, "n", &fixture->out);
    assert_false(unpack(fixture, &came, &sender));
    buf_clear(&fixture->out);
    sent = make(fixture, COMMAND_HOLD_RELEASE);
    sent->actor.role = ROLE_SYSTEM;
    wire_pack(sent, "n", &fixture->out);
    assert_false(unpack(fixture, &came, &sender));
    buf_clear(&fixture->out);
    sent = make(fixture, COMMAND_HOLD_SEATS);
    fill_seats(fixture, sent);
    fixture->ids[2] = fixture->ids[0];
    wire_pack(sent, "n", &fixture->out);
    assert_false(unpack(fixture, &came, &sender));
}

static void test_changed_bytes_never_do_harm(void **state)
{
    struct fixture *fixture = *state;
    struct command *sent = make(fixture, COMMAND_HOLD_SEATS), came;
    struct wire_sender sender;
    char text[200];
    fill_seats(fixture, sent);
    wire_pack(sent, "node-1", &fixture->out);
    for (int i = 0; i < 20000; i++) {
        size_t at = rng_below(&fixture->rng, fixture->out.size);
        char before = fixture->out.data[at];
        fixture->out.data[at] = (char)rng_next(&fixture->rng);
        if (unpack(fixture, &came, &sender))
            assert_true(command_can_be_sent(came.kind));
        (void)wire_describe(fixture->out.data, fixture->out.size, text, sizeof(text));
        fixture->out.data[at] = before;
    }
}

static void test_a_person_is_told_what_it_is(void **state)
{
    struct fixture *fixture = *state;
    char text[200];
    wire_pack(make(fixture, COMMAND_HOLD_RELEASE), "n", &fixture->out);
    assert_true(wire_describe(fixture->out.data, fixture->out.size, text, sizeof(text)));
    assert_ptr_equal(strstr(text, "release a hold, command "), text);
    assert_false(wire_describe("junk", 4, text, sizeof(text)));
}

static void test_replies_come_out_as_they_went_in(void **state)
{
    struct fixture *fixture = *state;
    struct uuid id;
    const void *answer;
    size_t size;
    wire_pack_reply(&fixture->ids[0], "answer", 6, &fixture->out);
    assert_true(wire_unpack_reply(fixture->out.data, fixture->out.size, &id, &answer, &size));
    assert_true(uuid_equal(&id, &fixture->ids[0]));
    assert_int_equal(size, 6);
    assert_memory_equal(answer, "answer", 6);
    assert_false(wire_unpack_reply(fixture->out.data, 5, &id, &answer, &size));
    fixture->out.data[0] = 99;
    assert_false(wire_unpack_reply(fixture->out.data, fixture->out.size, &id, &answer, &size));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_named_seats_come_out_as_they_went_in),
        TEST(test_best_available_comes_out_as_it_went_in),
        TEST(test_checkouts_come_out_as_they_went_in),
        TEST(test_what_is_cut_short_is_refused_at_every_length),
        TEST(test_who_sent_it_is_known_even_if_it_makes_no_sense),
        TEST(test_what_may_not_travel_is_refused),
        TEST(test_changed_bytes_never_do_harm),
        TEST(test_a_person_is_told_what_it_is),
        TEST(test_replies_come_out_as_they_went_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
