/* SPDX-License-Identifier: Apache-2.0
 * A batch in waves. A wave is a run of units that touch nothing in common, so
 * that one statement per table can write them all; a batch of the lane is
 * nearly always one wave, since a seat is in one uncommitted command only.
 *
 * Invariant: units are written in order as far as it can be seen: a unit that
 * touches what an earlier one touches is in a later wave. Relying on the same
 * event or partition of the log, or claiming room in the same block, is not
 * touching.
 *
 * Runs on the writer's thread. */
#include "store/postgres/postgres_int.h"

/* Keys of one organization are hashes: half of one, mixed with the organization, is as good as an id. */
struct uuid pg_key_id(const struct key_write *key)
{
    struct uuid id;
    for (int i = 0; i < 16; i++)
        id.bytes[i] = (uint8_t)(key->key[i] ^ key->org_id.bytes[i]);
    return id;
}

/* Equal names have equal ids; that others may have the same only costs a wave. */
struct uuid pg_name_id(const char *name)
{
    struct uuid id = {{0}};
    for (size_t i = 0; name[i] != '\0'; i++)
        id.bytes[i % 16] = (uint8_t)(id.bytes[i % 16] * 31 + (uint8_t)name[i]);
    return id;
}

/* As above. */
struct uuid pg_order_id(const char *topic, int32_t partition)
{
    struct uuid id = pg_name_id(topic);
    for (size_t i = 0; i < sizeof(partition); i++)
        id.bytes[i] ^= (uint8_t)((uint32_t)partition >> 8 * i);
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

/* What many units may rely on, but not beside one that changes it. */
static bool rely(struct map *touched, const struct uuid *id, const struct store_unit *unit)
{
    const void *other = map_get(touched, id);
    if (other == NULL)
        map_put(touched, id, touched); /* nobody's */
    return other == NULL || other == unit || other == touched;
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
    for (const struct delivery_write *w = unit->deliveries; w != NULL && free; w = w->next) {
        struct uuid id = pg_name_id(w->row.name);
        free = touch(touched, &id, unit);
    }
    for (const struct order_claim *w = unit->order_claims; w != NULL && free; w = w->next) {
        struct uuid id = pg_order_id(w->row.topic, w->row.partition);
        free = touch(touched, &id, unit);
    }
    for (const struct order_check *w = unit->order_checks; w != NULL && free; w = w->next) {
        struct uuid id = pg_order_id(w->topic, w->partition);
        free = rely(touched, &id, unit);
    }
    if (unit->key != NULL && free) {
        struct uuid id = pg_key_id(unit->key);
        free = touch(touched, &id, unit);
    }
    return free;
}

static bool unit_is_catalogue(const struct store_unit *unit)
{
    return unit->orgs != NULL || unit->events != NULL || unit->layouts != NULL || unit->blocks != NULL;
}

bool pg_wave_takes_key(const struct pg_wave *wave, const struct store_unit *unit)
{
    return unit->key != NULL && (wave->careful || !unit->key->is_new);
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
    wave->batch = batch;
    wave->count = 0;
    wave->careful = single;
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
