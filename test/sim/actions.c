/* SPDX-License-Identifier: Apache-2.0
 * What the simulated users do: all that buyers, agents and admins can ask for,
 * with ids that are fresh, old, somebody else's or nobody's. What may end a
 * promise is noted when it is asked for, for its answer may never come. */
#include <stdio.h>
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
    const struct sim_event *event = world_event(world, &world->events[which]);
    if (pick(world, 60) == 0)
        return uuid_make(&world->rng, world->now_ms); /* nobody knows this one */
    return event->seats[pick(world, (uint64_t)event->seat_count)].row.id;
}

static struct uuid remembered(struct world *world, const struct uuid *ids, int32_t count)
{
    if (count == 0 || pick(world, 40) == 0)
        return uuid_make(&world->rng, world->now_ms);
    if (world->log != NULL &&
        pick(world, 3) == 0) /* answers take longer there: the last is mostly still alive */
        return ids[(count - 1) % WORLD_HOLD_MEMORY];
    int32_t known = count < WORLD_HOLD_MEMORY ? count : WORLD_HOLD_MEMORY;
    return ids[pick(world, (uint64_t)known)];
}

static const char *random_cart(struct world *world, struct command *command)
{
    static const char *const carts[] = {"a basket", "another basket", "a third basket, with a long name"};
    if (world->log != NULL) { /* one of its own, by which its holds are known */
        char text[32];
        snprintf(text, sizeof(text), "basket %lld", (long long)++world->basket_count);
        return arena_text(command->arena, text);
    }
    if (pick(world, 2) == 0)
        return NULL;
    return arena_text(command->arena, carts[pick(world, COUNT_OF(carts))]);
}

static const char *somebodys_cart(struct world *world, struct command *command)
{
    if (world->log == NULL)
        return random_cart(world, command);
    char text[32];
    int64_t back = (int64_t)pick(world, 30);
    snprintf(text, sizeof(text), "basket %lld",
             (long long)(back < world->basket_count ? world->basket_count - back : 1));
    return arena_text(command->arena, text);
}

/* ---- What may end a promise ---- */

static void may_end(struct world *world, const struct uuid *hold_id)
{
    struct promise *promise = map_get(&world->promises, hold_id);
    if (promise != NULL)
        promise->may_have_ended = true;
}

static void may_end_checkout(struct world *world, const struct uuid *checkout_id)
{
    size_t position = 0;
    const struct sim_hold *hold;
    while ((hold = map_next(&world->tables->holds, &position)) != NULL) {
        if (uuid_equal(&hold->row.checkout_id, checkout_id))
            may_end(world, &hold->row.id);
    }
}

static void may_end_event(struct world *world, const struct uuid *event_id)
{
    size_t position = 0;
    struct promise *promise;
    while ((promise = map_next(&world->promises, &position)) != NULL) {
        if (uuid_equal(&promise->event_id, event_id))
            promise->may_have_ended = true;
    }
}

bool action_is_ending(const struct command *command)
{
    return command->kind == COMMAND_ADMIN_RELEASE || command->kind == COMMAND_SEATS_BLOCK ||
           command->kind == COMMAND_EVENT_PATCH;
}

/* ---- Buyers ---- */

/* Sometimes with a key; the same key with the same body comes again, and now and then with another. */
static void maybe_key(struct world *world, struct command *command)
{
    bool reads = command->kind == COMMAND_HOLD_GET || command->kind == COMMAND_CHECKOUT_GET;
    if (pick(world, 4) != 0 || reads)
        return;
    /* As at the edge: a key is one user's and one path's, and whom it is for stands in the body. */
    struct uuid own[2] = {command->actor.user_id};
    own[1].bytes[0] = (uint8_t)pick(world, WORLD_KEY_COUNT);
    own[1].bytes[1] = (uint8_t)command->kind;
    command->has_key = true;
    sha256(own, sizeof(own), command->key);
    memcpy(command->body, &command->kind, sizeof(command->kind));
    memcpy(command->body + 4, &command->actor.for_user_id, sizeof(struct uuid));
    if (command->kind == COMMAND_HOLD_SEATS) {
        uint8_t seats[32];
        sha256(command->hold_seats.seat_ids, sizeof(struct uuid) * (size_t)command->hold_seats.count, seats);
        memcpy(command->body + 20, seats, 12);
    }
}

