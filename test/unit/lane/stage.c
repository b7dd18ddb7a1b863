/* SPDX-License-Identifier: Apache-2.0
 * See stage.h. */
#include "stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"

static const char stage_layout[] =
    "{\"name\":\"Hall\",\"blocks\":["
    "{\"section\":\"A\",\"subsection\":1,\"name\":\"Stalls\",\"price_cents\":4500,"
    "\"rows\":[{\"label\":\"1\",\"seats\":6},{\"label\":\"2\",\"seats\":4}]},"
    "{\"section\":\"B\",\"subsection\":1,\"name\":\"Balcony\",\"capacity\":3,\"price_cents\":2500,"
    "\"rows\":[{\"label\":\"1\",\"seats\":5}]}]}";

/* ---- The gateway: remembers what it was asked ---- */

static void remember_charge(struct stage_charge *charges, int32_t *count, const struct lane_charge *charge)
{
    assert_true(*count < STAGE_CHARGE_COUNT_MAX);
    struct stage_charge *own = &charges[(*count)++];
    own->checkout_id = charge->checkout_id;
    own->amount_cents = charge->amount_cents;
    own->attempt = charge->attempt;
    snprintf(own->token, sizeof(own->token), "%s", charge->token);
}

static void on_charge(void *context, const struct lane_charge *charge)
{
    struct stage *stage = context;
    remember_charge(stage->charges, &stage->charge_count, charge);
}

static void on_refund(void *context, const struct lane_charge *charge)
{
    struct stage *stage = context;
    remember_charge(stage->refunds, &stage->refund_count, charge);
}

/* ---- Time ---- */

void stage_turn(struct stage *stage)
{
    sim_store_set_now(stage->store, stage->now_ms);
    lane_turn(stage->lane, stage->now_ms);
}

void stage_pass(struct stage *stage, int64_t ms)
{
    int64_t end_ms = stage->now_ms + ms;
    while (stage->now_ms < end_ms) {
        stage->now_ms += end_ms - stage->now_ms < 100 ? 1 : 50;
        stage_turn(stage);
    }
}

void stage_finish(struct stage *stage)
{
    for (int i = 0; i < 20000 * PATIENCE && stage->waiting_count > 0; i++) {
        stage->now_ms++;
        stage_turn(stage);
    }
    assert_int_equal(stage->waiting_count, 0);
}

void stage_until_event(struct stage *stage, enum event_state state)
{
    const struct sim_event *event = map_get(&sim_store_tables(stage->store)->events, &stage->event_id);
    for (int i = 0; i < 1000 && event->row.state != state; i++) {
        stage->now_ms++;
        stage_turn(stage);
    }
    assert_int_equal(event->row.state, state);
}

void stage_faults(struct stage *stage, struct sim_faults faults)
{
    sim_store_set_faults(stage->store, &faults);
}

void stage_calm(struct stage *stage)
{
    stage_faults(stage, (struct sim_faults){0});
}

/* ---- Asking ---- */

static void on_done(struct command *command)
{
    struct ask *ask = command->owner;
    assert_false(ask->done); /* exactly once */
    ask->done = true;
    ask->stage->waiting_count--;
}

struct ask *stage_ask(struct stage *stage, enum command_kind kind, int user)
{
    struct ask *ask = calloc(1, sizeof(*ask));
    assert_non_null(ask);
    arena_init(&ask->arena);
    command_init(&ask->command, kind, &ask->arena);
    const struct uuid *user_id = user < 0 ? &stage->admin_id : &stage->users[user];
    ask->command.actor = (struct actor){.org_id = stage->org_id,
                                        .user_id = *user_id,
                                        .for_user_id = *user_id,
                                        .role = user < 0 ? ROLE_ADMIN : ROLE_BUYER};
    ask->command.on_done = on_done;
    ask->command.owner = ask;
    ask->stage = stage;
    list_append(&stage->asks, &ask->node);
    return ask;
}

void stage_post(struct ask *ask)
{
    ask->stage->waiting_count++;
    assert_int_equal(lane_post(ask->stage->lane, &ask->command), ERR_OK);
}

enum err stage_do(struct ask *ask)
{
    stage_post(ask);
    stage_finish(ask->stage);
    return ask->command.result.err;
}

