/* SPDX-License-Identifier: Apache-2.0
 * Asking for seats: one, several named ones, or the best available. All or none.
 *
 * Order of checks, as the contract has it: event, is it mine already, sale
 * window, seat, limits (block capacity, holds per user, rate, single-seat gaps).
 * A refusal that rests on something uncommitted is not given: the command waits
 * for the commit and is decided again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "base/text.h"
#include "hold/rules.h"
#include "lane/lane_int.h"

struct seat_choice {
    int32_t index;
    enum reserve_verdict verdict;
};

/* A request for seats, while it is decided. */
struct request {
    struct lane *lane;
    struct command *command;
    struct hot_event *event;
    struct hot_user *user; /* or NULL: never held anything here */
    const struct uuid *user_id;
    const char *cart_token;
    enum hold_source source;
    struct seat_choice *seats;
    int32_t count;
    int32_t grant_count; /* seats that were free */
    int32_t renew_count; /* the user's own, run out */
};

/* ---- Answers ---- */

static enum decision refuse(struct lane *lane, struct command *command, enum err err,
                            const struct uuid *event_id, const struct uuid *seat_id)
{
    static const struct uuid nil;
    if (follow_must_wait(lane, command, err))
        return DEFERRED;
    if (err == ERR_SEAT_HELD || err == ERR_SEAT_NOT_AVAILABLE || err == ERR_SEAT_NO_LONGER_AVAILABLE)
        counter_add(COUNTER_HOLD_CONFLICTS, 1);
    counter_add(COUNTER_DECIDED_HOT, 1);
    audit_failed_reserve(lane, command, event_id, seat_id != NULL ? seat_id : &nil, err);
    return lane_answer(lane, command, err);
}

static enum decision request_refuse(struct request *request, enum err err)
{
    const struct uuid *seat_id = NULL;
    if (request->count > 0)
        seat_id = &request->event->map->seat_ids[request->seats[0].index];
    return refuse(request->lane, request->command, err, &request->event->row.id, seat_id);
}

/* ---- Limits: each refuses on committed facts, or waits ---- */

enum limit { LIMIT_OK, LIMIT_WAIT, LIMIT_REFUSE };

static int32_t block_taken(const struct hot_event *event, int32_t block)
{
    int32_t counts[SEAT_STATE_COUNT];
    seatmap_block_counts(event->map, block, counts);
    return counts[SEAT_HELD] + counts[SEAT_SOLD];
}

static int32_t request_adds_to_block(const struct request *request, int32_t block)
{
    int32_t adding = 0;
    for (int32_t i = 0; i < request->count; i++) {
        bool grant = request->seats[i].verdict == RESERVE_GRANT;
        adding += grant && seatmap_row(request->event->map, request->seats[i].index)->block == block;
    }
    return adding;
}

static enum limit check_capacity(const struct request *request)
{
    struct hot_event *event = request->event;
    for (int32_t i = 0; i < request->count; i++) {
        int32_t block = seatmap_row(event->map, request->seats[i].index)->block;
        int32_t capacity = seatmap_block_info(event->map, block)->capacity;
        if (capacity >= event->map->layout->blocks[block].seat_count)
            continue; /* the seats themselves are the limit */
        int32_t adding = request_adds_to_block(request, block);
        int32_t taken = block_taken(event, block);
        if (adding == 0 || taken + event->pending_by_block[block] + adding <= capacity)
            continue;
        return taken + adding > capacity ? LIMIT_REFUSE : LIMIT_WAIT;
    }
    return LIMIT_OK;
}

static enum limit check_hold_limit(const struct request *request)
{
    const struct policy *policy = &request->event->row.policy;
    int32_t held = request->user != NULL ? request->user->hold_count : 0;
    int32_t pending = request->user != NULL ? request->user->pending_more : 0;
    if (rule_hold_limit_allows(policy, held + pending, request->grant_count))
        return LIMIT_OK;
    return rule_hold_limit_allows(policy, held, request->grant_count) ? LIMIT_WAIT : LIMIT_REFUSE;
}

