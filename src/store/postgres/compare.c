/* SPDX-License-Identifier: Apache-2.0
 * Compares a wave with what the server has, in one round trip: partitions of
 * the log, keys, users, events, blocks, checkouts, deliveries, seats. What is
 * compared by version alone is in versions.c, room in blocks in claims.c,
 * partitions in orders.c.
 *
 * Invariants: (1) nothing of a unit is written before all that it expects was
 * found so and locked. Keys that somebody may have, and partitions, users and
 * deliveries that are new, are taken by inserting them; a unit that does not get to write gives them back.
 * (2) UNIT_MISSED sets `missed` where something was not as expected, and fills
 * `current` of all its seats; a seat that somebody else has locked is missed
 * with the row that can be seen.
 *
 * Locks are taken in this order: batch id, partitions of the log, keys, users,
 * events, blocks, checkouts, deliveries, seats, then in writing holds, tickets,
 * snapshots, the feed's floor, offsets of partitions, statistics; within each in
 * order of ids. Seats and the floor are never waited for. A batch of several
 * waves begins by locking the partitions, events, blocks and checkouts of all of
 * them (pg_wave_lock()); the keys and new users
 * of its later waves still come late, and if two such batches ever wait for
 * each other the server ends one of them and it is run again.
 *
 * Runs on the writer's thread. */
#include "store/postgres/compare.h"

#include <libpq-fe.h>
#include <string.h>

#include "base/limits.h"
#include "store/postgres/rows.h"

void pg_comparison_init(struct pg_comparison *c)
{
    *c = (struct pg_comparison){.keys_number = -1,
                                .users_number = -1,
                                .events_number = -1,
                                .rooms_number = -1,
                                .new_deliveries_number = -1,
                                .orders_number = -1,
                                .new_orders_number = -1,
                                .order_claims.number = -1,
                                .layouts.number = -1,
                                .checkouts.number = -1,
                                .deliveries.number = -1,
                                .seats.number = -1};
    map_init(&c->keys);
    map_init(&c->users);
    map_init(&c->events);
    map_init(&c->rooms);
    map_init(&c->orders);
}

void pg_comparison_deinit(struct pg_comparison *c)
{
    map_deinit(&c->keys);
    map_deinit(&c->users);
    map_deinit(&c->events);
    map_deinit(&c->rooms);
    map_deinit(&c->orders);
}

struct uuid pg_pair_id(const struct uuid *a, const struct uuid *b)
{
    struct uuid id;
    for (int i = 0; i < 16; i++)
        id.bytes[i] = (uint8_t)(a->bytes[(i + 5) % 16] ^ b->bytes[i]);
    return id;
}

/* ---- Rows asked for by position ---- */

int32_t pg_marks_add(struct pg_writer *writer, struct pg_marks *marks, bool *mark)
{
    if (marks->count == marks->capacity) {
        int32_t capacity = marks->capacity == 0 ? 64 : marks->capacity * 2;
        bool **grown = ARENA_ARRAY(&writer->arena, bool *, capacity);
        for (int32_t i = 0; i < marks->count; i++)
            grown[i] = marks->marks[i];
        marks->marks = grown;
        marks->capacity = capacity;
    }
    *mark = true;
    marks->marks[marks->count] = mark;
    return marks->count++;
}

void pg_marks_send(struct pg_writer *writer, struct pg_marks *marks, enum pg_statement statement)
{
    if (marks->count > 0)
        marks->number = pg_send(&writer->connection, statement, &writer->params);
}

void pg_marks_judge(struct pg_writer *writer, const struct pg_marks *marks)
{
    const PGresult *found = marks->number >= 0 ? writer->reply.results[marks->number] : NULL;
    for (int i = 0; found != NULL && i < PQntuples(found); i++) {
        int64_t position = pg_cell_int(found, i, 0);
        CHECK(position >= 0);
        CHECK(position < marks->count);
        *marks->marks[position] = false;
    }
}

/* ---- Asking ---- */

static void keys_ask(struct pg_writer *writer, const struct pg_wave *wave, struct pg_comparison *c)
{
    struct pg_params *p = pg_writer_params(writer);
    PG_WAVE_FOR_EACH(unit, wave)
    {
        const struct key_write *key = unit->key;
        if (!pg_wave_takes_key(wave, unit) || unit->result != UNIT_OK)
            continue;
        struct uuid id = pg_key_id(key);
        map_put(&c->keys, &id, unit);
        pg_key_add(p, key);
    }
    pg_set_int(p, 5, IDEMPOTENCY_HOURS);
    if (c->keys.count > 0)
        c->keys_number = pg_send(&writer->connection, PG_KEY_TAKE, p);
}

static void users_ask(struct pg_writer *writer, const struct pg_wave *wave, struct pg_comparison *c)
{
    struct pg_params *p = pg_writer_params(writer);
    int32_t count = 0;
    PG_WAVE_FOR_EACH(unit, wave)
    for (const struct user_write *w = unit->users; w != NULL && unit->result == UNIT_OK; w = w->next) {
        if (!w->seen)
            continue;
        pg_user_add(p, &w->row);
        count++;
    }
    if (count > 0)
        c->users_number = pg_send(&writer->connection, PG_USER_SEEN, p);
}

