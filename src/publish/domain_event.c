/* SPDX-License-Identifier: Apache-2.0
 * One change of the feed made into CloudEvents.
 *
 *   hold      inserted ─▶ SeatReserved · extended ─▶ HoldExtended · ended ─▶ SeatReleased
 *   checkout  inserted ─▶ CheckoutStarted · moved ─▶ Completed, Cancelled, Failed, Expired, Refunded
 *
 * A converted hold tells nothing of its own: its checkout's completion lists
 * the tickets. Records of one command stand together in a change, seats before
 * holds before checkouts before tickets, so what belongs to a checkout is found
 * beside it.
 *
 * Pure: no clock, no network, any thread. */
#include "publish/domain_event.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/jsonw.h"
#include "base/map.h"
#include "base/text.h"
#include "store/changes.h"

static const char *const type_names[DOMAIN_EVENT_TYPE_COUNT] = {
#define DOMAIN_EVENT_NAME(name, text) [DOMAIN_##name] = text,
    DOMAIN_EVENT_MAP(DOMAIN_EVENT_NAME)
#undef DOMAIN_EVENT_NAME
};

const char *domain_event_type_name(enum domain_event_type type)
{
    CHECK(type < DOMAIN_EVENT_TYPE_COUNT);
    return type_names[type];
}

struct maker {
    const struct store_change *change;
    struct arena *arena; /* for what is given out */
    struct change *records;
    int32_t record_count;
    struct map seats; /* by id → its record: a seat changes at most once in a batch */
    struct buf body;
    struct buf named; /* ids of the seats that the event names, one after another */
    struct jsonw json;
};

/* ---- The envelope ---- */

static void put_i64(uint8_t *at, int64_t value)
{
    for (int i = 0; i < 8; i++)
        at[i] = (uint8_t)((uint64_t)value >> (8 * i));
}

/* From what was changed, and not only from the change's number: another installation counts from 1 as well. */
static struct uuid make_id(const struct maker *maker, int32_t ordinal, const struct uuid *org_id,
                           const struct uuid *entity_id)
{
    uint8_t source[56], hash[32];
    struct uuid id;

    put_i64(source, maker->change->id);
    put_i64(source + 8, maker->change->created_ms);
    put_i64(source + 16, ordinal);
    memcpy(source + 24, org_id->bytes, 16);
    memcpy(source + 40, entity_id->bytes, 16);
    sha256(source, sizeof source, hash);
    memcpy(id.bytes, hash, 16);
    id.bytes[6] = (uint8_t)((id.bytes[6] & 0x0f) | 0x80); /* version 8: made by a rule of our own */
    id.bytes[8] = (uint8_t)((id.bytes[8] & 0x3f) | 0x80);
    return id;
}

/* Up to the data, which the caller writes before it calls event_close(). */
static void event_open(struct maker *maker, struct domain_event *event, enum domain_event_type type,
                       int32_t ordinal, const struct uuid *org_id, const struct uuid *entity_id)
{
    struct jsonw *json = &maker->json;
    char text[96], org[UUID_TEXT_SIZE];

    event->type = type;
    event->org_id = *org_id;
    event->id = make_id(maker, ordinal, org_id, entity_id);
    event->time_ms = maker->change->created_ms;
    buf_clear(&maker->body);
    buf_clear(&maker->named);
    jsonw_begin(json, &maker->body);
    jsonw_object_open(json);
    jsonw_key_text(json, "specversion", "1.0");
    jsonw_key_uuid(json, "id", &event->id);
    uuid_format(org_id, org);
    snprintf(text, sizeof text, "/holdfast/organizations/%s", org);
    jsonw_key_text(json, "source", text);
    jsonw_key_text(json, "type", type_names[type]);
    jsonw_key_uuid(json, "subject", &event->key);
    jsonw_key_time(json, "time", event->time_ms);
    snprintf(text, sizeof text, "%020lld-%06d", (long long)maker->change->id, ordinal);
    jsonw_key_text(json, "sequence", text);
    jsonw_key_text(json, "datacontenttype", "application/json");
    jsonw_key(json, "data");
    jsonw_object_open(json);
    jsonw_key_uuid(json, "organization_id", org_id);
}

static void event_close(struct maker *maker, struct domain_event *event)
{
    jsonw_object_close(&maker->json);
    jsonw_object_close(&maker->json);
    CHECK(buf_ok(&maker->body));
    event->size = maker->body.size;
    event->body = arena_text_n(maker->arena, maker->body.data, maker->body.size);
    CHECK(buf_ok(&maker->named));
    event->seat_count = (int32_t)(maker->named.size / sizeof(struct uuid));
    event->seats = NULL;
    if (event->seat_count > 0)
        event->seats = arena_copy(maker->arena, maker->named.data, maker->named.size);
}