static enum limit check_rate(struct request *request, int64_t *retry_ms)
{
    const struct policy *policy = &request->event->row.policy;
    struct rate_window none = {0};
    struct rate_window *window = request->user != NULL ? &request->user->rate : &none;
    int32_t pending = request->user != NULL ? request->user->pending_count : 0;
    int32_t adding = request->grant_count + request->renew_count;
    int64_t now_ms = request->lane->now_ms;
    if (rate_allows(window, policy, pending, adding, now_ms, retry_ms))
        return LIMIT_OK;
    return rate_allows(window, policy, 0, adding, now_ms, retry_ms) ? LIMIT_WAIT : LIMIT_REFUSE;
}

/* Would this leave single seats beside it that another place would not? */
static bool check_gaps(struct request *request)
{
    if (!request->event->row.policy.forbid_single_seat_gaps || request->grant_count == 0)
        return true;
    int32_t *chosen = ARENA_ARRAY(request->command->arena, int32_t, request->count);
    int32_t count = 0;
    for (int32_t i = 0; i < request->count; i++) {
        if (request->seats[i].verdict == RESERVE_GRANT)
            chosen[count++] = request->seats[i].index;
    }
    return !answer_stranded(request->command, request->event, request->event->vacant, chosen, count);
}

/* ---- Granting ---- */

/* Those who send no cart token have one per user and event: made of both, so that it is the same
 * after a restart and on every node. */
static const char *request_cart_token(struct request *request)
{
    if (request->cart_token != NULL)
        return request->cart_token;
    struct uuid ids[2] = {request->event->row.id, *request->user_id};
    uint8_t hash[32];
    sha256(ids, sizeof(ids), hash);
    struct uuid id;
    memcpy(id.bytes, hash, sizeof(id.bytes));
    char text[UUID_TEXT_SIZE];
    uuid_format(&id, text);
    return arena_text(request->command->arena, text);
}

static void grant_seat(struct request *request, struct step *step, const struct seat_choice *choice,
                       const char *cart_token)
{
    struct hot_event *event = request->event;
    int64_t now_ms = request->lane->now_ms;
    const struct layout_row *place = seatmap_row(event->map, choice->index);
    struct step_seat *seat = step_seat(step, event, choice->index, SEAT_HELD);
    struct hold_row row = {
        .org_id = event->row.org_id,
        .event_id = event->row.id,
        .id = command_names_its_hold(request->command) ? request->command->sent.id
                                                       : lane_make_id(request->lane),
        .seat_id = event->map->seat_ids[choice->index],
        .user_id = *request->user_id,
        .cart_token = cart_token,
        .state = HOLD_ACTIVE,
        .source = request->source,
        .price_cents = seatmap_block_info(event->map, place->block)->price_cents,
        .created_ms = now_ms,
        .held_until_ms = rule_hold_until(&event->row.policy, now_ms),
    };
    step_hold_new(step, &row, &event->map->blocks[place->block].id);
    seat->write.row.hold_id = row.id;
    seat->write.row.held_until_ms = row.held_until_ms;
    seat->write.row.locked_ms = now_ms;
    struct audit_row *audit = audit_hold(step, AUDIT_SEAT_RESERVED, &row);
    audit->before = "{\"status\":\"available\"}";
    audit->after = step_printf(step, "{\"status\":\"active\",\"held_until_unix\":%lld,\"source\":\"%s\"}",
                               (long long)(row.held_until_ms / 1000), hold_source_name(row.source));
    answer_add_hold(request->command, event, choice->index, &row, request->count);
    step_pend_block(step, event, place->block, choice->verdict == RESERVE_GRANT);
}

/* Locks in Redis were in its way, of holds that memory does not know. False: the store is being asked about one. */
static bool ask_about_locks(struct lane *lane, struct command *command)
{
    for (struct strange_lock *lock = command->locks; lock != NULL; lock = lock->next) {
        if (lock->has_ended)
            continue; /* and stays so */
        const struct store_lookup *lookup = lane_lookup(lane, command, LOOKUP_HOLD, &lock->hold_id);
        if (lookup == NULL)
            return false;
        lock->has_ended = lookup->err == ERR_OK && lookup->found && lookup->holds[0].state != HOLD_ACTIVE;
    }
    return true;
}