/* Now and then an agent asks for the buyer, or somebody of another organization altogether. */
static void maybe_other_actor(struct world *world, struct command *command)
{
    uint64_t who = pick(world, 60);
    if (who == 0) {
        command->actor.org_id = world->foreign_org_id;
    } else if (who < 4) {
        command->actor.role = ROLE_AGENT;
        command->actor.user_id = world->admin_id;
    }
}

static void ask_seats(struct world *world, const struct uuid *user_id)
{
    struct command *command = world_command(world, COMMAND_HOLD_SEATS, user_id);
    int which = (int)pick(world, WORLD_EVENT_COUNT);
    int32_t count = pick(world, 3) == 0 ? 2 + (int32_t)pick(world, 3) : 1;
    command->hold_seats.event_id = world->events[which];
    command->hold_seats.several = count > 1;
    command->hold_seats.cart_token = random_cart(world, command);
    command->hold_seats.seat_ids = ARENA_ARRAY(command->arena, struct uuid, count);
    for (int32_t i = 0; i < count; i++) {
        struct uuid id = random_seat(world, which);
        bool twice = false;
        for (int32_t j = 0; j < command->hold_seats.count; j++)
            twice = twice || uuid_equal(&command->hold_seats.seat_ids[j], &id);
        if (!twice)
            command->hold_seats.seat_ids[command->hold_seats.count++] = id;
    }
    maybe_other_actor(world, command);
    maybe_key(world, command);
    world_post(world, command);
}

/* Several questions of one user at once: the limits hold for all of them together. */
static void ask_burst(struct world *world, const struct uuid *user_id)
{
    int which = (int)pick(world, WORLD_EVENT_COUNT);
    const struct sim_event *event = world_event(world, &world->events[which]);
    int32_t first = (int32_t)pick(world, (uint64_t)event->seat_count);
    for (int32_t i = 0; i < 8; i++) {
        struct command *command = world_command(world, COMMAND_HOLD_SEATS, user_id);
        command->hold_seats.event_id = world->events[which];
        command->hold_seats.seat_ids = ARENA_NEW(command->arena, struct uuid);
        command->hold_seats.seat_ids[0] = event->seats[(first + i) % event->seat_count].row.id;
        command->hold_seats.count = 1;
        command->hold_seats.cart_token = world->log != NULL ? random_cart(world, command) : NULL;
        world_post(world, command);
    }
}

/* Once more for a seat that one was promised: the same hold is the answer. */
static void ask_again(struct world *world, const struct uuid *user_id)
{
    struct uuid hold_id = remembered(world, world->hold_ids, world->hold_id_count);
    const struct promise *promise = map_get(&world->promises, &hold_id);
    int which = promise != NULL ? world_event_index(world, &promise->event_id) : -1;
    if (which < 0) {
        ask_seats(world, user_id);
        return;
    }
    struct command *command = world_command(world, COMMAND_HOLD_SEATS, &promise->user_id);
    command->hold_seats.event_id = promise->event_id;
    command->hold_seats.seat_ids = ARENA_NEW(command->arena, struct uuid);
    command->hold_seats.seat_ids[0] =
        world_event(world, &promise->event_id)->seats[promise->seat_index].row.id;
    command->hold_seats.count = 1;
    command->hold_seats.cart_token = world->log != NULL ? random_cart(world, command) : NULL;
    world_post(world, command);
}

static void ask_best(struct world *world, const struct uuid *user_id)
{
    struct command *command = world_command(world, COMMAND_HOLD_BEST, user_id);
    command->hold_best.event_id = world->events[pick(world, WORLD_EVENT_COUNT)];
    command->hold_best.quantity = 1 + (int32_t)pick(world, 4);
    command->hold_best.adjacent = pick(world, 3) != 0;
    command->hold_best.cart_token = random_cart(world, command);
    if (pick(world, 2) == 0)
        strcpy(command->hold_best.section, pick(world, 2) ? "A" : "B");
    maybe_other_actor(world, command);
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
        const struct promise *promise = map_get(&world->promises, &command->id);
        const struct sim_checkout *row = world_checkout(world, &command->id);
        if (promise != NULL)
            command->actor.user_id = command->actor.for_user_id = promise->user_id;
        if (row != NULL)
            command->actor.user_id = command->actor.for_user_id = row->row.user_id;
    }
    if (kind == COMMAND_CHECKOUT_COMPLETE)
        command->checkout.payment_token = arena_text(command->arena, "tok");
    if (kind == COMMAND_CHECKOUT_CANCEL)
        command->checkout.notes = arena_text(command->arena, "changed my mind");
    if (kind == COMMAND_HOLD_RELEASE)
        may_end(world, &command->id);
    if (kind == COMMAND_CHECKOUT_CANCEL || kind == COMMAND_CHECKOUT_COMPLETE)
        may_end_checkout(world, &command->id);
    maybe_other_actor(world, command);
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
    } else if (pick(world, 3) == 0) {
        command->checkout_start.cart_token = somebodys_cart(world, command);
    }
    maybe_other_actor(world, command);
    maybe_key(world, command);
    world_post(world, command);
}

