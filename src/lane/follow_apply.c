/* SPDX-License-Identifier: Apache-2.0
 * What one change of the feed means for memory. A batch of another node is
 * unpacked into a unit, as if it were one of ours, and applied by the same
 * function (apply.c). An event that changed is read from the store as it is
 * now, with the ids of its seats; what became of these comes by the feed.
 *
 * A new layout takes the place of the old one only while nothing uncommitted
 * touches the event: until then its gate is closed. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "lane/follow.h"
#include "lane/lane_int.h"

enum { RELOAD_RETRY_MS = 200 };

/* ---- Unpacking ---- */

static bool is_own(const struct lane *lane, const struct changes_reader *reader)
{
    return uuid_equal(&reader->node_id, &lane->config.node_id);
}

static void add_mark(struct follow_change *out, struct arena *arena, enum lookup_kind kind,
                     const struct uuid *org_id, const struct uuid *id)
{
    for (int32_t i = 0; i < out->mark_count; i++) {
        if (out->marks[i].kind == kind && uuid_equal(&out->marks[i].id, id) &&
            uuid_equal(&out->marks[i].org_id, org_id))
            return;
    }
    struct follow_mark *marks = ARENA_ARRAY(arena, struct follow_mark, out->mark_count + 1);
    if (out->mark_count > 0)
        memcpy(marks, out->marks, sizeof(*marks) * (size_t)out->mark_count);
    marks[out->mark_count++] = (struct follow_mark){.kind = kind, .org_id = *org_id, .id = *id};
    out->marks = marks;
}

static void add_org(struct store_unit *unit, struct arena *arena, const struct uuid *org_id)
{
    struct org_write *write = ARENA_NEW(arena, struct org_write);
    write->row.id = *org_id;
    write->next = unit->orgs;
    unit->orgs = write;
}

struct unpacked { /* the ends of the unit's lists: order is kept */
    struct seat_write **seats_end;
    struct hold_write **holds_end;
    struct checkout_write **checkouts_end;
    struct user_write **users_end;
};

static void add_row(struct unpacked *ends, struct arena *arena, const struct change *change)
{
    switch (change->kind) {
    case CHANGE_SEAT: {
        struct seat_write *write = &ARENA_NEW(arena, struct step_seat)->write;
        write->row = change->seat;
        *ends->seats_end = write;
        ends->seats_end = &write->next;
        break;
    }
    case CHANGE_HOLD: {
        struct hold_write *write = ARENA_NEW(arena, struct hold_write);
        write->insert = change->inserted;
        write->extended = change->extended;
        write->row = change->hold;
        *ends->holds_end = write;
        ends->holds_end = &write->next;
        break;
    }
    case CHANGE_CHECKOUT: {
        struct checkout_write *write = ARENA_NEW(arena, struct checkout_write);
        write->insert = change->inserted;
        write->moved = change->moved || change->inserted;
        write->row = change->checkout;
        *ends->checkouts_end = write;
        ends->checkouts_end = &write->next;
        break;
    }
    case CHANGE_USER: {
        struct user_write *write = ARENA_NEW(arena, struct user_write);
        write->seen = change->seen;
        write->row = change->user;
        *ends->users_end = write;
        ends->users_end = &write->next;
        break;
    }
    default: /* tickets are not kept in memory */
        break;
    }
}

struct follow_change *follow_unpack(struct lane *lane, const struct store_change *from)
{
    struct arena *arena = &lane->follow.arena;
    struct changes_reader reader;
    if (from->size == 0)
        return NULL;
    changes_read_begin(&reader, from->data, from->size, arena);
    if (is_own(lane, &reader))
        return NULL;
    struct follow_change *out = ARENA_NEW(arena, struct follow_change);
    struct unpacked ends = {&out->unit.seats, &out->unit.holds, &out->unit.checkouts, &out->unit.users};
    struct change change;
    while (changes_read_next(&reader, &change)) {
        if (change.kind == CHANGE_ORGANIZATION)
            add_org(&out->unit, arena, &change.mark.id);
        else if (change.kind == CHANGE_EVENT || change.kind == CHANGE_LAYOUT)
            add_mark(out, arena, LOOKUP_EVENT, &change.mark.org_id, &change.mark.id);
        else if (change.kind == CHANGE_USER && !change.seen)
            add_mark(out, arena, LOOKUP_USER, &change.user.org_id, &change.user.id);
        else
            add_row(&ends, arena, &change);
    }
    if (reader.failed) { /* of a newer version, perhaps: memory cannot follow any more */
        log_write(LOG_ERROR, "a change of another node cannot be read", "\"id\":%lld", (long long)from->id);
        lane->config.on_lost(lane->config.context);
    }
    return out;
}