static void seats_ask(struct pg_writer *writer, const struct pg_wave *wave, struct pg_comparison *c)
{
    struct pg_params *p = pg_writer_params(writer);
    PG_WAVE_FOR_EACH(unit, wave)
    for (struct seat_write *w = unit->seats; w != NULL && unit->result == UNIT_OK; w = w->next) {
        pg_add_uuid(p, 0, &w->row.org_id);
        pg_add_uuid(p, 1, &w->row.event_id);
        pg_add_uuid(p, 2, &w->row.id);
        pg_add_int(p, 3, w->row.index);
        pg_add_int(p, 4, w->row.version - 1);
        pg_add_int(p, 5, pg_marks_add(writer, &c->seats, &w->missed));
    }
    pg_marks_send(writer, &c->seats, PG_SEAT_LOCK);
}

/* ---- Judging ---- */

static bool unit_missed(const struct store_unit *unit)
{
    bool missed = false;
    for (const struct seat_write *w = unit->seats; w != NULL; w = w->next)
        missed = missed || w->missed;
    for (const struct checkout_write *w = unit->checkouts; w != NULL; w = w->next)
        missed = missed || w->missed;
    for (const struct event_check *w = unit->checks; w != NULL; w = w->next)
        missed = missed || w->missed;
    for (const struct event_write *w = unit->events; w != NULL; w = w->next)
        missed = missed || w->missed;
    for (const struct layout_write *w = unit->layouts; w != NULL; w = w->next)
        missed = missed || w->missed;
    for (const struct delivery_write *w = unit->deliveries; w != NULL; w = w->next)
        missed = missed || w->missed;
    for (const struct order_check *w = unit->order_checks; w != NULL; w = w->next)
        missed = missed || w->missed;
    for (const struct order_claim *w = unit->order_claims; w != NULL; w = w->next)
        missed = missed || w->missed;
    return missed;
}

/* What is left in the map after this are units whose key was taken. */
static void keys_judge(struct pg_writer *writer, const struct pg_wave *wave, struct pg_comparison *c)
{
    const PGresult *ours = c->keys_number >= 0 ? writer->reply.results[c->keys_number] : NULL;
    for (int i = 0; ours != NULL && i < PQntuples(ours); i++) {
        size_t size;
        struct key_write taken = {.org_id = pg_cell_uuid(ours, i, 0)};
        const void *key = pg_cell_bytes(ours, i, 1, &size);
        CHECK(size == sizeof(taken.key));
        memcpy(taken.key, key, sizeof(taken.key));
        struct uuid id = pg_key_id(&taken);
        (void)map_remove(&c->keys, &id);
    }
    PG_WAVE_FOR_EACH(unit, wave)
    {
        if (!pg_wave_takes_key(wave, unit) || unit->result != UNIT_OK)
            continue;
        struct uuid id = pg_key_id(unit->key);
        if (map_get(&c->keys, &id) != NULL)
            unit->result = UNIT_KEY_TAKEN;
    }
}

static void users_judge(struct pg_writer *writer, struct pg_comparison *c)
{
    const PGresult *rows = c->users_number >= 0 ? writer->reply.results[c->users_number] : NULL;
    for (int i = 0; rows != NULL && i < PQntuples(rows); i++) {
        struct uuid org_id = pg_cell_uuid(rows, i, 0), user_id = pg_cell_uuid(rows, i, 1);
        struct uuid id = pg_pair_id(&org_id, &user_id);
        map_put(&c->users, &id, c);
    }
}

static void wave_judge(struct pg_writer *writer, const struct pg_wave *wave, struct pg_comparison *c)
{
    pg_orders_judge(writer, wave, c);
    pg_events_judge(writer, wave, c);
    pg_marks_judge(writer, &c->checkouts);
    pg_deliveries_judge(writer, wave, c);
    pg_marks_judge(writer, &c->seats);
    PG_WAVE_FOR_EACH(unit, wave)
    {
        if (unit->result == UNIT_OK && unit_missed(unit))
            unit->result = UNIT_MISSED;
    }
    users_judge(writer, c);
    keys_judge(writer, wave, c);
    pg_claims_judge(writer, wave, c);
}

/* ---- Units that do not get to write ---- */

static void keys_give_back(struct pg_writer *writer, const struct pg_wave *wave,
                           const struct pg_comparison *c)
{
    struct pg_params *p = pg_writer_params(writer);
    int32_t count = 0;
    PG_WAVE_FOR_EACH(unit, wave)
    {
        if (unit->result != UNIT_MISSED || !pg_wave_takes_key(wave, unit))
            continue;
        struct uuid id = pg_key_id(unit->key);
        if (map_get(&c->keys, &id) != NULL)
            continue; /* somebody else's */
        pg_add_uuid(p, 0, &unit->key->org_id);
        pg_add_bytes(p, 1, unit->key->key, sizeof(unit->key->key));
        count++;
    }
    if (count > 0)
        (void)pg_send(&writer->connection, PG_KEY_GIVE_BACK, p);
}

