/* SPDX-License-Identifier: Apache-2.0
 * A batch in waves. A wave is a run of units that touch nothing in common, so
 * that one statement per table can write them all; a batch of the lane is
 * nearly always one wave, since a seat is in one uncommitted command only.
 * Here a wave is cut and compared with what the server has.
 *
 * Invariants: (1) units are written in order as far as it can be seen: a unit
 * that touches what an earlier one touches is in a later wave. (2) Nothing of
 * a unit is written before all its seats were found at their expected versions
 * and locked, its key was free, and the events it makes holds of are open.
 * (3) UNIT_MISSED fills `missed` and `current` of its seats; a seat that
 * somebody else has locked is missed with the row that can be seen. (4) A unit
 * that missed gives its key back.
 *
 * Locks are taken in this order: batch id, keys, events, seats (which are never
 * waited for), then users, checkouts, holds, tickets, statistics; within each
 * in order of ids. Runs on the writer's thread. */
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "store/postgres/postgres_int.h"
#include "store/postgres/rows.h"

/* ---- Cutting ---- */

/* Keys of one organization are hashes: half of one, mixed with the organization, is as good as an id. */
static struct uuid key_id(const struct uuid *org_id, const uint8_t key[32])
{
    struct uuid id;
    for (int i = 0; i < 16; i++)
        id.bytes[i] = (uint8_t)(key[i] ^ org_id->bytes[i]);
    return id;
}

static bool touch(struct map *touched, const struct uuid *id, struct store_unit *unit)
{
    const struct store_unit *other = map_get(touched, id);
    if (other != NULL && other != unit)
        return false;
    map_put(touched, id, unit);
    return true;
}

/* False: the unit touches something that another unit of the wave touches. */
static bool unit_touch(struct map *touched, struct store_unit *unit)
{
    bool free = true;
    for (const struct seat_write *w = unit->seats; w != NULL && free; w = w->next)
        free = touch(touched, &w->row.id, unit);
    for (const struct hold_write *w = unit->holds; w != NULL && free; w = w->next)
        free = touch(touched, &w->row.id, unit) && touch(touched, &w->row.seat_id, unit);
    for (const struct checkout_write *w = unit->checkouts; w != NULL && free; w = w->next)
        free = touch(touched, &w->row.id, unit);
    for (const struct ticket_write *w = unit->tickets; w != NULL && free; w = w->next)
        free = touch(touched, &w->row.id, unit) && touch(touched, &w->row.seat_id, unit);
    for (const struct user_write *w = unit->users; w != NULL && free; w = w->next)
        free = touch(touched, &w->row.id, unit);
    for (const struct snapshot_write *w = unit->snapshots; w != NULL && free; w = w->next)
        free = touch(touched, &w->event_id, unit);
    if (unit->key != NULL && free) {
        struct uuid id = key_id(&unit->key->org_id, unit->key->key);
        free = touch(touched, &id, unit);
    }
    return free;
}

static bool unit_is_catalogue(const struct store_unit *unit)
{
    return unit->orgs != NULL || unit->events != NULL || unit->layouts != NULL || unit->blocks != NULL;
}

bool pg_wave_next(struct pg_writer *writer, struct store_batch *batch, struct list **position, bool single,
                  struct pg_wave *wave)
{
    if (*position == &batch->units)
        return false;
    struct map touched;
    map_init(&touched);
    if (wave->units == NULL)
        wave->units = ARENA_ARRAY(&writer->arena, struct store_unit *, batch->unit_count);
    wave->count = 0;
    while (*position != &batch->units) {
        struct store_unit *unit = CONTAINER_OF(*position, struct store_unit, node);
        bool apart = single || unit_is_catalogue(unit);
        if (wave->count > 0 && (apart || !unit_touch(&touched, unit)))
            break;
        if (wave->count == 0 && !apart)
            (void)unit_touch(&touched, unit);
        wave->units[wave->count++] = unit;
        *position = (*position)->next;
        if (apart)
            break;
    }
    map_deinit(&touched);
    return true;
}

/* ---- Comparing ---- */

struct comparison {            /* what was asked, and where in the reply its answer is */
    struct seat_write **seats; /* by position */
    int32_t seat_count;
    int keys_number, events_number, seats_number; /* −1: not asked */
    struct map keys;                              /* by key_id(): units that hope for a key */
    struct map events;                            /* ids of open events: the units' */
};