void ask_key(struct ask *ask, uint8_t key, uint8_t body)
{
    ask->command.has_key = true;
    memset(ask->command.key, key, sizeof(ask->command.key));
    memset(ask->command.body, body, sizeof(ask->command.body));
}

struct ask *ask_seats(struct stage *stage, int user, const int32_t *seats, int32_t count)
{
    struct ask *ask = stage_ask(stage, COMMAND_HOLD_SEATS, user);
    ask->command.hold_seats.event_id = stage->event_id;
    ask->command.hold_seats.count = count;
    ask->command.hold_seats.several = count > 1;
    ask->command.hold_seats.seat_ids = ARENA_ARRAY(&ask->arena, struct uuid, count);
    for (int32_t i = 0; i < count; i++)
        ask->command.hold_seats.seat_ids[i] = stage_seat_id(stage, seats[i]);
    return ask;
}

struct ask *ask_seat(struct stage *stage, int user, int32_t seat)
{
    return ask_seats(stage, user, &seat, 1);
}

struct ask *ask_best(struct stage *stage, int user, int32_t quantity, const char *section)
{
    struct ask *ask = stage_ask(stage, COMMAND_HOLD_BEST, user);
    ask->command.hold_best.event_id = stage->event_id;
    ask->command.hold_best.quantity = quantity;
    ask->command.hold_best.adjacent = true;
    strcpy(ask->command.hold_best.section, section);
    return ask;
}

struct ask *ask_id(struct stage *stage, enum command_kind kind, int user, const struct uuid *id)
{
    struct ask *ask = stage_ask(stage, kind, user);
    ask->command.id = *id;
    if (kind == COMMAND_CHECKOUT_COMPLETE)
        ask->command.checkout.payment_token = arena_text(&ask->arena, "tok_ok");
    return ask;
}

struct ask *ask_checkout(struct stage *stage, int user)
{
    struct ask *ask = stage_ask(stage, COMMAND_CHECKOUT_START, user);
    ask->command.checkout_start.event_id = stage->event_id;
    return ask;
}

struct ask *ask_block(struct stage *stage, const int32_t *seats, int32_t count)
{
    struct ask *ask = ask_id(stage, COMMAND_SEATS_BLOCK, -1, &stage->event_id);
    ask->command.seats.count = count;
    ask->command.seats.seat_ids = ARENA_ARRAY(&ask->arena, struct uuid, count);
    for (int32_t i = 0; i < count; i++)
        ask->command.seats.seat_ids[i] = stage_seat_id(stage, seats[i]);
    return ask;
}

struct ask *ask_release_event(struct stage *stage)
{
    struct ask *ask = stage_ask(stage, COMMAND_ADMIN_RELEASE, -1);
    ask->command.release.event_id = stage->event_id;
    return ask;
}

struct ask *ask_event_state(struct stage *stage, enum event_state state)
{
    struct ask *ask = ask_id(stage, COMMAND_EVENT_PATCH, -1, &stage->event_id);
    ask->command.event.fields = PATCH_STATE;
    ask->command.event.row.state = state;
    return ask;
}

struct ask *ask_settled(struct stage *stage, const struct uuid *checkout_id, enum payment_outcome outcome)
{
    struct ask *ask = ask_id(stage, COMMAND_PAYMENT_SETTLED, -1, checkout_id);
    ask->command.actor.role = ROLE_SYSTEM;
    ask->command.payment.outcome = outcome;
    return ask;
}

struct uuid stage_hold(struct stage *stage, int user, int32_t seat)
{
    struct ask *ask = ask_seat(stage, user, seat);
    assert_int_equal(stage_do(ask), ERR_OK);
    assert_int_equal(ask->command.result.hold_count, 1);
    return ask->command.result.holds[0].row.id;
}

struct uuid stage_checkout(struct stage *stage, int user)
{
    struct ask *ask = ask_checkout(stage, user);
    assert_int_equal(stage_do(ask), ERR_OK);
    assert_true(ask->command.result.has_checkout);
    return ask->command.result.checkout.id;
}

