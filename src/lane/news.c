/* SPDX-License-Identifier: Apache-2.0
 * What goes out after a commit: states of seats to everybody, and to their
 * owner what became of a hold or checkout, and to a caller whose command went
 * to another node that its answer came late. Nothing here says who holds a seat
 * to anybody else. */
#include <stdio.h>

#include "base/jsonw.h"
#include "lane/lane_int.h"

void news_seat(struct lane *lane, const struct step_seat *seat)
{
    if (lane->config.feed == NULL)
        return;
    bool freed = seat->write.row.state == SEAT_AVAILABLE;
    feed_seat(lane->config.feed, &seat->write.row.event_id, seat->write.row.index, seat->write.row.state,
              freed ? seat->reason : END_NONE);
}

static void send(struct lane *lane, const struct uuid *org_id, const struct uuid *user_id,
                 const struct uuid *event_id, const char *name, struct buf *data)
{
    if (buf_ok(data))
        feed_news(lane->config.feed, org_id, user_id, event_id, name, data->data, data->size);
    buf_deinit(data);
}

void news_hold_ended(struct lane *lane, const struct hold_row *row)
{
    if (lane->config.feed == NULL)
        return;
    struct buf data;
    struct jsonw json;
    buf_init(&data);
    jsonw_begin(&json, &data);
    jsonw_object_open(&json);
    jsonw_key_uuid(&json, "hold_id", &row->id);
    jsonw_key_uuid(&json, "seat_id", &row->seat_id);
    jsonw_key_uuid(&json, "event_id", &row->event_id);
    jsonw_key_text(&json, "status", hold_state_name(row->state));
    jsonw_key_text(&json, "reason", end_reason_name(row->reason));
    jsonw_key_time(&json, "released_at", row->ended_ms);
    jsonw_object_close(&json);
    send(lane, &row->org_id, &row->user_id, &row->event_id, "hold_released", &data);
}

void news_hold_expiring(struct lane *lane, const struct hot_hold *hold)
{
    if (lane->config.feed == NULL)
        return;
    const struct event_row *event = &hold->event->row;
    int64_t left_ms = hold->held_until_ms - lane->now_ms;
    struct buf data;
    struct jsonw json;
    buf_init(&data);
    jsonw_begin(&json, &data);
    jsonw_object_open(&json);
    jsonw_key_uuid(&json, "hold_id", &hold->id);
    jsonw_key_uuid(&json, "seat_id", &hold->event->map->seat_ids[hold->seat_index]);
    jsonw_key_uuid(&json, "event_id", &event->id);
    jsonw_key_time(&json, "held_until", hold->held_until_ms);
    jsonw_key_int(&json, "held_until_unix", hold->held_until_ms / 1000);
    jsonw_key_int(&json, "expires_in_seconds", left_ms > 0 ? left_ms / 1000 : 0);
    jsonw_object_close(&json);
    send(lane, &event->org_id, &hold->user->user_id, &event->id, "hold_expiring", &data);
}

void news_checkout(struct lane *lane, const struct checkout_row *row)
{
    if (lane->config.feed == NULL)
        return;
    struct buf data;
    struct jsonw json;
    buf_init(&data);
    jsonw_begin(&json, &data);
    jsonw_object_open(&json);
    jsonw_key_uuid(&json, "checkout_id", &row->id);
    jsonw_key_uuid(&json, "event_id", &row->event_id);
    jsonw_key_text(&json, "status", checkout_state_name(row->state));
    jsonw_key_int(&json, "total_cents", row->total_cents);
    if (row->reason != END_NONE)
        jsonw_key_text(&json, "reason", end_reason_name(row->reason));
    if (row->refund != REFUND_NONE)
        jsonw_key_text(&json, "refund", refund_state_name(row->refund));
    jsonw_object_close(&json);
    send(lane, &row->org_id, &row->user_id, &row->event_id, "checkout_updated", &data);
}

static void write_answered(const struct result *result, struct jsonw *json)
{
    bool is_good = result->err == ERR_OK;
    int status = result->status != 0 ? result->status : 200;
    jsonw_key_int(json, "status", is_good ? status : err_http_status(result->err));
    if (!is_good)
        jsonw_key_text(json, "code", err_code(result->err));
    jsonw_key(json, "hold_ids");
    jsonw_array_open(json);
    for (int32_t i = 0; i < result->hold_count; i++)
        jsonw_uuid(json, &result->holds[i].row.id);
    jsonw_array_close(json);
    if (result->has_checkout)
        jsonw_key_uuid(json, "checkout_id", &result->checkout.id);
}

void news_command(struct lane *lane, const struct command *command)
{
    if (lane->config.feed == NULL)
        return;
    const struct actor *actor = &command->actor;
    char location[sizeof(COMMAND_LOCATION) + COMMAND_HANDLE_SIZE], handle[COMMAND_HANDLE_SIZE];
    command_format_handle(command, handle);
    snprintf(location, sizeof(location), "%s%s", COMMAND_LOCATION, handle);
    struct buf data;
    struct jsonw json;
    buf_init(&data);
    jsonw_begin(&json, &data);
    jsonw_object_open(&json);
    jsonw_key_uuid(&json, "command_id", &command->sent.id);
    jsonw_key_text(&json, "location", location);
    write_answered(&command->result, &json);
    jsonw_object_close(&json);
    send(lane, &actor->org_id, &actor->user_id, &command->result.event_id, "command_settled", &data);
}
