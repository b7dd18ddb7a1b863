/* SPDX-License-Identifier: Apache-2.0
 * Results as they are kept with a key: what goes in comes out; what is damaged
 * is refused, whatever the damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "stage.h"

static struct uuid id_of(uint8_t first)
{
    struct uuid id = {{first, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};
    return id;
}

/* A result with something in every part. */
static struct ask *full_result(struct stage *stage)
{
    struct ask *ask = stage_ask(stage, COMMAND_HOLD_SEATS, 0);
    struct result *result = &ask->command.result;
    for (int32_t i = 0; i < 3; i++) {
        struct hold_row row = {.org_id = stage->org_id,
                               .event_id = stage->event_id,
                               .id = id_of((uint8_t)(40 + i)),
                               .seat_id = stage_seat_id(stage, i),
                               .user_id = stage->users[0],
                               .checkout_id = id_of(9),
                               .cart_token = i == 0   ? NULL
                                             : i == 1 ? ""
                                                      : "basket",
                               .state = HOLD_CANCELLED,
                               .reason = END_ADMIN_OVERRIDE,
                               .source = SOURCE_SCANNER,
                               .price_cents = 4500 + i,
                               .created_ms = 1000 + i,
                               .held_until_ms = 2000 + i,
                               .ended_ms = 3000 + i};
        answer_add_hold(&ask->command, stage_event(stage), i, &row, 3);
    }
    for (int32_t i = 0; i < 2; i++) {
        struct uuid id = id_of((uint8_t)(60 + i));
        struct seat_failure *failure = answer_add_failure(&ask->command, &id, ERR_SEAT_NOT_AVAILABLE, 2);
        failure->state = SEAT_SOLD;
        failure->expires_ms = 77 + i;
    }
    result->stranded_count = 2;
    result->stranded = ARENA_ARRAY(&ask->arena, struct uuid, 2);
    result->stranded[1] = id_of(70);
    result->seat_id_count = 1;
    result->seat_ids = ARENA_ARRAY(&ask->arena, struct uuid, 1);
    result->seat_ids[0] = id_of(71);
    result->err = ERR_WOULD_LEAVE_SINGLE_SEAT;
    result->status = 201;
    result->id = id_of(72);
    result->event_id = stage->event_id;
    result->disabled = true;
    result->has_checkout = true;
    result->checkout.id = id_of(73);
    result->has_explanation = true;
    result->explanation =
        (struct best_explanation){.adjacent = true, .split = 2, .stranded = 1, .distance = 1.5};
    result->retry_after_seconds = 12;
    result->counts[1] = 5;
    result->now_ms = 123456;
    result->message = "Why it was so.";
    return ask;
}

static bool unpack(struct stage *stage, struct ask *ask, const void *data, size_t size)
{
    /* A copy of exactly this size: what reads beyond it is caught. */
    char *copy = malloc(size > 0 ? size : 1);
    memcpy(copy, data, size);
    bool good = result_unpack(stage->lane, &ask->command, copy, size);
    free(copy);
    return good;
}

static void test_everything_kept_comes_back(void **state)
{
    struct stage *stage = *state;
    struct ask *from = full_result(stage), *to = stage_ask(stage, COMMAND_HOLD_SEATS, 0);
    size_t size;
    const void *data = result_pack(&from->command, &from->arena, &size);
    assert_true(unpack(stage, to, data, size));
    const struct result *a = &from->command.result, *b = &to->command.result;
    assert_int_equal(b->err, a->err);
    assert_int_equal(b->status, 201);
    assert_int_equal(b->hold_count, 3);
    for (int32_t i = 0; i < 3; i++) {
        const struct hold_row *x = &a->holds[i].row, *y = &b->holds[i].row;
        assert_int_equal(b->holds[i].seat_index, i);
        assert_memory_equal(&x->id, &y->id, sizeof(x->id));
        assert_memory_equal(&x->seat_id, &y->seat_id, sizeof(x->id));
        assert_memory_equal(&x->user_id, &y->user_id, sizeof(x->id));
        assert_memory_equal(&x->checkout_id, &y->checkout_id, sizeof(x->id));
        assert_int_equal(y->state, HOLD_CANCELLED);
        assert_int_equal(y->reason, END_ADMIN_OVERRIDE);
        assert_int_equal(y->source, SOURCE_SCANNER);
        assert_int_equal(y->price_cents, x->price_cents);
        assert_int_equal(y->created_ms, x->created_ms);
        assert_int_equal(y->held_until_ms, x->held_until_ms);
        assert_int_equal(y->ended_ms, x->ended_ms);
    }
    assert_null(b->holds[0].row.cart_token);
    assert_string_equal(b->holds[1].row.cart_token, "");
    assert_string_equal(b->holds[2].row.cart_token, "basket");
    assert_int_equal(b->failure_count, 2);
    assert_int_equal(b->failures[1].err, ERR_SEAT_NOT_AVAILABLE);
    assert_int_equal(b->failures[1].state, SEAT_SOLD);
    assert_int_equal(b->failures[1].expires_ms, 78);
    assert_int_equal(b->stranded_count, 2);
    assert_memory_equal(b->stranded, a->stranded, 2 * sizeof(struct uuid));
    assert_int_equal(b->seat_id_count, 1);
    assert_memory_equal(b->seat_ids, a->seat_ids, sizeof(struct uuid));
    assert_memory_equal(&b->id, &a->id, sizeof(a->id));
    assert_memory_equal(&b->event_id, &a->event_id, sizeof(a->id));
    assert_true(b->disabled);
    assert_true(b->has_checkout);
    assert_memory_equal(&b->checkout.id, &a->checkout.id, sizeof(a->id));
    assert_true(b->has_explanation);
    assert_int_equal(b->explanation.split, 2);
    assert_true(b->explanation.distance == 1.5);
    assert_int_equal(b->retry_after_seconds, 12);
    assert_int_equal(b->counts[1], 5);
    assert_int_equal(b->now_ms, 123456);
    assert_string_equal(b->message, "Why it was so.");
}

