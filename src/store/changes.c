/* SPDX-License-Identifier: Apache-2.0
 * Packing and unpacking of change rows; changes.h has the format. Packed by
 * the writing thread for each unit that was written, before the commit; read
 * by whoever follows the feed.
 *
 * Invariants: (1) what is packed unpacks to the same rows, but for the secrets
 * that are left out. (2) No input makes the reader read outside its bytes,
 * loop, or hand out a value that no enum has. (3) The order of records is the
 * order of units, and inside a unit marks, seats, holds, checkouts, tickets.
 *
 * It deliberately carries whole rows and no differences: a reader that missed
 * a row needs only the newest one of each seat. */
#include "store/changes.h"

#include <endian.h>
#include <string.h>

enum {
    RECORD_HEAD_SIZE = 5, /* kind and length */
    CURRENCY_SIZE = 4,
};
enum { FLAG_INSERTED = 1, FLAG_EXTENDED = 2, FLAG_MOVED = 4 };
#define TEXT_NONE UINT32_MAX /* the length of a text that is NULL */

/* ---- Packing ---- */

static void put_u8(struct buf *out, unsigned value)
{
    uint8_t byte = (uint8_t)value;
    buf_put(out, &byte, 1);
}

static void put_u32(struct buf *out, uint32_t value)
{
    value = htole32(value);
    buf_put(out, &value, sizeof(value));
}

static void put_i64(struct buf *out, int64_t value)
{
    uint64_t bits = htole64((uint64_t)value);
    buf_put(out, &bits, sizeof(bits));
}

static void put_uuid(struct buf *out, const struct uuid *uuid)
{
    buf_put(out, uuid->bytes, sizeof(uuid->bytes));
}

static void put_text(struct buf *out, const char *text)
{
    if (text == NULL) {
        put_u32(out, TEXT_NONE);
        return;
    }
    size_t length = strlen(text);
    put_u32(out, (uint32_t)length);
    buf_put(out, text, length);
}

static size_t record_head(struct buf *out, enum change_kind kind)
{
    put_u8(out, kind);
    size_t at = out->size;
    put_u32(out, 0);
    return at;
}

static void record_close(struct buf *out, size_t at)
{
    if (!buf_ok(out))
        return;
    uint32_t length = htole32((uint32_t)(out->size - at - sizeof(length)));
    memcpy(out->data + at, &length, sizeof(length));
}

/* Begins a record and returns where its length will be written. */
static size_t record_open(struct changes_packer *packer, enum change_kind kind)
{
    struct buf *out = packer->out;
    if (out->size == 0) {
        put_u8(out, CHANGES_VERSION);
        size_t at = record_head(out, CHANGE_NODE);
        put_uuid(out, &packer->node_id);
        record_close(out, at);
    }
    return record_head(out, kind);
}

static void pack_scope(struct changes_packer *packer, const struct uuid *org_id, const struct uuid *event_id)
{
    if (uuid_equal(&packer->org_id, org_id) && uuid_equal(&packer->event_id, event_id))
        return;
    packer->org_id = *org_id;
    packer->event_id = *event_id;
    size_t at = record_open(packer, CHANGE_SCOPE);
    put_uuid(packer->out, org_id);
    put_uuid(packer->out, event_id);
    record_close(packer->out, at);
}

static void pack_seat(struct changes_packer *packer, const struct seat_row *row)
{
    struct buf *out = packer->out;
    pack_scope(packer, &row->org_id, &row->event_id);
    size_t at = record_open(packer, CHANGE_SEAT);
    put_uuid(out, &row->id);
    put_u32(out, (uint32_t)row->index);
    put_u32(out, (uint32_t)row->version);
    put_u8(out, row->state);
    put_uuid(out, &row->hold_id);
    put_uuid(out, &row->ticket_id);
    put_i64(out, row->held_until_ms);
    put_i64(out, row->locked_ms);
    record_close(out, at);
}

static void pack_hold(struct changes_packer *packer, const struct hold_write *write)
{
    const struct hold_row *row = &write->row;
    struct buf *out = packer->out;
    pack_scope(packer, &row->org_id, &row->event_id);
    size_t at = record_open(packer, CHANGE_HOLD);
    put_u8(out, (write->insert ? FLAG_INSERTED : 0u) | (write->extended ? FLAG_EXTENDED : 0u));
    put_uuid(out, &row->id);
    put_uuid(out, &row->seat_id);
    put_uuid(out, &row->user_id);
    put_uuid(out, &row->checkout_id);
    put_text(out, row->cart_token);
    put_u8(out, row->state);
    put_u8(out, row->reason);
    put_u8(out, row->source);
    put_i64(out, row->price_cents);
    put_i64(out, row->created_ms);
    put_i64(out, row->held_until_ms);
    put_i64(out, row->ended_ms);
    put_text(out, row->notes);
    record_close(out, at);
}

