/* SPDX-License-Identifier: Apache-2.0
 * The nodes' side of the simulated Redis: what they asked for waits in a queue,
 * happens in order at its time, and is answered in a turn of the node's, or not.
 *
 * 1. A node's requests happen in the order in which they were asked; those of
 *    different nodes in the order of their times.
 * 2. A round that is not answered within WARM_ROUND_MS_MAX breaks the node's
 *    connection: whatever else it asked for happens or not, by the dice, and all
 *    of it fails.
 * 3. The same seed, the same calls and the same times give the same run.
 *
 * One thread. */
#include "warm/sim/sim.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "warm/sim/sim_int.h"

enum { FAILURE_COUNT = 5, NOTICE_MS_MAX = 5000, REQUEST_COUNT_MAX = 4096 };

static struct sim_node *node_of(struct warm *warm)
{
    return CONTAINER_OF(warm, struct sim_node, warm);
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- Requests ---- */

static struct sim_request *request_add(struct sim_node *node)
{
    struct warm_sim *sim = node->sim;
    struct sim_request *request = calloc(1, sizeof(*request));
    CHECK(request != NULL);
    request->happens_ms = sim->now_ms + sim_delay(&node->rng, sim->faults.delay_ms_max);
    request->answers_ms = request->happens_ms + sim_delay(&node->rng, sim->faults.delay_ms_max);
    if (!list_empty(&node->requests)) {
        const struct sim_request *last = CONTAINER_OF(node->requests.prev, struct sim_request, node);
        request->happens_ms = later(request->happens_ms, last->happens_ms);
        request->answers_ms = later(request->answers_ms, last->answers_ms);
    }
    request->deadline_ms = sim->now_ms + WARM_ROUND_MS_MAX;
    list_append(&node->requests, &request->node);
    return request;
}

static void request_free(struct sim_request *request)
{
    list_remove(&request->node);
    for (int32_t i = 0; request->writes != NULL && i < request->count; i++)
        free((char *)request->writes[i].cart_token);
    free(request->writes);
    free(request->members);
    free(request);
}

static void nudge_others(struct sim_node *from)
{
    struct warm_sim *sim = from->sim;
    LIST_FOR_EACH(each, &sim->nodes) {
        struct sim_node *node = CONTAINER_OF(each, struct sim_node, node);
        if (node == from || sim_dice(&sim->rng, sim->faults.lose_nudge))
            continue;
        int64_t at_ms = sim->now_ms + sim_delay(&sim->rng, sim->faults.nudge_delay_ms_max);
        node->nudge_at_ms = at_ms < node->nudge_at_ms ? at_ms : node->nudge_at_ms;
    }
}

static void request_happen(struct sim_node *node, struct sim_request *request)
{
    struct warm_sim *sim = node->sim;
    bool news = false;
    request->happened = true;
    /* Who waits for it waits in vain, though Redis may be back by then; nobody waits for the others. */
    if (sim->away)
        request->lost = request->round != NULL || request->read != NULL;
    if (request->lost || sim->away)
        return;
    if (request->round != NULL)
        sim_lock(sim, node, request->round);
    if (request->read != NULL)
        sim_read(sim, request->read);
    for (int32_t i = 0; request->writes != NULL && i < request->count; i++) {
        sim_write(sim, &request->writes[i]);
        news |= !request->writes[i].repair && request->writes[i].kind != WARM_UNLOCKED;
    }
    for (int32_t i = 0; request->members != NULL && i < request->count; i++)
        sim_remove_member(sim, &request->members[i]);
    if (news)
        nudge_others(node);
}

static void request_end(struct sim_request *request, enum warm_outcome outcome)
{
    struct warm_round *round = request->round;
    struct warm_read *read = request->read;
    request_free(request);
    if (round != NULL) {
        round->outcome = outcome;
        round->on_done(round);
    }
    if (read != NULL) {
        read->outcome = outcome;
        read->on_done(read);
    }
}

/* ---- The connection and its breaker ---- */

static void node_open(struct sim_node *node)
{
    node->state = WARM_OPEN;
    node->open_until_ms = node->sim->now_ms + 1 + sim_delay(&node->rng, node->sim->faults.open_ms_max);
}

/* The connection broke: some of what was asked for happens all the same. */
static void node_break(struct sim_node *node, enum warm_outcome outcome)
{
    struct list lost;
    struct list *each;
    list_init(&lost);
    list_splice(&lost, &node->requests);
    node->failures++;
    if (node->failures >= FAILURE_COUNT || node->state == WARM_REBUILDING)
        node_open(node);
    bool alive = true; /* in order: once one is lost, so are those behind it */
    while ((each = list_pop(&lost)) != NULL) {
        struct sim_request *request = CONTAINER_OF(each, struct sim_request, node);
        alive = alive && !sim_dice(&node->rng, 300);
        if (alive && !request->happened)
            request_happen(node, request);
        request_end(request, outcome);
    }
}

static bool is_stuck(const struct sim_node *node, const struct sim_request *request)
{
    return request->lost || node->sim->away || request->answers_ms > request->deadline_ms;
}

/* Answers come in order; the first that does not come holds up the others, until one of them is late. */
static void node_answer(struct sim_node *node)
{
    int64_t now_ms = node->sim->now_ms;
    while (!list_empty(&node->requests)) {
        struct sim_request *request = CONTAINER_OF(node->requests.next, struct sim_request, node);
        if (!request->happened || request->answers_ms > now_ms)
            break;
        if (request->breaks) {
            node_break(node, WARM_FAILED);
            return;
        }
        if (is_stuck(node, request))
            break;
        if (request->round != NULL || request->read != NULL)
            node->failures = 0;
        request_end(request, WARM_ANSWERED);
    }
    LIST_FOR_EACH(each, &node->requests) {
        const struct sim_request *request = CONTAINER_OF(each, struct sim_request, node);
        if (now_ms >= request->deadline_ms && is_stuck(node, request)) {
            node->sim->tables.late_count++;
            node_break(node, WARM_TIMED_OUT);
            return;
        }
    }
}

/* ---- warm.h ---- */

static void sim_destroy_node(struct warm *warm)
{
    struct sim_node *node = node_of(warm);
    struct list lost;
    struct list *each;
    list_init(&lost);
    list_splice(&lost, &node->requests);
    while ((each = list_pop(&lost)) != NULL)
        request_end(CONTAINER_OF(each, struct sim_request, node), WARM_FAILED);
    list_remove(&node->node);
    free(node);
}

static int sim_fd(struct warm *warm)
{
    (void)warm;
    return -1;
}

static int64_t node_next_ms(const struct sim_node *node)
{
    int64_t next_ms = node->nudge_at_ms < node->rebuild_at_ms ? node->nudge_at_ms : node->rebuild_at_ms;
    if (node->state == WARM_OPEN && !node->sim->away && node->open_until_ms < next_ms)
        next_ms = node->open_until_ms;
    LIST_FOR_EACH(each, &node->requests) {
        const struct sim_request *request = CONTAINER_OF(each, struct sim_request, node);
        int64_t at_ms = request->happened ? request->answers_ms : request->happens_ms;
        if (request->happened && is_stuck(node, request) && !request->breaks)
            at_ms = request->deadline_ms;
        next_ms = at_ms < next_ms ? at_ms : next_ms;
    }
    return next_ms;
}

static int64_t sim_turn(struct warm *warm, int64_t now_us)
{
    struct sim_node *node = node_of(warm);
    struct warm_sim *sim = node->sim;
    node_answer(node);
    if (node->state == WARM_OPEN && !sim->away && sim->now_ms >= node->open_until_ms) {
        node->state = WARM_REBUILDING;
        node->failures = 0;
    }
    if (sim->now_ms >= node->rebuild_at_ms) {
        node->rebuild_at_ms = INT64_MAX;
        if (node->state == WARM_CLOSED)
            node->state = WARM_REBUILDING;
        else if (node->state == WARM_REBUILDING)
            node_break(node, WARM_FAILED); /* what was rebuilt is gone, too */
    }
    if (sim->now_ms >= node->nudge_at_ms) {
        node->nudge_at_ms = INT64_MAX;
        sim->tables.nudge_count++;
        if (node->on_nudge != NULL && node->state != WARM_OPEN)
            node->on_nudge(node->context);
    }
    int64_t next_ms = node_next_ms(node);
    return next_ms == INT64_MAX ? INT64_MAX
                                : now_us + (next_ms > sim->now_ms ? next_ms - sim->now_ms : 0) * 1000;
}

static enum warm_state sim_state(const struct warm *warm)
{
    return CONTAINER_OF(warm, const struct sim_node, warm)->state;
}

static void sim_rebuilt(struct warm *warm)
{
    struct sim_node *node = node_of(warm);
    if (node->state == WARM_REBUILDING)
        node->state = WARM_CLOSED;
}

/* The dice of a request that is waited for. */
static void request_cast(struct sim_node *node, struct sim_request *request)
{
    const struct warm_sim_faults *faults = &node->sim->faults;
    request->lost = sim_dice(&node->rng, faults->lost);
    request->breaks = sim_dice(&node->rng, faults->fail);
    if (sim_dice(&node->rng, faults->late))
        request->answers_ms = request->deadline_ms + 1 + sim_delay(&node->rng, 1000);
    if (request->breaks && sim_dice(&node->rng, 500))
        request->lost = true;
}

static bool has_room(const struct sim_node *node)
{
    int32_t count = 0;
    LIST_FOR_EACH(each, &node->requests)
        count++;
    return count < REQUEST_COUNT_MAX;
}

static enum err sim_lock_round(struct warm *warm, struct warm_round *round)
{
    struct sim_node *node = node_of(warm);
    if (node->state != WARM_CLOSED || !has_room(node))
        return ERR_OVERLOADED;
    node->sim->tables.round_count++;
    struct sim_request *request = request_add(node);
    request->round = round;
    request_cast(node, request);
    return ERR_OK;
}

static enum err sim_ask(struct warm *warm, struct warm_read *read)
{
    struct sim_node *node = node_of(warm);
    if (node->state == WARM_OPEN || !has_room(node))
        return ERR_OVERLOADED;
    struct sim_request *request = request_add(node);
    request->read = read;
    request_cast(node, request);
    return ERR_OK;
}

static void sim_write_all(struct warm *warm, const struct warm_write *writes, int32_t count)
{
    struct sim_node *node = node_of(warm);
    if (node->state == WARM_OPEN || !has_room(node))
        return;
    struct sim_request *request = request_add(node);
    request->count = count;
    request->writes = calloc((size_t)count, sizeof(*writes));
    CHECK(request->writes != NULL);
    memcpy(request->writes, writes, (size_t)count * sizeof(*writes));
    for (int32_t i = 0; i < count; i++)
        request->writes[i].cart_token = strdup(writes[i].cart_token != NULL ? writes[i].cart_token : "");
    request->deadline_ms = INT64_MAX; /* nobody waits */
    request->lost = sim_dice(&node->rng, node->sim->faults.lose_write);
    /* Lost on its own, it must not keep those behind it waiting. */
    if (request->lost)
        request_free(request);
}

static void sim_nudge(struct warm *warm)
{
    struct sim_node *node = node_of(warm);
    if (node->state != WARM_OPEN && !node->sim->away)
        nudge_others(node);
}

/* Nothing but other programs reads the occupancy. */
static void sim_occupancy(struct warm *warm, const struct uuid *org_id, const struct uuid *event_id,
                          const char *json, size_t size)
{
    (void)warm;
    (void)org_id;
    (void)event_id;
    (void)json;
    (void)size;
}

static void sim_remove_members(struct warm *warm, const struct uuid *org_id, const struct uuid *event_id,
                               const struct warm_member *members, int32_t count)
{
    struct sim_node *node = node_of(warm);
    if (node->state == WARM_OPEN || !has_room(node))
        return;
    struct sim_request *request = request_add(node);
    request->count = count;
    request->members = calloc((size_t)count, sizeof(*members));
    CHECK(request->members != NULL);
    memcpy(request->members, members, (size_t)count * sizeof(*members));
    request->org_id = *org_id;
    request->event_id = *event_id;
    request->deadline_ms = INT64_MAX;
}

static const struct warm_functions sim_functions = {
    .destroy = sim_destroy_node,
    .fd = sim_fd,
    .turn = sim_turn,
    .state = sim_state,
    .rebuilt = sim_rebuilt,
    .lock = sim_lock_round,
    .write = sim_write_all,
    .nudge = sim_nudge,
    .occupancy = sim_occupancy,
    .read = sim_ask,
    .remove_members = sim_remove_members,
};

/* ---- The test's side ---- */

struct warm_sim *warm_sim_create(uint64_t seed)
{
    struct warm_sim *sim = calloc(1, sizeof(*sim));
    CHECK(sim != NULL);
    rng_init_seed(&sim->rng, seed);
    list_init(&sim->nodes);
    map_init(&sim->tables.locks);
    map_init(&sim->tables.holds);
    map_init(&sim->tables.members);
    map_init(&sim->tables.seats);
    buf_init(&sim->text);
    return sim;
}

void warm_sim_destroy(struct warm_sim *sim)
{
    CHECK(list_empty(&sim->nodes));
    sim_clear(sim);
    buf_deinit(&sim->text);
    free(sim);
}

const struct warm_sim_tables *warm_sim_tables(const struct warm_sim *sim)
{
    return &sim->tables;
}

void warm_sim_set_faults(struct warm_sim *sim, const struct warm_sim_faults *faults)
{
    sim->faults = *faults;
}

/* The first request, of all nodes, that has not happened. */
static struct sim_request *sim_first_due(struct warm_sim *sim, int64_t now_ms, struct sim_node **owner)
{
    struct sim_request *first = NULL;
    LIST_FOR_EACH(each, &sim->nodes) {
        struct sim_node *node = CONTAINER_OF(each, struct sim_node, node);
        LIST_FOR_EACH(inner, &node->requests) {
            struct sim_request *request = CONTAINER_OF(inner, struct sim_request, node);
            if (request->happened)
                continue;
            if (request->happens_ms <= now_ms && (first == NULL || request->happens_ms < first->happens_ms)) {
                first = request;
                *owner = node;
            }
            break; /* those behind it happen after it */
        }
    }
    return first;
}

void warm_sim_set_now(struct warm_sim *sim, int64_t now_ms)
{
    struct sim_node *owner = NULL;
    struct sim_request *request;
    while ((request = sim_first_due(sim, now_ms, &owner)) != NULL) {
        if (request->happens_ms > sim->now_ms)
            sim->now_ms = request->happens_ms;
        request_happen(owner, request);
    }
    sim->now_ms = now_ms;
}

int64_t warm_sim_next_ms(const struct warm_sim *sim)
{
    int64_t next_ms = INT64_MAX;
    LIST_FOR_EACH(each, &sim->nodes) {
        int64_t node_ms = node_next_ms(CONTAINER_OF(each, struct sim_node, node));
        next_ms = node_ms < next_ms ? node_ms : next_ms;
    }
    return next_ms;
}

void warm_sim_flush(struct warm_sim *sim)
{
    sim_clear(sim);
    LIST_FOR_EACH(each, &sim->nodes) {
        struct sim_node *node = CONTAINER_OF(each, struct sim_node, node);
        node->rebuild_at_ms = sim->now_ms + sim_delay(&sim->rng, NOTICE_MS_MAX);
    }
}

void warm_sim_set_away(struct warm_sim *sim, bool away)
{
    sim->away = away;
}

struct warm *warm_sim_attach(struct warm_sim *sim, uint64_t seed, void (*on_nudge)(void *context),
                             void *context)
{
    struct sim_node *node = calloc(1, sizeof(*node));
    CHECK(node != NULL);
    node->warm.functions = &sim_functions;
    node->sim = sim;
    node->on_nudge = on_nudge;
    node->context = context;
    node->state = WARM_REBUILDING;
    node->rebuild_at_ms = INT64_MAX;
    node->nudge_at_ms = INT64_MAX;
    rng_init_seed(&node->rng, seed);
    list_init(&node->requests);
    list_append(&sim->nodes, &node->node);
    return &node->warm;
}

void warm_sim_crash(struct warm *warm)
{
    struct sim_node *node = node_of(warm);
    bool alive = true;
    while (!list_empty(&node->requests)) {
        struct sim_request *request = CONTAINER_OF(node->requests.next, struct sim_request, node);
        alive = alive && !sim_dice(&node->rng, 500);
        /* What a round or reading found has nowhere to go any more: its arena dies with the node. */
        if (alive && !request->happened)
            request_happen(node, request);
        request_free(request);
    }
}
