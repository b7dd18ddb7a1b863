/* SPDX-License-Identifier: Apache-2.0
 * The store tests' common ground; see fixture.h. Everything waits for a
 * condition with a limit, and nothing sleeps for luck. */
#include "fixture.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/sim/sim.h"

enum { WAIT_MS_MAX = 20000 };

void fixture_remove(const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm", ".lock"};
    char name[512];
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        snprintf(name, sizeof(name), "%s%s", path, ends[i]);
        unlink(name);
    }
}

struct uuid fixture_id(struct fixture *f)
{
    return uuid_make(&f->rng, f->now_ms);
}

const char *fixture_name(struct fixture *f)
{
    char text[UUID_TEXT_SIZE];
    struct uuid id = fixture_id(f);
    uuid_format(&id, text);
    return arena_text(&f->arena, text);
}

static void fixture_open(struct fixture *f)
{
    char why[512] = "";
    if (store_open(f->url, NULL, &f->store, why, sizeof(why)) != ERR_OK)
        fail_msg("%s", why);
}

void fixture_reopen(struct fixture *f)
{
    if (f->sim_ms != 0) /* its tables would go with it */
        return;
    store_close(f->store);
    f->store = NULL;
    fixture_open(f);
}

static void fixture_choose(struct fixture *f)
{
    const char *url = getenv("HOLDFAST_TEST_STORE");
    if (url != NULL) {
        snprintf(f->url, sizeof(f->url), "%s", url);
        return;
    }
    const char *folder = getenv("TMPDIR");
    snprintf(f->path, sizeof(f->path), "%.200s/holdfast-test-XXXXXX", folder != NULL ? folder : "/tmp");
    int fd = mkstemp(f->path);
    assert_true(fd >= 0);
    close(fd);
    snprintf(f->url, sizeof(f->url), "sqlite:%s", f->path);
}

/* Commits take their time, and come out of the change feed late. */
static void fixture_open_sim(struct fixture *f)
{
    struct sim_faults faults = {.delay_ms_max = 5, .feed_delay_ms_max = 20};
    f->sim_ms = f->now_ms;
    f->store = sim_store_create(rng_next(&f->rng));
    sim_store_set_faults(f->store, &faults);
    sim_store_set_now(f->store, f->sim_ms);
}

int fixture_setup_past(void **state, bool sim, int days)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    rng_init_system(&f->rng);
    arena_init(&f->arena);
    f->now_ms = clock_now_ms() / 1000 * 1000 - (int64_t)days * 24 * 3600 * 1000;
    f->node_id = fixture_id(f);
    if (sim) {
        fixture_open_sim(f);
    } else {
        fixture_choose(f);
        fixture_open(f);
    }
    fixture_new_tenant(f);
    *state = f;
    return 0;
}

int fixture_setup(void **state)
{
    return fixture_setup_past(state, false, 0);
}

int fixture_setup_sim(void **state)
{
    return fixture_setup_past(state, true, 0);
}

int fixture_teardown(void **state)
{
    struct fixture *f = *state;
    store_close(f->store);
    if (f->path[0] != '\0')
        fixture_remove(f->path);
    arena_deinit(&f->arena);
    free(f);
    return 0;
}

/* ---- Batches ---- */

static void batch_on_done(struct store_batch *batch)
{
    *(bool *)batch->context = true;
}

struct store_batch *batch_new(struct fixture *f)
{
    struct store_batch *batch = calloc(1, sizeof(*batch));
    assert_non_null(batch);
    arena_init(&batch->arena);
    list_init(&batch->units);
    batch->id = fixture_id(f);
    batch->node_id = f->node_id;
    batch->now_ms = f->now_ms;
    batch->on_done = batch_on_done;
    batch->context = ARENA_NEW(&batch->arena, bool);
    return batch;
}

void batch_free(struct store_batch *batch)
{
    arena_deinit(&batch->arena);
    free(batch);
}

struct store_unit *unit_new(struct store_batch *batch)
{
    struct store_unit *unit = ARENA_NEW(&batch->arena, struct store_unit);
    list_append(&batch->units, &unit->node);
    batch->unit_count++;
    return unit;
}

/* Nothing happens in a simulation but by its clock. */
static void fixture_turn(struct fixture *f)
{
    if (f->sim_ms != 0) {
        sim_store_set_now(f->store, ++f->sim_ms);
    } else {
        struct pollfd fd = {.fd = store_fd(f->store), .events = POLLIN};
        (void)poll(&fd, 1, 100);
    }
    store_poll(f->store);
}

