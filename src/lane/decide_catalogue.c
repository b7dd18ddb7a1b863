/* SPDX-License-Identifier: Apache-2.0
 * Organizations, users, events, layouts and blocks.
 *
 * A change of an event is exclusive: it waits until nothing uncommitted touches
 * the event, and nothing new begins meanwhile. So a reserve is decided either
 * before the change or after it, never across. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "hold/rules.h"
#include "lane/catalogue.h"
#include "lane/lane_int.h"

static enum decision refuse_with(struct lane *lane, struct command *command, enum err err,
                                 const char *message)
{
    command->result.message = message;
    return lane_answer(lane, command, err);
}

static enum decision submit(struct lane *lane, struct command *command, struct step *step, int status)
{
    command->result.status = status;
    command->result.now_ms = lane->now_ms;
    step_submit(step);
    return DECIDED;
}

/* ---- Organizations and users ---- */

enum decision decide_org_create(struct lane *lane, struct command *command)
{
    command->result = (struct result){0};
    if (uuid_is_nil(&command->id))
        command->id = lane_make_id(lane);
    if (directory_has_org(lane->hot->directory, &command->id))
        return refuse_with(lane, command, ERR_INVALID_REQUEST, "id: this id cannot be used.");
    struct step *step = step_begin(lane, command);
    struct org_write *write = ARENA_NEW(step_arena(step), struct org_write);
    write->row = (struct org_row){.id = command->id, .name = command->admin.name, .created_ms = lane->now_ms};
    step->unit.orgs = write;
    struct audit_row *audit = step_audit(step, AUDIT_ORGANIZATION_CREATED, "Organization", &command->id);
    audit->org_id = command->id;
    command->result.id = command->id;
    return submit(lane, command, step, 201);
}

enum decision decide_user_patch(struct lane *lane, struct command *command)
{
    command->result = (struct result){.id = command->id, .disabled = command->admin.disabled};
    const struct uuid *org_id = &command->actor.org_id;
    if (map_get(&lane->registering, &command->id) != NULL)
        return DEFERRED; /* their first token was seen a moment ago */
    if (directory_user(lane->hot->directory, org_id, &command->id) == USER_UNKNOWN)
        return lane_answer(lane, command, ERR_NOT_FOUND);
    struct step *step = step_begin(lane, command);
    step_user_change(step, org_id, &command->id, command->admin.disabled);
    struct audit_row *audit = step_audit(step, AUDIT_USER_CHANGED, "User", &command->id);
    audit->user_id = command->id;
    audit->after = command->admin.disabled ? "{\"disabled\":true}" : "{\"disabled\":false}";
    return submit(lane, command, step, 200);
}

enum decision decide_user_seen(struct lane *lane, struct command *command)
{
    command->result = (struct result){0};
    const struct actor *actor = &command->actor;
    if (directory_user(lane->hot->directory, &actor->org_id, &actor->user_id) != USER_UNKNOWN)
        return lane_answer(lane, command, ERR_OK);
    struct step *step = step_begin(lane, command);
    step_user_seen(step, &actor->org_id, &actor->user_id);
    return submit(lane, command, step, 200);
}

/* ---- Events ---- */

/* One change of an event at a time: is another one's waiting or under way? */
static bool gate_is_taken(const struct hot_event *event, const struct command *command)
{
    return event->exclusive && event->gate != command;
}

/* Closes the event's gate: whoever comes now waits behind this command. False while something
 * uncommitted touches the event; then the command is deferred and keeps the gate. */
static bool gate_close(struct hot_event *event, const struct command *command, struct step *step)
{
    event->exclusive = true;
    event->gate = command;
    if (event->unit_count > 0)
        return false;
    step->exclusive = event;
    return true;
}

static void gate_open(struct lane *lane, struct hot_event *event, const struct command *command)
{
    if (event->gate != command)
        return;
    event->exclusive = false;
    event->gate = NULL;
    lane->progress = true; /* those behind it waited for nothing else */
}

void gate_abandon(struct lane *lane, const struct command *command)
{
    bool changes_event = command->kind == COMMAND_EVENT_PATCH || command->kind == COMMAND_LAYOUT_PUT ||
                         command->kind == COMMAND_BLOCK_PATCH;
    struct hot_event *event = changes_event ? map_get(&lane->hot->events, &command->id) : NULL;
    if (event != NULL)
        gate_open(lane, event, command);
}