static void test_an_empty_result_comes_back_empty(void **state)
{
    struct stage *stage = *state;
    struct ask *from = stage_ask(stage, COMMAND_HOLD_SEATS, 0), *to = stage_ask(stage, COMMAND_HOLD_SEATS, 0);
    size_t size;
    const void *data = result_pack(&from->command, &from->arena, &size);
    assert_true(unpack(stage, to, data, size));
    assert_int_equal(to->command.result.hold_count, 0);
    assert_null(to->command.result.message);
}

static void test_the_same_result_is_packed_the_same(void **state)
{
    struct stage *stage = *state;
    struct ask *one = full_result(stage), *two = full_result(stage);
    size_t size_one, size_two;
    const void *a = result_pack(&one->command, &one->arena, &size_one);
    const void *b = result_pack(&two->command, &two->arena, &size_two);
    assert_int_equal(size_one, size_two);
    assert_memory_equal(a, b, size_one);
}

static void test_a_result_cut_short_is_refused(void **state)
{
    struct stage *stage = *state;
    struct ask *from = full_result(stage);
    size_t size;
    const char *data = result_pack(&from->command, &from->arena, &size);
    for (size_t cut = 0; cut < size; cut++)
        assert_false(unpack(stage, stage_ask(stage, COMMAND_HOLD_SEATS, 0), data, cut));
    char *longer = calloc(1, size + 1);
    memcpy(longer, data, size);
    assert_false(unpack(stage, stage_ask(stage, COMMAND_HOLD_SEATS, 0), longer, size + 1));
    free(longer);
}

static void test_a_damaged_result_is_refused_or_harmless(void **state)
{
    struct stage *stage = *state;
    struct ask *from = full_result(stage);
    size_t size;
    const char *data = result_pack(&from->command, &from->arena, &size);
    char *damaged = malloc(size);
    struct rng rng;
    rng_init_seed(&rng, 3);
    for (int round = 0; round < 4000; round++) {
        memcpy(damaged, data, size);
        for (uint64_t i = 1 + rng_below(&rng, 4); i > 0; i--)
            damaged[rng_below(&rng, size)] = (char)rng_next(&rng);
        struct ask *to = stage_ask(stage, COMMAND_HOLD_SEATS, 0);
        if (!unpack(stage, to, damaged, size))
            continue;
        /* Whatever is shown of it has a name. */
        const struct result *result = &to->command.result;
        assert_non_null(err_code(result->err));
        for (int32_t i = 0; i < result->hold_count; i++) {
            assert_non_null(hold_state_name(result->holds[i].row.state));
            assert_non_null(end_reason_name(result->holds[i].row.reason));
            assert_non_null(hold_source_name(result->holds[i].row.source));
        }
        for (int32_t i = 0; i < result->failure_count; i++)
            assert_non_null(seat_state_name(result->failures[i].state));
    }
    free(damaged);
}

static void test_noise_is_refused(void **state)
{
    struct stage *stage = *state;
    struct rng rng;
    rng_init_seed(&rng, 4);
    char noise[600];
    for (int round = 0; round < 4000; round++) {
        for (size_t i = 0; i < sizeof(noise); i++)
            noise[i] = (char)(rng_below(&rng, 3) == 0 ? rng_next(&rng) : 0);
        noise[0] = round % 2 ? 1 : noise[0]; /* half of them with the right version */
        assert_false(
            unpack(stage, stage_ask(stage, COMMAND_HOLD_SEATS, 0), noise, rng_below(&rng, sizeof(noise))));
    }
}

int main(void)
{
#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, stage_setup, stage_teardown)
    const struct CMUnitTest tests[] = {
        ON_STAGE(test_everything_kept_comes_back),
        ON_STAGE(test_an_empty_result_comes_back_empty),
        ON_STAGE(test_the_same_result_is_packed_the_same),
        ON_STAGE(test_a_result_cut_short_is_refused),
        ON_STAGE(test_a_damaged_result_is_refused_or_harmless),
        ON_STAGE(test_noise_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
