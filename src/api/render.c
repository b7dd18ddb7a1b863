/* SPDX-License-Identifier: Apache-2.0
 * Holds and checkouts as JSON, written straight into the answer's buffer.
 *
 * Invariants: (1) a shape is written here and nowhere else. (2) Whose a hold is
 * is written only if asked, and nobody asks for a buyer. (3) Remaining time is
 * counted from the lane's clock when it decided, so it agrees with held_until.
 *
 * Loops' threads; pure but for the atomics it reads in the seat map. It does
 * not decide what may be shown. Events are render_event.c's. */
#include "api/render.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

/* ---- Small things ---- */

static int64_t seconds_left(int64_t until_ms, int64_t now_ms)
{
    return until_ms > now_ms ? (until_ms - now_ms) / 1000 : 0;
}

void render_duration(int64_t seconds, char *out, size_t out_size)
{
    long long minutes = seconds / 60, rest = seconds % 60;
    const char *minute_end = minutes == 1 ? "" : "s", *second_end = rest == 1 ? "" : "s";
    if (minutes == 0)
        snprintf(out, out_size, "%lld second%s", rest, second_end);
    else if (rest == 0)
        snprintf(out, out_size, "%lld minute%s", minutes, minute_end);
    else
        snprintf(out, out_size, "%lld minute%s %lld second%s", minutes, minute_end, rest, second_end);
}

void render_block_label(const struct layout_block *block, char out[16])
{
    snprintf(out, 16, "%s-%d", block->section, block->subsection);
}

void render_place(const struct seatmap *map, int32_t seat_index, const char *number_key, struct jsonw *json)
{
    if (map == NULL || seat_index < 0)
        return;
    const struct layout_row *row = seatmap_row(map, seat_index);
    char label[16];
    render_block_label(&map->layout->blocks[row->block], label);
    jsonw_key_text(json, "block", label);
    jsonw_key_text(json, "block_name", seatmap_block_info(map, row->block)->name);
    jsonw_key_text(json, "row", row->label);
    jsonw_key_text(json, number_key, map->layout->seat_labels[seat_index]);
}

void render_failure_fields(const struct seat_failure *failure, int64_t now_ms, struct jsonw *json)
{
    if (failure->err == ERR_SEAT_NOT_AVAILABLE)
        jsonw_key_text(json, "current_status", seat_state_name(failure->state));
    if (failure->err == ERR_SEAT_HELD && failure->expires_ms > 0) {
        jsonw_key_time(json, "expires_at", failure->expires_ms);
        /* Rounded up: whoever waits that long does not come too early. */
        jsonw_key_int(json, "expires_in_seconds", seconds_left(failure->expires_ms + 999, now_ms));
    }
}

/* ---- Holds ---- */

static void render_hold_message(const struct hold_row *row, int64_t now_ms, struct jsonw *json)
{
    char duration[64], message[128];
    switch (row->state) {
    case HOLD_ACTIVE:
        render_duration(seconds_left(row->held_until_ms, now_ms), duration, sizeof duration);
        snprintf(message, sizeof message, "Seat reserved for %s. Proceed to checkout.", duration);
        jsonw_key_text(json, "message", row->held_until_ms > now_ms ? message : "This hold has expired.");
        break;
    case HOLD_CONVERTED:
        jsonw_key_text(json, "message", "This seat was bought.");
        break;
    case HOLD_EXPIRED:
        jsonw_key_text(json, "message", "This hold has expired.");
        break;
    default:
        jsonw_key_text(json, "message", "Seat released.");
        break;
    }
}

void render_hold(const struct hold_view *hold, int64_t now_ms, bool with_user, struct jsonw *json)
{
    const struct hold_row *row = &hold->row;
    bool active = row->state == HOLD_ACTIVE;
    jsonw_object_open(json);
    jsonw_key_uuid(json, "hold_id", &row->id);
    jsonw_key_uuid(json, "seat_id", &row->seat_id);
    jsonw_key_uuid(json, "event_id", &row->event_id);
    render_place(hold->map, hold->seat_index, "seat_number", json);
    jsonw_key_text(json, "status", active ? "held" : hold_state_name(row->state));
    if (row->reason != END_NONE)
        jsonw_key_text(json, "reason", end_reason_name(row->reason));
    jsonw_key_time(json, "held_until", row->held_until_ms);
    jsonw_key_int(json, "held_until_unix", row->held_until_ms / 1000);
    jsonw_key_int(json, "expires_in_seconds", active ? seconds_left(row->held_until_ms, now_ms) : 0);
    jsonw_key_time(json, "created_at", row->created_ms);
    if (row->ended_ms != 0)
        jsonw_key_time(json, "ended_at", row->ended_ms);
    jsonw_key_int(json, "price_cents", row->price_cents);
    jsonw_key_text(json, "source", hold_source_name(row->source));
    jsonw_key_text(json, "cart_token", row->cart_token);
    jsonw_key_uuid(json, "checkout_id", &row->checkout_id);
    if (with_user)
        jsonw_key_uuid(json, "user_id", &row->user_id);
    render_hold_message(row, now_ms, json);
    jsonw_object_close(json);
}

