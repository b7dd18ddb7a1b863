/* SPDX-License-Identifier: Apache-2.0
 * What the simulated users do, and what they make of the answers. An answer of
 * success is remembered as a promise; checks.c holds the store to it. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "hold/rules.h"
#include "world.h"

static uint64_t pick(struct world *world, uint64_t bound)
{
    return rng_below(&world->rng, bound);
}

static struct uuid random_seat(struct world *world, int which)
{
    struct sim_event *event = map_get(&sim_store_tables(world->store)->events, &world->events[which]);
    if (pick(world, 60) == 0)
        return uuid_make(&world->rng, world->now_ms); /* nobody knows this one */
    return event->seats[pick(world, (uint64_t)event->seat_count)].row.id;
}

static struct uuid remembered(struct world *world, const struct uuid *ids, int32_t count)
{
    if (count == 0 || pick(world, 40) == 0)
        return uuid_make(&world->rng, world->now_ms);
    int32_t known = count < WORLD_HOLD_MEMORY ? count : WORLD_HOLD_MEMORY;
    return ids[pick(world, (uint64_t)known)];
}

/* Sometimes with a key; the same key with the same body comes again, and now and then with another. */
static void maybe_key(struct world *world, struct command *command)
{
    if (pick(world, 4) != 0)
        return;
    uint64_t number = pick(world, WORLD_KEY_COUNT);
    command->has_key = true;
    sha256(&number, sizeof(number), command->key);
    command->key[0] ^= (uint8_t)command->kind;
    memcpy(command->body, &command->kind, sizeof(command->kind));
    memcpy(command->body + 4, &command->actor.user_id, sizeof(struct uuid));
    if (command->kind == COMMAND_HOLD_SEATS)
        memcpy(command->body + 20, command->hold_seats.seat_ids[0].bytes + 8, 8);
}

static void ask_seats(struct world *world, const struct uuid *user_id)
{
    struct command *command = world_command(world, COMMAND_HOLD_SEATS, user_id);
    int which = (int)pick(world, WORLD_EVENT_COUNT);
    int32_t count = pick(world, 3) == 0 ? 2 + (int32_t)pick(world, 3) : 1;
    command->hold_seats.event_id = world->events[which];
    command->hold_seats.several = count > 1;
    command->hold_seats.seat_ids = ARENA_ARRAY(command->arena, struct uuid, count);
    for (int32_t i = 0; i < count; i++) {
        struct uuid id = random_seat(world, which);
        bool twice = false;
        for (int32_t j = 0; j < command->hold_seats.count; j++)
            twice = twice || uuid_equal(&command->hold_seats.seat_ids[j], &id);
        if (!twice)
            command->hold_seats.seat_ids[command->hold_seats.count++] = id;
    }
    maybe_key(world, command);
    world_post(world, command);
}

static void ask_best(struct world *world, const struct uuid *user_id)
{
    struct command *command = world_command(world, COMMAND_HOLD_BEST, user_id);
    command->hold_best.event_id = world->events[pick(world, WORLD_EVENT_COUNT)];
    command->hold_best.quantity = 1 + (int32_t)pick(world, 4);
    command->hold_best.adjacent = pick(world, 3) != 0;
    if (pick(world, 2) == 0)
        strcpy(command->hold_best.section, pick(world, 2) ? "A" : "B");
    world_post(world, command);
}

static void ask_by_id(struct world *world, const struct uuid *user_id, enum command_kind kind)
{
    struct command *command = world_command(world, kind, user_id);
    bool checkout =
        kind == COMMAND_CHECKOUT_COMPLETE || kind == COMMAND_CHECKOUT_CANCEL || kind == COMMAND_CHECKOUT_GET;
    command->id = checkout ? remembered(world, world->checkout_ids, world->checkout_id_count)
                           : remembered(world, world->hold_ids, world->hold_id_count);
    if (pick(world, 3) != 0) { /* mostly the owner asks */
        struct promise *promise = map_get(&world->promises, &command->id);
        struct sim_checkout *row = map_get(&sim_store_tables(world->store)->checkouts, &command->id);
        if (promise != NULL)
            command->actor.user_id = command->actor.for_user_id = promise->user_id;
        if (row != NULL)
            command->actor.user_id = command->actor.for_user_id = row->row.user_id;
    }
    if (kind == COMMAND_CHECKOUT_COMPLETE)
        command->checkout.payment_token = "tok";
    maybe_key(world, command);
    if (command->has_key)
        memcpy(command->body + 20, command->id.bytes + 8, 8);
    world_post(world, command);
}

