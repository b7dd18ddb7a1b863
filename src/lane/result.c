/* SPDX-License-Identifier: Apache-2.0
 * Results as they are kept with an Idempotency-Key: codes, ids and times, never
 * bodies. Packed in the byte order of the machine that wrote them, behind a
 * version; of a checkout only its id is kept, and it is answered as it is now.
 * Reading checks every length: a damaged row gives an error, not a crash. */
#include <string.h>

#include "base/bytes.h"
#include "lane/lane_int.h"

enum { PACKED_SIZE = 500 };
enum { RESULT_VERSION = 2, RESULT_VERSION_BEFORE = 1 /* without the asker */ };

struct packed_head {
    uint8_t version;
    uint8_t disabled;
    uint8_t has_checkout;
    uint8_t has_explanation;
    int32_t err;
    int32_t status;
    int32_t hold_count;
    int32_t failure_count;
    int32_t stranded_count;
    int32_t seat_id_count;
    struct uuid event_id;
    struct uuid id;
    struct uuid checkout_id;
    struct best_explanation explanation;
    int64_t retry_after_seconds;
    int64_t counts[3];
    int64_t now_ms; /* of the first answer: the second counts its seconds from there too */
};

struct packed_hold {
    struct uuid id, event_id, seat_id, user_id, checkout_id;
    int32_t state, reason, source;
    int64_t price_cents, created_ms, held_until_ms, ended_ms;
};

struct packed_asker { /* whose command it was, and what it asked for */
    int32_t kind, several;
    struct uuid user_id, for_user_id;
};

struct packed_failure {
    struct uuid id;
    int32_t err, state;
    int64_t expires_ms;
};

static void pack_head(const struct result *result, struct buf *out)
{
    struct packed_head head;
    memset(&head, 0, sizeof(head)); /* padding too: what is stored is deterministic */
    head.version = RESULT_VERSION;
    head.disabled = result->disabled;
    head.has_checkout = result->has_checkout;
    head.has_explanation = result->has_explanation;
    head.err = (int32_t)result->err;
    head.status = result->status;
    head.hold_count = result->hold_count;
    head.failure_count = result->failure_count;
    head.stranded_count = result->stranded_count;
    head.seat_id_count = result->seat_id_count;
    head.event_id = result->event_id;
    head.id = result->id;
    head.checkout_id = result->has_checkout ? result->checkout.id : head.checkout_id;
    head.explanation = result->explanation;
    head.retry_after_seconds = result->retry_after_seconds;
    memcpy(head.counts, result->counts, sizeof(head.counts));
    head.now_ms = result->now_ms;
    buf_put(out, &head, sizeof(head));
}

const void *result_pack(const struct command *command, struct arena *arena, size_t *size)
{
    const struct result *result = &command->result;
    struct buf out;
    buf_init(&out);
    (void)buf_reserve(&out, PACKED_SIZE); /* of most, at once */
    pack_head(result, &out);
    for (int32_t i = 0; i < result->hold_count; i++) {
        const struct hold_row *row = &result->holds[i].row;
        struct packed_hold hold;
        memset(&hold, 0, sizeof(hold));
        hold.id = row->id;
        hold.event_id = row->event_id;
        hold.seat_id = row->seat_id;
        hold.user_id = row->user_id;
        hold.checkout_id = row->checkout_id;
        hold.state = (int32_t)row->state;
        hold.reason = (int32_t)row->reason;
        hold.source = (int32_t)row->source;
        hold.price_cents = row->price_cents;
        hold.created_ms = row->created_ms;
        hold.held_until_ms = row->held_until_ms;
        hold.ended_ms = row->ended_ms;
        buf_put(&out, &hold, sizeof(hold));
        bytes_put_text(&out, row->cart_token);
    }
    for (int32_t i = 0; i < result->failure_count; i++) {
        const struct seat_failure *from = &result->failures[i];
        struct packed_failure failure = {.id = from->id,
                                         .err = (int32_t)from->err,
                                         .state = (int32_t)from->state,
                                         .expires_ms = from->expires_ms};
        buf_put(&out, &failure, sizeof(failure));
    }
    buf_put(&out, result->stranded, sizeof(struct uuid) * (size_t)result->stranded_count);
    buf_put(&out, result->seat_ids, sizeof(struct uuid) * (size_t)result->seat_id_count);
    bytes_put_text(&out, result->message);
    struct packed_asker asker = {
        .kind = (int32_t)command->kind,
        .several = command->kind == COMMAND_HOLD_SEATS && command->hold_seats.several,
        .user_id = command->actor.user_id,
        .for_user_id = command->actor.for_user_id,
    };
    buf_put(&out, &asker, sizeof(asker));
    CHECK(buf_ok(&out));
    void *copy = arena_copy(arena, out.data, out.size);
    *size = out.size;
    buf_deinit(&out);
    return copy;
}

static bool in_range(int32_t value, int32_t count)
{
    return value >= 0 && value < count;
}

