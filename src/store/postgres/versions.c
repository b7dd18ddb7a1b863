/* SPDX-License-Identifier: Apache-2.0
 * Compares what has a version and is not a seat: events, checkouts, deliveries;
 * and whether a layout may still be replaced.
 *
 * Invariants: (1) whoever relies on an event shares its lock until the end of
 * the transaction; whoever changes it, or its blocks or layout, has it alone.
 * Both pass a gate first, in turn, so that nobody is passed for ever.
 * (2) What was waited for is seen: the lock's own statement gives the version
 * as it is then; whatever else depends on it is asked by a later statement.
 * (3) One statement locks all events of a wave, in order: if one of them is
 * changed, all are locked alone.
 *
 * Runs on the writer's thread. */
#include <libpq-fe.h>
#include <string.h>

#include "store/postgres/compare.h"
#include "store/postgres/rows.h"

/* ---- Events ---- */

struct event_found {
    int32_t version; /* 0: it is not there */
};

static void event_ask(struct pg_writer *writer, struct pg_params *p, struct pg_comparison *c,
                      const struct uuid *org_id, const struct uuid *event_id)
{
    struct uuid id = pg_pair_id(org_id, event_id);
    if (map_get(&c->events, &id) != NULL)
        return;
    map_put(&c->events, &id, ARENA_NEW(&writer->arena, struct event_found));
    pg_add_uuid(p, 0, org_id);
    pg_add_uuid(p, 1, event_id);
}

static void layouts_ask(struct pg_writer *writer, const struct pg_wave *wave, struct pg_comparison *c)
{
    struct pg_params *p = pg_writer_params(writer);
    PG_WAVE_FOR_EACH(unit, wave)
    for (struct layout_write *w = unit->layouts; w != NULL; w = w->next) {
        pg_add_uuid(p, 0, &w->org_id);
        pg_add_uuid(p, 1, &w->event_id);
        pg_add_int(p, 2, pg_marks_add(writer, &c->layouts, &w->missed));
    }
    pg_marks_send(writer, &c->layouts, PG_LAYOUT_UNHELD);
}

void pg_events_ask(struct pg_writer *writer, const struct pg_wave *wave, struct pg_comparison *c)
{
    struct pg_params *p = pg_writer_params(writer);
    bool changes = false;
    PG_WAVE_FOR_EACH(unit, wave)
    {
        for (struct event_check *w = unit->checks; w != NULL; w = w->next)
            event_ask(writer, p, c, &w->org_id, &w->event_id);
        for (struct event_write *w = unit->events; w != NULL; w = w->next) {
            w->missed = false;
            if (w->insert)
                continue;
            event_ask(writer, p, c, &w->row.org_id, &w->row.id);
            changes = true;
        }
        for (struct layout_write *w = unit->layouts; w != NULL; w = w->next) {
            event_ask(writer, p, c, &w->org_id, &w->event_id);
            changes = true;
        }
    }
    if (c->events.count > 0) {
        (void)pg_send(&writer->connection, changes ? PG_EVENT_GATE_LOCK : PG_EVENT_GATE_SHARE, p);
        c->events_number = pg_send(&writer->connection, changes ? PG_EVENT_LOCK : PG_EVENT_SHARE, p);
    }
    layouts_ask(writer, wave, c);
}

static int32_t event_version(const struct pg_comparison *c, const struct uuid *org_id,
                             const struct uuid *event_id)
{
    struct uuid id = pg_pair_id(org_id, event_id);
    const struct event_found *found = map_get(&c->events, &id);
    CHECK(found != NULL);
    return found->version;
}

static bool unit_holds_of(const struct store_unit *unit, const struct layout_write *layout)
{
    for (const struct hold_write *w = unit->holds; w != NULL; w = w->next) {
        if (w->insert && uuid_equal(&w->row.event_id, &layout->event_id) &&
            uuid_equal(&w->row.org_id, &layout->org_id))
            return true;
    }
    return false;
}

/* Statistics are applied at the end of a batch, so what its earlier units did is looked at here. */
static void layouts_judge(struct pg_writer *writer, const struct pg_wave *wave, struct pg_comparison *c)
{
    pg_marks_judge(writer, &c->layouts);
    PG_WAVE_FOR_EACH(unit, wave)
    for (struct layout_write *w = unit->layouts; w != NULL; w = w->next) {
        LIST_FOR_EACH(node, &wave->batch->units) {
            const struct store_unit *earlier = CONTAINER_OF(node, struct store_unit, node);
            if (earlier == unit)
                break;
            if (earlier->result == UNIT_OK && unit_holds_of(earlier, w))
                w->missed = true;
        }
    }
}

