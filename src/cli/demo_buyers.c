/* SPDX-License-Identifier: Apache-2.0
 * Simulated buyers: a few hundred people on one thread, each with at most one
 * command under way, gentle enough to leave the machine to whoever looks.
 *
 *   idle ─hold─▶ holding ─┬─▶ extends, still holding
 *                         ├─▶ gives seats back one by one ─▶ idle
 *                         ├─▶ walks away, the hold runs out ─▶ idle
 *                         └─checkout─▶ paying ─┬─▶ pays, is declined, waits ─▶ idle
 *                                              └─▶ cancels, or walks away   ─▶ idle
 *
 * Invariants: (1) a buyer's command is the buyer's own until it is submitted and again
 * after it came back through `answers`; in between `busy` is set. (2) The more is
 * sold, the fewer pay, so that it does not sell out while somebody watches; past
 * DEMO_FULL the arena's next show is published and buyers move on.
 *
 * They go through order_submit(), like the API: same rules, no HTTP. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/queue.h"
#include "base/rng.h"
#include "cli/demo.h"
#include "order/order.h"

enum {
    DEMO_THINK_MS = 10000,   /* on average, between two actions of a buyer */
    DEMO_FULL_PERCENT = 85,  /* sold: time for the next show */
    DEMO_SMALL_PERCENT = 12, /* buyers who want one of the small events */
    DEMO_PAY_PERCENT = 40,   /* of those who hold seats, while the house is empty */
    DEMO_HOLD_COUNT_MAX = 4,
    DEMO_SEAT_TRY_COUNT_MAX = 40,
};

enum buyer_state { BUYER_IDLE, BUYER_HOLDING, BUYER_PAYING, BUYER_LEAVING };

struct buyer {
    struct uuid user_id;
    enum buyer_state state;
    bool busy;
    int64_t due_ms;
    int event; /* which of the demo's */
    struct uuid event_id;
    struct uuid hold_ids[DEMO_HOLD_COUNT_MAX];
    int hold_count;
    struct uuid checkout_id;
    struct arena arena;
    struct command command;
};

struct demo_buyers {
    struct demo_events events;
    struct buyer *buyers;
    int count;
    int busy_count;
    struct rng rng;
    struct arena scratch;
    struct queue answers; /* from the lane's thread */
    pthread_t thread;
    atomic_bool stopping;
};

static bool chance(struct demo_buyers *buyers, int percent)
{
    return (int)rng_below(&buyers->rng, 100) < percent;
}

static int64_t think_ms(struct demo_buyers *buyers)
{
    return DEMO_THINK_MS / 4 + (int64_t)rng_below(&buyers->rng, DEMO_THINK_MS * 3 / 2);
}

/* ---- Asking ---- */

/* The lane's thread. */
static void on_answer(struct command *command)
{
    struct buyer *buyer = CONTAINER_OF(command, struct buyer, command);
    struct demo_buyers *buyers = command->owner;

    list_init(&buyer->command.node);
    queue_push_always(&buyers->answers, &buyer->command.node);
}

static struct command *prepare(struct demo_buyers *buyers, struct buyer *buyer, enum command_kind kind)
{
    struct command *command = &buyer->command;

    arena_reset(&buyer->arena);
    command_init(command, kind, &buyer->arena);
    command->actor.org_id = buyers->events.org_id;
    command->actor.user_id = buyer->user_id;
    command->actor.for_user_id = buyer->user_id;
    command->actor.role = ROLE_BUYER;
    command->actor.user_agent = "holdfast-demo";
    command->owner = buyers;
    command->on_done = on_answer;
    return command;
}

static void submit(struct demo_buyers *buyers, struct buyer *buyer)
{
    if (order_submit(node_order(buyers->events.node), &buyer->command) != ERR_OK) {
        command_deinit(&buyer->command);
        return; /* too busy: they try again after a while */
    }
    buyer->busy = true;
    buyers->busy_count++;
}

/* ---- What they do ---- */

static int percent_sold(const struct seatmap *map)
{
    int32_t counts[SEAT_STATE_COUNT];

    seatmap_counts(map, counts);
    return map->layout->seat_count > 0 ? (int)((int64_t)counts[SEAT_SOLD] * 100 / map->layout->seat_count)
                                       : 100;
}

/* The seat map of the buyer's event, to be released; NULL if it is gone. */
static struct seatmap *event_map(struct demo_buyers *buyers, const struct uuid *event_id)
{
    struct event_view view = {.map = NULL};

    arena_reset(&buyers->scratch);
    if (!directory_event(node_directory(buyers->events.node), &buyers->events.org_id, event_id,
                         &buyers->scratch, &view))
        return NULL;
    return view.map;
}

