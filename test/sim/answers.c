/* SPDX-License-Identifier: Apache-2.0
 * What an answer says must be true of what is committed, at that very moment:
 * success rests on rows that are there, a refusal on rows that are there too.
 * A success is remembered as a promise; checks.c holds the store to it.
 *
 * An answer with an Idempotency-Key may be an old one, given again: then only
 * what can never cease to be true is looked at. */
#include <stdlib.h>
#include <string.h>

#include "hold/rules.h"
#include "lane/lane_int.h"
#include "world.h"

static const struct sim_seat *find_seat(const struct sim_event *event, const struct uuid *seat_id)
{
    for (int32_t i = 0; i < event->seat_count; i++) {
        if (uuid_equal(&event->seats[i].row.id, seat_id))
            return &event->seats[i];
    }
    return NULL;
}

static void remember(struct uuid *ids, int32_t *count, const struct uuid *id)
{
    ids[*count % WORLD_HOLD_MEMORY] = *id;
    (*count)++;
}

/* Of one of several nodes: is what it answered with still to be expected of the tables, to the letter? */
static bool nothing_happened_since(const struct world *world, const struct command *command)
{
    return !world->loose || world->tables->commit_count == question_of(command)->commit_count;
}

/* ---- Holds ---- */

/* Did its owner ask again, of a node whose clock said that it was over? Then they have got another for it. */
static bool was_renewed(struct world *world, const struct promise *promise)
{
    const struct hold_row *ended = &world_hold(world, &promise->hold_id)->row;
    if (ended->state != HOLD_EXPIRED)
        return false;
    size_t position = 0;
    const struct sim_hold *hold;
    while ((hold = map_next(&world->tables->holds, &position)) != NULL) {
        const struct hold_row *row = &hold->row;
        if (uuid_equal(&row->seat_id, &ended->seat_id) && uuid_equal(&row->user_id, &ended->user_id) &&
            row->created_ms == ended->ended_ms)
            return true;
    }
    return false;
}

/* From what was said, whatever the store has now: two people were not promised the same seat. */
static void check_exclusive(struct world *world, const struct hold_view *view)
{
    size_t position = 0;
    const struct promise *other;
    while ((other = map_next(&world->promises, &position)) != NULL) {
        bool same_seat =
            other->seat_index == view->seat_index && uuid_equal(&other->event_id, &view->row.event_id);
        if (!same_seat || uuid_equal(&other->hold_id, &view->row.id))
            continue;
        if (other->given_back || other->may_have_ended || other->held_until_ms <= view->row.created_ms)
            continue;
        if (world->loose && was_renewed(world, other))
            continue;
        world_fail(world, "a seat was promised to somebody while another's promise held");
    }
    if (map_get(&world->tickets, &view->row.seat_id) != NULL)
        world_fail(world, "a seat was promised for which somebody has a ticket");
}

/* Another node may have extended or ended it meanwhile: after it was asked for, or it is a lie. */
static bool is_so(const struct world *world, const struct command *command, const struct hold_row *said,
                  const struct hold_row *stored)
{
    if (!world->loose)
        return stored->state == HOLD_ACTIVE && stored->held_until_ms == said->held_until_ms;
    if (stored->state == HOLD_ACTIVE)
        return stored->held_until_ms >= said->held_until_ms;
    const struct promise *promise = map_get(&world->promises, &stored->id);
    return promise == NULL || promise->ended_ms == 0 || promise->ended_ms >= question_of(command)->asked_ms;
}