static void audit_event(struct step *step, const struct event_row *before, const struct event_row *after)
{
    struct audit_row *audit = step_audit(step, AUDIT_EVENT_CHANGED, "Event", &after->id);
    audit->org_id = after->org_id;
    audit->event_id = after->id;
    if (before != NULL)
        audit->before = step_printf(step, "{\"status\":\"%s\"}", event_state_name(before->state));
    audit->after = step_printf(step, "{\"status\":\"%s\"}", event_state_name(after->state));
}

enum decision decide_event_create(struct lane *lane, struct command *command)
{
    command->result = (struct result){0};
    if (uuid_is_nil(&command->event.row.id))
        command->event.row.id = lane_make_id(lane);
    command->event.row.org_id = command->actor.org_id;
    bool has_org = directory_has_org(lane->hot->directory, &command->actor.org_id);
    if (!has_org && !follow_is_fresh(lane, command))
        return DEFERRED;
    if (!has_org)
        return refuse_with(lane, command, ERR_INVALID_REQUEST, "An event needs an organization.");
    if (map_get(&lane->hot->events, &command->event.row.id) != NULL)
        return refuse_with(lane, command, ERR_INVALID_REQUEST, "id: this id cannot be used.");
    struct step *step = step_begin(lane, command);
    struct event_row *row = step_event(step, &command->event.row, true);
    row->created_ms = lane->now_ms;
    audit_event(step, NULL, row);
    command->result.id = command->result.event_id = row->id;
    return submit(lane, command, step, 201);
}

static void patch_row(const struct command *command, struct event_row *row)
{
    const struct event_row *from = &command->event.row;
    uint32_t fields = command->event.fields;
    if (fields & PATCH_NAME)
        row->name = from->name;
    if (fields & PATCH_STATE)
        row->state = from->state;
    if (fields & PATCH_SALE_START)
        row->sale_start_ms = from->sale_start_ms;
    if (fields & PATCH_SALE_END)
        row->sale_end_ms = from->sale_end_ms;
    if (fields & PATCH_CURRENCY)
        memcpy(row->currency, from->currency, sizeof(row->currency));
    uint32_t bit = 0;
#define PATCH_POLICY_FIELD(name, initial, least, most)                                                       \
    if (command->event.policy_fields & BIT(bit))                                                             \
        row->policy.name = from->policy.name;                                                                \
    bit++;
    POLICY_MAP(PATCH_POLICY_FIELD)
#undef PATCH_POLICY_FIELD
}

enum decision decide_event_patch(struct lane *lane, struct command *command)
{
    command->result = (struct result){.id = command->id, .event_id = command->id};
    struct hot_event *event = hot_event(lane->hot, &command->actor.org_id, &command->id);
    if (event == NULL)
        return lane_answer(lane, command, ERR_EVENT_NOT_FOUND);
    if (gate_is_taken(event, command))
        return DEFERRED;
    struct event_row row = event->row;
    patch_row(command, &row);
    enum err err = event_move(event->row.state, row.state);
    const char *message = NULL;
    if (err == ERR_OK && !policy_valid(&row.policy)) {
        err = ERR_INVALID_REQUEST;
        message = "policy: a value is out of range, or hold_max_seconds is below hold_ttl_seconds";
    }
    if (err == ERR_OK && row.sale_start_ms > row.sale_end_ms) {
        err = ERR_INVALID_REQUEST;
        message = "sale_start must not be after sale_end";
    }
    if (err != ERR_OK) {
        gate_open(lane, event, command);
        return refuse_with(lane, command, err, message);
    }
    struct step *step = step_begin(lane, command);
    if (!gate_close(event, command, step))
        return DEFERRED;
    step_event(step, &row, false);
    audit_event(step, &event->row, &row);
    step->empties_event = event_is_open(event->row.state) && !event_is_open(row.state);
    return submit(lane, command, step, 200);
}

/* ---- Layouts and blocks ---- */

static enum err layout_prepare(struct lane *lane, struct command *command, struct step *step,
                               struct hot_event *event)
{
    char why[256];
    struct layout *layout;
    enum err err = layout_parse(command->layout.document, command->layout.size, command->arena, &layout, why,
                                sizeof(why));
    if (err != ERR_OK)
        goto refused;
    struct layout_write *write = catalogue_layout_write(
        step_arena(step), &event->row, command->layout.document, layout, &lane->rng, lane->now_ms);
    err = seatmap_create(&event->row.org_id, &event->row.id, command->layout.document, write->blocks,
                         write->block_count, &step->new_map, why, sizeof(why));
    if (err != ERR_OK)
        goto refused;
    for (int32_t i = 0; i < write->seat_count; i++)
        seatmap_set_seat(step->new_map, i, &write->seats[i].id, SEAT_AVAILABLE);
    step->unit.layouts = write;
    command->result.counts[0] = write->block_count;
    command->result.counts[1] = write->seat_count;
    return ERR_OK;

refused:
    command->result.message = arena_text(command->arena, why);
    return err;
}