struct ask *stage_pay(struct stage *stage, int user, const struct uuid *checkout_id)
{
    struct ask *ask = ask_id(stage, COMMAND_CHECKOUT_COMPLETE, user, checkout_id);
    int32_t before = stage->charge_count;
    stage_post(ask);
    stage_pass(stage, 10);
    assert_false(ask->done);
    assert_int_equal(stage->charge_count, before + 1);
    return ask;
}

/* ---- Looking ---- */

static const struct sim_event *stored_event(struct stage *stage)
{
    const struct sim_event *event = map_get(&sim_store_tables(stage->store)->events, &stage->event_id);
    assert_non_null(event);
    return event;
}

struct uuid stage_seat_id(struct stage *stage, int32_t seat)
{
    const struct sim_event *event = stored_event(stage);
    assert_true(seat < event->seat_count);
    return event->seats[seat].row.id;
}

enum seat_state stage_seat(struct stage *stage, int32_t seat)
{
    return stored_event(stage)->seats[seat].row.state;
}

struct hot_event *stage_event(struct stage *stage)
{
    struct hot_event *event = hot_event(stage->lane->hot, &stage->org_id, &stage->event_id);
    assert_non_null(event);
    return event;
}

enum seat_state stage_seat_hot(struct stage *stage, int32_t seat)
{
    return seatmap_state(stage_event(stage)->map, seat);
}

const struct hold_row *stage_hold_row(struct stage *stage, const struct uuid *id)
{
    const struct sim_hold *hold = map_get(&sim_store_tables(stage->store)->holds, id);
    assert_non_null(hold);
    return &hold->row;
}

const struct checkout_row *stage_checkout_row(struct stage *stage, const struct uuid *id)
{
    const struct sim_checkout *checkout = map_get(&sim_store_tables(stage->store)->checkouts, id);
    assert_non_null(checkout);
    return &checkout->row;
}

int32_t stage_ticket_count(struct stage *stage)
{
    return (int32_t)sim_store_tables(stage->store)->tickets.count;
}

static void check_seats_at_rest(struct stage *stage)
{
    const struct sim_event *stored = stored_event(stage);
    struct hot_event *event = stage_event(stage);
    for (int32_t i = 0; i < stored->seat_count; i++) {
        const struct seat_row *row = &stored->seats[i].row;
        const struct hot_seat *seat = &event->seats[i];
        assert_false(seat->busy);
        assert_int_equal(seat->version, row->version);
        assert_int_equal(seatmap_state(event->map, i), row->state);
        assert_int_equal(bit_get(event->free, i), row->state == SEAT_AVAILABLE);
        assert_int_equal(bit_get(event->vacant, i), row->state == SEAT_AVAILABLE);
        assert_int_equal(seat->hold != NULL, row->state == SEAT_HELD);
        if (seat->hold != NULL)
            assert_memory_equal(&seat->hold->id, &row->hold_id, sizeof(row->hold_id));
    }
}

void stage_check_rest(struct stage *stage)
{
    stage_pass(stage, 10);
    assert_true(lane_is_idle(stage->lane));
    assert_int_equal(stage->lane->keys.count, 0);
    assert_int_equal(stage->lane->waiting_count, 0);
    check_seats_at_rest(stage);
    struct hot_event *event = stage_event(stage);
    assert_int_equal(event->unit_count, 0);
    assert_false(event->exclusive);
    for (int32_t i = 0; i < event->map->layout->block_count; i++)
        assert_int_equal(event->pending_by_block[i], 0);
    size_t position = 0;
    const struct hot_user *user;
    while ((user = map_next(&event->users, &position)) != NULL) {
        assert_int_equal(user->pending_count, 0);
        assert_int_equal(user->pending_more, 0);
    }
}

/* ---- Up and down ---- */

struct policy stage_policy(void)
{
    struct policy policy = policy_default();
    policy.hold_ttl_seconds = 60;
    policy.checkout_extension_seconds = 60;
    policy.hold_max_seconds = 150;
    policy.release_grace_seconds = 5;
    policy.payment_max_seconds = 60;
    policy.max_seats_per_user = 4;
    policy.rate_limit_holds = 0;
    return policy;
}

