/* SPDX-License-Identifier: Apache-2.0
 * Reading the tables of the simulated store: lookups, and the load at start. */
#include <stdlib.h>
#include <string.h>

#include "store/sim/sim_int.h"

/* ---- Lookups ---- */

static void copy_hold(struct store_lookup *lookup, const struct sim_hold *hold)
{
    struct hold_row *row = &lookup->holds[lookup->hold_count++];
    *row = hold->row;
    row->cart_token = arena_text(lookup->arena, hold->row.cart_token);
    row->notes = arena_text(lookup->arena, hold->row.notes);
}

static bool is_wanted(const struct sim_store *sim, const struct store_lookup *lookup,
                      const struct sim_hold *hold)
{
    if (lookup->kind == LOOKUP_CHECKOUT)
        return uuid_equal(&hold->row.checkout_id, &lookup->id);
    const struct sim_event *event = map_get(&sim->database->tables.events, &hold->row.event_id);
    int64_t due_ms = hold->row.held_until_ms + event->row.policy.release_grace_seconds * 1000ll;
    return hold->row.state == HOLD_ACTIVE && due_ms <= lookup->now_ms && lookup->hold_count < lookup->limit;
}

static int compare_rows(const void *a, const void *b)
{
    return uuid_compare(&((const struct hold_row *)a)->id, &((const struct hold_row *)b)->id);
}

static void read_holds(struct sim_store *sim, struct store_lookup *lookup)
{
    lookup->holds = ARENA_ARRAY(lookup->arena, struct hold_row, sim->database->tables.holds.count + 1);
    size_t position = 0;
    struct sim_hold *hold;
    while ((hold = map_next(&sim->database->tables.holds, &position)) != NULL) {
        if (is_wanted(sim, lookup, hold))
            copy_hold(lookup, hold);
    }
    qsort(lookup->holds, (size_t)lookup->hold_count, sizeof(struct hold_row), compare_rows);
}

static void read_checkout(struct sim_store *sim, struct store_lookup *lookup)
{
    struct sim_checkout *checkout = map_get(&sim->database->tables.checkouts, &lookup->id);
    if (checkout == NULL || !uuid_equal(&checkout->row.org_id, &lookup->org_id))
        return;
    lookup->found = true;
    lookup->checkout = checkout->row;
    lookup->checkout.payment_token = arena_text(lookup->arena, checkout->row.payment_token);
    lookup->checkout.notes = arena_text(lookup->arena, checkout->row.notes);
    read_holds(sim, lookup);
    lookup->tickets = ARENA_ARRAY(lookup->arena, struct ticket_row, sim->database->tables.tickets.count + 1);
    size_t position = 0;
    struct ticket_row *ticket;
    while ((ticket = map_next(&sim->database->tables.tickets, &position)) != NULL) {
        if (uuid_equal(&ticket->checkout_id, &lookup->id))
            lookup->tickets[lookup->ticket_count++] = *ticket;
    }
}

static void read_event(struct sim_store *sim, struct store_lookup *lookup)
{
    const struct sim_event *event = map_get(&sim->database->tables.events, &lookup->id);
    lookup->document = NULL;
    lookup->block_count = 0;
    lookup->seat_count = 0;
    lookup->holds_ever = 0;
    if (event == NULL || !uuid_equal(&event->row.org_id, &lookup->org_id))
        return;
    lookup->found = true;
    lookup->event = event->row;
    lookup->event.name = arena_text(lookup->arena, event->row.name);
    if (event->document == NULL)
        return;
    lookup->document = arena_text(lookup->arena, event->document);
    lookup->holds_ever = event->holds_ever;
    lookup->block_count = event->block_count;
    lookup->blocks = ARENA_ARRAY(lookup->arena, struct block_row, event->block_count + 1);
    for (int32_t i = 0; i < event->block_count; i++) {
        lookup->blocks[i] = event->blocks[i];
        lookup->blocks[i].name = arena_text(lookup->arena, event->blocks[i].name);
    }
    lookup->seat_count = event->seat_count;
    lookup->seat_ids = ARENA_ARRAY(lookup->arena, struct uuid, event->seat_count + 1);
    for (int32_t i = 0; i < event->seat_count; i++)
        lookup->seat_ids[i] = event->seats[i].row.id;
}

static void read_user(struct sim_store *sim, struct store_lookup *lookup)
{
    struct uuid key = sim_key_of_user(&lookup->org_id, &lookup->id);
    const struct user_row *user = map_get(&sim->database->tables.users, &key);
    lookup->found = user != NULL && uuid_equal(&user->id, &lookup->id);
    if (lookup->found)
        lookup->user = *user;
}