static enum decision grant(struct request *request)
{
    struct lane *lane = request->lane;
    struct command *command = request->command;
    struct hot_event *event = request->event;
    if (!ask_about_locks(lane, command))
        return LOOKING_UP;
    for (int32_t i = 0; i < request->count; i++) {
        if (request->seats[i].verdict == RESERVE_RENEW &&
            end_hold_must_wait(event->seats[request->seats[i].index].hold))
            return DEFERRED;
    }
    request->user = hot_user_make(lane->hot, event, request->user_id);
    const char *cart_token = request_cart_token(request);
    struct step *step = step_begin(lane, command);
    step_check_event(step, event);
    command->result.status = 201;
    if (directory_user(lane->hot->directory, &event->row.org_id, request->user_id) == USER_UNKNOWN)
        step_user_seen(step, &event->row.org_id, request->user_id);
    for (int32_t i = 0; i < request->count; i++) {
        const struct seat_choice *choice = &request->seats[i];
        struct hot_hold *hold = event->seats[choice->index].hold;
        if (choice->verdict == RESERVE_MINE) {
            struct hold_row row;
            hot_hold_row(hold, &row);
            answer_add_hold(command, event, choice->index, &row, request->count);
            continue;
        }
        if (choice->verdict == RESERVE_RENEW)
            end_hold_keep_seat(step, hold, END_TTL_EXPIRED, NULL); /* the new hold writes the seat */
        grant_seat(request, step, choice, cart_token);
    }
    step_pend_user(step, request->user, request->grant_count + request->renew_count, request->grant_count);
    command->result.now_ms = lane->now_ms;
    step_submit(step);
    return DECIDED;
}

static enum decision check_limits_and_grant(struct request *request)
{
    enum limit capacity = check_capacity(request);
    if (capacity != LIMIT_OK)
        return capacity == LIMIT_WAIT ? DEFERRED : request_refuse(request, ERR_BLOCK_AT_CAPACITY);
    enum limit holds = check_hold_limit(request);
    if (holds != LIMIT_OK)
        return holds == LIMIT_WAIT ? DEFERRED : request_refuse(request, ERR_HOLD_LIMIT_REACHED);
    int64_t retry_ms = 0;
    enum limit rate = check_rate(request, &retry_ms);
    if (rate == LIMIT_WAIT)
        return DEFERRED;
    if (rate == LIMIT_REFUSE) {
        request->command->result.retry_after_seconds = (retry_ms + 999) / 1000;
        return request_refuse(request, ERR_RATE_LIMITED);
    }
    return grant(request);
}

/* ---- Named seats ---- */

static struct reserve_decision ask_rule(const struct request *request, int32_t index)
{
    const struct hot_event *event = request->event;
    struct holder holder, *held = NULL;
    const struct hot_hold *hold = event->seats[index].hold;
    if (hold != NULL) {
        holder = (struct holder){.user_id = hold->user->user_id,
                                 .held_until_ms = hold->held_until_ms,
                                 .paying = hot_hold_paying(hold)};
        held = &holder;
    }
    return rule_reserve(seatmap_state(event->map, index), held, request->user_id, &event->row.policy,
                        request->lane->now_ms);
}

/* Asks the rule for every seat. False: one of them is in an uncommitted batch. */
static bool ask_seats(struct request *request, const struct uuid *seat_ids, int32_t count)
{
    struct command *command = request->command;
    command->result.failure_count = 0;
    request->seats = ARENA_ARRAY(command->arena, struct seat_choice, count);
    for (int32_t i = 0; i < count; i++) {
        int32_t index = seatmap_find(request->event->map, &seat_ids[i]);
        if (index < 0) {
            answer_add_failure(command, &seat_ids[i], ERR_SEAT_NOT_FOUND, count);
            continue;
        }
        if (request->event->seats[index].busy)
            return false;
        struct reserve_decision decision = ask_rule(request, index);
        if (decision.verdict == RESERVE_REFUSE) {
            struct seat_failure *failure = answer_add_failure(command, &seat_ids[i], decision.err, count);
            failure->state = seatmap_state(request->event->map, index);
            failure->expires_ms = decision.expires_ms;
            continue;
        }
        request->seats[request->count++] = (struct seat_choice){.index = index, .verdict = decision.verdict};
        request->grant_count += decision.verdict == RESERVE_GRANT;
        request->renew_count += decision.verdict == RESERVE_RENEW;
    }
    return true;
}

