/* SPDX-License-Identifier: Apache-2.0
 * Is there room in blocks whose capacity is below their number of seats?
 *
 * Invariants: (1) whoever takes seats of such a block holds its lock until the
 * end of the transaction, and looks at the statistics after it got the lock: of
 * two nodes that race for the last place one sees the other's. (2) Statistics
 * are applied at the end of a batch, so what its earlier units did is added
 * here. (3) A release that somebody else has not committed yet does not count:
 * the unit misses, and is tried again.
 *
 * Runs on the writer's thread. */
#include <libpq-fe.h>

#include "store/postgres/compare.h"
#include "store/postgres/rows.h"

struct room { /* of one block */
    struct uuid org_id, event_id, block_id;
    bool found;
    int64_t capacity;
    int64_t taken;   /* held and sold, with what earlier units of the batch did */
    int64_t claimed; /* by the unit at hand */
};

static struct uuid room_id(const struct uuid *org_id, const struct uuid *event_id,
                           const struct uuid *block_id)
{
    struct uuid pair = pg_pair_id(org_id, event_id);
    return pg_pair_id(&pair, block_id);
}

static void room_add(struct pg_writer *writer, struct pg_comparison *c, const struct uuid *org_id,
                     const struct uuid *event_id, const struct uuid *block_id)
{
    struct uuid id = room_id(org_id, event_id, block_id);
    if (map_get(&c->rooms, &id) != NULL)
        return;
    struct room *room = ARENA_NEW(&writer->arena, struct room);
    *room = (struct room){.org_id = *org_id, .event_id = *event_id, .block_id = *block_id};
    map_put(&c->rooms, &id, room);
}

static void rooms_send(struct pg_writer *writer, struct pg_comparison *c, bool claims)
{
    struct pg_params *p = pg_writer_params(writer);
    struct room *room;
    for (size_t i = 0; (room = map_next(&c->rooms, &i)) != NULL;) {
        pg_add_uuid(p, 0, &room->org_id);
        pg_add_uuid(p, 1, &room->event_id);
        pg_add_uuid(p, 2, &room->block_id);
    }
    (void)pg_send(&writer->connection, PG_BLOCK_LOCK, p);
    if (claims)
        c->rooms_number = pg_send(&writer->connection, PG_BLOCK_ROOM, p);
}

void pg_claims_ask(struct pg_writer *writer, const struct pg_wave *wave, struct pg_comparison *c)
{
    bool claims = false;
    PG_WAVE_FOR_EACH(unit, wave)
    {
        for (struct block_claim *w = unit->claims; w != NULL; w = w->next) {
            w->missed = false;
            claims = true;
            room_add(writer, c, &w->org_id, &w->event_id, &w->block_id);
        }
        for (const struct block_write *w = unit->blocks; w != NULL; w = w->next)
            room_add(writer, c, &w->row.org_id, &w->row.event_id, &w->row.id);
    }
    if (c->rooms.count > 0)
        rooms_send(writer, c, claims);
}

static bool state_takes(enum seat_state state)
{
    return state == SEAT_HELD || state == SEAT_SOLD;
}

/* What the unit does to the rooms. */
static void rooms_apply(const struct pg_comparison *c, const struct store_unit *unit)
{
    for (const struct seat_write *w = unit->seats; w != NULL; w = w->next) {
        struct uuid id = room_id(&w->row.org_id, &w->row.event_id, &w->block_id);
        struct room *room = map_get(&c->rooms, &id);
        if (room != NULL)
            room->taken += state_takes(w->row.state) - state_takes(w->before);
    }
}

static int64_t capacity_for(const struct store_unit *unit, const struct room *room)
{
    for (const struct block_write *w = unit->blocks; w != NULL; w = w->next) {
        if (uuid_equal(&w->row.id, &room->block_id) && uuid_equal(&w->row.event_id, &room->event_id))
            return w->row.capacity;
    }
    return room->capacity;
}

static void unit_judge(const struct pg_comparison *c, struct store_unit *unit)
{
    for (struct block_claim *w = unit->claims; w != NULL; w = w->next) {
        struct uuid id = room_id(&w->org_id, &w->event_id, &w->block_id);
        struct room *room = map_get(&c->rooms, &id);
        CHECK(room != NULL);
        room->claimed += w->count;
        w->missed = !room->found || room->taken + room->claimed > capacity_for(unit, room);
        if (w->missed)
            unit->result = UNIT_MISSED;
    }
    for (const struct block_claim *w = unit->claims; w != NULL; w = w->next) {
        struct uuid id = room_id(&w->org_id, &w->event_id, &w->block_id);
        ((struct room *)map_get(&c->rooms, &id))->claimed = 0;
    }
}

static void rooms_read(struct pg_writer *writer, struct pg_comparison *c)
{
    const PGresult *rows = writer->reply.results[c->rooms_number];
    for (int i = 0; i < PQntuples(rows); i++) {
        struct uuid org_id = pg_cell_uuid(rows, i, 0), event_id = pg_cell_uuid(rows, i, 1),
                    block_id = pg_cell_uuid(rows, i, 2);
        struct uuid id = room_id(&org_id, &event_id, &block_id);
        struct room *room = map_get(&c->rooms, &id);
        CHECK(room != NULL);
        room->found = true;
        room->capacity = pg_cell_int(rows, i, 3);
        room->taken = pg_cell_int(rows, i, 4);
    }
}

void pg_claims_judge(struct pg_writer *writer, const struct pg_wave *wave, struct pg_comparison *c)
{
    if (c->rooms_number < 0)
        return;
    rooms_read(writer, c);
    LIST_FOR_EACH(node, &wave->batch->units) {
        const struct store_unit *earlier = CONTAINER_OF(node, struct store_unit, node);
        if (earlier == wave->units[0])
            break;
        if (earlier->result == UNIT_OK)
            rooms_apply(c, earlier);
    }
    PG_WAVE_FOR_EACH(unit, wave)
    {
        if (unit->result == UNIT_OK)
            unit_judge(c, unit);
        if (unit->result == UNIT_OK)
            rooms_apply(c, unit);
    }
}
