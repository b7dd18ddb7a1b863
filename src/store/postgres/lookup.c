/* SPDX-License-Identifier: Apache-2.0
 * The lookup thread: answers the lane's questions about things that are not in
 * memory — keys, holds and checkouts that have ended, holds that are overdue,
 * and whatever another node has made or changed.
 * It takes all that wait and asks for them in pipelines; the answers go back
 * through store_poll().
 *
 * Invariants: (1) a lookup sees every batch whose on_done has run. (2) Every
 * lookup names its organization, but for LOOKUP_DUE_HOLDS, which goes over all,
 * and LOOKUP_DELIVERY and LOOKUP_ORDER, which are nobody's. (3) What
 * is found is copied into the lookup's arena. (4) A lookup that could not be
 * asked says so; the connection is opened again for the next ones. (5) It never
 * waits for lists for people or the change feed: those have threads of their
 * own. (6) All answers to one lookup are of one snapshot: the session's
 * transactions are repeatable reads. An event, which may have 100,000 seats, is
 * asked for alone and may take its time. */
#include <libpq-fe.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "store/postgres/postgres_int.h"
#include "store/postgres/rows.h"

#define KEY_LIFE_MS ((int64_t)IDEMPOTENCY_HOURS * 3600 * 1000)

enum {
    STATEMENT_COUNT_MAX = 5,                                       /* of one lookup */
    ROUND_COUNT_MAX = PG_PIPELINE_COUNT_MAX / STATEMENT_COUNT_MAX, /* lookups in one round trip */
    EVENT_MS_MAX = 10000,
};

struct round { /* lookups that are asked together */
    struct store_lookup *lookups[ROUND_COUNT_MAX];
    int numbers[ROUND_COUNT_MAX]; /* of each one's first statement */
    int count;
};

/* ---- Asking ---- */

static int lookup_send(struct pg_connection *connection, struct pg_params *p,
                       const struct store_lookup *lookup)
{
    static const enum pg_statement of_checkout[] = {PG_LOOKUP_CHECKOUT, PG_LOOKUP_CHECKOUT_HOLDS,
                                                    PG_LOOKUP_CHECKOUT_TICKETS};
    static const enum pg_statement of_event[] = {PG_LOOKUP_EVENT, PG_LOAD_LAYOUT, PG_LOAD_BLOCKS,
                                                 PG_LOOKUP_EVENT_SEATS, PG_LOAD_HOLDS_EVER};
    int number = connection->queue_count;
    pg_params_clear(p);
    switch (lookup->kind) {
    case LOOKUP_KEY:
        pg_set_uuid(p, 0, &lookup->org_id);
        pg_set_bytes(p, 1, lookup->key, sizeof(lookup->key));
        pg_set_time(p, 2, lookup->now_ms - KEY_LIFE_MS);
        (void)pg_send(connection, PG_LOOKUP_KEY, p);
        return number;
    case LOOKUP_DUE_HOLDS:
        pg_set_time(p, 0, lookup->now_ms);
        pg_set_int(p, 1, lookup->limit);
        (void)pg_send(connection, PG_LOOKUP_DUE_HOLDS, p);
        return number;
    case LOOKUP_HOLD:
        pg_set_uuid(p, 0, &lookup->org_id);
        pg_set_uuid(p, 1, &lookup->id);
        (void)pg_send(connection, PG_LOOKUP_HOLD, p);
        return number;
    case LOOKUP_CHECKOUT:
        pg_set_uuid(p, 0, &lookup->org_id);
        pg_set_uuid(p, 1, &lookup->id);
        for (size_t i = 0; i < COUNT_OF(of_checkout); i++)
            (void)pg_send(connection, of_checkout[i], p);
        return number;
    case LOOKUP_EVENT:
        pg_set_uuid(p, 0, &lookup->org_id);
        pg_set_uuid(p, 1, &lookup->id);
        for (size_t i = 0; i < COUNT_OF(of_event); i++)
            (void)pg_send(connection, of_event[i], p);
        return number;
    case LOOKUP_USER:
        pg_set_uuid(p, 0, &lookup->org_id);
        pg_set_uuid(p, 1, &lookup->id);
        (void)pg_send(connection, PG_LOOKUP_USER, p);
        return number;
    case LOOKUP_DELIVERY:
        pg_set_text(p, 0, lookup->name);
        (void)pg_send(connection, PG_LOOKUP_DELIVERY, p);
        return number;
    case LOOKUP_ORDER:
        pg_set_text(p, 0, lookup->name);
        pg_set_int(p, 1, lookup->partition);
        (void)pg_send(connection, PG_LOOKUP_ORDER, p);
        return number;
    }
    CHECK(false && "a kind of lookup that does not exist");
    return -1;
}