static void promise_hold(struct world *world, const struct command *command, const struct hold_view *view)
{
    const struct hold_row *row = &view->row;
    const struct sim_hold *stored = world_hold(world, &row->id);
    if (stored == NULL)
        world_fail(world, "a hold was acknowledged that the store does not have");
    bool is_extension =
        (command->kind == COMMAND_ANSWER_GET ? command->result.kind : command->kind) == COMMAND_HOLD_EXTEND;
    if (!uuid_equal(&row->user_id, &command->actor.for_user_id) && !is_extension)
        world_fail(world, "a user was given somebody else's hold");
    /* One of several may have been theirs before, and changed while the others were committed. */
    bool is_now = !question_of(command)->gave_key && command->result.hold_count == 1 &&
                  command->kind != COMMAND_ANSWER_GET;
    if (is_now && !is_so(world, command, row, &stored->row))
        world_fail(world, "a hold was acknowledged that is not so in the store");
    const struct sim_checkout *checkout = world_checkout(world, &stored->row.checkout_id);
    bool paying = checkout != NULL && checkout->row.state == CHECKOUT_PROCESSING;
    bool was_paying = world->loose && stored->row.state != HOLD_ACTIVE;
    int64_t decided_ms =
        world->log == NULL ? command->result.now_ms : question_of(command)->asked_ms - WORLD_SKEW_MS_MAX;
    if (is_now && !paying && !was_paying && row->held_until_ms <= decided_ms)
        world_fail(world, "a hold that had run out was given as an answer");
    struct promise *promise = map_get(&world->promises, &row->id);
    if (promise == NULL) {
        if (stored->row.state == HOLD_ACTIVE)
            check_exclusive(world, view);
        promise = calloc(1, sizeof(*promise));
        CHECK(promise != NULL);
        map_put(&world->promises, &row->id, promise);
        remember(world->hold_ids, &world->hold_id_count, &row->id);
        promise->hold_id = row->id;
        promise->event_id = row->event_id;
        promise->user_id = row->user_id;
        promise->seat_index = view->seat_index;
        /* In a checkout its payment may be under way, and fail. */
        promise->may_have_ended = world->ending_count > 0 || stored->row.state != HOLD_ACTIVE ||
                                  !uuid_is_nil(&stored->row.checkout_id);
    }
    if (row->held_until_ms > promise->held_until_ms)
        promise->held_until_ms = row->held_until_ms;
}

static void check_granted(struct world *world, const struct command *command)
{
    for (int32_t i = 0; i < command->result.hold_count; i++)
        promise_hold(world, command, &command->result.holds[i]);
    world->granted += command->result.status == 201 ? command->result.hold_count : 0;
    if (command->kind != COMMAND_HOLD_SEATS)
        return;
    if (command->result.hold_count != command->hold_seats.count)
        world_fail(world, "some of several seats were granted");
}

static void check_released(struct world *world, const struct command *command)
{
    const struct sim_hold *stored = world_hold(world, &command->id);
    if (stored == NULL || stored->row.state == HOLD_ACTIVE)
        world_fail(world, "a release was acknowledged and the hold is still active");
    struct promise *promise = map_get(&world->promises, &command->id);
    if (promise != NULL)
        promise->given_back = true;
}

/* ---- Checkouts ---- */

static void check_tickets(struct world *world, const struct result *result)
{
    for (int32_t i = 0; i < result->ticket_count; i++) {
        const struct ticket_row *ticket = &result->tickets[i];
        struct ticket_row *stored = map_get(&world->tables->tickets, &ticket->id);
        if (stored == NULL)
            world_fail(world, "a ticket was acknowledged that the store does not have");
        const struct ticket_row *first = map_get(&world->tickets, &ticket->seat_id);
        if (first != NULL && !uuid_equal(&first->id, &ticket->id))
            world_fail(world, "two tickets were given out for one seat");
        map_put(&world->tickets, &ticket->seat_id, stored);
    }
}

static void check_cancelled(struct world *world, const struct command *command)
{
    if (world_checkout(world, &command->id)->row.state != CHECKOUT_CANCELLED)
        world_fail(world, "a checkout was said to be cancelled that is not");
    size_t position = 0;
    const struct sim_hold *hold;
    while ((hold = map_next(&world->tables->holds, &position)) != NULL) {
        if (!uuid_equal(&hold->row.checkout_id, &command->id))
            continue;
        struct promise *promise = map_get(&world->promises, &hold->row.id);
        if (promise != NULL)
            promise->given_back = true;
    }
}

static void check_checkout(struct world *world, const struct command *command)
{
    const struct result *result = &command->result;
    const struct sim_checkout *stored = world_checkout(world, &result->checkout.id);
    if (stored == NULL)
        world_fail(world, "a checkout was acknowledged that the store does not have");
    check_tickets(world, result);
    if (command->kind == COMMAND_CHECKOUT_CANCEL)
        check_cancelled(world, command);
    if (command->kind == COMMAND_CHECKOUT_START) {
        remember(world->checkout_ids, &world->checkout_id_count, &result->checkout.id);
        for (int32_t i = 0;
             i < result->checkout_hold_count && result->checkout.state == CHECKOUT_PENDING_PAYMENT; i++) {
            const struct hold_row *row = &result->checkout_holds[i].row;
            struct promise *promise = map_get(&world->promises, &row->id);
            if (promise != NULL && row->held_until_ms > promise->held_until_ms)
                promise->held_until_ms = row->held_until_ms;
        }
    }
    if (command->kind == COMMAND_CHECKOUT_COMPLETE && result->status == 200) {
        if (result->checkout.state != CHECKOUT_COMPLETED || result->ticket_count == 0)
            world_fail(world, "a payment was acknowledged without tickets");
        world->sold += result->ticket_count;
    }
    if (command->kind == COMMAND_CHECKOUT_COMPLETE && result->status == 202 &&
        stored->row.state == CHECKOUT_PENDING_PAYMENT)
        world_fail(world, "a payment was said to be under way that is not");
}