bool fixture_wait(struct fixture *f, const bool *flag)
{
    int64_t end_us = clock_monotonic_us() + (int64_t)WAIT_MS_MAX * 1000;
    while (!*flag && clock_monotonic_us() < end_us)
        fixture_turn(f);
    return *flag;
}

void batch_run(struct fixture *f, struct store_batch *batch)
{
    *(bool *)batch->context = false;
    assert_int_equal(store_submit(f->store, batch), ERR_OK);
    assert_true(fixture_wait(f, batch->context));
}

enum unit_result batch_commit(struct fixture *f, struct store_batch *batch)
{
    batch_run(f, batch);
    assert_int_equal(batch->outcome, STORE_COMMITTED);
    enum unit_result result = CONTAINER_OF(batch->units.next, struct store_unit, node)->result;
    batch_free(batch);
    return result;
}

/* ---- A tenant ---- */

static void tenant_layout(struct fixture *f, struct store_batch *batch, struct store_unit *unit)
{
    struct block_row *blocks = ARENA_ARRAY(&batch->arena, struct block_row, FIXTURE_BLOCK_COUNT);
    struct layout_seat *seats = ARENA_ARRAY(&batch->arena, struct layout_seat, FIXTURE_SEAT_COUNT);
    int32_t per_block = FIXTURE_SEAT_COUNT / FIXTURE_BLOCK_COUNT;
    for (int32_t i = 0; i < FIXTURE_BLOCK_COUNT; i++) {
        f->block_ids[i] = fixture_id(f);
        blocks[i] = (struct block_row){.org_id = f->org_id,
                                       .event_id = f->event_id,
                                       .id = f->block_ids[i],
                                       .section = "A",
                                       .subsection = i + 1,
                                       .ordinal = i,
                                       .name = "Stalls",
                                       .capacity = per_block,
                                       .price_cents = FIXTURE_PRICE};
    }
    for (int32_t i = 0; i < FIXTURE_SEAT_COUNT; i++) {
        f->seat_ids[i] = fixture_id(f);
        seats[i] = (struct layout_seat){.id = f->seat_ids[i],
                                        .block = i / per_block,
                                        .row = i % per_block / 10 + 1,
                                        .seat = i % 10 + 1,
                                        .row_label = "R",
                                        .seat_label = "S"};
    }
    struct layout_write *layout = ARENA_NEW(&batch->arena, struct layout_write);
    *layout = (struct layout_write){.org_id = f->org_id,
                                    .event_id = f->event_id,
                                    .document = "{\"name\":\"House\"}",
                                    .blocks = blocks,
                                    .block_count = FIXTURE_BLOCK_COUNT,
                                    .seats = seats,
                                    .seat_count = FIXTURE_SEAT_COUNT};
    unit->layouts = layout;
}

struct event_row fixture_event(struct fixture *f)
{
    return (struct event_row){.org_id = f->org_id,
                              .id = f->event_id,
                              .name = "Premiere",
                              .state = EVENT_LIVE,
                              .sale_start_ms = TIME_NONE,
                              .sale_end_ms = TIME_MAX,
                              .currency = "EUR",
                              .policy = policy_default(),
                              .created_ms = f->now_ms,
                              .updated_ms = f->now_ms,
                              .version = 1};
}

void fixture_new_tenant(struct fixture *f)
{
    struct store_batch *batch = batch_new(f);
    struct store_unit *unit = unit_new(batch);
    f->org_id = fixture_id(f);
    f->event_id = fixture_id(f);
    f->user_id = fixture_id(f);
    struct org_write *org = ARENA_NEW(&batch->arena, struct org_write);
    org->row = (struct org_row){.id = f->org_id, .name = "Theatre", .created_ms = f->now_ms};
    struct user_write *user = ARENA_NEW(&batch->arena, struct user_write);
    user->row = (struct user_row){.org_id = f->org_id, .id = f->user_id, .created_ms = f->now_ms};
    struct event_write *event = ARENA_NEW(&batch->arena, struct event_write);
    event->insert = true;
    event->row = fixture_event(f);
    unit->orgs = org;
    unit->users = user;
    unit->events = event;
    tenant_layout(f, batch, unit);
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
}

/* ---- What units write ---- */

struct seat_write *unit_seat(struct fixture *f, struct store_batch *batch, struct store_unit *unit,
                             int32_t seat, int32_t version, enum seat_state before, enum seat_state after)
{
    struct seat_write *write = ARENA_NEW(&batch->arena, struct seat_write);
    write->row = (struct seat_row){.org_id = f->org_id,
                                   .event_id = f->event_id,
                                   .id = f->seat_ids[seat],
                                   .index = seat,
                                   .version = version + 1,
                                   .state = after};
    write->before = before;
    write->block_id = f->block_ids[seat / (FIXTURE_SEAT_COUNT / FIXTURE_BLOCK_COUNT)];
    write->next = unit->seats;
    unit->seats = write;
    return write;
}