static void pack_checkout(struct changes_packer *packer, const struct checkout_write *write)
{
    const struct checkout_row *row = &write->row;
    struct buf *out = packer->out;
    pack_scope(packer, &row->org_id, &row->event_id);
    size_t at = record_open(packer, CHANGE_CHECKOUT);
    put_u8(out, (write->insert ? FLAG_INSERTED : 0u) | (write->moved ? FLAG_MOVED : 0u));
    put_uuid(out, &row->id);
    put_uuid(out, &row->user_id);
    put_u8(out, row->state);
    put_u8(out, row->refund);
    put_u8(out, row->reason);
    buf_put(out, row->currency, CURRENCY_SIZE);
    put_i64(out, row->total_cents);
    put_i64(out, row->created_ms);
    put_i64(out, row->expires_ms);
    put_i64(out, row->paying_since_ms);
    put_i64(out, row->payment_deadline_ms);
    put_i64(out, row->ended_ms);
    put_text(out, row->notes);
    put_u32(out, (uint32_t)row->version);
    put_uuid(out, &row->payer);
    put_i64(out, row->payer_until_ms);
    record_close(out, at);
}

static void pack_ticket(struct changes_packer *packer, const struct ticket_row *row, bool inserted)
{
    struct buf *out = packer->out;
    pack_scope(packer, &row->org_id, &row->event_id);
    size_t at = record_open(packer, CHANGE_TICKET);
    put_u8(out, inserted);
    put_uuid(out, &row->id);
    put_uuid(out, &row->seat_id);
    put_uuid(out, &row->hold_id);
    put_uuid(out, &row->checkout_id);
    put_uuid(out, &row->user_id);
    put_i64(out, row->price_cents);
    put_i64(out, row->created_ms);
    put_i64(out, row->refunded_ms);
    record_close(out, at);
}

static void pack_user(struct changes_packer *packer, const struct user_write *write)
{
    struct buf *out = packer->out;
    size_t at = record_open(packer, CHANGE_USER);
    put_uuid(out, &write->row.org_id);
    put_uuid(out, &write->row.id);
    put_u8(out, write->seen);
    put_u8(out, write->row.disabled);
    put_i64(out, write->row.created_ms);
    record_close(out, at);
}

static void pack_mark(struct changes_packer *packer, enum change_kind kind, const struct uuid *org_id,
                      const struct uuid *id)
{
    size_t at = record_open(packer, kind);
    put_uuid(packer->out, org_id);
    put_uuid(packer->out, id);
    record_close(packer->out, at);
}

void changes_pack_begin(struct changes_packer *packer, struct buf *out, const struct uuid *node_id)
{
    *packer = (struct changes_packer){.out = out, .node_id = *node_id};
}

void changes_pack_unit(struct changes_packer *packer, const struct store_unit *unit)
{
    for (const struct org_write *w = unit->orgs; w != NULL; w = w->next)
        pack_mark(packer, CHANGE_ORGANIZATION, &w->row.id, &w->row.id);
    for (const struct user_write *w = unit->users; w != NULL; w = w->next)
        pack_user(packer, w);
    for (const struct event_write *w = unit->events; w != NULL; w = w->next)
        pack_mark(packer, CHANGE_EVENT, &w->row.org_id, &w->row.id);
    for (const struct block_write *w = unit->blocks; w != NULL; w = w->next)
        pack_mark(packer, CHANGE_EVENT, &w->row.org_id, &w->row.event_id);
    for (const struct layout_write *w = unit->layouts; w != NULL; w = w->next)
        pack_mark(packer, CHANGE_LAYOUT, &w->org_id, &w->event_id);
    for (const struct seat_write *w = unit->seats; w != NULL; w = w->next)
        pack_seat(packer, &w->row);
    for (const struct hold_write *w = unit->holds; w != NULL; w = w->next)
        pack_hold(packer, w);
    for (const struct checkout_write *w = unit->checkouts; w != NULL; w = w->next)
        pack_checkout(packer, w);
    for (const struct ticket_write *w = unit->tickets; w != NULL; w = w->next)
        pack_ticket(packer, &w->row, w->insert);
}