/* ---- Applying ---- */

static enum end_reason reason_of(const struct store_unit *unit, const struct seat_row *seat)
{
    for (const struct hold_write *write = unit->holds; write != NULL; write = write->next) {
        if (uuid_equal(&write->row.seat_id, &seat->id) && write->row.state != HOLD_ACTIVE)
            return write->row.reason;
    }
    return END_NONE;
}

/* Seats of a layout that is gone, or of an event that nobody has, are left out; their holds with them. */
static void find_places(struct lane *lane, struct store_unit *unit)
{
    struct seat_write **link = &unit->seats;
    while (*link != NULL) {
        struct seat_write *write = *link;
        struct hot_event *event = hot_event(lane->hot, &write->row.org_id, &write->row.event_id);
        bool is_here = event != NULL && event->map != NULL &&
                       write->row.index < event->map->layout->seat_count &&
                       uuid_equal(&event->map->seat_ids[write->row.index], &write->row.id);
        if (!is_here) {
            *link = write->next;
            continue;
        }
        struct step_seat *seat = CONTAINER_OF(write, struct step_seat, write);
        seat->event = event;
        if (write->row.state == SEAT_AVAILABLE)
            seat->reason = reason_of(unit, &write->row);
        link = &write->next;
    }
    struct checkout_write **checkout = &unit->checkouts;
    while (*checkout != NULL) {
        if (hot_event(lane->hot, &(*checkout)->row.org_id, &(*checkout)->row.event_id) == NULL)
            *checkout = (*checkout)->next;
        else
            checkout = &(*checkout)->next;
    }
}

void follow_apply(struct lane *lane, struct follow_change *change)
{
    find_places(lane, &change->unit);
    apply_unit(lane, &change->unit, NULL);
}

/* ---- An event or user that changed ---- */

static void reload_answered(struct store_lookup *lookup)
{
    struct lane *lane = lookup->context;
    struct follow_reload *reload = &lane->follow.reload;
    reload->asked = false;
    reload->answered = lookup->err == ERR_OK;
    if (lookup->err != ERR_OK)
        reload->retry_at_ms = lane->now_ms + RELOAD_RETRY_MS;
}

static void reload_ask(struct lane *lane, const struct follow_mark *mark)
{
    struct follow_reload *reload = &lane->follow.reload;
    if (lane->now_ms < reload->retry_at_ms)
        return;
    arena_reset(&reload->arena);
    reload->lookup = (struct store_lookup){
        .kind = mark->kind,
        .org_id = mark->org_id,
        .id = mark->id,
        .arena = &reload->arena,
        .on_done = reload_answered,
        .context = lane,
    };
    list_init(&reload->lookup.node);
    if (store_lookup(lane->config.store, &reload->lookup) == ERR_OK)
        reload->asked = true;
    else
        reload->retry_at_ms = lane->now_ms + RELOAD_RETRY_MS;
}

static bool has_same_seats(const struct hot_event *event, const struct store_lookup *lookup)
{
    if (event == NULL || event->map == NULL)
        return lookup->document == NULL;
    return event->map->layout->seat_count == lookup->seat_count &&
           memcmp(event->map->seat_ids, lookup->seat_ids, sizeof(struct uuid) * (size_t)lookup->seat_count) ==
               0;
}