static void users_give_back(struct pg_writer *writer, const struct pg_wave *wave,
                            const struct pg_comparison *c)
{
    struct pg_params *p = pg_writer_params(writer);
    int32_t count = 0;
    PG_WAVE_FOR_EACH(unit, wave)
    for (const struct user_write *w = unit->users; w != NULL && unit->result != UNIT_OK; w = w->next) {
        struct uuid id = pg_pair_id(&w->row.org_id, &w->row.id);
        if (!w->seen || map_get(&c->users, &id) == NULL)
            continue;
        pg_add_uuid(p, 0, &w->row.org_id);
        pg_add_uuid(p, 1, &w->row.id);
        count++;
    }
    if (count > 0)
        (void)pg_send(&writer->connection, PG_USER_GIVE_BACK, p);
}

/* The rows that are there instead of what was expected. */
static enum pg_trouble seats_read(struct pg_writer *writer, const struct pg_wave *wave,
                                  const struct pg_comparison *c)
{
    struct pg_params *p = pg_writer_params(writer);
    struct seat_write **seats = ARENA_ARRAY(&writer->arena, struct seat_write *, c->seats.count + 1);
    int32_t count = 0;
    PG_WAVE_FOR_EACH(unit, wave)
    for (struct seat_write *w = unit->seats; w != NULL && unit->result == UNIT_MISSED; w = w->next) {
        w->current = (struct seat_row){
            .org_id = w->row.org_id, .event_id = w->row.event_id, .id = w->row.id, .index = w->row.index};
        pg_add_uuid(p, 0, &w->row.org_id);
        pg_add_uuid(p, 1, &w->row.event_id);
        pg_add_uuid(p, 2, &w->row.id);
        pg_add_int(p, 3, w->row.index);
        pg_add_int(p, 4, count);
        seats[count++] = w;
    }
    if (count == 0)
        return PG_NONE; /* what was given back goes with the next round */
    int number = pg_send(&writer->connection, PG_SEAT_CURRENT, p);
    enum pg_trouble trouble = pg_writer_receive(writer);
    const PGresult *rows = trouble == PG_NONE ? writer->reply.results[number] : NULL;
    for (int i = 0; rows != NULL && i < PQntuples(rows); i++) {
        struct seat_write *w = seats[pg_cell_int(rows, i, 9)];
        if (!pg_row_read_seat(rows, i, w->row.index, &w->current))
            trouble = PG_BAD_DATA;
    }
    pg_reply_clear(&writer->reply);
    return trouble;
}

static enum pg_trouble wave_settle(struct pg_writer *writer, const struct pg_wave *wave,
                                   const struct pg_comparison *c)
{
    bool all_ok = true;
    PG_WAVE_FOR_EACH(unit, wave)
    all_ok = all_ok && unit->result == UNIT_OK;
    if (all_ok)
        return PG_NONE;
    pg_orders_give_back(writer, wave);
    keys_give_back(writer, wave, c);
    users_give_back(writer, wave, c);
    pg_deliveries_give_back(writer, wave);
    return seats_read(writer, wave, c);
}

/* ---- The wave ---- */

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
    struct pg_comparison c;
    enum pg_trouble trouble = PG_NONE;
    int queued = writer->connection.queue_count;
    PG_WAVE_FOR_EACH(unit, wave)
    unit->result = unit_repeats_seat(unit) ? UNIT_BAD : UNIT_OK;
    pg_comparison_init(&c);
    pg_orders_ask(writer, wave, &c);
    keys_ask(writer, wave, &c);
    users_ask(writer, wave, &c);
    pg_events_ask(writer, wave, &c);
    pg_claims_ask(writer, wave, &c);
    pg_checkouts_ask(writer, wave, &c);
    pg_deliveries_ask(writer, wave, &c);
    seats_ask(writer, wave, &c);
    if (writer->connection.queue_count > queued) {
        trouble = pg_writer_receive(writer);
        if (trouble == PG_NONE)
            wave_judge(writer, wave, &c);
        pg_reply_clear(&writer->reply);
    }
    if (trouble == PG_NONE)
        trouble = wave_settle(writer, wave, &c);
    pg_comparison_deinit(&c);
    return trouble;
}

void pg_wave_lock(struct pg_writer *writer, const struct pg_wave *wave)
{
    struct pg_comparison c; /* the answers are not looked at: every wave asks again */
    pg_comparison_init(&c);
    pg_orders_gate(writer, wave);
    pg_events_ask(writer, wave, &c);
    pg_claims_ask(writer, wave, &c);
    pg_checkouts_ask(writer, wave, &c);
    pg_comparison_deinit(&c);
}