/* ---- Reading: a cursor over one record; running past its end sticks. ---- */

struct cursor {
    const uint8_t *data;
    size_t size;
    size_t at;
    bool failed;
};

static const uint8_t *take(struct cursor *cursor, size_t size)
{
    if (cursor->failed || size > cursor->size - cursor->at) {
        cursor->failed = true;
        return NULL;
    }
    const uint8_t *data = cursor->data + cursor->at;
    cursor->at += size;
    return data;
}

static uint8_t take_u8(struct cursor *cursor)
{
    const uint8_t *data = take(cursor, 1);
    return data != NULL ? data[0] : 0;
}

static uint32_t take_u32(struct cursor *cursor)
{
    uint32_t value = 0;
    const uint8_t *data = take(cursor, sizeof(value));
    if (data != NULL)
        memcpy(&value, data, sizeof(value));
    return le32toh(value);
}

static int64_t take_i64(struct cursor *cursor)
{
    uint64_t value = 0;
    const uint8_t *data = take(cursor, sizeof(value));
    if (data != NULL)
        memcpy(&value, data, sizeof(value));
    return (int64_t)le64toh(value);
}

static struct uuid take_uuid(struct cursor *cursor)
{
    struct uuid uuid = {{0}};
    const uint8_t *data = take(cursor, sizeof(uuid.bytes));
    if (data != NULL)
        memcpy(uuid.bytes, data, sizeof(uuid.bytes));
    return uuid;
}

static const char *take_text(struct cursor *cursor, struct arena *arena)
{
    uint32_t length = take_u32(cursor);
    if (cursor->failed || length == TEXT_NONE)
        return NULL;
    const uint8_t *data = take(cursor, length);
    return data != NULL ? arena_text_n(arena, (const char *)data, length) : NULL;
}

/* A value of an enum with `count` values. */
static int take_enum(struct cursor *cursor, int count)
{
    uint8_t value = take_u8(cursor);
    if (value >= count) {
        cursor->failed = true;
        return 0;
    }
    return value;
}

static void read_seat(struct changes_reader *reader, struct cursor *cursor, struct seat_row *row)
{
    row->org_id = reader->org_id;
    row->event_id = reader->event_id;
    row->id = take_uuid(cursor);
    row->index = (int32_t)take_u32(cursor);
    row->version = (int32_t)take_u32(cursor);
    row->state = (enum seat_state)take_enum(cursor, SEAT_STATE_COUNT);
    row->hold_id = take_uuid(cursor);
    row->ticket_id = take_uuid(cursor);
    row->held_until_ms = take_i64(cursor);
    row->locked_ms = take_i64(cursor);
    if (row->index < 0 || row->version < 1)
        cursor->failed = true;
}

static void read_flags(struct cursor *cursor, struct change *out)
{
    unsigned flags = take_u8(cursor);
    out->inserted = flags & FLAG_INSERTED;
    out->extended = flags & FLAG_EXTENDED;
    out->moved = flags & FLAG_MOVED;
}

static void read_hold(struct changes_reader *reader, struct cursor *cursor, struct change *out)
{
    struct hold_row *row = &out->hold;
    row->org_id = reader->org_id;
    row->event_id = reader->event_id;
    read_flags(cursor, out);
    row->id = take_uuid(cursor);
    row->seat_id = take_uuid(cursor);
    row->user_id = take_uuid(cursor);
    row->checkout_id = take_uuid(cursor);
    row->cart_token = take_text(cursor, reader->arena);
    row->state = (enum hold_state)take_enum(cursor, HOLD_STATE_COUNT);
    row->reason = (enum end_reason)take_enum(cursor, END_REASON_COUNT);
    row->source = (enum hold_source)take_enum(cursor, HOLD_SOURCE_COUNT);
    row->price_cents = take_i64(cursor);
    row->created_ms = take_i64(cursor);
    row->held_until_ms = take_i64(cursor);
    row->ended_ms = take_i64(cursor);
    row->notes = take_text(cursor, reader->arena);
}

