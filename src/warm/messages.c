/* SPDX-License-Identifier: Apache-2.0
 * Messages. Per seat, on org:{org}:event:{event}:seating:seat:held|released|sold:
 *
 *   {"event":"seat_held","seat_id":…,"expires_at":…}
 *   {"event":"seat_released","seat_id":…,"reason":…}
 *   {"event":"seat_sold","seat_id":…}
 *
 * Per event and batch, on occupancy:{org}:{event}; `node` tells a node its own:
 *
 *   {"seats":[{"event":"seat_held","seat_id":…,"hold_id":…}, …],"event_id":…,"timestamp":…,"node":…}
 *
 * and if the batch changed one seat, that seat's fields stand beside `seats`
 * as well, which makes it the message of one release or one reserve. No message
 * says who holds a seat. */
#include "warm/messages.h"

#include <string.h>

#include "warm/resp.h"

#define LITERAL(text) (text), sizeof(text) - 1

static const char seats_head[] = "{\"seats\":[";

/* What happened to the seat, as the seeds' messages call it. */
static const char *message_event(const struct warm_write *write)
{
    switch (write->kind) {
    case WARM_HELD:
        return "seat_held";
    case WARM_EXTENDED:
        return "hold_extended";
    case WARM_RELEASED:
        return write->state == SEAT_BLOCKED ? "seat_blocked" : "seat_released";
    case WARM_SOLD:
        return "seat_sold";
    default:
        return write->state == SEAT_AVAILABLE ? "seat_released"
               : write->state == SEAT_SOLD    ? "seat_sold"
               : write->state == SEAT_HELD    ? "seat_held"
                                              : "seat_blocked";
    }
}

bool message_is_due(const struct warm_write *write)
{
    return !write->repair && write->kind != WARM_UNLOCKED;
}

static void put_seat(struct buf *out, const char *event, size_t event_size, const char *seat,
                     const char *name, size_t name_size, const char *value, size_t value_size)
{
    static const char head[] = "{\"event\":\"", id[] = "\",\"seat_id\":\"", end[] = "\"}";
    resp_head(out, sizeof(head) + sizeof(id) + sizeof(end) - 3 + event_size + KEY_ID_SIZE + name_size +
                       value_size);
    buf_put(out, head, sizeof(head) - 1);
    buf_put(out, event, event_size);
    buf_put(out, id, sizeof(id) - 1);
    buf_put(out, seat, KEY_ID_SIZE);
    buf_put(out, name, name_size);
    buf_put(out, value, value_size);
    buf_put(out, end, sizeof(end) - 1);
    resp_tail(out);
}

bool message_put_seat(struct buf *out, const struct keys_event *keys, struct value_times *times,
                      const struct warm_write *write, const char *seat)
{
    static const char head[] = "*3\r\n$7\r\nPUBLISH\r\n";
    if (write->repair)
        return false;
    if (write->kind == WARM_HELD) {
        struct value_time until = value_time(times, write->held_until_ms);
        buf_put(out, head, sizeof(head) - 1);
        keys_put_seat_channel(out, keys, "held");
        put_seat(out, LITERAL("seat_held"), seat, LITERAL("\",\"expires_at\":\""), until.text, until.size);
        return true;
    }
    if (write->kind == WARM_SOLD || (write->kind == WARM_SEAT && write->state == SEAT_SOLD)) {
        buf_put(out, head, sizeof(head) - 1);
        keys_put_seat_channel(out, keys, "sold");
        put_seat(out, LITERAL("seat_sold"), seat, "", 0, "", 0);
        return true;
    }
    if ((write->kind == WARM_RELEASED || write->kind == WARM_SEAT) && write->state == SEAT_AVAILABLE) {
        const char *reason = write->kind == WARM_RELEASED ? end_reason_name(write->reason) : "admin_override";
        buf_put(out, head, sizeof(head) - 1);
        keys_put_seat_channel(out, keys, "released");
        put_seat(out, LITERAL("seat_released"), seat, LITERAL("\",\"reason\":\""), reason, strlen(reason));
        return true;
    }
    return false;
}

void message_begin(struct buf *message)
{
    buf_clear(message);
    buf_put(message, seats_head, sizeof(seats_head) - 1);
}

void message_add(struct buf *message, const struct warm_write *write)
{
    char id[UUID_TEXT_SIZE];
    buf_put_text(message, "{\"event\":\"");
    buf_put_text(message, message_event(write));
    uuid_format(&write->seat_id, id);
    buf_put(message, LITERAL("\",\"seat_id\":\""));
    buf_put(message, id, KEY_ID_SIZE);
    if (!uuid_is_nil(&write->hold_id)) {
        uuid_format(&write->hold_id, id);
        buf_put(message, LITERAL("\",\"hold_id\":\""));
        buf_put(message, id, KEY_ID_SIZE);
    }
    if (write->kind == WARM_RELEASED) {
        buf_put(message, LITERAL("\",\"reason\":\""));
        buf_put_text(message, end_reason_name(write->reason));
    }
    buf_put(message, LITERAL("\"},"));
}

bool message_put(struct buf *out, struct buf *message, const struct uuid *org_id, const struct uuid *event_id,
                 const char *node, struct value_times *times, int64_t now_ms)
{
    size_t begin = sizeof(seats_head) - 1, size = message->size - begin - 1; /* without the last comma */
    if (message->size == begin || !buf_ok(message))
        return false;
    bool one = memchr(message->data + begin, '}', size) == message->data + begin + size - 1;
    message->size--;
    buf_put(message, LITERAL("],"));
    if (one && buf_reserve(message, size)) {
        buf_put(message, message->data + begin + 1, size - 2); /* between its braces */
        buf_put_char(message, ',');
    }
    char event[UUID_TEXT_SIZE];
    uuid_format(event_id, event);
    struct value_time now = value_time(times, now_ms);
    buf_printf(message, "\"event_id\":\"%s\",\"timestamp\":\"%s\",\"node\":\"%s\"}", event, now.text, node);
    buf_put(out, LITERAL("*3\r\n$7\r\nPUBLISH\r\n"));
    keys_put_occupancy_channel(out, org_id, event_id);
    resp_bulk(out, message->data, message->size);
    return true;
}