static void put_blocks(struct hot_event *event, const struct store_lookup *lookup)
{
    for (int32_t i = 0; i < lookup->block_count; i++) {
        const struct block_row *row = &lookup->blocks[i];
        int32_t block = seatmap_block_find(event->map, &row->id);
        if (block >= 0)
            seatmap_set_block_info(event->map, block, row->name, row->capacity, row->price_cents);
    }
}

static void put_layout(struct lane *lane, struct hot_event *event, const struct store_lookup *lookup)
{
    char why[256];
    struct seatmap *map;
    enum err err = seatmap_create(&event->row.org_id, &event->row.id, lookup->document, lookup->blocks,
                                  lookup->block_count, &map, why, sizeof(why));
    if (err == ERR_OK && map->layout->seat_count != lookup->seat_count) {
        snprintf(why, sizeof(why), "it has another number of seats");
        seatmap_release(map);
        err = ERR_STORE_CORRUPT;
    }
    if (err != ERR_OK) {
        log_write(LOG_ERROR, "another node's layout cannot be read", "\"why\":\"%s\"", why);
        lane->config.on_lost(lane->config.context);
        return;
    }
    for (int32_t i = 0; i < lookup->seat_count; i++)
        seatmap_set_seat(map, i, &lookup->seat_ids[i], SEAT_AVAILABLE);
    err = hot_put_layout(lane->hot, event, map);
    CHECK(err == ERR_OK); /* only memory can end here */
}

static void gate_close(struct follow_reload *reload, struct hot_event *event)
{
    if (reload->gated != NULL || event->exclusive)
        return;
    event->exclusive = true;
    event->gate = reload;
    reload->gated = event;
}

static void gate_open(struct lane *lane, struct follow_reload *reload)
{
    if (reload->gated == NULL)
        return;
    reload->gated->exclusive = false;
    reload->gated->gate = NULL;
    reload->gated = NULL;
    lane->progress = true;
}

/* False: something uncommitted still touches the seats that are to go. */
static bool reload_put(struct lane *lane, struct follow_reload *reload)
{
    const struct store_lookup *lookup = &reload->lookup;
    struct hot_event *event = map_get(&lane->hot->events, &lookup->id);
    if (!lookup->found || (event != NULL && lookup->event.version <= event->row.version))
        return true;
    bool same_seats = has_same_seats(event, lookup);
    if (!same_seats && event != NULL && event->map != NULL) {
        gate_close(reload, event);
        if (reload->gated != event || event->unit_count > 0)
            return false;
    }
    hot_put_event(lane->hot, &lookup->event);
    route_event_seen(lane, &lookup->event);
    event = map_get(&lane->hot->events, &lookup->id);
    if (!same_seats)
        put_layout(lane, event, lookup);
    else if (event->map != NULL)
        put_blocks(event, lookup);
    apply_tell_watchers(lane, &lookup->id);
    return true;
}

/* False: we are changing the same user ourselves, and must know first how that went. */
static bool user_gate_close(struct lane *lane, const struct uuid *user_id)
{
    void *whose = map_get(&lane->registering, user_id);
    if (whose != NULL)
        return whose == &lane->follow;
    map_put(&lane->registering, user_id, &lane->follow);
    return true;
}

static void user_put(struct lane *lane, const struct store_lookup *lookup)
{
    if (lookup->found)
        directory_put_user(lane->hot->directory, &lookup->user);
    if (map_get(&lane->registering, &lookup->id) == &lane->follow)
        map_remove(&lane->registering, &lookup->id);
    lane->progress = true;
}

bool follow_reload(struct lane *lane, const struct follow_mark *mark)
{
    struct follow_reload *reload = &lane->follow.reload;
    if (reload->asked)
        return false;
    if (!reload->answered) {
        if (mark->kind == LOOKUP_EVENT || user_gate_close(lane, &mark->id))
            reload_ask(lane, mark);
        return false;
    }
    if (mark->kind == LOOKUP_USER)
        user_put(lane, &reload->lookup);
    else if (!reload_put(lane, reload))
        return false;
    gate_open(lane, reload);
    reload->answered = false;
    return true;
}