static void keys_ask(struct pg_writer *writer, struct pg_wave *wave, struct comparison *c)
{
    struct pg_params *p = pg_writer_params(writer);
    int32_t count = 0;
    PG_WAVE_FOR_EACH(unit, wave)
    {
        const struct key_write *key = unit->key;
        if (key == NULL || unit->result != UNIT_OK)
            continue;
        struct uuid id = key_id(&key->org_id, key->key);
        map_put(&c->keys, &id, unit);
        pg_add_uuid(p, 0, &key->org_id);
        pg_add_bytes(p, 1, key->key, sizeof(key->key));
        pg_add_bytes(p, 2, key->body, sizeof(key->body));
        pg_add_bytes(p, 3, key->result, key->result_size);
        pg_add_time_unless(p, 4, key->created_ms, INT64_MIN);
        count++;
    }
    pg_set_int(p, 5, IDEMPOTENCY_HOURS);
    c->keys_number = count > 0 ? pg_send(&writer->connection, PG_KEY_TAKE, p) : -1;
}

static bool makes_hold(const struct hold_write *write)
{
    return write->insert && write->row.state == HOLD_ACTIVE;
}

static void events_ask(struct pg_writer *writer, struct pg_wave *wave, struct comparison *c)
{
    struct pg_params *p = pg_writer_params(writer);
    struct map asked;
    map_init(&asked);
    PG_WAVE_FOR_EACH(unit, wave)
    {
        for (struct hold_write *w = unit->holds; w != NULL; w = w->next) {
            if (!makes_hold(w) || map_get(&asked, &w->row.event_id) != NULL)
                continue;
            map_put(&asked, &w->row.event_id, w);
            pg_add_uuid(p, 0, &w->row.org_id);
            pg_add_uuid(p, 1, &w->row.event_id);
        }
    }
    c->events_number = asked.count > 0 ? pg_send(&writer->connection, PG_EVENT_SHARE, p) : -1;
    map_deinit(&asked);
}

static void seats_ask(struct pg_writer *writer, struct pg_wave *wave, struct comparison *c)
{
    struct pg_params *p = pg_writer_params(writer);
    int32_t count = 0;
    PG_WAVE_FOR_EACH(unit, wave)
    {
        for (struct seat_write *w = unit->seats; w != NULL; w = w->next)
            count++;
    }
    c->seats = ARENA_ARRAY(&writer->arena, struct seat_write *, count + 1);
    PG_WAVE_FOR_EACH(unit, wave)
    {
        for (struct seat_write *w = unit->seats; w != NULL && unit->result == UNIT_OK; w = w->next) {
            w->missed = true; /* until it was found */
            pg_add_uuid(p, 0, &w->row.org_id);
            pg_add_uuid(p, 1, &w->row.event_id);
            pg_add_uuid(p, 2, &w->row.id);
            pg_add_int(p, 3, w->row.index);
            pg_add_int(p, 4, w->row.version - 1);
            pg_add_int(p, 5, c->seat_count);
            c->seats[c->seat_count++] = w;
        }
    }
    c->seats_number = c->seat_count > 0 ? pg_send(&writer->connection, PG_SEAT_LOCK, p) : -1;
}

static void seats_judge(struct pg_writer *writer, struct pg_wave *wave, const struct comparison *c)
{
    const PGresult *found = c->seats_number >= 0 ? writer->reply.results[c->seats_number] : NULL;
    for (int i = 0; found != NULL && i < PQntuples(found); i++) {
        int64_t position = pg_cell_int(found, i, 0);
        CHECK(position >= 0);
        CHECK(position < c->seat_count);
        c->seats[position]->missed = false;
    }
    PG_WAVE_FOR_EACH(unit, wave)
    {
        for (const struct seat_write *w = unit->seats; w != NULL && unit->result == UNIT_OK; w = w->next) {
            if (w->missed)
                unit->result = UNIT_MISSED;
        }
    }
}

/* A unit that makes holds of an event that is closed by now must be decided again. */
static void events_judge(struct pg_writer *writer, struct pg_wave *wave, struct comparison *c)
{
    const PGresult *found = c->events_number >= 0 ? writer->reply.results[c->events_number] : NULL;
    for (int i = 0; found != NULL && i < PQntuples(found); i++) {
        const char *status = pg_cell_text(found, i, 2);
        struct uuid id = pg_cell_uuid(found, i, 1);
        if (strcmp(status, "published") == 0 || strcmp(status, "live") == 0)
            map_put(&c->events, &id, wave);
    }
    PG_WAVE_FOR_EACH(unit, wave)
    {
        bool open = true;
        for (const struct hold_write *w = unit->holds; w != NULL; w = w->next)
            open = open && (!makes_hold(w) || map_get(&c->events, &w->row.event_id) != NULL);
        if (open || unit->result != UNIT_OK)
            continue;
        unit->result = UNIT_MISSED;
        for (struct seat_write *w = unit->seats; w != NULL; w = w->next)
            w->missed = true;
    }
}