static bool find_seat(struct demo_buyers *buyers, const struct seatmap *map, struct uuid *out)
{
    for (int i = 0; i < DEMO_SEAT_TRY_COUNT_MAX; i++) {
        int32_t index = (int32_t)rng_below(&buyers->rng, (uint64_t)map->layout->seat_count);
        if (seatmap_state(map, index) == SEAT_AVAILABLE) {
            *out = map->seat_ids[index];
            return true;
        }
    }
    return false;
}

static void act_hold(struct demo_buyers *buyers, struct buyer *buyer)
{
    buyer->event =
        chance(buyers, DEMO_SMALL_PERCENT) ? 1 + (int)rng_below(&buyers->rng, DEMO_EVENT_COUNT - 1) : 0;
    buyer->event_id = buyers->events.event_ids[buyer->event];
    buyer->hold_count = 0;
    struct seatmap *map = event_map(buyers, &buyer->event_id);
    struct uuid seat_id;
    if (map == NULL)
        return;
    if (chance(buyers, 45) && find_seat(buyers, map, &seat_id)) {
        struct command *command = prepare(buyers, buyer, COMMAND_HOLD_SEATS);
        command->hold_seats.event_id = buyer->event_id;
        command->hold_seats.seat_ids = arena_copy(&buyer->arena, &seat_id, sizeof seat_id);
        command->hold_seats.count = 1;
        command->hold_seats.source = SOURCE_WEB;
    } else {
        const struct layout_block *block =
            &map->layout->blocks[rng_below(&buyers->rng, (uint64_t)map->layout->block_count)];
        struct command *command = prepare(buyers, buyer, COMMAND_HOLD_BEST);
        command->hold_best.event_id = buyer->event_id;
        command->hold_best.quantity = 1 + (int32_t)rng_below(&buyers->rng, DEMO_HOLD_COUNT_MAX);
        memcpy(command->hold_best.section, block->section, sizeof block->section);
        command->hold_best.subsection = block->subsection;
        command->hold_best.adjacent = true;
        command->hold_best.source = SOURCE_WEB;
    }
    seatmap_release(map);
    submit(buyers, buyer);
}

static void act_extend_or_release(struct demo_buyers *buyers, struct buyer *buyer, enum command_kind kind)
{
    prepare(buyers, buyer, kind)->id = buyer->hold_ids[0];
    if (kind == COMMAND_HOLD_RELEASE) {
        memmove(buyer->hold_ids, buyer->hold_ids + 1, sizeof buyer->hold_ids - sizeof buyer->hold_ids[0]);
        buyer->hold_count--;
        buyer->state = buyer->hold_count > 0 ? BUYER_LEAVING : BUYER_IDLE;
    }
    submit(buyers, buyer);
}

static void act_holding(struct demo_buyers *buyers, struct buyer *buyer)
{
    struct seatmap *map = event_map(buyers, &buyer->event_id);
    int free_percent = map != NULL ? 100 - percent_sold(map) : 0;

    seatmap_release(map);
    if (chance(buyers, 10)) {
        act_extend_or_release(buyers, buyer, COMMAND_HOLD_EXTEND);
    } else if (chance(buyers, DEMO_PAY_PERCENT * free_percent * free_percent / 10000)) {
        struct command *command = prepare(buyers, buyer, COMMAND_CHECKOUT_START);
        command->checkout_start.event_id = buyer->event_id;
        submit(buyers, buyer);
    } else if (chance(buyers, 50)) {
        act_extend_or_release(buyers, buyer, COMMAND_HOLD_RELEASE);
    } else { /* walks away: the timer lets the seats go */
        buyer->state = BUYER_IDLE;
        buyer->due_ms += 60000;
    }
}

static const char *choose_token(struct demo_buyers *buyers)
{
    int dice = (int)rng_below(&buyers->rng, 100);

    return dice < 80 ? "tok_ok" : dice < 88 ? "tok_declined" : dice < 96 ? "tok_slow" : "tok_unknown";
}

static void act_paying(struct demo_buyers *buyers, struct buyer *buyer)
{
    int dice = (int)rng_below(&buyers->rng, 100);

    buyer->state = BUYER_IDLE;
    if (dice < 80) {
        struct command *command = prepare(buyers, buyer, COMMAND_CHECKOUT_COMPLETE);
        command->id = buyer->checkout_id;
        command->checkout.payment_token = choose_token(buyers);
    } else if (dice < 92) {
        prepare(buyers, buyer, COMMAND_CHECKOUT_CANCEL)->id = buyer->checkout_id;
    } else {
        return; /* closed the window: the checkout expires with its holds */
    }
    submit(buyers, buyer);
}

static void act(struct demo_buyers *buyers, struct buyer *buyer, int64_t now_ms)
{
    buyer->due_ms = now_ms + think_ms(buyers);
    switch (buyer->state) {
    case BUYER_IDLE:
        act_hold(buyers, buyer);
        break;
    case BUYER_HOLDING:
        act_holding(buyers, buyer);
        break;
    case BUYER_PAYING:
        act_paying(buyers, buyer);
        break;
    case BUYER_LEAVING:
        act_extend_or_release(buyers, buyer, COMMAND_HOLD_RELEASE);
        break;
    }
}