/* ---- Admins ---- */

static void check_admin(struct world *world, const struct command *command)
{
    const struct sim_event *event = world_event(world, &command->id);
    const struct result *result = &command->result;
    if (command->kind == COMMAND_EVENT_PATCH && (command->event.fields & PATCH_STATE) &&
        event->row.state != command->event.row.state)
        world_fail(world, "an event was said to be changed that is not");
    enum seat_state wanted = command->kind == COMMAND_SEATS_BLOCK ? SEAT_BLOCKED : SEAT_AVAILABLE;
    for (int32_t i = 0; i < result->seat_id_count && command->kind == COMMAND_SEATS_BLOCK; i++) {
        if (!seen_lately(world, question_of(command)->node, event, &result->seat_ids[i], wanted))
            world_fail(world, "a seat was said to be blocked that is not");
    }
    for (int32_t i = 0; i < result->hold_count; i++) {
        if (world_hold(world, &result->holds[i].row.id)->row.state == HOLD_ACTIVE)
            world_fail(world, "an admin was told of a release that did not happen");
    }
}

/* ---- Refusals ---- */

static int32_t count_active(struct world *world, const struct uuid *event_id, const struct uuid *user_id)
{
    int32_t count = 0;
    size_t position = 0;
    const struct sim_hold *hold;
    while ((hold = map_next(&world->tables->holds, &position)) != NULL)
        count += hold->row.state == HOLD_ACTIVE && uuid_equal(&hold->row.event_id, event_id) &&
                 uuid_equal(&hold->row.user_id, user_id);
    return count;
}

static bool block_is_full(const struct sim_event *event, const struct uuid *block_id, int32_t adding)
{
    int32_t taken = 0, capacity = 0;
    for (int32_t i = 0; i < event->seat_count; i++)
        taken += uuid_equal(&event->seats[i].block_id, block_id) &&
                 (event->seats[i].row.state == SEAT_HELD || event->seats[i].row.state == SEAT_SOLD);
    for (int32_t i = 0; i < event->block_count; i++) {
        if (uuid_equal(&event->blocks[i].id, block_id))
            capacity = event->blocks[i].capacity;
    }
    return taken + adding > capacity;
}

static void check_seat_failure(struct world *world, const struct command *command,
                               const struct sim_event *event, const struct seat_failure *failure)
{
    const struct sim_seat *seat = find_seat(event, &failure->id);
    if ((seat == NULL) != (failure->err == ERR_SEAT_NOT_FOUND))
        world_fail(world, "a seat was not found that is there, or the reverse");
    const struct node *node = question_of(command)->node;
    if (failure->err == ERR_SEAT_NOT_AVAILABLE && !seen_lately(world, node, event, &failure->id, SEAT_SOLD) &&
        !seen_lately(world, node, event, &failure->id, SEAT_BLOCKED))
        world_fail(world, "a seat was refused as not available that is");
    if (failure->err != ERR_SEAT_HELD)
        return;
    if (!seen_lately(world, node, event, &failure->id, SEAT_HELD))
        world_fail(world, "a seat was refused as held that nobody holds");
    if (seat->row.state != SEAT_HELD)
        return;
    const struct hold_row *hold = &world_hold(world, &seat->row.hold_id)->row;
    bool is_known = world->now_ms - hold->created_ms >= seen_lag_ms(world, node);
    if (is_known && uuid_equal(&hold->user_id, &command->actor.for_user_id))
        world_fail(world, "the owner was refused their own seat");
}

