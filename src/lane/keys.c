/* SPDX-License-Identifier: Apache-2.0
 * Idempotency-Keys. A command with a key is answered as the first one was, if
 * there was one; otherwise its key is written in its own transaction, with the
 * ids and codes of its answer. Keys under way are in memory: a second command
 * with the same key meanwhile is refused. Answers of 5xx and 202 are not kept:
 * the first may go better next time, the second is not final.
 *
 * A command that came through a broker without a key has one made of its id, so
 * that it is known if it comes again. Most of them are granted one seat: then the
 * hold itself has the command's id, which says as much as a key would. */
#include <string.h>

#include "base/metrics.h"
#include "lane/lane_int.h"

/* The map's keys are 16 bytes: half of the hash, with the organization mixed in. */
static struct uuid key_id(const struct command *command)
{
    struct uuid id;
    for (size_t i = 0; i < sizeof(id.bytes); i++)
        id.bytes[i] = command->key[i] ^ command->actor.org_id.bytes[i];
    return id;
}

static bool same_body(const uint8_t *a, const uint8_t *b)
{
    return memcmp(a, b, 32) == 0;
}

/* Another node may have answered it: what that speaks of must be known here. The change feed is asked after the key was
 * found; an earlier answer of it, that the command had to wait for, may be older than the key. */
static bool knows_what_was_answered(struct lane *lane, struct command *command)
{
    if (!lane->shared)
        return true;
    if (!command->key_found) {
        command->key_found = true;
        command->fresh_needed = follow_next_number(lane);
    }
    return follow_has_reached(lane, command);
}

/* An answer names a checkout; it is answered as it is now. False: the store was asked for one that has ended. */
static bool fill_checkout(struct lane *lane, struct command *command)
{
    struct uuid id = command->result.checkout.id;
    struct hot_checkout *checkout = hot_checkout(lane->hot, &command->actor.org_id, &id);
    if (checkout != NULL) {
        answer_hot_checkout(lane, command, checkout);
        return true;
    }
    struct store_lookup *found = lane_lookup(lane, command, LOOKUP_CHECKOUT, &id);
    if (found == NULL)
        return false;
    if (found->err == ERR_OK && found->found)
        answer_checkout(lane, command, &found->checkout, found->holds, found->hold_count, found->tickets,
                        found->ticket_count);
    else
        command->result = (struct result){.err = ERR_STORE_UNAVAILABLE, .retry_after_seconds = 1};
    return true;
}

/* The store may have it further than memory: in a commit whose answer has not come. */
static bool checkout_is_busy(struct lane *lane, const struct command *command)
{
    const struct hot_checkout *checkout =
        hot_checkout(lane->hot, &command->actor.org_id, &command->result.checkout.id);
    return checkout != NULL && checkout->busy;
}

/* Whoever has the id of a command is told what became of it only if it was theirs, or they act for others. */
static bool may_see(const struct command *command)
{
    const struct result *result = &command->result;
    if (command->kind != COMMAND_ANSWER_GET || command->actor.role != ROLE_BUYER)
        return true;
    return uuid_equal(&result->user_id, &command->actor.user_id) ||
           uuid_equal(&result->for_user_id, &command->actor.user_id);
}

/* Its result was read, or not all of it could be. */
static enum decision answer_first(struct lane *lane, struct command *command, bool is_whole)
{
    bool is_read = true;
    if (!is_whole) {
        /* Another node knows an event, or its seats, that this one does not know yet. */
        if (!follow_is_fresh(lane, command))
            return DEFERRED;
        command->result = (struct result){.err = ERR_INTERNAL, .now_ms = lane->now_ms};
    } else if (!may_see(command)) {
        command->result = (struct result){.err = ERR_COMMAND_NOT_FOUND, .now_ms = lane->now_ms};
    } else if (command->result.has_checkout) {
        if (!follow_is_fresh(lane, command) || checkout_is_busy(lane, command))
            return DEFERRED;
        if (!fill_checkout(lane, command))
            return LOOKING_UP;
        is_read = command->result.err != ERR_STORE_UNAVAILABLE;
        if (!is_read && command->sent.answer != NULL) {
            /* It was done: only the rest of its answer is missing. */
            route_leave_pending(command);
            command->result.now_ms = lane->now_ms;
        }
    }
    command->sent.is_written = is_read;
    if (command->sent.is_taken) {
        counter_add(COUNTER_ORDER_REDELIVERED, 1);
        apply_again(lane, command);
    }
    lane_reply(lane, command);
    return DECIDED;
}

enum decision answer_packed(struct lane *lane, struct command *command, const void *data, size_t size)
{
    command->result = (struct result){.now_ms = lane->now_ms};
    bool is_whole = result_unpack(lane, command, data, size);
    return answer_first(lane, command, is_whole);
}

/* It cannot be known now whether it was answered before. */
static enum decision refuse_unread(struct lane *lane, struct command *command)
{
    lane_refuse(lane, command, ERR_STORE_UNAVAILABLE);
    return DECIDED;
}