void render_holds(const struct hold_view *holds, int32_t count, int64_t now_ms, bool with_user,
                  struct jsonw *json)
{
    jsonw_array_open(json);
    for (int32_t i = 0; i < count; i++)
        render_hold(&holds[i], now_ms, with_user, json);
    jsonw_array_close(json);
}

void render_explanation(const struct best_explanation *explanation, struct jsonw *json)
{
    jsonw_object_open(json);
    jsonw_key_bool(json, "adjacent", explanation->adjacent);
    jsonw_key_int(json, "split", explanation->split);
    jsonw_key_int(json, "stranded", explanation->stranded);
    jsonw_key_fixed(json, "distance", explanation->distance, 2);
    jsonw_object_close(json);
}

/* ---- Checkouts ---- */

static void render_checkout_seats(const struct result *result, struct jsonw *json)
{
    jsonw_array_open(json);
    for (int32_t i = 0; i < result->checkout_hold_count; i++) {
        const struct hold_view *hold = &result->checkout_holds[i];
        jsonw_object_open(json);
        jsonw_key_uuid(json, "seat_id", &hold->row.seat_id);
        jsonw_key_uuid(json, "hold_id", &hold->row.id);
        render_place(hold->map, hold->seat_index, "seat_number", json);
        jsonw_key_int(json, "price_cents", hold->row.price_cents);
        jsonw_key_time(json, "held_until", hold->row.held_until_ms);
        jsonw_key_text(json, "hold_status", hold_state_name(hold->row.state));
        jsonw_object_close(json);
    }
    jsonw_array_close(json);
}

static void render_tickets(const struct result *result, const struct seatmap *map, struct jsonw *json)
{
    jsonw_array_open(json);
    for (int32_t i = 0; i < result->ticket_count; i++) {
        const struct ticket_row *ticket = &result->tickets[i];
        jsonw_object_open(json);
        jsonw_key_uuid(json, "ticket_id", &ticket->id);
        jsonw_key_uuid(json, "seat_id", &ticket->seat_id);
        if (map != NULL)
            render_place(map, seatmap_find(map, &ticket->seat_id), "seat_number", json);
        jsonw_key_int(json, "price_cents", ticket->price_cents);
        jsonw_key_text(json, "code", ticket->code);
        if (ticket->refunded_ms != 0)
            jsonw_key_time(json, "refunded_at", ticket->refunded_ms);
        jsonw_object_close(json);
    }
    jsonw_array_close(json);
}

void render_checkout(const struct result *result, const struct event_view *event, bool with_user,
                     struct jsonw *json)
{
    const struct checkout_row *row = &result->checkout;
    bool open = row->state == CHECKOUT_PENDING_PAYMENT;
    jsonw_object_open(json);
    jsonw_key_uuid(json, "checkout_id", &row->id);
    jsonw_key_uuid(json, "event_id", &row->event_id);
    jsonw_key_text(json, "event_name", event->row.name);
    if (with_user)
        jsonw_key_uuid(json, "user_id", &row->user_id);
    jsonw_key_text(json, "status", checkout_state_name(row->state));
    if (row->reason != END_NONE)
        jsonw_key_text(json, "reason", end_reason_name(row->reason));
    if (row->refund != REFUND_NONE)
        jsonw_key_text(json, "refund", refund_state_name(row->refund));
    jsonw_key_time(json, "created_at", row->created_ms);
    jsonw_key_time(json, "expires_at", row->expires_ms);
    jsonw_key_int(json, "expires_at_unix", row->expires_ms / 1000);
    jsonw_key_int(json, "expires_in_seconds", open ? seconds_left(row->expires_ms, result->now_ms) : 0);
    if (row->ended_ms != 0)
        jsonw_key_time(json, "ended_at", row->ended_ms);
    jsonw_key_text(json, "currency", row->currency);
    jsonw_key_int(json, "total_cents", row->total_cents);
    jsonw_key(json, "seats");
    render_checkout_seats(result, json);
    jsonw_key(json, "tickets");
    render_tickets(result, event->map, json);
    jsonw_object_close(json);
}

void render_cancelled(const struct result *result, struct jsonw *json)
{
    jsonw_object_open(json);
    jsonw_key_text(json, "status", "cancelled");
    jsonw_key_uuid(json, "checkout_id", &result->checkout.id);
    jsonw_key(json, "released_seats");
    jsonw_array_open(json);
    for (int32_t i = 0; i < result->checkout_hold_count; i++) {
        const struct hold_view *hold = &result->checkout_holds[i];
        jsonw_object_open(json);
        jsonw_key_uuid(json, "seat_id", &hold->row.seat_id);
        render_place(hold->map, hold->seat_index, "number", json);
        jsonw_object_close(json);
    }
    jsonw_array_close(json);
    jsonw_key_int(json, "released_count", result->checkout_hold_count);
    jsonw_key_text(json, "message",
                   "Your order has been cancelled. Seats are now available for other customers.");
    jsonw_object_close(json);
}