static void ask_checkout(struct world *world, const struct uuid *user_id)
{
    struct command *command = world_command(world, COMMAND_CHECKOUT_START, user_id);
    command->checkout_start.event_id = world->events[pick(world, WORLD_EVENT_COUNT)];
    if (pick(world, 3) == 0) {
        command->checkout_start.hold_ids = ARENA_NEW(command->arena, struct uuid);
        command->checkout_start.hold_ids[0] = remembered(world, world->hold_ids, world->hold_id_count);
        command->checkout_start.hold_count = 1;
    }
    maybe_key(world, command);
    world_post(world, command);
}

static void ask_admin(struct world *world)
{
    int which = (int)pick(world, WORLD_EVENT_COUNT);
    static const enum command_kind kinds[] = {COMMAND_SEATS_BLOCK,   COMMAND_SEATS_UNBLOCK,
                                              COMMAND_SEATS_UNBLOCK, COMMAND_ADMIN_RELEASE,
                                              COMMAND_EVENT_PATCH,   COMMAND_BLOCK_PATCH};
    enum command_kind kind = kinds[pick(world, COUNT_OF(kinds))];
    struct command *command = world_command(world, kind, &world->admin_id);
    command->actor.role = ROLE_ADMIN;
    command->id = world->events[which];
    struct uuid *seat = ARENA_NEW(command->arena, struct uuid);
    *seat = random_seat(world, which);
    if (kind == COMMAND_SEATS_BLOCK || kind == COMMAND_SEATS_UNBLOCK) {
        command->seats.seat_ids = seat;
        command->seats.count = 1;
    } else if (kind == COMMAND_ADMIN_RELEASE) {
        if (pick(world, 10) == 0) {
            command->release.event_id = world->events[which];
        } else {
            command->release.seat_ids = seat;
            command->release.seat_count = 1;
        }
    } else if (kind == COMMAND_EVENT_PATCH) {
        command->event.fields = PATCH_NAME;
        command->event.row.name = "Another name";
        if (pick(world, 30) == 0) { /* the end of it: everything must come back */
            command->event.fields |= PATCH_STATE;
            command->event.row.state = EVENT_CANCELLED;
        }
    } else {
        const struct sim_event *event =
            map_get(&sim_store_tables(world->store)->events, &world->events[which]);
        command->block.block_id = event->blocks[pick(world, (uint64_t)event->block_count)].id;
        command->block.fields = PATCH_PRICE | (pick(world, 2) ? PATCH_CAPACITY : 0);
        command->block.price_cents = 1000 + (int64_t)pick(world, 5) * 500;
        command->block.capacity = 1 + (int32_t)pick(world, 5);
    }
    world_post(world, command);
}

void action_random(struct world *world)
{
    const struct uuid *user_id = &world->users[pick(world, WORLD_USER_COUNT)];
    uint64_t what = pick(world, 100);
    if (what < 35)
        ask_seats(world, user_id);
    else if (what < 45)
        ask_best(world, user_id);
    else if (what < 52)
        ask_by_id(world, user_id, COMMAND_HOLD_EXTEND);
    else if (what < 62)
        ask_by_id(world, user_id, COMMAND_HOLD_RELEASE);
    else if (what < 74)
        ask_checkout(world, user_id);
    else if (what < 84)
        ask_by_id(world, user_id, COMMAND_CHECKOUT_COMPLETE);
    else if (what < 89)
        ask_by_id(world, user_id, COMMAND_CHECKOUT_CANCEL);
    else if (what < 92)
        ask_by_id(world, user_id, COMMAND_HOLD_GET);
    else if (what < 95)
        ask_by_id(world, user_id, COMMAND_CHECKOUT_GET);
    else
        ask_admin(world);
}