void unit_audit(struct fixture *f, struct store_batch *batch, struct store_unit *unit,
                enum audit_action action, const struct hold_row *hold)
{
    struct audit_write *audit = ARENA_NEW(&batch->arena, struct audit_write);
    audit->row =
        (struct audit_row){.org_id = f->org_id,
                           .actor_id = hold->user_id,
                           .role = ROLE_BUYER,
                           .action = action,
                           .entity_type = "SeatHold",
                           .entity_id = hold->id,
                           .seat_id = hold->seat_id,
                           .event_id = hold->event_id,
                           .checkout_id = hold->checkout_id,
                           .user_id = hold->user_id,
                           .before = action == AUDIT_SEAT_RESERVED ? NULL : "{\"status\":\"active\"}",
                           .after = "{\"status\":\"new\"}",
                           .held_duration_seconds = action == AUDIT_SEAT_RESERVED ? -1 : 12,
                           .scenario = action == AUDIT_SEAT_RESERVED ? NULL : "A",
                           .ip = "127.0.0.1",
                           .user_agent = "test \"agent\"",
                           .request_id = "r1",
                           .created_ms = batch->now_ms};
    audit->next = unit->audits;
    unit->audits = audit;
}

struct hold_row *unit_hold(struct fixture *f, struct store_batch *batch, struct store_unit *unit,
                           int32_t seat, int32_t version)
{
    struct hold_write *write = ARENA_NEW(&batch->arena, struct hold_write);
    write->insert = true;
    write->row = (struct hold_row){.org_id = f->org_id,
                                   .event_id = f->event_id,
                                   .id = fixture_id(f),
                                   .seat_id = f->seat_ids[seat],
                                   .user_id = f->user_id,
                                   .cart_token = "cart",
                                   .state = HOLD_ACTIVE,
                                   .source = SOURCE_SCANNER,
                                   .price_cents = FIXTURE_PRICE,
                                   .created_ms = batch->now_ms,
                                   .held_until_ms = batch->now_ms + 300000};
    struct seat_write *place = unit_seat(f, batch, unit, seat, version, SEAT_AVAILABLE, SEAT_HELD);
    place->row.hold_id = write->row.id;
    place->row.held_until_ms = write->row.held_until_ms;
    place->row.locked_ms = batch->now_ms;
    write->block_id = place->block_id;
    write->next = unit->holds;
    unit->holds = write;
    unit_audit(f, batch, unit, AUDIT_SEAT_RESERVED, &write->row);
    return &write->row;
}

void unit_end(struct fixture *f, struct store_batch *batch, struct store_unit *unit,
              const struct hold_row *hold, int32_t seat, int32_t version, enum hold_state state,
              enum end_reason reason)
{
    struct hold_write *write = ARENA_NEW(&batch->arena, struct hold_write);
    write->row = *hold;
    write->row.state = state;
    write->row.reason = reason;
    write->row.ended_ms = batch->now_ms + 12000;
    struct seat_write *place = unit_seat(f, batch, unit, seat, version, SEAT_HELD,
                                         state == HOLD_CONVERTED ? SEAT_SOLD : SEAT_AVAILABLE);
    write->block_id = place->block_id;
    write->next = unit->holds;
    unit->holds = write;
    if (state != HOLD_CONVERTED)
        unit_audit(f, batch, unit, state == HOLD_EXPIRED ? AUDIT_SEAT_HOLD_EXPIRED : AUDIT_SEAT_RELEASED,
                   &write->row);
}

struct hold_row hold_seat(struct fixture *f, int32_t seat, int32_t version)
{
    struct store_batch *batch = batch_new(f);
    struct hold_row row = *unit_hold(f, batch, unit_new(batch), seat, version);
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
    return row;
}

struct key_write *unit_key(struct fixture *f, struct store_batch *batch, struct store_unit *unit, uint8_t key)
{
    struct key_write *write = ARENA_NEW(&batch->arena, struct key_write);
    write->org_id = f->org_id;
    memset(write->key, key, sizeof(write->key));
    memset(write->body, 0x55, sizeof(write->body));
    write->result = "result";
    write->result_size = 6;
    write->created_ms = f->now_ms;
    unit->key = write;
    return write;
}