static void name_seat(struct maker *maker, const struct uuid *seat_id)
{
    jsonw_key_uuid(&maker->json, "seat_id", seat_id);
    buf_put(&maker->named, seat_id, sizeof *seat_id);
}

/* ---- Seats ---- */

static bool hold_type(const struct change *record, enum domain_event_type *type)
{
    if (record->inserted)
        *type = DOMAIN_SEAT_RESERVED;
    else if (record->extended)
        *type = DOMAIN_HOLD_EXTENDED;
    else if (record->hold.state == HOLD_EXPIRED || record->hold.state == HOLD_CANCELLED)
        *type = DOMAIN_SEAT_RELEASED;
    else
        return false;
    return true;
}

static void put_time(struct jsonw *json, const char *key, const char *unix_key, int64_t time_ms)
{
    jsonw_key_time(json, key, time_ms);
    jsonw_key_int(json, unix_key, time_ms / 1000);
}

static bool make_hold_event(struct maker *maker, const struct change *record, int32_t ordinal,
                            struct domain_event *event)
{
    const struct hold_row *row = &record->hold;
    struct jsonw *json = &maker->json;
    enum domain_event_type type;

    if (!hold_type(record, &type))
        return false;
    event->key = row->seat_id;
    event_open(maker, event, type, ordinal, &row->org_id, &row->id);
    jsonw_key_uuid(json, "event_id", &row->event_id);
    jsonw_key_uuid(json, "seat_id", &row->seat_id);
    jsonw_key_uuid(json, "hold_id", &row->id);
    jsonw_key_uuid(json, "user_id", &row->user_id);
    jsonw_key_uuid(json, "checkout_id", &row->checkout_id);
    jsonw_key_int(json, "price_cents", row->price_cents);
    if (type == DOMAIN_SEAT_RELEASED) {
        const struct change *seat = map_get(&maker->seats, &row->seat_id);
        jsonw_key_text(json, "reason", end_reason_name(row->reason));
        /* Not free again if an admin blocked it, or its owner came back for it. */
        jsonw_key_text(json, "seat_status",
                       seat_state_name(seat != NULL ? seat->seat.state : SEAT_AVAILABLE));
        jsonw_key_int(json, "held_seconds", (row->ended_ms - row->created_ms) / 1000);
    } else {
        jsonw_key_text(json, "source", hold_source_name(row->source));
        put_time(json, "held_until", "held_until_unix", row->held_until_ms);
    }
    event_close(maker, event);
    return true;
}

/* ---- Checkouts ---- */

static bool checkout_type(const struct change *record, enum domain_event_type *type)
{
    static const enum domain_event_type types[CHECKOUT_STATE_COUNT] = {
        [CHECKOUT_COMPLETED] = DOMAIN_CHECKOUT_COMPLETED, [CHECKOUT_FAILED] = DOMAIN_CHECKOUT_FAILED,
        [CHECKOUT_CANCELLED] = DOMAIN_CHECKOUT_CANCELLED, [CHECKOUT_EXPIRED] = DOMAIN_CHECKOUT_EXPIRED,
        [CHECKOUT_REFUNDED] = DOMAIN_CHECKOUT_REFUNDED,
    };
    enum checkout_state state = record->checkout.state;

    *type = record->inserted ? DOMAIN_CHECKOUT_STARTED : types[state];
    /* That a payment is under way is nobody's business but the gateway's. */
    return record->inserted ||
           (record->moved && state != CHECKOUT_PENDING_PAYMENT && state != CHECKOUT_PROCESSING);
}

/* The holds that a new checkout gathered: written by the same command, just before it. */
static void put_seats(struct maker *maker, int32_t at)
{
    const struct change *records = maker->records;
    struct jsonw *json = &maker->json;
    int32_t last = at - 1;

    while (last >= 0 && records[last].kind == CHANGE_CHECKOUT)
        last--;
    int32_t first = last;
    while (first >= 0 && records[first].kind == CHANGE_HOLD)
        first--;
    jsonw_key(json, "seats");
    jsonw_array_open(json);
    for (int32_t i = first + 1; i <= last; i++) {
        const struct hold_row *row = &records[i].hold;
        if (!uuid_equal(&row->checkout_id, &records[at].checkout.id))
            continue;
        jsonw_object_open(json);
        name_seat(maker, &row->seat_id);
        jsonw_key_uuid(json, "hold_id", &row->id);
        jsonw_key_int(json, "price_cents", row->price_cents);
        jsonw_object_close(json);
    }
    jsonw_array_close(json);
}

