/* SPDX-License-Identifier: Apache-2.0
 * Events, their policy and their blocks as JSON.
 *
 * Invariants: (1) the policy is written from POLICY_MAP, so a new field cannot
 * be forgotten. (2) A sale window without a limit is null on that side.
 *
 * Loops' threads; reads published block infos and counts. The seats themselves
 * are seats.c's and layout.c's. */
#include "api/render.h"

#include "base/clock.h"

static void render_policy_field(const char *name, int32_t value, bool is_switch, struct jsonw *json)
{
    if (is_switch)
        jsonw_key_bool(json, name, value != 0);
    else
        jsonw_key_int(json, name, value);
}

static void render_policy(const struct policy *policy, struct jsonw *json)
{
    jsonw_object_open(json);
    /* Whatever ranges from 0 to 1 is a yes or no. */
#define RENDER_FIELD(name, initial, least, most)                                                             \
    render_policy_field(#name, policy->name, (least) == 0 && (most) == 1, json);
    POLICY_MAP(RENDER_FIELD)
#undef RENDER_FIELD
    jsonw_object_close(json);
}

void render_block(const struct seatmap *map, int32_t block, struct jsonw *json)
{
    const struct layout_block *layout = &map->layout->blocks[block];
    const struct block_info *info = seatmap_block_info(map, block);
    char label[16];
    render_block_label(layout, label);
    jsonw_object_open(json);
    jsonw_key_uuid(json, "block_id", &map->blocks[block].id);
    jsonw_key_text(json, "block", label);
    jsonw_key_text(json, "section", layout->section);
    jsonw_key_int(json, "subsection", layout->subsection);
    jsonw_key_text(json, "name", info->name);
    jsonw_key_int(json, "capacity", info->capacity);
    jsonw_key_int(json, "seat_count", layout->seat_count);
    jsonw_key_int(json, "price_cents", info->price_cents);
    jsonw_object_close(json);
}

static void render_blocks(const struct seatmap *map, struct jsonw *json)
{
    jsonw_array_open(json);
    for (int32_t i = 0; map != NULL && i < map->layout->block_count; i++)
        render_block(map, i, json);
    jsonw_array_close(json);
}

void render_event(const struct event_view *event, bool with_org, struct jsonw *json)
{
    const struct event_row *row = &event->row;
    jsonw_object_open(json);
    jsonw_key_uuid(json, "event_id", &row->id);
    if (with_org)
        jsonw_key_uuid(json, "organization_id", &row->org_id);
    jsonw_key_text(json, "name", row->name);
    jsonw_key_text(json, "status", event_state_name(row->state));
    if (row->sale_start_ms == TIME_NONE)
        jsonw_key_null(json, "sale_start");
    else
        jsonw_key_time(json, "sale_start", row->sale_start_ms);
    if (row->sale_end_ms == TIME_MAX)
        jsonw_key_null(json, "sale_end");
    else
        jsonw_key_time(json, "sale_end", row->sale_end_ms);
    jsonw_key_text(json, "currency", row->currency);
    jsonw_key_int(json, "seat_count", event->map != NULL ? event->map->layout->seat_count : 0);
    jsonw_key(json, "policy");
    render_policy(&row->policy, json);
    jsonw_key(json, "blocks");
    render_blocks(event->map, json);
    jsonw_key_time(json, "created_at", row->created_ms);
    jsonw_key_time(json, "updated_at", row->updated_ms);
    jsonw_object_close(json);
}