/* ---- Admins ---- */

static void change_event(struct world *world, struct command *command, int which)
{
    command->event.fields = PATCH_NAME;
    command->event.row.name = arena_text(command->arena, pick(world, 2) ? "Another name" : "A name");
    uint64_t what = pick(world, 16);
    if (what == 0) { /* the end of it: everything must come back */
        command->event.fields |= PATCH_STATE;
        command->event.row.state = EVENT_CANCELLED;
        may_end_event(world, &command->id);
    } else if (what < 11) {
        struct policy *policy = &command->event.row.policy;
        command->event.policy_fields = BIT(0) | BIT(1) | BIT(2) | BIT(3) | BIT(4) | BIT(5);
        policy->hold_ttl_seconds = 10 + (int32_t)pick(world, 20);
        policy->checkout_extension_seconds = (int32_t)pick(world, 20);
        policy->hold_max_seconds = 30 + (int32_t)pick(world, 40);
        policy->release_grace_seconds = WORLD_GRACE_SECONDS_MIN + (int32_t)pick(world, 4);
        policy->payment_max_seconds = 10 + (int32_t)pick(world, 20);
        policy->max_seats_per_user = 2 + (int32_t)pick(world, 5);
        if (policy->max_seats_per_user > world->max_seats[which])
            world->max_seats[which] = policy->max_seats_per_user;
    }
}

static void change_block(struct world *world, struct command *command, int which)
{
    const struct sim_event *event = world_event(world, &world->events[which]);
    command->block.block_id = event->blocks[pick(world, (uint64_t)event->block_count)].id;
    command->block.fields = PATCH_PRICE | (pick(world, 2) ? PATCH_CAPACITY : 0);
    command->block.price_cents = 1000 + (int64_t)pick(world, 5) * 500;
    command->block.capacity = 1 + (int32_t)pick(world, 5);
}

static void release_some(struct world *world, struct command *command, int which, struct uuid *seat)
{
    uint64_t how = pick(world, 10);
    if (how == 0) {
        command->release.event_id = world->events[which];
        may_end_event(world, &world->events[which]);
    } else if (how < 3) {
        command->release.checkout_id = remembered(world, world->checkout_ids, world->checkout_id_count);
        may_end_checkout(world, &command->release.checkout_id);
    } else if (how < 6) {
        *seat = remembered(world, world->hold_ids, world->hold_id_count);
        command->release.hold_ids = seat;
        command->release.hold_count = 1;
        may_end(world, seat);
    } else {
        command->release.seat_ids = seat;
        command->release.seat_count = 1;
        may_end_event(world, &world->events[which]);
    }
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
        if (kind == COMMAND_SEATS_BLOCK)
            may_end_event(world, &world->events[which]);
    } else if (kind == COMMAND_ADMIN_RELEASE) {
        release_some(world, command, which, seat);
    } else if (kind == COMMAND_EVENT_PATCH) {
        change_event(world, command, which);
    } else {
        change_block(world, command, which);
    }
    world_post(world, command);
}

void action_random(struct world *world)
{
    const struct uuid *user_id = &world->users[pick(world, WORLD_USER_COUNT)];
    uint64_t what = pick(world, 100);
    if (world->log != NULL && pick(world, 30) == 0)
        letters_ask(world);
    if (what < 26)
        ask_seats(world, user_id);
    else if (what < 28)
        ask_burst(world, user_id);
    else if (what < 36)
        ask_again(world, user_id);
    else if (what < 45)
        ask_best(world, user_id);
    else if (what < 52)
        ask_by_id(world, user_id, COMMAND_HOLD_EXTEND);
    else if (what < 60)
        ask_by_id(world, user_id, COMMAND_HOLD_RELEASE);
    else if (what < 73)
        ask_checkout(world, user_id);
    else if (what < 85)
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