void pg_events_judge(struct pg_writer *writer, const struct pg_wave *wave, struct pg_comparison *c)
{
    const PGresult *rows = c->events_number >= 0 ? writer->reply.results[c->events_number] : NULL;
    for (int i = 0; rows != NULL && i < PQntuples(rows); i++) {
        struct uuid org_id = pg_cell_uuid(rows, i, 0), event_id = pg_cell_uuid(rows, i, 1);
        struct uuid id = pg_pair_id(&org_id, &event_id);
        struct event_found *found = map_get(&c->events, &id);
        CHECK(found != NULL);
        found->version = (int32_t)pg_cell_int(rows, i, 2);
    }
    PG_WAVE_FOR_EACH(unit, wave)
    {
        for (struct event_check *w = unit->checks; w != NULL; w = w->next)
            w->missed = event_version(c, &w->org_id, &w->event_id) != w->version;
        for (struct event_write *w = unit->events; w != NULL; w = w->next)
            w->missed = !w->insert && event_version(c, &w->row.org_id, &w->row.id) != w->row.version - 1;
    }
    layouts_judge(writer, wave, c);
}

/* ---- Checkouts ---- */

void pg_checkouts_ask(struct pg_writer *writer, const struct pg_wave *wave, struct pg_comparison *c)
{
    struct pg_params *p = pg_writer_params(writer);
    PG_WAVE_FOR_EACH(unit, wave)
    for (struct checkout_write *w = unit->checkouts; w != NULL; w = w->next) {
        w->missed = false;
        if (w->insert)
            continue;
        pg_add_uuid(p, 0, &w->row.org_id);
        pg_add_uuid(p, 1, &w->row.id);
        pg_add_int(p, 2, w->row.version - 1);
        pg_add_int(p, 3, pg_marks_add(writer, &c->checkouts, &w->missed));
    }
    pg_marks_send(writer, &c->checkouts, PG_CHECKOUT_LOCK);
}

/* ---- Deliveries ---- */

static bool delivery_is_new(const struct delivery_write *write)
{
    return write->row.version == 1;
}

void pg_deliveries_ask(struct pg_writer *writer, const struct pg_wave *wave, struct pg_comparison *c)
{
    struct pg_params *p = pg_writer_params(writer);
    int32_t new_count = 0;
    PG_WAVE_FOR_EACH(unit, wave)
    for (struct delivery_write *w = unit->deliveries; w != NULL; w = w->next) {
        w->missed = true; /* until it was found, or inserted */
        if (!delivery_is_new(w) || unit->result != UNIT_OK)
            continue;
        pg_delivery_add(p, &w->row);
        new_count++;
    }
    if (new_count > 0)
        c->new_deliveries_number = pg_send(&writer->connection, PG_DELIVERY_INSERT, p);
    p = pg_writer_params(writer);
    PG_WAVE_FOR_EACH(unit, wave)
    for (struct delivery_write *w = unit->deliveries; w != NULL; w = w->next) {
        if (delivery_is_new(w))
            continue;
        pg_add_text(p, 0, w->row.name);
        pg_add_int(p, 1, w->row.version - 1);
        pg_add_int(p, 2, pg_marks_add(writer, &c->deliveries, &w->missed));
    }
    pg_marks_send(writer, &c->deliveries, PG_DELIVERY_LOCK);
}

void pg_deliveries_judge(struct pg_writer *writer, const struct pg_wave *wave, struct pg_comparison *c)
{
    const PGresult *rows =
        c->new_deliveries_number >= 0 ? writer->reply.results[c->new_deliveries_number] : NULL;
    for (int i = 0; rows != NULL && i < PQntuples(rows); i++) {
        const char *name = pg_cell_text(rows, i, 0);
        PG_WAVE_FOR_EACH(unit, wave)
        for (struct delivery_write *w = unit->deliveries; w != NULL; w = w->next) {
            if (delivery_is_new(w) && strcmp(w->row.name, name) == 0)
                w->missed = false;
        }
    }
    pg_marks_judge(writer, &c->deliveries);
}

void pg_deliveries_give_back(struct pg_writer *writer, const struct pg_wave *wave)
{
    struct pg_params *p = pg_writer_params(writer);
    int32_t count = 0;
    PG_WAVE_FOR_EACH(unit, wave)
    for (const struct delivery_write *w = unit->deliveries; w != NULL; w = w->next) {
        if (unit->result == UNIT_OK || !delivery_is_new(w) || w->missed)
            continue;
        pg_add_text(p, 0, w->row.name);
        count++;
    }
    if (count > 0)
        (void)pg_send(&writer->connection, PG_DELIVERY_GIVE_BACK, p);
}