/* ---- Answers ---- */

static void remember(struct uuid *ids, int32_t *count, const struct uuid *id)
{
    ids[*count % WORLD_HOLD_MEMORY] = *id;
    (*count)++;
}

/* Success was said: the store must have it, at this very moment. */
static void promised(struct world *world, const struct command *command, const struct hold_view *view)
{
    const struct hold_row *row = &view->row;
    const struct sim_hold *stored = map_get(&sim_store_tables(world->store)->holds, &row->id);
    if (stored == NULL)
        world_fail(world, "a hold was acknowledged that the store does not have");
    if (!uuid_equal(&row->user_id, &command->actor.for_user_id))
        world_fail(world, "a user was given somebody else's hold");
    struct promise *promise = map_get(&world->promises, &row->id);
    if (promise == NULL) {
        promise = calloc(1, sizeof(*promise));
        CHECK(promise != NULL);
        map_put(&world->promises, &row->id, promise);
        remember(world->hold_ids, &world->hold_id_count, &row->id);
        promise->hold_id = row->id;
        promise->event_id = row->event_id;
        promise->user_id = row->user_id;
        promise->seat_index = view->seat_index;
    }
    if (row->held_until_ms > promise->held_until_ms)
        promise->held_until_ms = row->held_until_ms;
}

static void given_back(struct world *world, const struct uuid *hold_id)
{
    struct promise *promise = map_get(&world->promises, hold_id);
    if (promise != NULL)
        promise->given_back = true;
}

static void answered_holds(struct world *world, const struct command *command)
{
    for (int32_t i = 0; i < command->result.hold_count; i++)
        promised(world, command, &command->result.holds[i]);
    world->granted += command->result.status == 201 ? command->result.hold_count : 0;
}

static void answered_checkout(struct world *world, const struct command *command)
{
    const struct result *result = &command->result;
    const struct sim_checkout *stored =
        map_get(&sim_store_tables(world->store)->checkouts, &result->checkout.id);
    if (stored == NULL)
        world_fail(world, "a checkout was acknowledged that the store does not have");
    if (command->kind == COMMAND_CHECKOUT_START)
        remember(world->checkout_ids, &world->checkout_id_count, &result->checkout.id);
    for (int32_t i = 0; i < result->ticket_count; i++) {
        if (map_get(&sim_store_tables(world->store)->tickets, &result->tickets[i].id) == NULL)
            world_fail(world, "a ticket was acknowledged that the store does not have");
    }
    if (command->kind == COMMAND_CHECKOUT_COMPLETE && result->status == 200) {
        if (result->checkout.state != CHECKOUT_COMPLETED || result->ticket_count == 0)
            world_fail(world, "a payment was acknowledged without tickets");
        world->sold += result->ticket_count;
    }
}

static void answered_release(struct world *world, const struct command *command)
{
    const struct sim_hold *stored = map_get(&sim_store_tables(world->store)->holds, &command->id);
    if (stored == NULL || stored->row.state == HOLD_ACTIVE)
        world_fail(world, "a release was acknowledged and the hold is still active");
    given_back(world, &command->id);
}

void action_answered(struct world *world, struct command *command)
{
    enum err err = command->result.err;
    if (err == ERR_STORE_UNAVAILABLE || err == ERR_OVERLOADED)
        world->failed++;
    else if (err == ERR_OUTCOME_UNKNOWN)
        world->unknown++;
    else if (err != ERR_OK)
        world->refused++;
    if (err == ERR_INTERNAL)
        world_fail(world, "internal_error");
    if (err != ERR_OK)
        return;
    switch (command->kind) {
    case COMMAND_HOLD_SEATS:
    case COMMAND_HOLD_BEST:
    case COMMAND_HOLD_EXTEND:
        answered_holds(world, command);
        break;
    case COMMAND_HOLD_RELEASE:
        answered_release(world, command);
        break;
    case COMMAND_CHECKOUT_START:
    case COMMAND_CHECKOUT_COMPLETE:
    case COMMAND_CHECKOUT_CANCEL:
        answered_checkout(world, command);
        break;
    default:
        break;
    }
}