static bool unpack_holds(struct lane *lane, struct command *command, struct bytes *reader, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        struct packed_hold hold;
        const char *cart_token;
        if (!bytes_take(reader, &hold, sizeof(hold)) || !bytes_take_text(reader, command->arena, &cart_token))
            return false;
        if (!in_range(hold.state, HOLD_STATE_COUNT) || !in_range(hold.reason, END_REASON_COUNT) ||
            !in_range(hold.source, HOLD_SOURCE_COUNT))
            return false;
        struct hot_event *event = hot_event(lane->hot, &command->actor.org_id, &hold.event_id);
        int32_t index = event != NULL && event->map != NULL ? seatmap_find(event->map, &hold.seat_id) : -1;
        if (index < 0)
            return false;
        struct hold_row row = {
            .org_id = command->actor.org_id,
            .event_id = hold.event_id,
            .id = hold.id,
            .seat_id = hold.seat_id,
            .user_id = hold.user_id,
            .checkout_id = hold.checkout_id,
            .cart_token = cart_token,
            .state = (enum hold_state)hold.state,
            .reason = (enum end_reason)hold.reason,
            .source = (enum hold_source)hold.source,
            .price_cents = hold.price_cents,
            .created_ms = hold.created_ms,
            .held_until_ms = hold.held_until_ms,
            .ended_ms = hold.ended_ms,
        };
        answer_add_hold(command, event, index, &row, count);
    }
    return true;
}

static bool unpack_failures(struct command *command, struct bytes *reader, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        struct packed_failure packed;
        if (!bytes_take(reader, &packed, sizeof(packed)) || !in_range(packed.state, SEAT_STATE_COUNT))
            return false;
        struct seat_failure *failure = answer_add_failure(command, &packed.id, (enum err)packed.err, count);
        failure->state = (enum seat_state)packed.state;
        failure->expires_ms = packed.expires_ms;
    }
    return true;
}

static bool unpack_ids(struct command *command, struct bytes *reader, int32_t count, struct uuid **ids,
                       int32_t *out)
{
    if (count < 0 || reader->left / sizeof(struct uuid) < (size_t)count)
        return false;
    *ids = ARENA_ARRAY(command->arena, struct uuid, count + 1);
    *out = count;
    return bytes_take(reader, *ids, sizeof(struct uuid) * (size_t)count);
}

static bool unpack_asker(struct result *result, struct bytes *reader)
{
    struct packed_asker asker;
    if (!bytes_take(reader, &asker, sizeof(asker)) || !in_range(asker.kind, COMMAND_KIND_COUNT))
        return false;
    result->kind = (enum command_kind)asker.kind;
    result->several = asker.several != 0;
    result->user_id = asker.user_id;
    result->for_user_id = asker.for_user_id;
    return true;
}

bool result_of_hold(struct lane *lane, struct command *command, const struct hold_row *row)
{
    struct hot_event *event = hot_event(lane->hot, &row->org_id, &row->event_id);
    int32_t index = event != NULL && event->map != NULL ? seatmap_find(event->map, &row->seat_id) : -1;
    if (index < 0)
        return false;
    /* As it was when it was answered; but for its time, if it was extended since. */
    struct hold_row first = *row;
    first.state = HOLD_ACTIVE;
    first.reason = END_NONE;
    first.ended_ms = 0;
    first.checkout_id = (struct uuid){0};
    first.notes = NULL;
    answer_add_hold(command, event, index, &first, 1);
    struct result *result = &command->result;
    result->status = 201;
    result->now_ms = row->created_ms;
    result->kind = COMMAND_HOLD_SEATS;
    result->user_id = result->for_user_id = row->user_id;
    return true;
}

bool result_unpack(struct lane *lane, struct command *command, const void *data, size_t size)
{
    struct bytes reader = {.data = data, .left = size};
    struct packed_head head;
    if (!bytes_take(&reader, &head, sizeof(head)) ||
        (head.version != RESULT_VERSION && head.version != RESULT_VERSION_BEFORE))
        return false;
    if (head.hold_count < 0 || (size_t)head.hold_count > size || head.failure_count < 0 ||
        (size_t)head.failure_count > size || !in_range(*(const uint8_t *)&head.explanation.adjacent, 2))
        return false;
    struct result *result = &command->result;
    result->err = (enum err)head.err;
    result->status = head.status;
    result->disabled = head.disabled;
    result->has_checkout = head.has_checkout;
    result->checkout.id = head.checkout_id;
    result->has_explanation = head.has_explanation;
    result->explanation = head.explanation;
    result->retry_after_seconds = head.retry_after_seconds;
    memcpy(result->counts, head.counts, sizeof(head.counts));
    result->now_ms = head.now_ms;
    if (!unpack_holds(lane, command, &reader, head.hold_count) ||
        !unpack_failures(command, &reader, head.failure_count) ||
        !unpack_ids(command, &reader, head.stranded_count, &result->stranded, &result->stranded_count) ||
        !unpack_ids(command, &reader, head.seat_id_count, &result->seat_ids, &result->seat_id_count) ||
        !bytes_take_text(&reader, command->arena, &result->message))
        return false;
    result->event_id = head.event_id;
    result->id = head.id;
    return (head.version == RESULT_VERSION_BEFORE || unpack_asker(result, &reader)) && reader.left == 0;
}