static void read_checkout(struct changes_reader *reader, struct cursor *cursor, struct change *out)
{
    struct checkout_row *row = &out->checkout;
    row->org_id = reader->org_id;
    row->event_id = reader->event_id;
    read_flags(cursor, out);
    row->id = take_uuid(cursor);
    row->user_id = take_uuid(cursor);
    row->state = (enum checkout_state)take_enum(cursor, CHECKOUT_STATE_COUNT);
    row->refund = (enum refund_state)take_enum(cursor, REFUND_STATE_COUNT);
    row->reason = (enum end_reason)take_enum(cursor, END_REASON_COUNT);
    const uint8_t *currency = take(cursor, CURRENCY_SIZE);
    if (currency != NULL)
        memcpy(row->currency, currency, CURRENCY_SIZE - 1);
    row->total_cents = take_i64(cursor);
    row->created_ms = take_i64(cursor);
    row->expires_ms = take_i64(cursor);
    row->paying_since_ms = take_i64(cursor);
    row->payment_deadline_ms = take_i64(cursor);
    row->ended_ms = take_i64(cursor);
    row->notes = take_text(cursor, reader->arena);
    row->version = (int32_t)take_u32(cursor);
    row->payer = take_uuid(cursor);
    row->payer_until_ms = take_i64(cursor);
    if (row->version < 1)
        cursor->failed = true;
}

static void read_ticket(struct changes_reader *reader, struct cursor *cursor, struct change *out)
{
    struct ticket_row *row = &out->ticket;
    row->org_id = reader->org_id;
    row->event_id = reader->event_id;
    out->inserted = take_u8(cursor) != 0;
    row->id = take_uuid(cursor);
    row->seat_id = take_uuid(cursor);
    row->hold_id = take_uuid(cursor);
    row->checkout_id = take_uuid(cursor);
    row->user_id = take_uuid(cursor);
    row->price_cents = take_i64(cursor);
    row->created_ms = take_i64(cursor);
    row->refunded_ms = take_i64(cursor);
}

static void read_user(struct cursor *cursor, struct change *out)
{
    out->user.org_id = take_uuid(cursor);
    out->user.id = take_uuid(cursor);
    out->seen = take_u8(cursor) != 0;
    out->user.disabled = take_u8(cursor) != 0;
    out->user.created_ms = take_i64(cursor);
}

/* Reads one record's bytes. False if it is not one to hand out. */
static bool read_record(struct changes_reader *reader, unsigned kind, struct cursor *cursor,
                        struct change *out)
{
    memset(out, 0, sizeof(*out));
    out->kind = (enum change_kind)kind;
    switch (kind) {
    case CHANGE_SCOPE:
        reader->org_id = take_uuid(cursor);
        reader->event_id = take_uuid(cursor);
        return false;
    case CHANGE_SEAT:
        read_seat(reader, cursor, &out->seat);
        return true;
    case CHANGE_HOLD:
        read_hold(reader, cursor, out);
        return true;
    case CHANGE_CHECKOUT:
        read_checkout(reader, cursor, out);
        return true;
    case CHANGE_TICKET:
        read_ticket(reader, cursor, out);
        return true;
    case CHANGE_USER:
        read_user(cursor, out);
        return true;
    case CHANGE_ORGANIZATION:
    case CHANGE_EVENT:
    case CHANGE_LAYOUT:
        out->mark.org_id = take_uuid(cursor);
        out->mark.id = take_uuid(cursor);
        return true;
    default: /* of a newer writer */
        return false;
    }
}

void changes_read_begin(struct changes_reader *reader, const void *data, size_t size, struct arena *arena)
{
    *reader = (struct changes_reader){.data = data, .size = size, .arena = arena};
    if (size == 0)
        return;
    if (reader->data[0] != CHANGES_VERSION)
        reader->failed = true;
    reader->at = 1;
    /* It is the first record, so that a node can leave its own changes unread. */
    size_t size_of_node = RECORD_HEAD_SIZE + sizeof(reader->node_id.bytes);
    if (size >= 1 + size_of_node && reader->data[1] == CHANGE_NODE)
        memcpy(reader->node_id.bytes, reader->data + 1 + RECORD_HEAD_SIZE, sizeof(reader->node_id.bytes));
}

bool changes_read_next(struct changes_reader *reader, struct change *out)
{
    while (!reader->failed && reader->at < reader->size) {
        struct cursor head = {.data = reader->data + reader->at, .size = reader->size - reader->at};
        unsigned kind = take_u8(&head);
        uint32_t length = take_u32(&head);
        const uint8_t *data = take(&head, length);
        if (data == NULL) {
            reader->failed = true;
            return false;
        }
        reader->at += RECORD_HEAD_SIZE + length;
        struct cursor record = {.data = data, .size = length};
        bool wanted = read_record(reader, kind, &record, out);
        if (record.failed) {
            reader->failed = true;
            return false;
        }
        if (wanted)
            return true;
    }
    return false;
}