/* The owner of a hold that has not run out asks again: nothing but that hold is an answer. */
static void check_own_seat(struct world *world, const struct command *command, const struct sim_event *event)
{
    const struct sim_seat *seat = find_seat(event, &command->hold_seats.seat_ids[0]);
    if (command->hold_seats.count != 1 || seat == NULL || seat->row.state != SEAT_HELD ||
        !event_is_open(event->row.state))
        return;
    const struct sim_hold *hold = world_hold(world, &seat->row.hold_id);
    if (!uuid_equal(&hold->row.user_id, &command->actor.for_user_id) ||
        hold->row.held_until_ms <= world->now_ms + WORLD_SKEW_MS_MAX * world->loose)
        return;
    if (world->now_ms - hold->row.created_ms < seen_lag_ms(world, question_of(command)->node))
        return;
    world_fail(world, "the owner of a hold asked again and was refused");
}

static void check_seats_refused(struct world *world, const struct command *command,
                                const struct sim_event *event)
{
    for (int32_t i = 0; i < command->result.failure_count; i++)
        check_seat_failure(world, command, event, &command->result.failures[i]);
    check_own_seat(world, command, event);
}

static void check_limits(struct world *world, const struct command *command, const struct sim_event *event)
{
    enum err err = command->result.err;
    const struct uuid *user_id = &command->actor.for_user_id;
    int32_t asked = command->hold_seats.count;
    if (err == ERR_HOLD_LIMIT_REACHED &&
        count_active(world, &event->row.id, user_id) + asked <= event->row.policy.max_seats_per_user)
        world_fail(world, "a limit was called reached that was not");
    bool full = false;
    for (int32_t i = 0; i < asked && err == ERR_BLOCK_AT_CAPACITY; i++) {
        const struct sim_seat *seat = find_seat(event, &command->hold_seats.seat_ids[i]);
        full = full || block_is_full(event, &seat->block_id, asked);
    }
    if (err == ERR_BLOCK_AT_CAPACITY && !full)
        world_fail(world, "a block was called full that was not");
}

static void check_best_refused(struct world *world, const struct command *command,
                               const struct sim_event *event)
{
    if (command->result.err != ERR_NOT_ENOUGH_SEATS || command->hold_best.quantity != 1)
        return;
    for (int32_t i = 0; i < event->seat_count; i++) {
        const struct sim_seat *seat = &event->seats[i];
        bool wanted = command->hold_best.section[0] == '\0';
        for (int32_t block = 0; block < event->block_count; block++)
            wanted = wanted || (uuid_equal(&event->blocks[block].id, &seat->block_id) &&
                                event->blocks[block].section[0] == command->hold_best.section[0]);
        if (wanted && seat->row.state == SEAT_AVAILABLE && !block_is_full(event, &seat->block_id, 1))
            world_fail(world, "there was a seat, and best available did not find it");
    }
}

static void check_refused(struct world *world, const struct command *command)
{
    enum err err = command->result.err;
    if (question_of(command)->gave_key)
        return;
    bool failed = command->kind == COMMAND_CHECKOUT_COMPLETE && err == ERR_PAYMENT_FAILED;
    enum checkout_state state = failed ? world_checkout(world, &command->id)->row.state : CHECKOUT_FAILED;
    bool money_came_late = world->loose && state == CHECKOUT_COMPLETED;
    if (state != CHECKOUT_FAILED && !money_came_late)
        world_fail(world, "a payment was said to have failed that has not");
    if (command->kind != COMMAND_HOLD_SEATS && command->kind != COMMAND_HOLD_BEST)
        return;
    /* Seats that came back in a commit whose answer is lost still count, as far as the lane can know. */
    bool counts_are_known =
        question_of(command)->node->lane->unknown_count == 0 && nothing_happened_since(world, command);
    bool best = command->kind == COMMAND_HOLD_BEST;
    const struct sim_event *event =
        world_event(world, best ? &command->hold_best.event_id : &command->hold_seats.event_id);
    if (err == ERR_EVENT_NOT_AVAILABLE && event_is_open(event->row.state))
        world_fail(world, "an event was called closed that is open");
    if (err == ERR_RATE_LIMITED && event->row.policy.rate_limit_holds == 0)
        world_fail(world, "a rate was limited that has no limit");
    if (!best)
        check_seats_refused(world, command, event);
    if (!best && counts_are_known)
        check_limits(world, command, event);
    if (best && counts_are_known)
        check_best_refused(world, command, event);
}

/* ---- Keys ---- */

static bool is_kept(const struct command *command)
{
    enum err err = command->result.err;
    return err_http_status(err) < 500 && err != ERR_REQUEST_IN_PROGRESS &&
           err != ERR_IDEMPOTENCY_KEY_REUSED && (err != ERR_OK || command->result.status != 202);
}