/* ---- Reading. False: a row makes no sense. ---- */

static bool read_key(const PGresult *result, struct store_lookup *lookup)
{
    size_t size;
    if (PQntuples(result) == 0)
        return true;
    const void *body = pg_cell_bytes(result, 0, 0, &size);
    if (size != sizeof(lookup->body))
        return false;
    memcpy(lookup->body, body, size);
    const void *answer = pg_cell_bytes(result, 0, 1, &lookup->result_size);
    lookup->result = answer != NULL ? arena_copy(lookup->arena, answer, lookup->result_size) : NULL;
    lookup->found = true;
    return true;
}

static bool read_holds(const PGresult *result, struct store_lookup *lookup)
{
    int count = PQntuples(result);
    lookup->holds = count > 0 ? ARENA_ARRAY(lookup->arena, struct hold_row, count) : NULL;
    for (int i = 0; i < count; i++) {
        if (!pg_row_read_hold(result, i, lookup->arena, &lookup->holds[i]))
            return false;
    }
    lookup->hold_count = count;
    return true;
}

static bool read_tickets(const PGresult *result, struct store_lookup *lookup)
{
    int count = PQntuples(result);
    lookup->tickets = count > 0 ? ARENA_ARRAY(lookup->arena, struct ticket_row, count) : NULL;
    for (int i = 0; i < count; i++) {
        if (!pg_row_read_ticket(result, i, &lookup->tickets[i]))
            return false;
    }
    lookup->ticket_count = count;
    return true;
}

/* As many seats as the layout says, or something is wrong with the database. */
static bool read_layout(PGresult *const *results, struct store_lookup *lookup)
{
    const PGresult *layout = results[1], *blocks = results[2], *seats = results[3];
    if (PQntuples(layout) == 0)
        return true;
    lookup->document = arena_text(lookup->arena, pg_cell_text(layout, 0, 1));
    lookup->block_count = PQntuples(blocks);
    lookup->blocks = ARENA_ARRAY(lookup->arena, struct block_row, lookup->block_count + 1);
    for (int i = 0; i < lookup->block_count; i++)
        pg_row_read_block(blocks, i, lookup->arena, &lookup->blocks[i]);
    lookup->seat_count = PQntuples(seats);
    lookup->seat_ids = ARENA_ARRAY(lookup->arena, struct uuid, lookup->seat_count + 1);
    for (int i = 0; i < lookup->seat_count; i++)
        lookup->seat_ids[i] = pg_cell_uuid(seats, i, 0);
    lookup->holds_ever = pg_cell_int(results[4], 0, 0);
    return pg_cell_int(layout, 0, 0) == lookup->seat_count;
}

static void read_delivery(const PGresult *result, struct store_lookup *lookup)
{
    struct delivery_row *row = &lookup->delivery;
    row->name = arena_text(lookup->arena, pg_cell_text(result, 0, 0));
    row->position.from = pg_cell_int(result, 0, 1);
    row->position.to = pg_cell_int(result, 0, 2);
    row->position.id = pg_cell_int(result, 0, 3);
    row->node = pg_cell_uuid(result, 0, 4);
    row->lease_until_ms = pg_cell_time(result, 0, 5);
    row->version = (int32_t)pg_cell_int(result, 0, 6);
}

static void read_order(const PGresult *result, struct store_lookup *lookup)
{
    struct order_row *row = &lookup->order;
    row->topic = arena_text(lookup->arena, pg_cell_text(result, 0, 0));
    row->partition = (int32_t)pg_cell_int(result, 0, 1);
    row->epoch = pg_cell_int(result, 0, 2);
    row->next_offset = pg_cell_int(result, 0, 3);
    row->node = pg_cell_uuid(result, 0, 4);
    row->claimed_ms = pg_cell_time(result, 0, 5);
}

