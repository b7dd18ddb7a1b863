/* SPDX-License-Identifier: Apache-2.0
 * The tables of the simulated store: what a commit does to them, and reading
 * them back. A unit is written only if every seat is at the version it expects
 * and its key is free; otherwise nothing of it is.
 *
 * What a real store's constraints would refuse is a CHECK here: a lane that
 * tries to give a seat a second active hold is wrong, and the run says so. */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "store/sim/sim_int.h"

void sim_tables_init(struct sim_store *sim)
{
    struct sim_tables *tables = &sim->tables;
    struct map *maps[] = {&tables->orgs,    &tables->events, &tables->holds,  &tables->checkouts,
                          &tables->tickets, &tables->keys,   &tables->batches};
    for (size_t i = 0; i < COUNT_OF(maps); i++)
        map_init(maps[i]);
}

static void free_text(const char *text)
{
    free((char *)text);
}

static char *copy_text(const char *text)
{
    char *copy = text != NULL ? strdup(text) : NULL;
    CHECK(text == NULL || copy != NULL);
    return copy;
}

static void drop_layout(struct sim_event *event)
{
    for (int32_t i = 0; i < event->block_count; i++)
        free_text(event->blocks[i].name);
    free(event->blocks);
    free(event->seats);
    free(event->document);
}

void sim_tables_deinit(struct sim_store *sim)
{
    struct sim_tables *tables = &sim->tables;
    size_t position = 0;
    struct org_row *org;
    while ((org = map_next(&tables->orgs, &position)) != NULL) {
        free_text(org->name);
        free(org);
    }
    position = 0;
    struct sim_event *event;
    while ((event = map_next(&tables->events, &position)) != NULL) {
        free_text(event->row.name);
        drop_layout(event);
        free(event);
    }
    position = 0;
    struct sim_hold *hold;
    while ((hold = map_next(&tables->holds, &position)) != NULL) {
        free_text(hold->row.cart_token);
        free_text(hold->row.notes);
        free(hold);
    }
    position = 0;
    struct sim_checkout *checkout;
    while ((checkout = map_next(&tables->checkouts, &position)) != NULL) {
        free_text(checkout->row.payment_token);
        free_text(checkout->row.notes);
        free(checkout);
    }
    position = 0;
    struct ticket_row *ticket;
    while ((ticket = map_next(&tables->tickets, &position)) != NULL)
        free(ticket);
    position = 0;
    struct sim_key *key;
    while ((key = map_next(&tables->keys, &position)) != NULL) {
        free(key->result);
        free(key);
    }
    struct map *maps[] = {&tables->orgs,    &tables->events, &tables->holds,  &tables->checkouts,
                          &tables->tickets, &tables->keys,   &tables->batches};
    for (size_t i = 0; i < COUNT_OF(maps); i++)
        map_deinit(maps[i]);
}

/* ---- Writing ---- */

static struct uuid half_key(const struct uuid *org_id, const uint8_t key[32])
{
    struct uuid id;
    for (size_t i = 0; i < sizeof(id.bytes); i++)
        id.bytes[i] = key[i] ^ org_id->bytes[i];
    return id;
}

static struct sim_key *find_key(struct sim_store *sim, const struct uuid *org_id, const uint8_t key[32],
                                int64_t now_ms)
{
    struct uuid id = half_key(org_id, key);
    struct sim_key *found = map_get(&sim->tables.keys, &id);
    bool fresh = found != NULL && uuid_equal(&found->org_id, org_id) && memcmp(found->key, key, 32) == 0 &&
                 found->created_ms > now_ms - IDEMPOTENCY_HOURS * 3600 * 1000ll;
    return fresh ? found : NULL;
}

static struct sim_seat *find_seat(struct sim_store *sim, const struct seat_row *row)
{
    struct sim_event *event = map_get(&sim->tables.events, &row->event_id);
    CHECK(event != NULL);
    CHECK(row->index < event->seat_count);
    struct sim_seat *seat = &event->seats[row->index];
    CHECK(uuid_equal(&seat->row.id, &row->id));
    return seat;
}