/* What is left in the map after this are units whose key was taken. */
static void keys_judge(struct pg_writer *writer, struct pg_wave *wave, struct comparison *c)
{
    const PGresult *ours = c->keys_number >= 0 ? writer->reply.results[c->keys_number] : NULL;
    for (int i = 0; ours != NULL && i < PQntuples(ours); i++) {
        size_t size;
        struct uuid org_id = pg_cell_uuid(ours, i, 0);
        const uint8_t *key = pg_cell_bytes(ours, i, 1, &size);
        CHECK(size == 32);
        struct uuid id = key_id(&org_id, key);
        (void)map_remove(&c->keys, &id);
    }
    PG_WAVE_FOR_EACH(unit, wave)
    {
        if (unit->key == NULL || unit->result != UNIT_OK)
            continue;
        struct uuid id = key_id(&unit->key->org_id, unit->key->key);
        if (map_get(&c->keys, &id) != NULL)
            unit->result = UNIT_KEY_TAKEN;
    }
}

/* For units that missed: their keys go back, and the rows that are there are read. */
static enum pg_trouble missed_settle(struct pg_writer *writer, struct pg_wave *wave, struct comparison *c)
{
    struct pg_params *p = pg_writer_params(writer);
    int32_t key_count = 0, seat_count = 0;
    PG_WAVE_FOR_EACH(unit, wave)
    {
        if (unit->result != UNIT_MISSED || unit->key == NULL)
            continue;
        struct uuid id = key_id(&unit->key->org_id, unit->key->key);
        if (map_get(&c->keys, &id) != NULL)
            continue; /* somebody else's */
        pg_add_uuid(p, 0, &unit->key->org_id);
        pg_add_bytes(p, 1, unit->key->key, sizeof(unit->key->key));
        key_count++;
    }
    if (key_count > 0)
        (void)pg_send(&writer->connection, PG_KEY_GIVE_BACK, p);
    p = pg_writer_params(writer);
    PG_WAVE_FOR_EACH(unit, wave)
    {
        for (struct seat_write *w = unit->seats; w != NULL && unit->result == UNIT_MISSED; w = w->next) {
            w->current = (struct seat_row){
                .org_id = w->row.org_id, .event_id = w->row.event_id, .id = w->row.id, .index = w->row.index};
            pg_add_uuid(p, 0, &w->row.org_id);
            pg_add_uuid(p, 1, &w->row.event_id);
            pg_add_uuid(p, 2, &w->row.id);
            pg_add_int(p, 3, w->row.index);
            pg_add_int(p, 4, seat_count);
            c->seats[seat_count++] = w;
        }
    }
    if (seat_count == 0)
        return PG_NONE; /* keys, if any, go with the next round */
    int number = pg_send(&writer->connection, PG_SEAT_CURRENT, p);
    enum pg_trouble trouble = pg_writer_receive(writer);
    const PGresult *rows = trouble == PG_NONE ? writer->reply.results[number] : NULL;
    for (int i = 0; rows != NULL && i < PQntuples(rows); i++) {
        struct seat_write *w = c->seats[pg_cell_int(rows, i, 9)];
        if (!pg_row_read_seat(rows, i, w->row.index, &w->current))
            trouble = PG_BAD_DATA;
    }
    pg_reply_clear(&writer->reply);
    return trouble;
}

/* A unit that writes a seat twice compares with itself: it cannot be right. */
static bool unit_repeats_seat(const struct store_unit *unit)
{
    if (unit->seats == NULL || unit->seats->next == NULL)
        return false;
    struct map seen;
    bool repeats = false;
    map_init(&seen);
    for (struct seat_write *w = unit->seats; w != NULL && !repeats; w = w->next) {
        repeats = map_get(&seen, &w->row.id) != NULL;
        map_put(&seen, &w->row.id, w);
    }
    map_deinit(&seen);
    return repeats;
}

enum pg_trouble pg_wave_compare(struct pg_writer *writer, struct pg_wave *wave)
{
    struct comparison c = {.seats = NULL};
    bool any_missed = false;
    PG_WAVE_FOR_EACH(unit, wave)
    unit->result = unit_repeats_seat(unit) ? UNIT_BAD : UNIT_OK;
    map_init(&c.keys);
    map_init(&c.events);
    keys_ask(writer, wave, &c);
    events_ask(writer, wave, &c);
    seats_ask(writer, wave, &c);
    enum pg_trouble trouble = PG_NONE;
    if (c.keys_number >= 0 || c.events_number >= 0 || c.seats_number >= 0) {
        trouble = pg_writer_receive(writer);
        if (trouble == PG_NONE) {
            seats_judge(writer, wave, &c);
            events_judge(writer, wave, &c);
            keys_judge(writer, wave, &c);
        }
        pg_reply_clear(&writer->reply);
    }
    PG_WAVE_FOR_EACH(unit, wave)
    any_missed = any_missed || unit->result == UNIT_MISSED;
    if (trouble == PG_NONE && any_missed)
        trouble = missed_settle(writer, wave, &c);
    map_deinit(&c.keys);
    map_deinit(&c.events);
    return trouble;
}