static enum decision answer_mine(struct request *request)
{
    struct command *command = request->command;
    if (!follow_is_fresh(request->lane, command))
        return DEFERRED; /* it may have been given back through another node */
    for (int32_t i = 0; i < request->count; i++) {
        struct hold_row row;
        int32_t index = request->seats[i].index;
        hot_hold_row(request->event->seats[index].hold, &row);
        answer_add_hold(command, request->event, index, &row, request->count);
    }
    /* It may be this very command's, by a try whose outcome was unknown. */
    bool is_its_own = uuid_equal(&command->result.holds[0].row.id, &command->sent.id);
    command->result.status = is_its_own ? 201 : 200;
    counter_add(COUNTER_DECIDED_HOT, 1);
    return lane_answer(request->lane, command, ERR_OK);
}

static void count_attempt(const struct lane *lane, struct command *command, int32_t seat_count)
{
    if (!command->counted)
        counter_add(COUNTER_HOLD_ATTEMPTS_EMBEDDED + lane_method(lane), (uint64_t)seat_count);
    command->counted = true;
}

/* What both ways of asking begin with. ERR_OK: go on. */
static enum err request_begin(struct request *request, const struct uuid *event_id)
{
    struct command *command = request->command;
    request->user_id = &command->actor.for_user_id;
    request->event = hot_event(request->lane->hot, &command->actor.org_id, event_id);
    if (request->event == NULL)
        return ERR_EVENT_NOT_FOUND;
    if (directory_user(request->lane->hot->directory, &command->actor.org_id, request->user_id) ==
        USER_DISABLED)
        return ERR_FORBIDDEN;
    request->user = hot_user(request->lane->hot, request->event, request->user_id);
    return event_check_open(&request->event->row);
}

enum decision decide_hold_seats(struct lane *lane, struct command *command)
{
    struct request request = {
        .lane = lane,
        .command = command,
        .cart_token = command->hold_seats.cart_token,
        .source = command->hold_seats.source,
    };
    const struct uuid *event_id = &command->hold_seats.event_id;
    const struct uuid *seat_ids = command->hold_seats.seat_ids;
    command->result = (struct result){0};
    count_attempt(lane, command, command->hold_seats.count);
    enum err err = request_begin(&request, event_id);
    if (err != ERR_OK)
        return refuse(lane, command, err, event_id, seat_ids);
    if (request.event->exclusive)
        return DEFERRED;
    if (request.event->map == NULL)
        return refuse(lane, command, ERR_SEAT_NOT_FOUND, event_id, seat_ids);
    if (!ask_seats(&request, seat_ids, command->hold_seats.count))
        return DEFERRED;
    bool all_mine = command->result.failure_count == 0 && request.grant_count + request.renew_count == 0;
    if (all_mine)
        return answer_mine(&request);
    err = event_check_window(&request.event->row, lane->now_ms);
    if (err != ERR_OK)
        return refuse(lane, command, err, event_id, seat_ids);
    if (command->result.failure_count > 0)
        return refuse(lane, command, command->result.failures[0].err, event_id,
                      &command->result.failures[0].id);
    if (command->hold_seats.several && !check_gaps(&request))
        return request_refuse(&request, ERR_WOULD_LEAVE_SINGLE_SEAT);
    return check_limits_and_grant(&request);
}

/* ---- Best available ---- */

/* The rows of the blocks asked for, in layout order. */
static struct bit_rows rows_of(struct request *request, const char *section, int32_t subsection)
{
    const struct hot_event *event = request->event;
    const struct layout *layout = event->map->layout;
    struct bit_rows rows = {.rows = event->rows, .row_count = layout->row_count};
    if (section[0] == '\0')
        return rows;
    struct bit_row *some = ARENA_ARRAY(request->command->arena, struct bit_row, layout->row_count + 1);
    rows.rows = some;
    rows.row_count = 0;
    int32_t position = 0, block;
    while ((block = seatmap_block_next(event->map, section, subsection, &position)) >= 0) {
        const struct layout_block *from = &layout->blocks[block];
        memcpy(some + rows.row_count, event->rows + from->row_first, sizeof(*some) * (size_t)from->row_count);
        rows.row_count += from->row_count;
    }
    return rows;
}