/* Are all seats of the unit as expected? Fills in what is there instead. */
static bool compare_seats(struct sim_store *sim, struct store_unit *unit)
{
    bool same = true;
    for (struct seat_write *write = unit->seats; write != NULL; write = write->next) {
        const struct sim_seat *seat = find_seat(sim, &write->row);
        write->missed = seat->row.version != write->row.version - 1;
        write->current = seat->row;
        same = same && !write->missed;
    }
    return same;
}

static void write_hold(struct sim_store *sim, const struct hold_write *write)
{
    struct sim_hold *hold = map_get(&sim->tables.holds, &write->row.id);
    CHECK(write->insert == (hold == NULL));
    if (hold == NULL) {
        hold = calloc(1, sizeof(*hold));
        CHECK(hold != NULL);
        map_put(&sim->tables.holds, &write->row.id, hold);
        struct sim_event *event = map_get(&sim->tables.events, &write->row.event_id);
        event->holds_ever++;
    } else {
        CHECK(hold->row.state == HOLD_ACTIVE);                      /* an ended hold never changes */
        CHECK(write->row.held_until_ms >= hold->row.held_until_ms); /* extensions never shorten */
    }
    char *cart_token = copy_text(write->row.cart_token), *notes = copy_text(write->row.notes);
    free_text(hold->row.cart_token);
    free_text(hold->row.notes);
    hold->row = write->row;
    hold->row.cart_token = cart_token;
    hold->row.notes = notes;
}

static void write_checkout(struct sim_store *sim, const struct checkout_write *write)
{
    struct sim_checkout *checkout = map_get(&sim->tables.checkouts, &write->row.id);
    CHECK(write->insert == (checkout == NULL));
    if (checkout == NULL) {
        checkout = calloc(1, sizeof(*checkout));
        CHECK(checkout != NULL);
        map_put(&sim->tables.checkouts, &write->row.id, checkout);
    }
    char *token = copy_text(write->row.payment_token), *notes = copy_text(write->row.notes);
    free_text(checkout->row.payment_token);
    free_text(checkout->row.notes);
    checkout->row = write->row;
    checkout->row.payment_token = token;
    checkout->row.notes = notes;
}

static void write_event(struct sim_store *sim, const struct event_write *write)
{
    struct sim_event *event = map_get(&sim->tables.events, &write->row.id);
    CHECK(write->insert == (event == NULL));
    if (event == NULL) {
        event = calloc(1, sizeof(*event));
        CHECK(event != NULL);
        map_put(&sim->tables.events, &write->row.id, event);
    }
    char *name = copy_text(write->row.name);
    free_text(event->row.name);
    event->row = write->row;
    event->row.name = name;
}

static void write_layout(struct sim_store *sim, const struct layout_write *write)
{
    struct sim_event *event = map_get(&sim->tables.events, &write->event_id);
    CHECK(event != NULL);
    drop_layout(event);
    event->document = copy_text(write->document);
    event->block_count = write->block_count;
    event->blocks = calloc((size_t)write->block_count + 1, sizeof(*event->blocks));
    event->seat_count = write->seat_count;
    event->seats = calloc((size_t)write->seat_count + 1, sizeof(*event->seats));
    CHECK(event->blocks != NULL);
    CHECK(event->seats != NULL);
    for (int32_t i = 0; i < write->block_count; i++) {
        event->blocks[i] = write->blocks[i];
        event->blocks[i].name = copy_text(write->blocks[i].name);
    }
    for (int32_t i = 0; i < write->seat_count; i++) {
        event->seats[i].block_id = write->blocks[write->seats[i].block].id;
        event->seats[i].row = (struct seat_row){.org_id = write->org_id,
                                                .event_id = write->event_id,
                                                .id = write->seats[i].id,
                                                .index = i,
                                                .version = 1,
                                                .state = SEAT_AVAILABLE};
    }
}