static enum decision answer_granted(struct lane *lane, struct command *command,
                                    const struct store_lookup *lookup)
{
    if (!knows_what_was_answered(lane, command))
        return DEFERRED;
    command->result = (struct result){.now_ms = lane->now_ms};
    bool is_whole = result_of_hold(lane, command, &lookup->holds[0]);
    return answer_first(lane, command, is_whole);
}

bool answer_by_hold(struct lane *lane, struct command *command, enum decision *decision)
{
    const struct store_lookup *lookup = lane_lookup(lane, command, LOOKUP_HOLD, &command->sent.id);
    if (lookup == NULL)
        *decision = LOOKING_UP;
    else if (lookup->err != ERR_OK)
        *decision = refuse_unread(lane, command);
    else if (lookup->found)
        *decision = answer_granted(lane, command, lookup);
    else
        return false;
    return true;
}

static enum decision answer_kept(struct lane *lane, struct command *command,
                                 const struct store_lookup *lookup)
{
    if (!same_body(lookup->body, command->body)) {
        command->result = (struct result){.err = ERR_IDEMPOTENCY_KEY_REUSED, .now_ms = lane->now_ms};
        lane_reply(lane, command);
        return DECIDED;
    }
    if (!knows_what_was_answered(lane, command))
        return DEFERRED;
    enum decision decision = answer_packed(lane, command, lookup->result, lookup->result_size);
    if (decision == DECIDED)
        counter_add(COUNTER_IDEMPOTENT_REPLAYS, 1);
    return decision;
}

/* A key that was made of the command's own id can be there only if the command was decided before. */
static bool is_new(const struct command *command)
{
    return command->sent.is_key_made && !command->sent.may_be_again;
}

/* Does it write the command's key, or the hold that has its id? */
static bool settles(const struct step *step, const struct command *command)
{
    const struct store_unit *unit = &step->unit;
    if (unit->key != NULL && memcmp(unit->key->key, command->key, sizeof(command->key)) == 0)
        return true;
    for (const struct hold_write *hold = unit->holds; hold != NULL; hold = hold->next) {
        if (hold->insert && uuid_equal(&hold->row.id, &command->sent.id))
            return true;
    }
    return false;
}

/* A try of it whose outcome is still unknown, as its caller was told: it may yet be done, or refused, and the store does
 * not show it until it is. Two keys would be in each other's way; a key and a hold are not. */
static bool is_in_limbo(const struct lane *lane, const struct command *command)
{
    LIST_FOR_EACH(batch_node, &lane->at_store) {
        const struct lane_batch *batch = CONTAINER_OF(batch_node, const struct lane_batch, node);
        if (!batch->told)
            continue;
        LIST_FOR_EACH(node, &batch->steps) {
            if (settles(CONTAINER_OF(node, const struct step, node), command))
                return true;
        }
    }
    return false;
}

enum decision key_check(struct lane *lane, struct command *command, bool *fresh)
{
    *fresh = false;
    struct uuid id = key_id(command);
    struct command *first = map_get(&lane->keys, &id);
    /* One that came again was asked for long ago: nobody is refused because of it, but answered when it is settled. But a
     * payment may take long. */
    if (first != NULL && first != command && first->sent.may_be_again &&
        first->kind != COMMAND_CHECKOUT_COMPLETE)
        return DEFERRED;
    if (first != NULL && first != command) {
        bool same = same_body(first->body, command->body);
        command->result = (struct result){.err = same ? ERR_REQUEST_IN_PROGRESS : ERR_IDEMPOTENCY_KEY_REUSED,
                                          .now_ms = lane->now_ms};
        lane_reply(lane, command);
        return DECIDED;
    }
    if (first == NULL)
        map_put(&lane->keys, &id, command);
    *fresh = is_new(command);
    if (*fresh)
        return DECIDED;
    enum decision decision;
    if (command_names_its_hold(command) && is_in_limbo(lane, command)) {
        lane_lookups_forget(command);
        return DEFERRED;
    }
    if (command_names_its_hold(command) && answer_by_hold(lane, command, &decision))
        return decision;
    struct store_lookup *lookup = lane_lookup(lane, command, LOOKUP_KEY, NULL);
    if (lookup == NULL)
        return LOOKING_UP;
    if (lookup->err != ERR_OK)
        return refuse_unread(lane, command);
    if (lookup->found)
        return answer_kept(lane, command, lookup);
    *fresh = true;
    return DECIDED;
}

void key_done(struct lane *lane, struct command *command)
{
    struct uuid id = key_id(command);
    if (map_get(&lane->keys, &id) != command)
        return;
    map_remove(&lane->keys, &id);
    if (command->sent.may_be_again)
        lane->progress = true; /* somebody may wait for it */
}

struct key_write *key_write(struct step *step, struct command *command)
{
    struct key_write *write = ARENA_NEW(step_arena(step), struct key_write);
    write->org_id = command->actor.org_id;
    memcpy(write->key, command->key, sizeof(write->key));
    memcpy(write->body, command->body, sizeof(write->body));
    write->result = result_pack(command, step_arena(step), &write->result_size);
    write->created_ms = step->batch->lane->now_ms;
    write->is_new = is_new(command);
    return write;
}