struct checkout_write *unit_checkout(struct store_batch *batch, struct store_unit *unit,
                                     const struct checkout_row *row, bool insert)
{
    struct checkout_write *write = ARENA_NEW(&batch->arena, struct checkout_write);
    write->insert = insert;
    write->row = *row;
    write->next = unit->checkouts;
    unit->checkouts = write;
    return write;
}

struct order_claim *unit_order_claim(struct fixture *f, struct store_batch *batch, struct store_unit *unit,
                                     const char *topic, int32_t partition, int64_t epoch)
{
    struct order_claim *claim = ARENA_NEW(&batch->arena, struct order_claim);
    claim->row = (struct order_row){.topic = topic,
                                    .partition = partition,
                                    .epoch = epoch,
                                    .node = f->node_id,
                                    .claimed_ms = batch->now_ms};
    claim->next = unit->order_claims;
    unit->order_claims = claim;
    return claim;
}

struct order_check *unit_order_check(struct store_batch *batch, struct store_unit *unit, const char *topic,
                                     int32_t partition, int64_t epoch, int64_t next_offset)
{
    struct order_check *check = ARENA_NEW(&batch->arena, struct order_check);
    *check = (struct order_check){
        .topic = topic, .partition = partition, .epoch = epoch, .next_offset = next_offset};
    check->next = unit->order_checks;
    unit->order_checks = check;
    return check;
}

struct uuid buy_seat(struct fixture *f, int32_t seat, int32_t version)
{
    struct hold_row hold = hold_seat(f, seat, version);
    struct checkout_row checkout = {.org_id = f->org_id,
                                    .event_id = f->event_id,
                                    .id = fixture_id(f),
                                    .user_id = f->user_id,
                                    .currency = "EUR",
                                    .total_cents = FIXTURE_PRICE,
                                    .created_ms = f->now_ms,
                                    .expires_ms = hold.held_until_ms,
                                    .version = 1};
    struct store_batch *batch = batch_new(f);
    struct store_unit *unit = unit_new(batch);
    struct hold_write *joined = ARENA_NEW(&batch->arena, struct hold_write);
    hold.checkout_id = checkout.id;
    joined->row = hold;
    unit->holds = joined;
    (void)unit_checkout(batch, unit, &checkout, true);
    assert_int_equal(batch_commit(f, batch), UNIT_OK);

    batch = batch_new(f);
    unit = unit_new(batch);
    checkout.state = CHECKOUT_COMPLETED;
    checkout.version = 2;
    checkout.ended_ms = f->now_ms;
    checkout.payment_token = "tok_ok";
    (void)unit_checkout(batch, unit, &checkout, false);
    unit_end(f, batch, unit, &hold, seat, version + 1, HOLD_CONVERTED, END_NONE);
    unit_audit(f, batch, unit, AUDIT_CHECKOUT_COMPLETED, &hold);
    struct ticket_write *ticket = ARENA_NEW(&batch->arena, struct ticket_write);
    ticket->insert = true;
    ticket->row = (struct ticket_row){.org_id = f->org_id,
                                      .event_id = f->event_id,
                                      .id = fixture_id(f),
                                      .seat_id = hold.seat_id,
                                      .hold_id = hold.id,
                                      .checkout_id = checkout.id,
                                      .user_id = f->user_id,
                                      .price_cents = FIXTURE_PRICE,
                                      .code = "0123456789abcdef",
                                      .created_ms = f->now_ms};
    unit->tickets = ticket;
    unit->seats->row.ticket_id = ticket->row.id;
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
    return checkout.id;
}

/* ---- Questions ---- */

static void lookup_on_done(struct store_lookup *lookup)
{
    *(bool *)lookup->context = true;
}

static struct store_lookup lookup_ask(struct fixture *f, struct store_lookup lookup)
{
    bool done = false;
    lookup.org_id = f->org_id;
    lookup.arena = &f->arena;
    lookup.on_done = lookup_on_done;
    lookup.context = &done;
    assert_int_equal(store_lookup(f->store, &lookup), ERR_OK);
    assert_true(fixture_wait(f, &done));
    assert_int_equal(lookup.err, ERR_OK);
    return lookup;
}

struct store_lookup lookup_run(struct fixture *f, enum lookup_kind kind, const struct uuid *id)
{
    struct store_lookup lookup = {.kind = kind, .now_ms = f->now_ms, .limit = 100};
    if (id != NULL)
        lookup.id = *id;
    return lookup_ask(f, lookup);
}