static void write_key(struct sim_store *sim, const struct key_write *write)
{
    struct uuid id = half_key(&write->org_id, write->key);
    struct sim_key *key = map_get(&sim->tables.keys, &id);
    if (key == NULL) {
        key = calloc(1, sizeof(*key));
        CHECK(key != NULL);
        map_put(&sim->tables.keys, &id, key);
    }
    free(key->result);
    memcpy(key->key, write->key, 32);
    memcpy(key->body, write->body, 32);
    key->org_id = write->org_id;
    key->created_ms = write->created_ms;
    key->result_size = write->result_size;
    key->result = malloc(write->result_size + 1);
    CHECK(key->result != NULL);
    memcpy(key->result, write->result, write->result_size);
}

static void write_seats(struct sim_store *sim, const struct store_unit *unit)
{
    for (const struct seat_write *write = unit->seats; write != NULL; write = write->next) {
        struct sim_seat *seat = find_seat(sim, &write->row);
        CHECK(seat->row.state == write->before);
        if (write->row.state == SEAT_SOLD)
            seat->times_sold++;
        if (seat->row.state == SEAT_SOLD && write->row.state == SEAT_AVAILABLE)
            seat->times_sold--;
        CHECK(seat->times_sold <= 1);
        seat->row = write->row;
    }
}

static void write_catalogue(struct sim_store *sim, const struct store_unit *unit)
{
    for (const struct org_write *write = unit->orgs; write != NULL; write = write->next) {
        struct org_row *org = malloc(sizeof(*org));
        CHECK(org != NULL);
        *org = write->row;
        org->name = copy_text(write->row.name);
        map_put(&sim->tables.orgs, &org->id, org);
    }
    for (const struct event_write *write = unit->events; write != NULL; write = write->next)
        write_event(sim, write);
    for (const struct layout_write *write = unit->layouts; write != NULL; write = write->next)
        write_layout(sim, write);
    for (const struct block_write *write = unit->blocks; write != NULL; write = write->next) {
        struct sim_event *event = map_get(&sim->tables.events, &write->row.event_id);
        struct block_row *block = &event->blocks[write->row.ordinal];
        char *name = copy_text(write->row.name);
        free_text(block->name);
        *block = write->row;
        block->name = name;
    }
}

static void write_unit(struct sim_store *sim, struct store_unit *unit)
{
    write_catalogue(sim, unit);
    /* Ends before beginnings: a seat may pass from an old hold to a new one in one unit. */
    for (const struct hold_write *write = unit->holds; write != NULL; write = write->next)
        write_hold(sim, write);
    for (const struct checkout_write *write = unit->checkouts; write != NULL; write = write->next)
        write_checkout(sim, write);
    for (const struct ticket_write *write = unit->tickets; write != NULL; write = write->next) {
        struct ticket_row *ticket = malloc(sizeof(*ticket));
        CHECK(ticket != NULL);
        *ticket = write->row;
        map_put(&sim->tables.tickets, &ticket->id, ticket);
    }
    for (const struct audit_write *write = unit->audits; write != NULL; write = write->next) {
        sim->tables.audit_count++;
        sim->tables.audits[write->row.action]++;
    }
    write_seats(sim, unit);
    if (unit->key != NULL)
        write_key(sim, unit->key);
}

void sim_tables_commit(struct sim_store *sim, struct store_batch *batch)
{
    CHECK(map_get(&sim->tables.batches, &batch->id) == NULL);
    map_put(&sim->tables.batches, &batch->id, sim);
    sim->tables.commit_count++;
    LIST_FOR_EACH(node, &batch->units) {
        struct store_unit *unit = CONTAINER_OF(node, struct store_unit, node);
        const struct key_write *key = unit->key;
        if (key != NULL && find_key(sim, &key->org_id, key->key, key->created_ms) != NULL) {
            unit->result = UNIT_KEY_TAKEN;
        } else if (!compare_seats(sim, unit)) {
            unit->result = UNIT_MISSED;
            sim->tables.miss_count++;
        } else {
            unit->result = UNIT_OK;
            write_unit(sim, unit);
        }
    }
}

/* ---- Reading ---- */

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
    const struct sim_event *event = map_get(&sim->tables.events, &hold->row.event_id);
    int64_t due_ms = hold->row.held_until_ms + event->row.policy.release_grace_seconds * 1000ll;
    return hold->row.state == HOLD_ACTIVE && due_ms <= lookup->now_ms && lookup->hold_count < lookup->limit;
}