/* The tickets of a completed checkout: written by the same command, just after it. */
static void put_tickets(struct maker *maker, int32_t at)
{
    struct jsonw *json = &maker->json;
    int32_t i = at;

    jsonw_key(json, "tickets");
    jsonw_array_open(json);
    while (i < maker->record_count && maker->records[i].kind == CHANGE_CHECKOUT)
        i++;
    for (; i < maker->record_count && maker->records[i].kind == CHANGE_TICKET; i++) {
        const struct ticket_row *row = &maker->records[i].ticket;
        if (!uuid_equal(&row->checkout_id, &maker->records[at].checkout.id))
            continue;
        jsonw_object_open(json);
        jsonw_key_uuid(json, "ticket_id", &row->id);
        name_seat(maker, &row->seat_id);
        jsonw_key_uuid(json, "hold_id", &row->hold_id);
        jsonw_key_int(json, "price_cents", row->price_cents);
        jsonw_object_close(json);
    }
    jsonw_array_close(json);
}

static bool make_checkout_event(struct maker *maker, int32_t at, int32_t ordinal, struct domain_event *event)
{
    const struct change *record = &maker->records[at];
    const struct checkout_row *row = &record->checkout;
    struct jsonw *json = &maker->json;
    enum domain_event_type type;

    if (!checkout_type(record, &type))
        return false;
    event->key = row->id;
    event_open(maker, event, type, ordinal, &row->org_id, &row->id);
    jsonw_key_uuid(json, "event_id", &row->event_id);
    jsonw_key_uuid(json, "checkout_id", &row->id);
    jsonw_key_uuid(json, "user_id", &row->user_id);
    jsonw_key_text(json, "status", checkout_state_name(row->state));
    jsonw_key_text(json, "reason", row->reason != END_NONE ? end_reason_name(row->reason) : NULL);
    jsonw_key_text(json, "refund", refund_state_name(row->refund));
    jsonw_key_text(json, "currency", row->currency);
    jsonw_key_int(json, "total_cents", row->total_cents);
    if (type == DOMAIN_CHECKOUT_STARTED) {
        put_time(json, "expires_at", "expires_at_unix", row->expires_ms);
        put_seats(maker, at);
    } else if (type == DOMAIN_CHECKOUT_COMPLETED) {
        put_tickets(maker, at);
    }
    event_close(maker, event);
    return true;
}

/* ---- A whole change ---- */

static int32_t count_records(const struct store_change *change, struct arena *scratch)
{
    struct changes_reader reader;
    struct change record;
    int32_t count = 0;

    changes_read_begin(&reader, change->data, change->size, scratch);
    while (changes_read_next(&reader, &record))
        count++;
    return count;
}

static bool read_records(struct maker *maker, struct arena *scratch)
{
    const struct store_change *change = maker->change;
    struct changes_reader reader;
    int32_t count = count_records(change, scratch);

    arena_reset(scratch);
    maker->records = ARENA_ARRAY(scratch, struct change, count + 1);
    changes_read_begin(&reader, change->data, change->size, scratch);
    while (changes_read_next(&reader, &maker->records[maker->record_count])) {
        struct change *record = &maker->records[maker->record_count++];
        if (record->kind == CHANGE_SEAT)
            map_put(&maker->seats, &record->seat.id, record);
    }
    return !reader.failed;
}

bool domain_events_of(const struct store_change *change, struct arena *arena, struct domain_events *out)
{
    struct maker maker = {.change = change, .arena = arena};
    struct arena scratch;
    int32_t ordinal = 0; /* of holds and checkouts: what else a newer reader knows must not shift it */

    arena_init(&scratch);
    map_init(&maker.seats);
    buf_init(&maker.body);
    buf_init(&maker.named);
    bool whole = read_records(&maker, &scratch);
    *out = (struct domain_events){.list = ARENA_ARRAY(arena, struct domain_event, maker.record_count + 1)};
    for (int32_t i = 0; i < maker.record_count; i++) {
        struct domain_event *event = &out->list[out->count];
        bool made = false;
        if (maker.records[i].kind == CHANGE_HOLD)
            made = make_hold_event(&maker, &maker.records[i], ordinal++, event);
        else if (maker.records[i].kind == CHANGE_CHECKOUT)
            made = make_checkout_event(&maker, i, ordinal++, event);
        out->count += made;
    }
    buf_deinit(&maker.body);
    buf_deinit(&maker.named);
    map_deinit(&maker.seats);
    arena_deinit(&scratch);
    return whole;
}