static bool lookup_read(PGresult *const *results, struct store_lookup *lookup)
{
    bool good = true;
    switch (lookup->kind) {
    case LOOKUP_KEY:
        return read_key(results[0], lookup);
    case LOOKUP_HOLD:
    case LOOKUP_DUE_HOLDS:
        good = read_holds(results[0], lookup);
        lookup->found = lookup->hold_count > 0;
        return good;
    case LOOKUP_CHECKOUT:
        if (PQntuples(results[0]) == 0)
            return true;
        lookup->found = pg_row_read_checkout(results[0], 0, lookup->arena, &lookup->checkout);
        return lookup->found && read_holds(results[1], lookup) && read_tickets(results[2], lookup);
    case LOOKUP_EVENT:
        if (PQntuples(results[0]) == 0)
            return true;
        lookup->found = pg_row_read_event(results[0], 0, lookup->arena, &lookup->event);
        return lookup->found && read_layout(results, lookup);
    case LOOKUP_USER:
        lookup->found = PQntuples(results[0]) > 0;
        if (lookup->found)
            pg_row_read_user(results[0], 0, &lookup->user);
        return true;
    case LOOKUP_DELIVERY:
        lookup->found = PQntuples(results[0]) > 0;
        if (lookup->found)
            read_delivery(results[0], lookup);
        return true;
    case LOOKUP_ORDER:
        lookup->found = PQntuples(results[0]) > 0;
        if (lookup->found)
            read_order(results[0], lookup);
        return true;
    }
    return false;
}

static void lookup_clear(struct store_lookup *lookup)
{
    lookup->err = ERR_OK;
    lookup->found = false;
    lookup->result = NULL;
    lookup->result_size = 0;
    lookup->holds = NULL;
    lookup->hold_count = 0;
    lookup->tickets = NULL;
    lookup->ticket_count = 0;
    lookup->document = NULL;
    lookup->blocks = NULL;
    lookup->block_count = 0;
    lookup->seat_ids = NULL;
    lookup->seat_count = 0;
    lookup->holds_ever = 0;
}

/* ---- Rounds ---- */

static enum pg_trouble round_ask(struct pg_connection *connection, struct pg_params *params,
                                 struct round *round)
{
    struct pg_reply reply;
    int64_t limit_ms = round->lookups[0]->kind == LOOKUP_EVENT ? EVENT_MS_MAX : TRANSACTION_MS_MAX;
    connection->deadline_us = clock_monotonic_us() + limit_ms * 1000;
    for (int i = 0; i < round->count; i++) {
        lookup_clear(round->lookups[i]);
        round->numbers[i] = lookup_send(connection, params, round->lookups[i]);
    }
    enum pg_trouble trouble = pg_receive(connection, &reply);
    for (int i = 0; i < round->count; i++) {
        struct store_lookup *lookup = round->lookups[i];
        if (trouble != PG_NONE)
            lookup->err = pg_err(trouble);
        else if (!lookup_read(&reply.results[round->numbers[i]], lookup))
            lookup->err = ERR_STORE_CORRUPT;
    }
    pg_reply_clear(&reply);
    return trouble;
}

static bool lookup_connect(struct pg_store *store, struct pg_connection *connection)
{
    char why[PG_WHY_SIZE];
    return connection->link != NULL ||
           pg_connection_open(connection, store->url, PG_USE_LOOKUP, NULL, why, sizeof(why)) == ERR_OK;
}

/* A connection that was cut while nobody looked is opened again, once. */
static void round_run(struct pg_store *store, struct pg_connection *connection, struct pg_params *params,
                      struct round *round)
{
    for (int tries = 0; tries < 2; tries++) {
        enum pg_trouble trouble = PG_LOST;
        if (lookup_connect(store, connection))
            trouble = round_ask(connection, params, round);
        else
            tries = 2;
        if (trouble == PG_NONE)
            return;
        pg_connection_close(connection);
        if (trouble != PG_LOST)
            return;
    }
    for (int i = 0; i < round->count; i++) {
        lookup_clear(round->lookups[i]);
        round->lookups[i]->err = ERR_STORE_UNAVAILABLE;
    }
}

/* The lookups from `node` on that are asked together; where the next round begins. */
static struct list *round_gather(struct round *round, struct list *node, const struct list *end)
{
    for (; node != end && round->count < ROUND_COUNT_MAX; node = node->next) {
        struct store_lookup *lookup = CONTAINER_OF(node, struct store_lookup, node);
        bool alone = lookup->kind == LOOKUP_EVENT;
        if (alone && round->count > 0)
            return node;
        round->lookups[round->count++] = lookup;
        if (alone)
            return node->next;
    }
    return node;
}

void *pg_lookup_main(void *argument)
{
    struct pg_store *store = argument;
    struct pg_connection connection = {.link = NULL};
    struct pg_params params;
    struct list lookups;
    list_init(&lookups);
    pg_params_init(&params);
    while (worker_take(&store->lookups, &lookups, -1)) {
        struct list *node = lookups.next;
        while (node != &lookups) {
            struct round round = {.count = 0};
            node = round_gather(&round, node, &lookups);
            round_run(store, &connection, &params, &round);
        }
        done_post_lookups(&store->done, &lookups);
    }
    pg_connection_close(&connection);
    pg_params_deinit(&params);
    return NULL;
}