/* ---- What they learn ---- */

static void learn(struct buyer *buyer)
{
    const struct result *result = &buyer->command.result;

    switch (buyer->command.kind) {
    case COMMAND_HOLD_SEATS:
    case COMMAND_HOLD_BEST:
        if (result->err != ERR_OK || result->hold_count == 0)
            break;
        buyer->hold_count =
            result->hold_count < DEMO_HOLD_COUNT_MAX ? result->hold_count : DEMO_HOLD_COUNT_MAX;
        for (int i = 0; i < buyer->hold_count; i++)
            buyer->hold_ids[i] = result->holds[i].row.id;
        buyer->state = BUYER_HOLDING;
        break;
    case COMMAND_HOLD_EXTEND:
        if (result->err != ERR_OK)
            buyer->state = BUYER_IDLE;
        break;
    case COMMAND_CHECKOUT_START:
        buyer->state = result->err == ERR_OK ? BUYER_PAYING : BUYER_IDLE;
        buyer->checkout_id = result->checkout.id;
        break;
    default:
        break;
    }
}

static void take_answers(struct demo_buyers *buyers)
{
    struct list answers;
    struct list *node;

    list_init(&answers);
    queue_take(&buyers->answers, &answers);
    while ((node = list_pop(&answers)) != NULL) {
        struct command *command = CONTAINER_OF(node, struct command, node);
        struct buyer *buyer = CONTAINER_OF(command, struct buyer, command);
        buyer->busy = false;
        buyers->busy_count--;
        learn(buyer);
        command_deinit(command);
    }
}

/* ---- Their thread ---- */

static void publish_next_show(struct demo_buyers *buyers)
{
    struct demo_events *events = &buyers->events;
    struct seatmap *map = event_map(buyers, &events->event_ids[0]);
    bool full = map != NULL && percent_sold(map) >= DEMO_FULL_PERCENT;
    struct uuid next;

    seatmap_release(map);
    if (!full || demo_events_next_show(events, events->show + 1, &next) != ERR_OK)
        return;
    events->show++;
    events->event_ids[0] = next;
    log_write(LOG_INFO, "the next show is on sale", "\"show\":%d", events->show);
}

static void *run(void *context)
{
    struct demo_buyers *buyers = context;
    int64_t show_due_ms = 0;

    while (!atomic_load(&buyers->stopping) || buyers->busy_count > 0) {
        struct pollfd descriptor = {.fd = buyers->answers.fd, .events = POLLIN};
        if (poll(&descriptor, 1, 50) > 0)
            take_answers(buyers);
        if (atomic_load(&buyers->stopping))
            continue;
        int64_t now_ms = clock_now_ms();
        for (int i = 0; i < buyers->count; i++)
            if (!buyers->buyers[i].busy && buyers->buyers[i].due_ms <= now_ms)
                act(buyers, &buyers->buyers[i], now_ms);
        if (now_ms >= show_due_ms) {
            publish_next_show(buyers);
            show_due_ms = now_ms + 10000;
        }
    }
    return NULL;
}

enum err demo_buyers_start(const struct demo_events *events, int count, struct demo_buyers **out)
{
    struct demo_buyers *buyers = calloc(1, sizeof *buyers);

    CHECK(buyers != NULL);
    buyers->events = *events;
    buyers->count = count;
    buyers->buyers = calloc((size_t)count + 1, sizeof *buyers->buyers);
    CHECK(buyers->buyers != NULL);
    rng_init_system(&buyers->rng);
    arena_init(&buyers->scratch);
    enum err err = queue_init(&buyers->answers, (size_t)count + 1);
    if (err != ERR_OK)
        goto failed_queue;
    for (int i = 0; i < count; i++) {
        arena_init(&buyers->buyers[i].arena);
        buyers->buyers[i].user_id = uuid_make(&buyers->rng, clock_now_ms());
        buyers->buyers[i].due_ms = clock_now_ms() + (int64_t)rng_below(&buyers->rng, DEMO_THINK_MS);
    }
    if (pthread_create(&buyers->thread, NULL, run, buyers) != 0) {
        err = ERR_INTERNAL;
        goto failed_thread;
    }
    *out = buyers;
    return ERR_OK;
failed_thread:
    queue_deinit(&buyers->answers);
failed_queue:
    free(buyers->buyers);
    free(buyers);
    return err;
}

void demo_buyers_stop(struct demo_buyers *buyers)
{
    if (buyers == NULL)
        return;
    atomic_store(&buyers->stopping, true);
    pthread_join(buyers->thread, NULL);
    for (int i = 0; i < buyers->count; i++)
        arena_deinit(&buyers->buyers[i].arena);
    arena_deinit(&buyers->scratch);
    queue_deinit(&buyers->answers);
    free(buyers->buyers);
    free(buyers);
}