enum decision decide_layout_put(struct lane *lane, struct command *command)
{
    command->result = (struct result){.id = command->id, .event_id = command->id};
    struct hot_event *event = hot_event(lane->hot, &command->actor.org_id, &command->id);
    if (event == NULL)
        return lane_answer(lane, command, ERR_EVENT_NOT_FOUND);
    if (gate_is_taken(event, command))
        return DEFERRED;
    struct step *step = step_begin(lane, command);
    if (!gate_close(event, command, step))
        return DEFERRED;
    enum err err = event->holds_ever > 0 ? ERR_LAYOUT_IN_USE : layout_prepare(lane, command, step, event);
    if (err != ERR_OK) {
        gate_open(lane, event, command);
        return lane_answer(lane, command, err);
    }
    step_event(step, &event->row, false); /* whoever rests on the old layout must find out */
    struct audit_row *audit = step_audit(step, AUDIT_LAYOUT_CHANGED, "Event", &command->id);
    audit->event_id = command->id;
    audit->after = step_printf(step, "{\"blocks\":%d,\"seats\":%d}", step->unit.layouts->block_count,
                               step->unit.layouts->seat_count);
    return submit(lane, command, step, 200);
}

enum decision decide_block_patch(struct lane *lane, struct command *command)
{
    command->result = (struct result){.id = command->block.block_id, .event_id = command->id};
    struct hot_event *event = hot_event(lane->hot, &command->actor.org_id, &command->id);
    if (event == NULL)
        return lane_answer(lane, command, ERR_EVENT_NOT_FOUND);
    int32_t block = event->map != NULL ? seatmap_block_find(event->map, &command->block.block_id) : -1;
    if (block < 0)
        return lane_answer(lane, command, ERR_NOT_FOUND);
    if (gate_is_taken(event, command))
        return DEFERRED;
    struct step *step = step_begin(lane, command);
    if (!gate_close(event, command, step))
        return DEFERRED;
    const struct block_info *info = seatmap_block_info(event->map, block);
    const struct layout_block *place = &event->map->layout->blocks[block];
    uint32_t fields = command->block.fields;
    struct block_write *write = ARENA_NEW(step_arena(step), struct block_write);
    write->row = (struct block_row){
        .org_id = event->row.org_id,
        .event_id = event->row.id,
        .id = command->block.block_id,
        .subsection = place->subsection,
        .ordinal = block,
        .name = arena_text(step_arena(step), fields & PATCH_NAME ? command->block.name : info->name),
        .capacity = fields & PATCH_CAPACITY ? command->block.capacity : info->capacity,
        .price_cents = fields & PATCH_PRICE ? command->block.price_cents : info->price_cents,
    };
    memcpy(write->row.section, place->section, sizeof(write->row.section));
    int32_t counts[SEAT_STATE_COUNT];
    seatmap_block_counts(event->map, block, counts);
    enum err err = ERR_OK;
    if (write->row.capacity < 1 || write->row.capacity > place->seat_count) {
        err = ERR_INVALID_REQUEST;
        command->result.message = "capacity must be 1 to the number of the block's seats";
    } else if (write->row.capacity < counts[SEAT_HELD] + counts[SEAT_SOLD]) {
        err = ERR_BLOCK_AT_CAPACITY;
    }
    if (err != ERR_OK) {
        gate_open(lane, event, command);
        return lane_answer(lane, command, err);
    }
    step->unit.blocks = write;
    step_event(step, &event->row, false);
    if (lane->shared)
        step_claim_block(step, event, block, 0); /* others may be taking seats of it */
    struct audit_row *audit = step_audit(step, AUDIT_BLOCK_CHANGED, "Block", &write->row.id);
    audit->event_id = event->row.id;
    audit->before = step_printf(step, "{\"capacity\":%d,\"price_cents\":%lld}", info->capacity,
                                (long long)info->price_cents);
    audit->after = step_printf(step, "{\"capacity\":%d,\"price_cents\":%lld}", write->row.capacity,
                               (long long)write->row.price_cents);
    return submit(lane, command, step, 200);
}
