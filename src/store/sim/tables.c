/* SPDX-License-Identifier: Apache-2.0
 * The tables of the simulated store and what a commit does to them. A unit is
 * written only if everything it compares is as it expects and its key is free;
 * otherwise nothing of it is.
 *
 * What a real store's constraints would refuse is a CHECK here: a lane that
 * tries to give a seat a second active hold is wrong, and the run says so. */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "store/sim/sim_int.h"

static void tables_maps(struct sim_tables *tables, void (*act)(struct map *map))
{
    struct map *maps[] = {&tables->orgs,  &tables->users,     &tables->events,
                          &tables->holds, &tables->checkouts, &tables->tickets,
                          &tables->keys,  &tables->batches,   &tables->dead_letters};
    for (size_t i = 0; i < COUNT_OF(maps); i++)
        act(maps[i]);
}

void sim_tables_init(struct sim_tables *tables)
{
    tables_maps(tables, map_init);
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

static void free_outbox(struct sim_tables *tables)
{
    size_t position = 0;
    struct dead_letter_row *letter;
    while ((letter = map_next(&tables->dead_letters, &position)) != NULL) {
        free_text(letter->delivery);
        free_text(letter->type);
        free_text(letter->body);
        free_text(letter->reason);
        free(letter);
    }
    while (tables->deliveries != NULL) {
        struct sim_delivery *delivery = tables->deliveries;
        tables->deliveries = delivery->next;
        free_text(delivery->row.name);
        free(delivery);
    }
}

void sim_tables_deinit(struct sim_tables *tables)
{
    size_t position = 0;
    struct user_row *user;
    while ((user = map_next(&tables->users, &position)) != NULL)
        free(user);
    position = 0;
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
    free_outbox(tables);
    sim_orders_deinit(tables);
    tables_maps(tables, map_deinit);
}

/* ---- Finding ---- */

struct uuid sim_key_of_user(const struct uuid *org_id, const struct uuid *user_id)
{
    struct uuid id;
    for (size_t i = 0; i < sizeof(id.bytes); i++)
        id.bytes[i] = user_id->bytes[i] ^ org_id->bytes[i];
    return id;
}

static struct uuid key_of_letter(const struct dead_letter_row *row)
{
    struct uuid id = row->id;
    for (size_t i = 0; row->delivery[i] != '\0'; i++)
        id.bytes[i % sizeof(id.bytes)] ^= (uint8_t)row->delivery[i];
    return id;
}

struct sim_delivery *sim_find_delivery(struct sim_tables *tables, const char *name)
{
    struct sim_delivery *delivery = tables->deliveries;
    while (delivery != NULL && strcmp(delivery->row.name, name) != 0)
        delivery = delivery->next;
    return delivery;
}

static struct uuid half_key(const struct uuid *org_id, const uint8_t key[32])
{
    struct uuid id;
    for (size_t i = 0; i < sizeof(id.bytes); i++)
        id.bytes[i] = key[i] ^ org_id->bytes[i];
    return id;
}

struct sim_key *sim_find_key(struct sim_tables *tables, const struct uuid *org_id, const uint8_t key[32],
                             int64_t now_ms)
{
    struct uuid id = half_key(org_id, key);
    struct sim_key *found = map_get(&tables->keys, &id);
    bool fresh = found != NULL && uuid_equal(&found->org_id, org_id) && memcmp(found->key, key, 32) == 0 &&
                 found->created_ms > now_ms - IDEMPOTENCY_HOURS * 3600 * 1000ll;
    return fresh ? found : NULL;
}

/* NULL: it is not of this layout any more. */
static struct sim_seat *find_seat(struct sim_store *sim, const struct seat_row *row)
{
    struct sim_event *event = map_get(&sim->database->tables.events, &row->event_id);
    if (event == NULL || row->index >= event->seat_count)
        return NULL;
    struct sim_seat *seat = &event->seats[row->index];
    return uuid_equal(&seat->row.id, &row->id) ? seat : NULL;
}

/* ---- Comparing: each marks what is not as expected, or is being written by another node ---- */

static bool compare_seats(struct sim_store *sim, struct store_unit *unit)
{
    bool same = true;
    for (struct seat_write *write = unit->seats; write != NULL; write = write->next) {
        const struct sim_seat *seat = find_seat(sim, &write->row);
        write->current = seat != NULL ? seat->row
                                      : (struct seat_row){.org_id = write->row.org_id,
                                                          .event_id = write->row.event_id,
                                                          .id = write->row.id,
                                                          .index = write->row.index};
        write->missed = write->current.version != write->row.version - 1 ||
                        sim_locks_exclude(&sim->locked, &write->row.id, true);
        same = same && !write->missed;
    }
    return same;
}

static bool compare_checkouts(struct sim_store *sim, struct store_unit *unit)
{
    bool same = true;
    for (struct checkout_write *write = unit->checkouts; write != NULL; write = write->next) {
        const struct sim_checkout *checkout = map_get(&sim->database->tables.checkouts, &write->row.id);
        int32_t version = checkout != NULL ? checkout->row.version : 0;
        write->missed = !write->insert && (version != write->row.version - 1 ||
                                           sim_locks_exclude(&sim->locked, &write->row.id, true));
        same = same && !write->missed;
    }
    return same;
}

static int32_t event_version(struct sim_store *sim, const struct uuid *id)
{
    const struct sim_event *event = map_get(&sim->database->tables.events, id);
    return event != NULL ? event->row.version : 0;
}

static bool compare_events(struct sim_store *sim, struct store_unit *unit)
{
    bool same = true;
    for (struct event_check *check = unit->checks; check != NULL; check = check->next) {
        check->missed = event_version(sim, &check->event_id) != check->version ||
                        sim_locks_exclude(&sim->locked, &check->event_id, false);
        same = same && !check->missed;
    }
    for (struct event_write *write = unit->events; write != NULL; write = write->next) {
        write->missed = !write->insert && (event_version(sim, &write->row.id) != write->row.version - 1 ||
                                           sim_locks_exclude(&sim->locked, &write->row.id, true));
        same = same && !write->missed;
    }
    return same;
}

static int64_t block_taken(const struct sim_event *event, const struct uuid *block_id)
{
    int64_t taken = 0;
    for (int32_t i = 0; i < event->seat_count; i++) {
        enum seat_state state = event->seats[i].row.state;
        taken +=
            (state == SEAT_HELD || state == SEAT_SOLD) && uuid_equal(&event->seats[i].block_id, block_id);
    }
    return taken;
}

static bool claim_fits(struct sim_store *sim, const struct store_unit *unit, const struct block_claim *claim)
{
    const struct sim_event *event = map_get(&sim->database->tables.events, &claim->event_id);
    int64_t capacity = -1;
    for (int32_t i = 0; event != NULL && i < event->block_count; i++) {
        if (uuid_equal(&event->blocks[i].id, &claim->block_id))
            capacity = event->blocks[i].capacity;
    }
    if (capacity < 0)
        return false;
    for (const struct block_write *write = unit->blocks; write != NULL; write = write->next) {
        if (uuid_equal(&write->row.id, &claim->block_id))
            capacity = write->row.capacity;
    }
    int64_t taken = block_taken(event, &claim->block_id) + claim->count;
    for (const struct block_claim *other = unit->claims; other != claim; other = other->next)
        taken += uuid_equal(&other->block_id, &claim->block_id) ? other->count : 0;
    return taken <= capacity && !sim_locks_exclude(&sim->locked, &claim->block_id, true);
}

static bool compare_claims(struct sim_store *sim, struct store_unit *unit)
{
    bool same = true;
    for (struct block_claim *claim = unit->claims; claim != NULL; claim = claim->next) {
        claim->missed = !claim_fits(sim, unit, claim);
        same = same && !claim->missed;
    }
    return same;
}

static bool compare_layouts(struct sim_store *sim, struct store_unit *unit)
{
    bool same = true;
    for (struct layout_write *write = unit->layouts; write != NULL; write = write->next) {
        const struct sim_event *event = map_get(&sim->database->tables.events, &write->event_id);
        write->missed = event != NULL && event->holds_ever > 0;
        same = same && !write->missed;
    }
    return same;
}

static bool compare_deliveries(struct sim_store *sim, struct store_unit *unit)
{
    bool same = true;
    for (struct delivery_write *write = unit->deliveries; write != NULL; write = write->next) {
        const struct sim_delivery *delivery = sim_find_delivery(&sim->database->tables, write->row.name);
        write->missed = (delivery != NULL ? delivery->row.version : 0) != write->row.version - 1;
        same = same && !write->missed;
    }
    return same;
}

/* Every part, so that every mark is filled in. */
static bool compare_unit(struct sim_store *sim, struct store_unit *unit)
{
    bool same = sim_orders_compare(sim, unit);
    same = compare_seats(sim, unit) && same;
    same = compare_checkouts(sim, unit) && same;
    same = compare_events(sim, unit) && same;
    same = compare_claims(sim, unit) && same;
    same = compare_layouts(sim, unit) && same;
    return compare_deliveries(sim, unit) && same;
}

/* ---- Writing ---- */

static void write_hold(struct sim_store *sim, const struct hold_write *write)
{
    struct sim_hold *hold = map_get(&sim->database->tables.holds, &write->row.id);
    CHECK(write->insert == (hold == NULL));
    if (hold == NULL) {
        hold = calloc(1, sizeof(*hold));
        CHECK(hold != NULL);
        map_put(&sim->database->tables.holds, &write->row.id, hold);
        struct sim_event *event = map_get(&sim->database->tables.events, &write->row.event_id);
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
    struct sim_checkout *checkout = map_get(&sim->database->tables.checkouts, &write->row.id);
    CHECK(write->insert == (checkout == NULL));
    if (checkout == NULL) {
        checkout = calloc(1, sizeof(*checkout));
        CHECK(checkout != NULL);
        map_put(&sim->database->tables.checkouts, &write->row.id, checkout);
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
    struct sim_event *event = map_get(&sim->database->tables.events, &write->row.id);
    CHECK(write->insert == (event == NULL));
    if (event == NULL) {
        event = calloc(1, sizeof(*event));
        CHECK(event != NULL);
        map_put(&sim->database->tables.events, &write->row.id, event);
    }
    char *name = copy_text(write->row.name);
    free_text(event->row.name);
    event->row = write->row;
    event->row.name = name;
}

static void write_layout(struct sim_store *sim, const struct layout_write *write)
{
    struct sim_event *event = map_get(&sim->database->tables.events, &write->event_id);
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
    struct sim_key *key = map_get(&sim->database->tables.keys, &id);
    if (key == NULL) {
        key = calloc(1, sizeof(*key));
        CHECK(key != NULL);
        map_put(&sim->database->tables.keys, &id, key);
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
        CHECK(seat != NULL);
        CHECK(seat->row.state == write->before);
        if (write->row.state == SEAT_SOLD)
            seat->times_sold++;
        if (seat->row.state == SEAT_SOLD && write->row.state == SEAT_AVAILABLE)
            seat->times_sold--;
        CHECK(seat->times_sold <= 1);
        seat->row = write->row;
    }
}

static void write_user(struct sim_store *sim, const struct user_write *write)
{
    struct uuid key = sim_key_of_user(&write->row.org_id, &write->row.id);
    struct user_row *user = map_get(&sim->database->tables.users, &key);
    if (user != NULL && write->seen)
        return;
    if (user == NULL) {
        user = malloc(sizeof(*user));
        CHECK(user != NULL);
        *user = write->row;
        map_put(&sim->database->tables.users, &key, user);
    }
    user->disabled = write->row.disabled;
}

static void write_delivery(struct sim_store *sim, const struct delivery_write *write)
{
    struct sim_delivery *delivery = sim_find_delivery(&sim->database->tables, write->row.name);
    if (delivery == NULL) {
        delivery = calloc(1, sizeof(*delivery));
        CHECK(delivery != NULL);
        delivery->row.name = copy_text(write->row.name);
        delivery->next = sim->database->tables.deliveries;
        sim->database->tables.deliveries = delivery;
    }
    const char *name = delivery->row.name;
    delivery->row = write->row;
    delivery->row.name = name;
}

static void write_dead_letter(struct sim_store *sim, const struct dead_letter_row *row)
{
    struct uuid key = key_of_letter(row);
    if (map_get(&sim->database->tables.dead_letters, &key) != NULL)
        return;
    struct dead_letter_row *letter = malloc(sizeof(*letter));
    CHECK(letter != NULL);
    *letter = *row;
    letter->delivery = copy_text(row->delivery);
    letter->type = copy_text(row->type);
    letter->body = copy_text(row->body);
    letter->reason = copy_text(row->reason);
    map_put(&sim->database->tables.dead_letters, &key, letter);
}

static void write_catalogue(struct sim_store *sim, const struct store_unit *unit)
{
    for (const struct org_write *write = unit->orgs; write != NULL; write = write->next) {
        struct org_row *org = malloc(sizeof(*org));
        CHECK(org != NULL);
        *org = write->row;
        org->name = copy_text(write->row.name);
        map_put(&sim->database->tables.orgs, &org->id, org);
    }
    for (const struct user_write *write = unit->users; write != NULL; write = write->next)
        write_user(sim, write);
    for (const struct event_write *write = unit->events; write != NULL; write = write->next)
        write_event(sim, write);
    for (const struct layout_write *write = unit->layouts; write != NULL; write = write->next)
        write_layout(sim, write);
    for (const struct block_write *write = unit->blocks; write != NULL; write = write->next) {
        struct sim_event *event = map_get(&sim->database->tables.events, &write->row.event_id);
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
        map_put(&sim->database->tables.tickets, &ticket->id, ticket);
    }
    for (const struct audit_write *write = unit->audits; write != NULL; write = write->next) {
        sim->database->tables.audit_count++;
        sim->database->tables.audits[write->row.action]++;
    }
    for (const struct delivery_write *write = unit->deliveries; write != NULL; write = write->next)
        write_delivery(sim, write);
    for (const struct dead_letter_write *write = unit->dead_letters; write != NULL; write = write->next)
        write_dead_letter(sim, &write->row);
    sim_orders_write(sim, unit);
    write_seats(sim, unit);
    if (unit->key != NULL)
        write_key(sim, unit->key);
}

/* A hold is made once. */
static bool repeats_hold(const struct sim_tables *tables, const struct store_unit *unit)
{
    for (const struct hold_write *write = unit->holds; write != NULL; write = write->next) {
        if (write->insert && map_get(&tables->holds, &write->row.id) != NULL)
            return true;
    }
    return false;
}

void sim_tables_commit(struct sim_store *sim, struct store_batch *batch)
{
    struct sim_tables *tables = &sim->database->tables;
    CHECK(map_get(&tables->batches, &batch->id) == NULL);
    map_put(&tables->batches, &batch->id, tables);
    tables->commit_count++;
    LIST_FOR_EACH(node, &batch->units) {
        struct store_unit *unit = CONTAINER_OF(node, struct store_unit, node);
        const struct key_write *key = unit->key;
        /* Who has lost a partition is told so, whether or not its new owner has done the command. */
        bool ours = sim_orders_compare(sim, unit);
        if (ours && repeats_hold(tables, unit)) {
            unit->result = UNIT_BAD;
        } else if (ours && key != NULL &&
                   sim_find_key(tables, &key->org_id, key->key, key->created_ms) != NULL) {
            unit->result = UNIT_KEY_TAKEN;
        } else if (!compare_unit(sim, unit)) {
            unit->result = UNIT_MISSED;
            tables->miss_count++;
        } else {
            unit->result = UNIT_OK;
            write_unit(sim, unit);
        }
    }
    sim_feed_add(sim, batch);
    if (batch->purge_before_ms != 0)
        sim_feed_purge(sim->database, batch);
}
