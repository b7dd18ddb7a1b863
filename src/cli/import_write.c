/* SPDX-License-Identifier: Apache-2.0
 * Writes a checked import into a store as one unit of one batch: all of it
 * commits or nothing does. Only then is anything reported.
 *
 * The store is driven from here, by its poll loop, as the lane would do it. */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/import.h"
#include "lane/catalogue.h"

/* ---- What is there already ---- */

struct import_existing {
    const struct import_plan *plan;
    bool org;
    bool event;
};

static enum err on_org(void *context, const struct org_row *org)
{
    struct import_existing *existing = context;
    existing->org |= uuid_equal(&org->id, &existing->plan->org.id);
    return ERR_OK;
}

static enum err on_user(void *context, const struct user_row *user)
{
    (void)context;
    (void)user;
    return ERR_OK;
}

static enum err on_event(void *context, const struct event_row *event)
{
    struct import_existing *existing = context;
    existing->event |= uuid_equal(&event->id, &existing->plan->event.id);
    return ERR_OK;
}

static enum err on_layout(void *context, const struct uuid *event_id, const char *document,
                          const struct block_row *blocks, int32_t block_count, int64_t holds_ever)
{
    (void)context;
    (void)event_id;
    (void)document;
    (void)blocks;
    (void)block_count;
    (void)holds_ever;
    return ERR_OK;
}

static enum err on_seat(void *context, const struct seat_row *seat)
{
    (void)context;
    (void)seat;
    return ERR_OK;
}

static enum err on_hold(void *context, const struct hold_row *hold)
{
    (void)context;
    (void)hold;
    return ERR_OK;
}

static enum err on_checkout(void *context, const struct checkout_row *checkout)
{
    (void)context;
    (void)checkout;
    return ERR_OK;
}

static enum err find_existing(struct store *store, struct import_existing *existing)
{
    static const struct store_loader loader = {
        .on_org = on_org,
        .on_user = on_user,
        .on_event = on_event,
        .on_layout = on_layout,
        .on_seat = on_seat,
        .on_hold = on_hold,
        .on_checkout = on_checkout,
    };
    /* Ids made a moment ago are nobody's yet: no need to walk the store for them. */
    if (!existing->plan->has_org_id && !existing->plan->has_event_id)
        return ERR_OK;
    return store_load(store, &loader, existing);
}

/* ---- The one unit ---- */

static void add_audit(struct store_unit *unit, struct arena *arena, const struct import_plan *plan,
                      enum audit_action action, const char *entity_type, const struct uuid *entity_id,
                      int64_t now_ms)
{
    struct audit_write *write = ARENA_NEW(arena, struct audit_write);

    write->row = (struct audit_row){
        .org_id = plan->org.id,
        .role = ROLE_SYSTEM,
        .action = action,
        .entity_type = entity_type,
        .entity_id = *entity_id,
        .reason = "import",
        .held_duration_seconds = -1,
        .created_ms = now_ms,
    };
    if (action != AUDIT_ORGANIZATION_CREATED)
        write->row.event_id = plan->event.id;
    write->next = unit->audits;
    unit->audits = write;
}

static void fill_batch(struct store_batch *batch, const struct import_plan *plan, bool org_exists,
                       struct rng *rng)
{
    struct arena *arena = &batch->arena;
    struct store_unit *unit = ARENA_NEW(arena, struct store_unit);

    list_init(&unit->node);
    if (!org_exists) {
        unit->orgs = ARENA_NEW(arena, struct org_write);
        unit->orgs->row = plan->org;
        add_audit(unit, arena, plan, AUDIT_ORGANIZATION_CREATED, "Organization", &plan->org.id,
                  batch->now_ms);
    }
    unit->events = ARENA_NEW(arena, struct event_write);
    unit->events->insert = true;
    unit->events->row = plan->event;
    unit->events->row.version = 1;
    add_audit(unit, arena, plan, AUDIT_EVENT_CHANGED, "Event", &plan->event.id, batch->now_ms);
    unit->layouts =
        catalogue_layout_write(arena, &plan->event, plan->document, plan->layout, rng, batch->now_ms);
    add_audit(unit, arena, plan, AUDIT_LAYOUT_CHANGED, "Event", &plan->event.id, batch->now_ms);
    list_append(&batch->units, &unit->node);
    batch->unit_count = 1;
}

static void on_batch_done(struct store_batch *batch)
{
    bool *done = batch->context;
    *done = true;
}

static void wait_for_store(struct store *store, const bool *done, struct progress *progress)
{
    int64_t begun_us = clock_monotonic_us();

    while (!*done) {
        struct pollfd descriptor = {.fd = store_fd(store), .events = POLLIN};
        if (poll(&descriptor, 1, 50) > 0)
            store_poll(store);
        /* The store tells only when all is written, so the bar creeps towards the end. */
        double seconds = (double)(clock_monotonic_us() - begun_us) / 1e6;
        progress_update(progress, 0.5 + 0.49 * seconds / (seconds + 1));
    }
}

bool import_write(struct store *store, const struct import_plan *plan, struct rng *rng, int64_t now_ms,
                  struct progress *progress, char *why, size_t why_size)
{
    struct import_existing existing = {.plan = plan};
    struct store_batch batch = {.now_ms = now_ms, .on_done = on_batch_done};
    bool done = false, good = false;
    enum err err;

    arena_init(&batch.arena);
    list_init(&batch.units);
    list_init(&batch.node);
    batch.context = &done;
    batch.id = uuid_make(rng, now_ms);
    err = find_existing(store, &existing);
    if (err != ERR_OK)
        goto finished;
    if (existing.event) {
        snprintf(why, why_size, "the event %.64s exists already; change it through the admin API",
                 plan->event.name);
        goto failed;
    }
    fill_batch(&batch, plan, existing.org, rng);
    progress_step(progress, "writing", 0.5);
    err = store_submit(store, &batch);
    if (err != ERR_OK)
        goto finished;
    wait_for_store(store, &done, progress);
    err = batch.outcome == STORE_COMMITTED ? ERR_OK : batch.err != ERR_OK ? batch.err : ERR_STORE_UNAVAILABLE;
    if (err == ERR_OK && CONTAINER_OF(batch.units.next, struct store_unit, node)->result != UNIT_OK) {
        snprintf(why, why_size, "the store refused the import; nothing was written");
        goto failed;
    }
finished:
    good = err == ERR_OK;
    if (!good)
        snprintf(why, why_size, "the store could not be written: %s", err_text(err));
failed:
    arena_deinit(&batch.arena);
    return good;
}