static void lane_begin(struct stage *stage)
{
    char why[256];
    assert_int_equal(directory_create(&stage->directory), ERR_OK);
    struct lane_config config = {
        .store = stage->store,
        .directory = stage->directory,
        .seed = rng_next(&stage->rng) | 1,
        .charge = on_charge,
        .refund = on_refund,
        .context = stage,
    };
    assert_int_equal(lane_create(&config, stage->now_ms, &stage->lane, why, sizeof(why)), ERR_OK);
}

static void lane_end(struct stage *stage)
{
    sim_store_crash(stage->store);
    lane_destroy(stage->lane);
    assert_int_equal(stage->waiting_count, 0); /* nobody waits for a lane that is gone */
    directory_destroy(stage->directory);
}

void stage_restart(struct stage *stage)
{
    lane_end(stage);
    sim_store_set_now(stage->store, stage->now_ms);
    lane_begin(stage);
}

struct stage *stage_create(const struct policy *policy, const char *layout)
{
    struct stage *stage = calloc(1, sizeof(*stage));
    assert_non_null(stage);
    log_set_level(LOG_ERROR); /* trouble is what these tests are about */
    stage->now_ms = 1700000000000;
    list_init(&stage->asks);
    rng_init_seed(&stage->rng, 7);
    stage->store = sim_store_create(11);
    stage_calm(stage);
    sim_store_set_now(stage->store, stage->now_ms);
    stage->org_id = uuid_make(&stage->rng, stage->now_ms);
    stage->event_id = uuid_make(&stage->rng, stage->now_ms);
    stage->admin_id = uuid_make(&stage->rng, stage->now_ms);
    for (int i = 0; i < STAGE_USER_COUNT; i++)
        stage->users[i] = uuid_make(&stage->rng, stage->now_ms);
    lane_begin(stage);

    struct ask *org = ask_id(stage, COMMAND_ORG_CREATE, -1, &stage->org_id);
    org->command.admin.name = arena_text(&org->arena, "Theatre");
    assert_int_equal(stage_do(org), ERR_OK);
    struct ask *event = stage_ask(stage, COMMAND_EVENT_CREATE, -1);
    event->command.event.row = (struct event_row){
        .id = stage->event_id,
        .name = "Show",
        .state = EVENT_PUBLISHED,
        .sale_start_ms = INT64_MIN,
        .sale_end_ms = INT64_MAX,
        .currency = "EUR",
        .policy = policy != NULL ? *policy : stage_policy(),
    };
    assert_int_equal(stage_do(event), ERR_OK);
    struct ask *put = ask_id(stage, COMMAND_LAYOUT_PUT, -1, &stage->event_id);
    put->command.layout.document = arena_text(&put->arena, layout != NULL ? layout : stage_layout);
    put->command.layout.size = strlen(put->command.layout.document);
    assert_int_equal(stage_do(put), ERR_OK);
    return stage;
}

struct stage *stage_create_large(const struct policy *policy, int32_t row_count, int32_t row_size)
{
    struct buf document;
    buf_init(&document);
    buf_printf(&document,
               "{\"blocks\":[{\"section\":\"A\",\"subsection\":1,\"name\":\"A\",\"price_cents\":1,");
    buf_printf(&document, "\"rows\":[");
    for (int32_t i = 0; i < row_count; i++)
        buf_printf(&document, "%s{\"label\":\"%d\",\"seats\":%d}", i > 0 ? "," : "", i, row_size);
    buf_printf(&document, "]}]}");
    buf_put(&document, "", 1);
    assert_true(buf_ok(&document));
    struct stage *stage = stage_create(policy, document.data);
    buf_deinit(&document);
    return stage;
}

void stage_destroy(struct stage *stage)
{
    lane_end(stage);
    store_close(stage->store);
    struct list *node;
    while ((node = list_pop(&stage->asks)) != NULL) {
        struct ask *ask = CONTAINER_OF(node, struct ask, node);
        command_deinit(&ask->command);
        arena_deinit(&ask->arena);
        free(ask);
    }
    free(stage);
}

int stage_setup(void **state)
{
    *state = stage_create(NULL, NULL);
    return 0;
}

int stage_teardown(void **state)
{
    stage_destroy(*state);
    return 0;
}