struct store_lookup lookup_key_run(struct fixture *f, uint8_t key, int64_t now_ms)
{
    struct store_lookup lookup = {.kind = LOOKUP_KEY, .now_ms = now_ms};
    memset(lookup.key, key, sizeof(lookup.key));
    return lookup_ask(f, lookup);
}

struct store_lookup lookup_delivery_run(struct fixture *f, const char *name)
{
    return lookup_ask(f, (struct store_lookup){.kind = LOOKUP_DELIVERY, .name = name});
}

struct store_lookup lookup_order_run(struct fixture *f, const char *topic, int32_t partition)
{
    return lookup_ask(f, (struct store_lookup){.kind = LOOKUP_ORDER, .name = topic, .partition = partition});
}

struct signal {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool done;
};

static void query_on_done(struct store_query *query)
{
    struct signal *signal = query->context;
    pthread_mutex_lock(&signal->lock);
    signal->done = true;
    pthread_cond_signal(&signal->wake);
    pthread_mutex_unlock(&signal->lock);
}

void query_run_all(struct fixture *f, struct store_query *query)
{
    struct signal signal = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};
    query->on_done = query_on_done;
    query->context = &signal;
    assert_int_equal(store_query(f->store, query), ERR_OK);
    pthread_mutex_lock(&signal.lock);
    while (!signal.done)
        pthread_cond_wait(&signal.wake, &signal.lock);
    pthread_mutex_unlock(&signal.lock);
    assert_int_equal(query->err, ERR_OK);
}

void query_run(struct fixture *f, struct store_query *query)
{
    query->org_id = uuid_is_nil(&query->org_id) ? f->org_id : query->org_id;
    query_run_all(f, query);
}

bool query_has(struct store_query *query, const char *text)
{
    return strstr(buf_text(&query->rows), text) != NULL;
}

/* ---- The change feed ---- */

static void follow_on_done(struct store_follow *follow)
{
    *(bool *)follow->context = true;
}

struct store_follow follow_once(struct fixture *f, struct feed_position after, int32_t limit)
{
    bool done = false;
    struct store_follow follow = {
        .after = after, .limit = limit, .arena = &f->arena, .on_done = follow_on_done, .context = &done};
    assert_int_equal(store_follow(f->store, &follow), ERR_OK);
    assert_true(fixture_wait(f, &done));
    assert_int_equal(follow.err, ERR_OK);
    assert_true(follow.count <= limit);
    return follow;
}

struct followed follow_run(struct fixture *f, struct feed_position after, int32_t limit)
{
    struct followed all = {.position = after, .changes = NULL};
    int64_t horizon = INT64_MIN, reached = INT64_MIN, end_us = clock_monotonic_us() + WAIT_MS_MAX * 1000ll;
    while ((horizon == INT64_MIN || reached < horizon) && !all.lost) {
        struct store_follow page = follow_once(f, all.position, limit);
        assert_true(page.reached >= reached);
        assert_true(clock_monotonic_us() < end_us);
        horizon = horizon == INT64_MIN ? page.horizon : horizon;
        reached = page.reached;
        struct store_change *changes =
            ARENA_ARRAY(&f->arena, struct store_change, all.count + page.count + 1);
        if (all.count > 0)
            memcpy(changes, all.changes, (size_t)all.count * sizeof(*changes));
        if (page.count > 0)
            memcpy(changes + all.count, page.changes, (size_t)page.count * sizeof(*changes));
        all.changes = changes;
        all.count += page.count;
        all.page_count++;
        all.position = page.position;
        all.lost = page.lost;
    }
    return all;
}

static enum err position_on_position(void *context, const struct feed_position *position)
{
    *(struct feed_position *)context = *position;
    return ERR_INTERNAL; /* the rest is not wanted */
}

struct feed_position fixture_position(struct fixture *f)
{
    static const struct store_loader loader = {.on_position = position_on_position};
    struct feed_position position = {.id = -1};
    assert_int_equal(store_load(f->store, &loader, &position), ERR_INTERNAL);
    return position;
}

struct verification {
    int broken;
    char *claim;
};

static void verify_on_check(void *context, const char *claim, int64_t broken, const char *example)
{
    struct verification *v = context;
    assert_true(broken >= 0);
    assert_non_null(example);
    if (broken == 0)
        return;
    if (v->broken++ == 0)
        snprintf(v->claim, 256, "%s", claim);
}

int verify_run(struct fixture *f, char claim[256])
{
    struct verification v = {.claim = claim};
    claim[0] = '\0';
    assert_int_equal(store_verify(f->store, verify_on_check, &v), ERR_OK);
    return v.broken;
}