static int compare_rows(const void *a, const void *b)
{
    return uuid_compare(&((const struct hold_row *)a)->id, &((const struct hold_row *)b)->id);
}

static void read_holds(struct sim_store *sim, struct store_lookup *lookup)
{
    lookup->holds = ARENA_ARRAY(lookup->arena, struct hold_row, sim->tables.holds.count + 1);
    size_t position = 0;
    struct sim_hold *hold;
    while ((hold = map_next(&sim->tables.holds, &position)) != NULL) {
        if (is_wanted(sim, lookup, hold))
            copy_hold(lookup, hold);
    }
    qsort(lookup->holds, (size_t)lookup->hold_count, sizeof(struct hold_row), compare_rows);
}

static void read_checkout(struct sim_store *sim, struct store_lookup *lookup)
{
    struct sim_checkout *checkout = map_get(&sim->tables.checkouts, &lookup->id);
    if (checkout == NULL || !uuid_equal(&checkout->row.org_id, &lookup->org_id))
        return;
    lookup->found = true;
    lookup->checkout = checkout->row;
    lookup->checkout.payment_token = arena_text(lookup->arena, checkout->row.payment_token);
    lookup->checkout.notes = arena_text(lookup->arena, checkout->row.notes);
    read_holds(sim, lookup);
    lookup->tickets = ARENA_ARRAY(lookup->arena, struct ticket_row, sim->tables.tickets.count + 1);
    size_t position = 0;
    struct ticket_row *ticket;
    while ((ticket = map_next(&sim->tables.tickets, &position)) != NULL) {
        if (uuid_equal(&ticket->checkout_id, &lookup->id))
            lookup->tickets[lookup->ticket_count++] = *ticket;
    }
}

void sim_tables_lookup(struct sim_store *sim, struct store_lookup *lookup)
{
    lookup->found = false;
    lookup->hold_count = 0;
    lookup->ticket_count = 0;
    if (lookup->kind == LOOKUP_KEY) {
        struct sim_key *key = find_key(sim, &lookup->org_id, lookup->key, lookup->now_ms);
        lookup->found = key != NULL;
        if (key != NULL) {
            memcpy(lookup->body, key->body, 32);
            lookup->result = arena_copy(lookup->arena, key->result, key->result_size);
            lookup->result_size = key->result_size;
        }
    } else if (lookup->kind == LOOKUP_HOLD) {
        struct sim_hold *hold = map_get(&sim->tables.holds, &lookup->id);
        lookup->found = hold != NULL && uuid_equal(&hold->row.org_id, &lookup->org_id);
        lookup->holds = ARENA_NEW(lookup->arena, struct hold_row);
        if (lookup->found)
            copy_hold(lookup, hold);
    } else if (lookup->kind == LOOKUP_CHECKOUT) {
        read_checkout(sim, lookup);
    } else {
        read_holds(sim, lookup);
        lookup->found = lookup->hold_count > 0;
    }
}

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
    enum err err = ERR_OK;
    size_t position = 0;
    struct org_row *org;
    while (err == ERR_OK && (org = map_next(&sim->tables.orgs, &position)) != NULL)
        err = loader->on_org(context, org);
    position = 0;
    struct sim_event *event;
    while (err == ERR_OK && (event = map_next(&sim->tables.events, &position)) != NULL)
        err = load_event(event, loader, context);
    position = 0;
    struct sim_hold *hold;
    while (err == ERR_OK && (hold = map_next(&sim->tables.holds, &position)) != NULL) {
        if (hold->row.state == HOLD_ACTIVE)
            err = loader->on_hold(context, &hold->row);
    }
    position = 0;
    struct sim_checkout *checkout;
    while (err == ERR_OK && (checkout = map_next(&sim->tables.checkouts, &position)) != NULL) {
        if (is_open(&checkout->row))
            err = loader->on_checkout(context, &checkout->row);
    }
    return err;
}