static void read_delivery(struct sim_store *sim, struct store_lookup *lookup)
{
    const struct sim_delivery *delivery = sim_find_delivery(&sim->database->tables, lookup->name);
    lookup->found = delivery != NULL;
    if (delivery == NULL)
        return;
    lookup->delivery = delivery->row;
    lookup->delivery.name = arena_text(lookup->arena, delivery->row.name);
}

static void read_order(struct sim_store *sim, struct store_lookup *lookup)
{
    const struct sim_order *order = sim_find_order(&sim->database->tables, lookup->name, lookup->partition);
    lookup->found = order != NULL;
    if (order == NULL)
        return;
    lookup->order = order->row;
    lookup->order.topic = arena_text(lookup->arena, order->row.topic);
}

static void read_key(struct sim_store *sim, struct store_lookup *lookup)
{
    const struct sim_key *key =
        sim_find_key(&sim->database->tables, &lookup->org_id, lookup->key, lookup->now_ms);
    lookup->found = key != NULL;
    if (key == NULL)
        return;
    memcpy(lookup->body, key->body, 32);
    lookup->result = arena_copy(lookup->arena, key->result, key->result_size);
    lookup->result_size = key->result_size;
}

static void read_hold(struct sim_store *sim, struct store_lookup *lookup)
{
    const struct sim_hold *hold = map_get(&sim->database->tables.holds, &lookup->id);
    lookup->found = hold != NULL && uuid_equal(&hold->row.org_id, &lookup->org_id);
    lookup->holds = ARENA_NEW(lookup->arena, struct hold_row);
    if (lookup->found)
        copy_hold(lookup, hold);
}

void sim_tables_lookup(struct sim_store *sim, struct store_lookup *lookup)
{
    lookup->found = false;
    lookup->hold_count = 0;
    lookup->ticket_count = 0;
    switch (lookup->kind) {
    case LOOKUP_KEY:
        read_key(sim, lookup);
        break;
    case LOOKUP_HOLD:
        read_hold(sim, lookup);
        break;
    case LOOKUP_CHECKOUT:
        read_checkout(sim, lookup);
        break;
    case LOOKUP_DUE_HOLDS:
        read_holds(sim, lookup);
        lookup->found = lookup->hold_count > 0;
        break;
    case LOOKUP_EVENT:
        read_event(sim, lookup);
        break;
    case LOOKUP_USER:
        read_user(sim, lookup);
        break;
    case LOOKUP_DELIVERY:
        read_delivery(sim, lookup);
        break;
    case LOOKUP_ORDER:
        read_order(sim, lookup);
        break;
    }
}

/* ---- The load at start ---- */

static enum err load_event(const struct sim_event *event, const struct store_loader *loader, void *context)
{
    enum err err = loader->on_event(context, &event->row);
    if (err != ERR_OK || event->document == NULL)
        return err;
    err = loader->on_layout(context, &event->row.id, event->document, event->blocks, event->block_count,
                            event->holds_ever);
    for (int32_t i = 0; i < event->seat_count && err == ERR_OK; i++)
        err = loader->on_seat(context, &event->seats[i].row);
    return err;
}

static bool is_open(const struct checkout_row *row)
{
    return row->state == CHECKOUT_PENDING_PAYMENT || row->state == CHECKOUT_PROCESSING ||
           row->refund == REFUND_OWED;
}

enum err sim_tables_load(struct sim_store *sim, const struct store_loader *loader, void *context)
{
    struct feed_position place = sim_feed_position(sim->database);
    enum err err = loader->on_position != NULL ? loader->on_position(context, &place) : ERR_OK;
    size_t position = 0;
    struct org_row *org;
    while (err == ERR_OK && (org = map_next(&sim->database->tables.orgs, &position)) != NULL)
        err = loader->on_org(context, org);
    position = 0;
    struct user_row *user;
    while (err == ERR_OK && (user = map_next(&sim->database->tables.users, &position)) != NULL)
        err = loader->on_user(context, user);
    position = 0;
    struct sim_event *event;
    while (err == ERR_OK && (event = map_next(&sim->database->tables.events, &position)) != NULL)
        err = load_event(event, loader, context);
    position = 0;
    struct sim_hold *hold;
    while (err == ERR_OK && (hold = map_next(&sim->database->tables.holds, &position)) != NULL) {
        if (hold->row.state == HOLD_ACTIVE)
            err = loader->on_hold(context, &hold->row);
    }
    position = 0;
    struct sim_checkout *checkout;
    while (err == ERR_OK && (checkout = map_next(&sim->database->tables.checkouts, &position)) != NULL) {
        if (is_open(&checkout->row))
            err = loader->on_checkout(context, &checkout->row);
    }
    return err;
}