static void check_key(struct world *world, const struct command *command)
{
    struct uuid id;
    for (size_t i = 0; i < sizeof(id.bytes); i++)
        id.bytes[i] = command->key[i] ^ command->actor.org_id.bytes[i];
    const struct result *result = &command->result;
    struct kept_answer *kept = map_get(&world->answers, &id);
    bool same = kept != NULL && memcmp(kept->body, command->body, sizeof(kept->body)) == 0;
    if (kept != NULL && !same && is_kept(command))
        world_fail(world, "a key was taken with another body");
    if (!is_kept(command))
        return;
    struct kept_answer answer = {
        .err = result->err, .status = result->status, .hold_count = result->hold_count};
    memcpy(answer.body, command->body, sizeof(answer.body));
    if (result->hold_count > 0)
        answer.hold_id = result->holds[0].row.id;
    if (result->has_checkout)
        answer.checkout_id = result->checkout.id;
    if (kept == NULL) {
        kept = calloc(1, sizeof(*kept));
        CHECK(kept != NULL);
        *kept = answer;
        map_put(&world->answers, &id, kept);
    }
    if (kept->err != answer.err || kept->status != answer.status || kept->hold_count != answer.hold_count ||
        !uuid_equal(&kept->hold_id, &answer.hold_id) || !uuid_equal(&kept->checkout_id, &answer.checkout_id))
        world_fail(world, "the same key was answered in another way");
}

/* Nothing of ours exists for another organization. */
static void check_foreign(struct world *world, const struct command *command)
{
    int status = err_http_status(command->result.err);
    bool in_progress = question_of(command)->gave_key && status == 409; /* of their own doing */
    if (status != 404 && status < 500 && !in_progress)
        world_fail(world, "another organization was told of something of ours");
}

static void check_success(struct world *world, const struct command *command)
{
    switch (command->kind) {
    case COMMAND_HOLD_SEATS:
    case COMMAND_HOLD_BEST:
    case COMMAND_HOLD_EXTEND:
        check_granted(world, command);
        break;
    case COMMAND_HOLD_RELEASE:
        check_released(world, command);
        break;
    case COMMAND_CHECKOUT_START:
    case COMMAND_CHECKOUT_COMPLETE:
    case COMMAND_CHECKOUT_CANCEL:
    case COMMAND_CHECKOUT_GET:
        check_checkout(world, command);
        break;
    case COMMAND_EVENT_PATCH:
    case COMMAND_SEATS_BLOCK:
    case COMMAND_ADMIN_RELEASE:
        check_admin(world, command);
        break;
    default:
        break;
    }
}

/* An answer that came late is a promise from now on. */
static void check_told(struct world *world, const struct command *command)
{
    enum command_kind kind = command->result.kind;
    bool is_grant = kind == COMMAND_HOLD_SEATS || kind == COMMAND_HOLD_BEST || kind == COMMAND_HOLD_EXTEND;
    for (int32_t i = 0; i < command->result.hold_count && is_grant; i++)
        promise_hold(world, command, &command->result.holds[i]);
    check_tickets(world, &command->result);
}

void answer_check(struct world *world, struct command *command)
{
    enum err err = command->result.err;
    int status = err_http_status(err);
    world->failed += status == 503;
    world->unknown += status == 504;
    world->refused += status >= 400 && status < 500;
    if (err == ERR_INTERNAL)
        world_fail(world, "internal_error");
    if (world->log != NULL && letters_answered(world, command))
        return;
    if (command->kind == COMMAND_ANSWER_GET) {
        if (letters_told(world, command))
            check_told(world, command);
        return;
    }
    /* A payment that was begun goes on, though its key was used for something else meanwhile (payment_key_taken()). */
    bool is_by_outcome = world->log != NULL ? command->kind == COMMAND_CHECKOUT_COMPLETE : !command->has_key;
    if (question_of(command)->gave_key && !is_by_outcome)
        check_key(world, command);
    if (command->kind == COMMAND_PAYMENT_SETTLED || command->kind == COMMAND_REFUND_SETTLED)
        gateway_heard(world, command);
    else if (uuid_equal(&command->actor.org_id, &world->foreign_org_id))
        check_foreign(world, command);
    else if (err == ERR_OK)
        check_success(world, command);
    else if (status < 500)
        check_refused(world, command);
}