/* Seats that were tried and turned out to be locked by somebody are left to them, unless that leaves too few. */
static const uint64_t *without_avoided(struct request *request, const uint64_t *bits)
{
    const struct seatmap *map = request->event->map;
    if (request->command->avoided == NULL)
        return bits;
    uint64_t *copy =
        arena_copy(request->command->arena, bits, ((size_t)map->layout->seat_count / 64 + 1) * sizeof(*bits));
    for (const struct avoided_seat *seat = request->command->avoided; seat != NULL; seat = seat->next) {
        int32_t index = seatmap_find(map, &seat->seat_id);
        if (index >= 0)
            bit_set(copy, index, false);
    }
    return copy;
}

/* A block gives no more seats than its capacity has left, however many are free: the others are
 * not offered. `bits` itself, or a copy where a block is short. */
static const uint64_t *offered(struct request *request, const uint64_t *bits, bool with_pending,
                               int32_t quantity)
{
    const struct hot_event *event = request->event;
    const struct layout *layout = event->map->layout;
    uint64_t *copy = NULL;
    for (int32_t block = 0; block < layout->block_count; block++) {
        const struct layout_block *place = &layout->blocks[block];
        int32_t capacity = seatmap_block_info(event->map, block)->capacity;
        int32_t left =
            capacity - block_taken(event, block) - (with_pending ? event->pending_by_block[block] : 0);
        if (capacity >= place->seat_count || left >= quantity)
            continue;
        if (copy == NULL)
            copy = arena_copy(request->command->arena, bits,
                              ((size_t)layout->seat_count / 64 + 1) * sizeof(*bits));
        for (int32_t i = place->seat_first; i < place->seat_first + place->seat_count; i++) {
            if (bit_get(copy, i) && left-- <= 0)
                bit_set(copy, i, false);
        }
    }
    return copy != NULL ? copy : bits;
}

enum decision decide_hold_best(struct lane *lane, struct command *command)
{
    struct request request = {
        .lane = lane,
        .command = command,
        .cart_token = command->hold_best.cart_token,
        .source = command->hold_best.source,
    };
    int32_t quantity = command->hold_best.quantity;
    const struct uuid *event_id = &command->hold_best.event_id;
    command->result = (struct result){0};
    count_attempt(lane, command, quantity);
    enum err err = request_begin(&request, event_id);
    if (err == ERR_OK && !request.event->exclusive)
        err = event_check_window(&request.event->row, lane->now_ms);
    if (err != ERR_OK)
        return refuse(lane, command, err, event_id, NULL);
    if (request.event->exclusive)
        return DEFERRED;
    if (request.event->map == NULL)
        return refuse(lane, command, ERR_NOT_ENOUGH_SEATS, event_id, NULL);
    struct bit_rows rows = rows_of(&request, command->hold_best.section, command->hold_best.subsection);
    const uint64_t *free = offered(&request, request.event->free, true, quantity);
    int32_t chosen[HOLD_SEAT_COUNT_MAX];
    rows.free = without_avoided(&request, free);
    err = best_find(&rows, quantity, command->hold_best.adjacent, chosen, &command->result.explanation);
    if (err == ERR_NOT_ENOUGH_SEATS && rows.free != free) {
        rows.free = free;
        err = best_find(&rows, quantity, command->hold_best.adjacent, chosen, &command->result.explanation);
    }
    if (err == ERR_NOT_ENOUGH_SEATS) {
        /* Would the seats that are just being decided on have made the difference? */
        rows.free = offered(&request, request.event->vacant, false, quantity);
        struct best_explanation unused;
        bool wait = best_find(&rows, quantity, command->hold_best.adjacent, chosen, &unused) == ERR_OK;
        return wait ? DEFERRED : refuse(lane, command, err, event_id, NULL);
    }
    command->result.has_explanation = true;
    request.seats = ARENA_ARRAY(command->arena, struct seat_choice, quantity);
    for (int32_t i = 0; i < quantity; i++)
        request.seats[i] = (struct seat_choice){.index = chosen[i], .verdict = RESERVE_GRANT};
    request.count = quantity;
    request.grant_count = quantity;
    return check_limits_and_grant(&request);
}
